"""What an engine believes its KV pools cost, what they really allocate, and what fits."""
