"""`repro` against llama.cpp's server with a real, small model: it copies, errs, loops and stops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from realserver.driving import drive
from realserver.llama_server import llama_server
from realserver.serving import Serving

pytestmark = pytest.mark.realserver


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with llama_server(tmp_path_factory.mktemp("llama")) as it:
        yield it


def test_calls_of_a_real_model_are_labelled_as_a_person_would(
    server: Serving, tmp_path: Path
) -> None:
    done = drive(tmp_path, server.url, "few-shot", sessions=2, turns=3)
    target = done.body["target"]
    assert target["engine"] not in {"sglang", "vllm"}
    assert target["model"]
    assert done.body["ttft_ms"]["n"] == done.body["responses"] == 4
    assert done.body["completion_tokens"] > 0
    assert server.answers("/health")
