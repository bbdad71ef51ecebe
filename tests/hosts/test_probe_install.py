"""The probe put on a host over a real OpenSSH server, asked, and taken away without a trace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sshd import SshLab

from dsv4doctor.flows.checksum import Targets
from dsv4doctor.flows.probe import ProbeOutcome, lines_of, run_probe

# Stands for a scheduler: takes steps, and says when its probe's socket is there.
RANK = """
import sys, time
from importlib.metadata import entry_points
(entry,) = entry_points(group="sglang.srt.plugins")
assert entry.name == "dsv4doctor"
plugin = entry.load().__globals__
probe = plugin["RankProbe"](plugin["Observer"]())
class Scheduler:
    tp_rank, dp_rank, pp_rank = 3, 0, 0
probe.pump(Scheduler())
print("ready", flush=True)
while True:
    probe.pump(Scheduler())
    time.sleep(0.01)
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshLab]:
    lab = SshLab(tmp_path_factory.mktemp("ssh"))
    try:
        lab.start("serving")
        lab.start("old", address="127.0.0.2")
        yield lab
    finally:
        lab.stop()


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A Python that serves: this one, with an SGLang of which only the metadata is asked."""
    site = tmp_path / "site"
    (site / "sglang").mkdir(parents=True)
    (site / "sglang" / "__init__.py").touch()
    info = site / "sglang-0.5.23.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sglang\nVersion: 0.5.23\n")
    return wrapper(tmp_path / "python", f'PYTHONPATH={site} exec {sys.executable} "$@"')


def wrapper(path: Path, line: str) -> Path:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "there" / "probe"


def probe(
    action: str, lab: SshLab, folder: Path, python: Path, *hosts: str, answer_s: float = 15
) -> ProbeOutcome:
    targets = Targets(
        ssh_hosts=hosts or ("serving",),
        ssh_config=lab.config,
        python=str(python),
    )
    return run_probe(action, targets, folder=str(folder), answer_s=answer_s)


def row(outcome: ProbeOutcome) -> dict[str, Any]:
    (found,) = outcome.body["hosts"]
    return dict(found)


@pytest.fixture
def rank(folder: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Call it to start a rank from the installed folder."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def start_rank(folder: Path, started: list[subprocess.Popen[str]]) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
    process = subprocess.Popen(
        [sys.executable, "-c", RANK], env=environment, cwd="/", text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    started.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.communicate()[1]
    return process


def test_installed_used_and_removed(
    lab: SshLab, folder: Path, python: Path, rank: list[subprocess.Popen[str]]
) -> None:
    installed = row(probe("install", lab, folder, python))
    assert (installed["sglang"], installed["current"]) == ("0.5.23", True)
    assert installed["launch"] == [
        f"export PYTHONPATH={folder}${{PYTHONPATH:+:$PYTHONPATH}}",
        "export SGLANG_PLUGINS=dsv4doctor",
    ]
    assert {path.name for path in folder.iterdir()} == {
        "dsv4doctor_probe", "dsv4doctor_probe-0.1.0.dist-info",
    }  # fmt: skip
    assert folder.parent.stat().st_mode & 0o077 == 0

    process = start_rank(folder, rank)
    asked = probe("status", lab, folder, python)
    assert asked.verdict == "loaded"
    (seen,) = row(asked)["ranks"]
    assert (seen["status"]["rank"]["tp"], seen["status"]["armed"]) == (3, False)
    assert any(f"tp3-pp0-{process.pid}.sock: off" in line for line in lines_of(asked))

    # Installed again while it runs: the rank keeps its socket.
    assert len(row(probe("install", lab, folder, python))["ranks"]) == 1

    removed = probe("remove", lab, folder, python)
    assert removed.verdict == "removed"
    assert any("retired" in line for line in lines_of(removed))
    assert not folder.exists()
    assert list(lab.temporary.iterdir()) == []
    assert process.poll() is None, "the server goes on"
    assert probe("status", lab, folder, python).verdict == "absent"


def test_ranks_that_are_stuck_or_dead_hold_up_nothing(
    lab: SshLab, folder: Path, python: Path, rank: list[subprocess.Popen[str]]
) -> None:
    probe("install", lab, folder, python)
    process = start_rank(folder, rank)
    process.send_signal(signal.SIGSTOP)
    (stuck,) = row(probe("status", lab, folder, python, answer_s=1))["ranks"]
    assert "timed out" in stuck["problem"]
    process.send_signal(signal.SIGKILL)
    process.wait()
    asked = probe("status", lab, folder, python)
    assert asked.verdict == "installed"
    (dead,) = row(asked)["ranks"]
    assert "ConnectionRefusedError" in dead["problem"]
    assert any("gone (" in line for line in lines_of(asked))
    assert probe("remove", lab, folder, python).verdict == "removed"
    assert not folder.exists()


def test_an_old_python_says_so(lab: SshLab, folder: Path, tmp_path: Path) -> None:
    pretend = (
        "import sys; sys.version_info = (3, 9, 18); exec(compile(sys.stdin.read(), '-', 'exec'))"
    )
    old = wrapper(tmp_path / "python3.9", f'exec {sys.executable} -c "{pretend}"')
    outcome = probe("install", lab, folder, old)
    assert outcome.exit_code == 3
    assert "is Python 3.9: the probe needs 3.10 or newer" in row(outcome)["error"]
    assert not folder.parent.exists()


def test_a_python_without_sglang_says_so(lab: SshLab, folder: Path) -> None:
    outcome = probe("install", lab, folder, Path(sys.executable))
    assert "has no sglang: name the Python that serves" in row(outcome)["error"]
    assert not folder.parent.exists()


def test_one_host_without_python_leaves_the_other_its_answer(
    lab: SshLab, folder: Path, python: Path, tmp_path: Path
) -> None:
    link = tmp_path / "only-on-serving"
    text = f'case "$SSH_CONNECTION" in *127.0.0.2*) exit 127;; esac; exec {python} "$@"'
    wrapper(link, text)
    outcome = probe("install", lab, folder, link, "serving", "old")
    good, bad = outcome.body["hosts"]
    assert (outcome.exit_code, good["error"]) == (0, None)
    assert bad["error"].startswith("old: ")


def test_what_is_not_ours_is_not_touched(lab: SshLab, tmp_path: Path, python: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "precious").write_text("x")
    for action in ("install", "remove"):
        assert (
            "holds what is not the probe's (precious)"
            in row(probe(action, lab, mine, python))["error"]
        )
    assert [path.name for path in mine.iterdir()] == ["precious"]


def test_the_command_line(lab: SshLab, folder: Path, python: Path) -> None:
    words = ["--ssh-host", "serving", "--ssh-config", str(lab.config), "--remote-python",
             str(python), "--folder", str(folder)]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "dsv4doctor", "probe", "install", *words],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"    export PYTHONPATH={folder}$" in done.stdout
    done = subprocess.run(
        [sys.executable, "-m", "dsv4doctor", "probe", "remove", "--json", *words],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    document = json.loads(done.stdout)
    assert (document["command"], document["verdict"]) == ("probe", "removed")
    assert not folder.exists()
