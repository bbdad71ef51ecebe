"""`dsv4doctor audit --ssh-host` as a process, over real OpenSSH servers on loopback."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sshd import SshLab

MODEL = "deepseek-ai/DeepSeek-V4-Flash-of-this-ssh-test"
# As nvidia-smi of a driver of 2026 prints them.
GPUS = "NVIDIA RTX PRO 6000 Blackwell Server Edition, 580.95.05\n" * 2
TOPOLOGY = (
    "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNODE\t0-63\t0\t\tN/A\nGPU1\tNODE\t X \t0-63\t0\t\tN/A\n"
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshLab]:
    """`plain`, `gpus` (has an nvidia-smi), and `picky`, which lets nobody in."""
    lab = SshLab(tmp_path_factory.mktemp("audit-ssh"))
    tools = lab.folder / "tools"
    tools.mkdir()
    (tools / "gpus").write_text(GPUS)
    (tools / "topology").write_text(TOPOLOGY)
    smi = tools / "nvidia-smi"
    smi.write_text(
        f'#!/bin/sh\ncase "$1" in topo) cat {tools}/topology ;; *) cat {tools}/gpus ;; esac\n'
    )
    smi.chmod(0o755)
    try:
        lab.start("plain", address="127.0.2.1")
        force = f'ForceCommand PATH={tools}:$PATH sh -c "$SSH_ORIGINAL_COMMAND"'
        lab.start("gpus", address="127.0.2.2", extra=force)
        lab.start("picky", address="127.0.2.3", extra="DenyUsers *")
        yield lab
    finally:
        lab.stop()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[int]:
    """A process with a decode server's arguments and environment that only waits.

    Packages lie in its folder as pip leaves them, for its own interpreter to find.
    """
    for name, number in (("sglang", "0.5.13"), ("flashinfer_python", "0.6.1")):
        info = tmp_path / f"{name}-{number}.dist-info"
        info.mkdir()
        text = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {number}\n"
        (info / "METADATA").write_text(text)
    env = {**os.environ, "SGLANG_DSV4_BF16_INDEX_K": "1", "SGLANG_SECRET_TOKEN": "plain-words"}
    arguments = [
        "-m", "sglang.launch_server", "--model-path", MODEL, "--tp", "4",
        "--enable-hierarchical-cache", "--disaggregation-mode", "decode",
        "--json-model-override-args", '{"note": "two words\nand a line"}',
    ]  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()", *arguments],
        stdin=subprocess.PIPE, env=env, cwd=tmp_path,
    ) as process:  # fmt: skip
        deadline = time.monotonic() + 20
        while MODEL.encode() not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield process.pid
        assert process.stdin is not None
        process.stdin.close()


def run(lab: SshLab, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dsv4doctor", "audit", *args, "--ssh-config", str(lab.config)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def facts_of(document: dict[str, Any], host: str, pid: int) -> dict[str, Any]:
    subject = f"{host} pid {pid} (decode)"
    facts = document["audit"]["facts"]
    return {fact["name"]: fact["value"] for fact in facts if fact["subject"] == subject}


def test_a_hosts_launch_environment_packages_and_gpus(lab: SshLab, server: int) -> None:
    hosts = ("--ssh-host", "plain", "--ssh-host", "gpus", "--ssh-host", "picky")
    done = run(lab, *hosts, "--json")
    assert done.returncode == 1, done.stderr
    assert "plain-words" not in done.stdout
    document = json.loads(done.stdout)
    told = {host["host"]: host for host in document["audit"]["hosts"]}
    assert list(told) == ["plain", "gpus", "picky"]
    assert "login refused" in told["picky"]["error"]
    assert told["gpus"]["error"] is None

    facts = facts_of(document, "gpus", server)
    assert (facts["tp_size"], facts["model_family"]) == ("4", "v4")
    assert facts["env.SGLANG_DSV4_BF16_INDEX_K"] == "1"
    assert (facts["version"], facts["flashinfer"]) == ("0.5.13", "0.6.1")
    assert facts["kernel"] == platform.release()
    assert facts["gpu"] == "NVIDIA RTX PRO 6000 Blackwell Server Edition"
    assert (facts["gpu_count"], facts["driver"]) == (2, "580.95.05")
    assert facts["topology"] == TOPOLOGY.removesuffix("\n")

    rules = {finding["rule"] for finding in document["findings"]}
    assert {"CASE-01", "CASE-02", "CASE-03"} <= rules
    subjects = {finding["subject"] for finding in document["findings"]}
    assert f"plain pid {server} (decode)" in subjects
    sources = {fact["source"] for fact in document["audit"]["facts"]}
    assert f"packages of gpus pid {server}" in sources


def test_what_a_host_does_not_tell_is_named(lab: SshLab, server: int) -> None:
    document = json.loads(run(lab, "--ssh-host", "plain", "--json").stdout)
    (host,) = document["audit"]["hosts"]
    unknown = set(host["unknown"])
    if not Path("/proc/driver/nvidia").exists():
        assert {"gpu", "driver", "topology"} <= unknown
    assert "kernel" not in unknown
    assert f"environment of pid {server}" not in unknown


def test_a_host_without_a_server_and_one_that_refuses_are_exit_code_3(
    lab: SshLab, tmp_path: Path
) -> None:
    listed = tmp_path / "hosts"
    listed.write_text("picky  # lets nobody in\n")
    done = run(lab, "--ssh-hosts", str(listed))
    assert done.returncode == 3
    assert "login refused" in done.stderr
    assert "Traceback" not in done.stderr
    document = json.loads(run(lab, "--ssh-hosts", str(listed), "--json").stdout)
    assert (document["verdict"], document["exit_code"]) == ("could not run", 3)


def test_nothing_is_left_on_the_host(lab: SshLab, server: int) -> None:
    assert run(lab, "--ssh-host", "plain").returncode == 1
    assert list(lab.temporary.iterdir()) == []
