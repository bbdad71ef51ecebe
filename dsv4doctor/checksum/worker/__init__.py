"""The program that runs on a host: kernels against references, copies, races, speed.

Sent as source and run by whatever Python serves there, so it imports nothing but `kernels`, numpy
and, where the host has them, torch, triton and numba; Python 3.10 has to be able to read it.
"""
