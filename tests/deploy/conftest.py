"""Hosts for the deploy tests: this machine, and a real OpenSSH server on loopback."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from sites import (
    HOSTILE,
    Connect,
    free_port,
    one_role,
    server_script,
    start_baseline,
    start_of,
)
from sshd import SshLab

from dsv4doctor.deploy.document import Deployment, HostEntry
from dsv4doctor.hosts.inventory import parse_host
from dsv4doctor.hosts.local import LocalTransport
from dsv4doctor.hosts.ssh import SshTransport
from dsv4doctor.hosts.transport import Transport


@pytest.fixture(scope="session")
def ssh_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshLab]:
    lab = SshLab(tmp_path_factory.mktemp("ssh"))
    try:
        lab.start("one")
        lab.start("two", address="127.0.0.2")
        yield lab
    finally:
        lab.stop()


@pytest.fixture(params=["local", "ssh"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> HostEntry:
    """A host whose folder is the test's own."""
    ssh = None
    if request.param == "ssh":
        request.getfixturevalue("ssh_lab")
        ssh = "one"
    return HostEntry(name="here", ssh=ssh, state_dir=str(tmp_path / "state"))


@pytest.fixture
def connect(request: pytest.FixtureRequest) -> Connect:
    def opened(entry: HostEntry) -> Transport:
        if entry.ssh is None:
            return LocalTransport(entry.name)
        lab = request.getfixturevalue("ssh_lab")
        return SshTransport(parse_host(entry.ssh), config_file=lab.config)

    return opened


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[None]:
    """Ends what a test left running: every process noted under its folder."""
    yield
    for note in tmp_path.rglob("pid"):
        words = note.read_text().split()
        # A number may belong to another process by now: the start time tells.
        if len(words) == 2 and start_of(words[0]) == words[1]:
            os.kill(int(words[0]), signal.SIGKILL)


@pytest.fixture
def running(host: HostEntry, tmp_path: Path) -> Iterator[tuple[Deployment, int]]:
    """A deployment that runs with hostile words and variables, and its port."""
    port = free_port()
    deployment = one_role(host, server_script(tmp_path), port, *HOSTILE)
    process = start_baseline(deployment, {"ODD": "it's $5\nand more", "DROPPED": "1"})
    try:
        yield deployment, port
    finally:
        process.kill()
        process.wait()
