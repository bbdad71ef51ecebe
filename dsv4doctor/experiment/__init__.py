"""What a controlled experiment is made of: factors, arms, the order of blocks, and proofs. Pure."""
