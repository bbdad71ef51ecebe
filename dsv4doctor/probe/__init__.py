"""The plugin that follows index-K's bytes inside a running SGLang (`docs/probe.md`).

It runs in SGLang's own scheduler processes with what SGLang brings (Python 3.10, torch, triton) and
must never take one down: every hook catches its failure and switches itself off. `package.py` says
what is shipped to a host.
"""
