"""The probe's socket in a lab process: clients of every kind, and nothing waits for any of them."""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from probed import LONE_RANK, armed

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.checksum.probe_relay import relay
from dsv4doctor.errors import DoctorError
from dsv4doctor.lab import probe_socket
from dsv4doctor.lab.probe_socket import ProbeSocket
from dsv4doctor.lab.probe_state import LabProbe


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name: a socket's path may have 107 characters."""
    made = Path(tempfile.mkdtemp(prefix="probe-"))
    yield made / "run"
    shutil.rmtree(made)


def ask(path: Path, *requests: object) -> list[dict[str, object]]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(path))
        answers = client.makefile("rb")
        found = []
        for request in requests:
            text = request if isinstance(request, bytes) else json.dumps(request).encode()
            client.sendall(text + b"\n")
            found.append(json.loads(answers.readline()))
        return found


def test_every_request_on_a_line_has_its_answer_on_a_line(folder: Path) -> None:
    with ProbeSocket(LabProbe(LONE_RANK), folder) as listener:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        said, refused, armed_, drained = ask(
            listener.path, protocol.status(), b"\xff no JSON", protocol.arm("x"), protocol.drain()
        )
        status = protocol.parse_status(said["status"])
        assert status.rank.pid == os.getpid()
        assert status.socket == str(listener.path)
        assert status.observes["read"] == "yes"
        assert str(status.observes["send"]).startswith("not observable on this version: ")
        assert refused == {"v": 1, "ok": False, "error": "this probe speaks protocol 1"}
        assert protocol.parse_status(armed_["status"]).armed
        assert protocol.parse_drained(drained).observations == ()
    assert not listener.path.exists()


def test_a_client_that_does_not_read_is_dropped_and_others_are_served(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe_socket, "_UNREAD_S", 0.2)
    probe = armed(LabProbe(LONE_RANK))
    for page in range(20_000):
        entry = probe.launch(protocol.STORE, "index_k", (0,), page=page)
        assert entry is not None
        entry.waits = 0
    with (
        ProbeSocket(probe, folder) as listener,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as deaf,
    ):
        deaf.connect(str(listener.path))
        for _ in range(20):
            deaf.sendall(json.dumps(protocol.drain()).encode() + b"\n")
        # Served at once, whatever the deaf one does.
        assert ask(listener.path, protocol.status())[0]["ok"]
        # Some answers fit the socket's buffer; then it is hung up on, unread as they are.
        hung_up = select.poll()
        hung_up.register(deaf, select.POLLRDHUP)
        assert hung_up.poll(60_000)
        assert ask(listener.path, protocol.status())[0]["ok"]


def test_retired_for_good_nothing_is_left(folder: Path) -> None:
    with ProbeSocket(LabProbe(LONE_RANK), folder) as listener:
        assert ask(listener.path, protocol.arm("x", to_file=True))[0]["ok"]
        assert len(list(folder.iterdir())) == 2
        assert ask(listener.path, protocol.retire())[0]["ok"]
        assert list(folder.iterdir()) == []


def test_the_file_has_the_records_that_a_drain_has(folder: Path) -> None:
    import numpy as np

    probe = LabProbe(LONE_RANK)
    with ProbeSocket(probe, folder) as listener:
        ask(listener.path, protocol.arm("x", to_file=True))
        for page in range(5):
            entry = probe.launch(protocol.STORE, "index_k", (0,), page=page)
            probe.digest(entry, 0, np.full(8448, page, dtype=np.uint8))
        records = probe.answer(protocol.drain())["records"]
        probe.close()
        assert probe.file_path is not None
        lines = probe.file_path.read_text().splitlines()
    assert [json.loads(line) for line in lines] == records
    pages = [each.page for line in lines for each in protocol.parse_record(json.loads(line))]
    assert pages == [0, 1, 2, 3, 4]


def test_a_folder_that_cannot_be_is_refused_in_words(folder: Path) -> None:
    too_long = folder / ("x" * 120)
    with pytest.raises(DoctorError, match="cannot be made") as raised:
        ProbeSocket(LabProbe(LONE_RANK), too_long)
    assert "DSV4DOCTOR_PROBE_DIR" in raised.value.hint


def test_the_relay_asks_every_socket_of_a_folder_and_knows_old_ones(folder: Path) -> None:
    with ProbeSocket(LabProbe(LONE_RANK), folder) as listener:
        old = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        old.bind(str(folder / "old.sock"))
        old.close()
        job = {"folders": [str(folder)], "asks": [[None, protocol.status()]]}
        found = relay(job)
        by_name = dict(zip(found["asked"], found["answers"], strict=True))
        assert by_name[str(listener.path)]["ok"]
        assert by_name[str(folder / "old.sock")]["is_old"]
        # A folder that `probe install` was given has them in its `run`.
        assert relay({**job, "folders": [str(folder.parent)]})["sockets"] == found["sockets"]
        assert relay({**job, "folders": ["${SURELY_NOT_SET_ANYWHERE}"]})["sockets"] == []
