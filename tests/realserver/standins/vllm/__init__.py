"""Stands in for vLLM, of which SGLang on a CPU without its own kernels uses three operators."""
