"""`repro` against `transformers serve`, which never sends `[DONE]` and ignores the tools."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from realserver.driving import drive
from realserver.serving import Serving, free_port, serving
from realserver.sglang_cpu import STANDINS, START_LIMIT_S, environment, tiny_model

pytestmark = pytest.mark.realserver


@pytest.fixture(scope="module")
def model() -> Path:
    return tiny_model(environment())


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    port = free_port()
    command = [
        environment().parent / "transformers", "serve", model, "--device", "cpu",
        "--host", "127.0.0.1", "--port", port, "--default-seed", "1",
    ]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": str(STANDINS), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    log = tmp_path_factory.mktemp("transformers") / "server.log"
    with serving(
        command, port=port, log=log, health="/health", limit_s=START_LIMIT_S, env=env
    ) as it:
        yield it


def test_a_stream_without_done_is_a_reply_all_the_same(
    server: Serving, model: Path, tmp_path: Path
) -> None:
    done = drive(tmp_path, server.url, "forced", "--model", str(model), sessions=2, turns=4)
    records = [record for record in done.records() if not record["aborted"]]
    assert not any(record["saw_done"] for record in records)
    assert not any(record["response"]["tool_calls"] for record in records)
    assert done.document["verdict"] == "corrupted"
