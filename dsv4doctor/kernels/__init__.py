"""Digests, scores and patterns over DeepSeek-V4 cache pages: the same bits on every device.

One op a file: formula, Triton kernel, plain torch reference, launcher. `reference.py` needs only
numpy and `fast.py` numba; `layouts.py` and `coefficients.py` are what they all share. Nothing here
imports the rest of dsv4doctor, so that the folder can be sent to a host as it is.
"""
