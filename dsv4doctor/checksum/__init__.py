"""Checksums of cache pages: on this machine, on other hosts, and of dumped tensors."""
