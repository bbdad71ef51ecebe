"""A page's way from its store to its read, told from what probes observed: pure, no I/O."""
