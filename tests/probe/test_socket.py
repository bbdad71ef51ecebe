"""The rank's socket: one user's alone, never taken for another's, gone when its process is."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from builders_probe import make_probe

from dsv4doctor.probe.channel import Channel, encoded
from dsv4doctor.probe.guard import Guard
from dsv4doctor.probe.journal import Journal
from dsv4doctor.probe.rank import own_folder
from dsv4doctor.probe_protocol import HOPS, status

RANK = SimpleNamespace(tp_rank=0, dp_rank=0, pp_rank=0)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def answer_of(path: Path) -> Any:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(str(path))
        client.sendall(json.dumps(status()).encode() + b"\n")
        with client.makefile() as lines:
            return json.loads(lines.readline())


def test_folder_and_socket_are_this_users_alone(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    before = os.umask(0)
    try:
        channel = Channel(own_folder(folder), "rank", lambda _: {"ok": True})
    finally:
        os.umask(before)
    assert (mode_of(folder), mode_of(channel.path)) == (0o700, 0o600)
    channel.close()
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match="belongs to somebody else"):
        own_folder(tmp_path / "run")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_somebody_elses_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    os.chown(tmp_path / "run", 12345, 12345)
    with pytest.raises(PermissionError, match="belongs to somebody else"):
        own_folder(tmp_path / "run")


def test_records_are_written_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "rank.jsonl").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match=r"rank\.jsonl"):
        Journal().begin(tmp_path / "rank.jsonl")
    assert (tmp_path / "precious").read_text() == "kept"


def test_a_dead_processs_socket_is_replaced_and_a_living_ones_kept(tmp_path: Path) -> None:
    """In a container, the process that comes after one has its id, too."""
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "rank.sock"))
    first = Channel(tmp_path, "rank", lambda _: {"whose": "first"})
    second = Channel(tmp_path, "rank", lambda _: {"whose": "second"})
    assert [first.path.name, second.path.name] == ["rank.sock", "rank-2.sock"]
    assert answer_of(first.path)["whose"] == "first"
    assert answer_of(second.path)["whose"] == "second"
    first.close()
    second.close()


def test_without_a_place_for_the_socket_the_scheduler_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DSV4DOCTOR_PROBE_DIR", str(tmp_path / "file" / "run"))
    probe, _ = make_probe()
    hook = Guard(probe.observer, "pump", HOPS).always(probe.pump)
    for _ in range(3):
        assert hook(RANK) is None
    state: dict[str, Any] = {}
    probe.add_status(SimpleNamespace(internal_state=state))
    (failure,) = state["dsv4doctor"]["failures"]
    assert "NotADirectoryError" in failure
    assert state["dsv4doctor"]["socket"] is None
    assert all(said.startswith("disabled: ") for said in state["dsv4doctor"]["observes"].values())


def test_an_error_that_cannot_even_be_told_is_held_back() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    def broken(*_: Any) -> None:
        raise Mute

    probe, _ = make_probe()
    hook = Guard(probe.observer, "mute", ("load",)).always(broken)
    assert [hook(), hook()] == [None, None]
    assert probe.observer.failures == ["mute: Mute"]


def test_records_are_encoded_as_they_were_in_one_piece() -> None:
    records = [{"n": n, "digests": ["ab"] * 21} for n in range(100)]
    answer = {"v": 1, "ok": True, "records": records, "next": 99, "left": 0, "lost": 0}
    assert json.loads(encoded(answer)) == answer
    assert json.loads(encoded({"v": 1, "records": []})) == {"v": 1, "records": []}
    assert json.loads(encoded({"ok": False})) == {"ok": False}


ENDING = """
import multiprocessing, os, sys
sys.path.insert(0, {tests!r})
from types import ModuleType, SimpleNamespace
from builders_probe import make_probe
from dsv4doctor.probe import plugin

assert not plugin.runs_here(), "no scheduler is near"
sys.modules[plugin.SCHEDULER_MODULE] = ModuleType("scheduler")
assert not plugin.runs_here(), "the launcher has its module, and is none"
starts = multiprocessing.get_context("fork")
rank = starts.Process(target=lambda: os._exit(7 if plugin.runs_here() else 1))
rank.start()
rank.join()
assert rank.exitcode == 7, "its children are schedulers"

probe, _ = make_probe()
probe.pump(SimpleNamespace(tp_rank=0, dp_rank=0, pp_rank=0))
child = os.fork()
if not child:
    sys.exit(0)  # with everything that is done when an interpreter ends
os.waitpid(child, 0)
assert probe.channel.path.exists(), "a child takes nothing away"
raise SystemExit(3)
"""
FORKING = """
import os
from pathlib import Path
from dsv4doctor.probe.channel import Channel

channel = Channel(Path({folder!r}), "rank", lambda _: {{}})
print("child" if os.fork() == 0 else "rank", flush=True)
os.read(0, 1)  # until the test is done with it
os._exit(0)
"""


def program(code: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env={**os.environ, **environment},
    )  # fmt: skip


def test_only_schedulers_are_hooked_and_when_they_end_nothing_is_left(tmp_path: Path) -> None:
    run = tmp_path / "run"
    code = ENDING.format(tests=str(Path(__file__).parent))
    done = program(code, DSV4DOCTOR_PROBE_DIR=str(run))
    _, errors = done.communicate(timeout=240)
    assert (done.returncode, errors) == (3, "")
    assert list(run.iterdir()) == []


def test_a_forked_child_keeps_no_dead_ranks_socket_alive(tmp_path: Path) -> None:
    path = tmp_path / "rank.sock"
    with program(FORKING.format(folder=str(tmp_path))) as rank:
        assert rank.stdout is not None
        assert {rank.stdout.readline().strip() for _ in range(2)} == {"child", "rank"}
        rank.send_signal(signal.SIGKILL)
        rank.wait(timeout=60)
        with socket.socket(socket.AF_UNIX) as client, pytest.raises(ConnectionRefusedError):
            client.connect(str(path))
        assert path.exists(), "what is left over is told as left over"
        rank.communicate(timeout=60)  # closes the child's input: it ends
