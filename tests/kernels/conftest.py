"""Kernels run under Triton's interpreter, or on a GPU with `TRITON_INTERPRET=0 pytest -m gpu`."""

from __future__ import annotations

import os

import pytest

# Triton reads this when it is imported, so it has to be set before any test module is.
os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """Where the kernels' tensors live: the interpreter's CPU, or a GPU."""
    interpreting = os.environ["TRITON_INTERPRET"] == "1"
    if request.param == "cuda" and interpreting:
        pytest.skip("compiled kernels run with TRITON_INTERPRET=0")
    if request.param == "cpu" and not interpreting:
        pytest.skip("the interpreter runs with TRITON_INTERPRET=1")
    return str(request.param)
