"""A host's server processes, read from /proc by a real command on a real process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from dsv4doctor.audit.evaluate import evaluate
from dsv4doctor.flows.audit_host import facts_of_host
from dsv4doctor.flows.audit_sources import model_family
from dsv4doctor.hosts.local import LocalTransport

MODEL = "deepseek-ai/DeepSeek-V4-Flash-of-this-test"


@pytest.fixture
def server() -> Iterator[int]:
    """A process with a server's command line and environment, and nothing of a server."""
    env = {**os.environ, "SGLANG_DSV4_BF16_INDEX_K": "1", "SGLANG_TEST_RETRACT": "0"}
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()", "-m", "sglang.launch_server",
         "--model-path", MODEL, "--enable-hierarchical-cache", "--tp", "4"],
        stdin=subprocess.PIPE, env=env,
    ) as process:  # fmt: skip
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with open(f"/proc/{process.pid}/cmdline", "rb") as file:
                if MODEL.encode() in file.read():
                    break
        yield process.pid
        assert process.stdin is not None
        process.stdin.close()


def test_process_arguments_and_environment(server: int) -> None:
    transport = LocalTransport()
    host = facts_of_host(transport, {}, frozenset())
    transport.close()
    (facts,) = [found for found in host.subjects if found.value("model") == MODEL]
    assert facts.subject == f"localhost pid {server}"
    assert facts.value("tp_size") == "4"
    assert facts.value("env.SGLANG_DSV4_BF16_INDEX_K") == "1"
    assert facts.value("model_family") == "v4"
    found = {item.finding.rule for item in evaluate([facts]).findings}
    assert {"CASE-01", "CASE-02"} <= found
    assert "SW-01" not in found


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("deepseek-ai/DeepSeek-V4-Flash", "v4"),
        ("/models/dsv4-pro", "v4"),
        ("deepseek-ai/DeepSeek-V4.1-Flash", "v41"),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "v32"),
        ("deepseek-ai/DeepSeek-V3.1", "v31"),
        ("deepseek-ai/DeepSeek-V3", "v3"),
        ("zai-org/GLM-5.3-Flash", "glm"),
        ("Qwen/Qwen3-32B", None),
    ],
)
def test_model_family(name: str, family: str | None) -> None:
    assert model_family(name) == family
