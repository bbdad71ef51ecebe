"""Commands on this machine and over a real OpenSSH server: the same answers from both."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from argv import argv_command
from needs import program
from sshd import SshLab

from dsv4doctor.hosts.fanout import fan_out
from dsv4doctor.hosts.inventory import Host
from dsv4doctor.hosts.local import LocalTransport
from dsv4doctor.hosts.runner import HEARTBEAT, command_line, first_input
from dsv4doctor.hosts.ssh import SshTransport
from dsv4doctor.hosts.transport import (
    AnswerCut,
    Command,
    CommandTimeout,
    HostError,
    HostKeyRefused,
    HostUnreachable,
    Transport,
)

END_S = 5.0  # by when nothing of a cut command may be alive


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshLab]:
    lab = SshLab(tmp_path_factory.mktemp("ssh"))
    try:
        lab.start("one")
        lab.start("gate", address="127.0.0.2")
        lab.start("behind", address="127.0.0.3", jump="gate")
        yield lab
    finally:
        lab.stop()


@pytest.fixture(params=["local", "one", "behind"])
def transport(request: pytest.FixtureRequest) -> Iterator[Transport]:
    if request.param == "local":
        yield LocalTransport()
        return
    lab = request.getfixturevalue("lab")
    opened = SshTransport(Host(name=request.param), config_file=lab.config)
    yield opened
    opened.close()


def wait_until(is_true: Callable[[], bool], *, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if is_true():
            return True
        time.sleep(0.05)
    return is_true()


def alive(pids: list[int]) -> list[int]:
    """Which processes still run (a zombie does not)."""
    found = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in "ZX":
            found.append(pid)
    return found


AWKWARD = [
    "plain", "two words", "it's", '"quoted"', "-n", "--", "new\nline", "$HOME `id` !! \\",
    "naïve 日本 🩺", "", "*", "tab\tand\rreturn",
]  # fmt: skip


def test_arguments_arrive_as_they_were(transport: Transport):
    program = "import sys, json; print(json.dumps(sys.argv[1:]))"
    result = transport.run(argv_command([sys.executable, "-c", program, *AWKWARD]))
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout) == AWKWARD


def test_streams_and_exit_code_are_kept_apart(transport: Transport):
    result = transport.run(Command(script="echo out; echo err >&2; exit 7"))
    assert (result.stdout, result.stderr, result.exit_code) == (b"out\n", b"err\n", 7)


def test_input_reaches_the_command_byte_for_byte(transport: Transport):
    data = bytes(range(256)) * 4096
    assert transport.run(Command(script="cat", stdin=data)).stdout == data


def test_fifty_megabytes_come_back_intact(transport: Transport):
    script = "head -c 52428800 /dev/zero | tr '\\0' x; sha256sum </dev/null >&2"
    result = transport.run(Command(script=script, timeout_s=120))
    assert len(result.stdout) == 52_428_800
    assert result.stdout == b"x" * 52_428_800


def test_a_command_killed_by_a_signal_says_so(transport: Transport):
    assert transport.run(Command(script="kill -9 $$")).exit_code == 128 + 9


def test_the_private_directory_is_removed(transport: Transport):
    result = transport.run(Command(script='touch "$TMPDIR/left"; echo "$TMPDIR"'))
    folder = Path(result.text.strip())
    assert folder.name.startswith("dsv4doctor.")
    assert wait_until(lambda: not folder.exists(), within_s=END_S)


def test_what_a_command_left_running_dies_with_it(transport: Transport):
    result = transport.run(Command(script="sleep 300 & echo $!"))
    assert wait_until(lambda: not alive([int(result.text)]), within_s=END_S)


# Ignores TERM, and has a grandchild: the whole group has to be killed.
STUBBORN = 'trap "" TERM; sleep 301 & echo $$ $! "$TMPDIR" >{path}; while :; do sleep 1; done'


def started(path: Path) -> tuple[list[int], Path]:
    assert wait_until(lambda: path.exists() and path.read_text().endswith("\n"), within_s=20)
    leader, child, folder = path.read_text().split()
    return [int(leader), int(child)], Path(folder)


def test_a_command_that_outruns_its_time_is_ended(transport: Transport, tmp_path: Path):
    script = STUBBORN.format(path=tmp_path / "pids")
    with pytest.raises(CommandTimeout, match="within 2 s"):
        transport.run(Command(script=script, timeout_s=2))
    pids, folder = started(tmp_path / "pids")
    assert wait_until(lambda: not alive(pids) and not folder.exists(), within_s=END_S)


def test_commands_run_side_by_side_on_one_connection(lab: SshLab):
    transport = SshTransport(Host(name="one"), config_file=lab.config)
    answers: dict[int, bytes] = {}

    def work(number: int) -> None:
        answers[number] = transport.run(argv_command(["echo", str(number)])).stdout

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    transport.close()
    assert answers == {i: f"{i}\n".encode() for i in range(6)}


def test_a_jump_host_is_passed_through(lab: SshLab):
    before = lab.servers["gate"].log.count("Accepted publickey")
    transport = SshTransport(Host(name="behind"), config_file=lab.config)
    assert transport.run(argv_command(["echo", "hello"])).stdout == b"hello\n"
    transport.close()
    assert lab.servers["gate"].log.count("Accepted publickey") == before + 1


def test_a_killed_connection_is_noticed_and_its_command_ended(lab: SshLab, tmp_path: Path):
    server = lab.start("mortal", address="127.0.0.4")
    transport = SshTransport(Host(name="mortal"), config_file=lab.config)
    failures: list[HostError] = []

    def work() -> None:
        try:
            transport.run(Command(script=STUBBORN.format(path=tmp_path / "pids")))
        except HostError as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    pids, folder = started(tmp_path / "pids")
    server.drop_connections()
    thread.join(timeout=20)
    assert isinstance(failures[0], AnswerCut)
    assert "connection was lost" in str(failures[0])
    assert wait_until(lambda: not alive(pids) and not folder.exists(), within_s=END_S)
    transport.close()


CLIENT = """
import sys
from pathlib import Path
from dsv4doctor.hosts.inventory import Host
from dsv4doctor.hosts.runner import HEARTBEAT, command_line, first_input
from dsv4doctor.hosts.ssh import SshTransport
from dsv4doctor.hosts.transport import Command
transport = SshTransport(Host(name="one"), config_file=Path(sys.argv[1]))
transport.run(Command(script=sys.argv[2], timeout_s=300))
"""


def test_nothing_outlives_our_own_death(lab: SshLab, tmp_path: Path):
    script = STUBBORN.format(path=tmp_path / "pids")
    doctor = subprocess.Popen([sys.executable, "-c", CLIENT, lab.config, script])
    pids, folder = started(tmp_path / "pids")
    os.kill(doctor.pid, signal.SIGKILL)
    doctor.wait(timeout=10)
    assert wait_until(lambda: not alive(pids) and not folder.exists(), within_s=END_S)


def test_silence_ends_the_command_although_the_line_stays_open(tmp_path: Path):
    """A network that dies without closing anything: heartbeats stop, and that is enough."""
    command = Command(script=STUBBORN.format(path=tmp_path / "pids"))
    line = command_line(command, "nonce", silence_s=2)
    runner = subprocess.Popen(
        ["sh", "-c", line], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert runner.stdin is not None
    runner.stdin.write(first_input(command))
    runner.stdin.flush()
    pids, folder = started(tmp_path / "pids")
    for _ in range(4):  # as long as they come, it lives
        time.sleep(0.8)
        runner.stdin.write(HEARTBEAT)
        runner.stdin.flush()
    assert alive(pids) == pids
    assert wait_until(lambda: not alive(pids) and not folder.exists(), within_s=2 + END_S)
    runner.communicate(timeout=10)


def test_noise_before_the_answer_is_skipped(lab: SshLab, tmp_path: Path):
    """A login shell that greets with binary rubbish, as a careless ~/.bashrc does."""
    shell = tmp_path / "noisy"
    shell.write_text('#!/bin/sh\nhead -c 70000 /dev/urandom\necho greetings >&2\nexec "$@"\n')
    shell.chmod(0o755)
    extra = f'ForceCommand {shell} sh -c "$SSH_ORIGINAL_COMMAND"'
    lab.start("noisy", address="127.0.0.5", extra=extra)
    transport = SshTransport(Host(name="noisy"), config_file=lab.config)
    assert transport.run(argv_command(["echo", "quiet"])).stdout == b"quiet\n"
    transport.close()


def test_a_host_that_runs_nothing_is_named_with_what_it_said(lab: SshLab):
    lab.start("closed", address="127.0.0.6", extra="ForceCommand echo 'no shell for you' >&2")
    transport = SshTransport(Host(name="closed"), config_file=lab.config)
    with pytest.raises(HostError, match=r"closed: no answer came back: no shell for you"):
        transport.run(argv_command(["true"]))
    transport.close()


def test_an_unknown_key_is_refused_with_the_line_that_accepts_it(lab: SshLab):
    server = lab.start("stranger", address="127.0.0.7", is_known=False)
    before = lab.known_hosts.read_text()
    with pytest.raises(HostKeyRefused, match=r"stranger: its host key is unknown: .*SHA256:") as e:
        SshTransport(Host(name="stranger"), config_file=lab.config)
    assert f"[127.0.0.7]:{server.port} {server.public_key}" in e.value.hint
    assert lab.known_hosts.read_text() == before
    command = e.value.hint.partition("then: ")[2]
    subprocess.run(["sh", "-c", command], check=True)
    transport = SshTransport(Host(name="stranger"), config_file=lab.config)
    assert transport.run(argv_command(["true"])).exit_code == 0
    transport.close()


def test_a_changed_key_is_refused(lab: SshLab):
    server = lab.start("changed", address="127.0.0.8", is_known=False)
    other = lab.servers["one"].public_key
    with lab.known_hosts.open("a") as file:
        file.write(f"[127.0.0.8]:{server.port} {other}\n")
    with pytest.raises(HostKeyRefused, match=r"not the known one: it shows .*known is SHA256:"):
        SshTransport(Host(name="changed"), config_file=lab.config)


def test_a_login_that_is_refused_and_a_port_where_nothing_listens(lab: SshLab):
    lab.start("picky", address="127.0.0.9", extra="DenyUsers *")
    with pytest.raises(HostUnreachable, match=r"picky .*: login refused"):
        SshTransport(Host(name="picky"), config_file=lab.config)
    lab.describe("nobody", "127.0.0.10", 9)
    with pytest.raises(HostUnreachable, match=r"nobody \(.*127\.0\.0\.10:9\)"):
        SshTransport(Host(name="nobody"), config_file=lab.config)
    with pytest.raises(HostUnreachable, match="no such host"):
        SshTransport(Host(name="nowhere.invalid", port=22), config_file=lab.config)


def test_a_configuration_that_ssh_refuses_is_named(tmp_path: Path):
    config = tmp_path / "config"
    config.write_text("Hostt x\n")
    with pytest.raises(HostUnreachable, match="ssh refuses its configuration"):
        SshTransport(Host(name="x"), config_file=config)


def test_fan_out_keeps_each_failure_with_its_host(lab: SshLab):
    def connect(name: str) -> Transport:
        return SshTransport(Host(name=name), config_file=lab.config)

    lab.describe("absent", "127.0.0.11", 9)
    found = fan_out(
        ["one", "absent", "behind"], connect, lambda t: t.run(argv_command(["echo", t.name])).text
    )
    assert [result.host for result in found] == ["one", "absent", "behind"]
    assert [result.answer for result in found] == ["one\n", None, "behind\n"]
    assert found[1].problem is not None
    assert "absent" in found[1].problem
    assert fan_out([], connect, lambda t: t.name) == ()


def test_a_container_prefix_is_put_in_front(transport: Transport):
    """`env` stands where `docker exec -i NAME` would: it passes stdin and arguments on."""
    command = Command(script='echo "$INSIDE"', prefix=("env", "INSIDE=a 'b' c"))
    assert transport.run(command).stdout == b"a 'b' c\n"


def alias(lab: SshLab, name: str, *, identity: Path) -> str:
    """One more name of `one`, with another key, in a file that the configuration includes."""
    server = lab.servers["one"]
    return (
        f"Host {name}\n  HostName {server.address}\n  Port {server.port}\n"
        f"  IdentityFile {identity}\n  UserKnownHostsFile {lab.known_hosts}\n"
    )


def test_an_included_configuration_and_the_agents_keys_are_used(
    lab: SshLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "more").write_text(alias(lab, "by-agent", identity=tmp_path / "absent"))
    (tmp_path / "config").write_text(f"Include {tmp_path}/more\n")
    host = Host(name="by-agent")
    monkeypatch.setenv("HOME", str(tmp_path))  # no keys of the person who runs the tests
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with pytest.raises(HostUnreachable, match="no key to log in with"):
        SshTransport(host, config_file=tmp_path / "config")
    socket_path = tmp_path / "agent"
    agent = subprocess.Popen(
        [program("ssh-agent", package="openssh-client"), "-D", "-a", socket_path],
        stdout=subprocess.DEVNULL,
    )
    try:
        assert wait_until(socket_path.exists, within_s=10)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket_path))
        subprocess.run(["ssh-add", "-q", lab.folder / "user_key"], check=True)
        transport = SshTransport(host, config_file=tmp_path / "config")
        assert transport.run(argv_command(["echo", "in"])).stdout == b"in\n"
        transport.close()
    finally:
        agent.terminate()
        agent.wait(timeout=10)


def test_a_key_with_a_passphrase_is_named_with_the_way_out(
    lab: SshLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    key = tmp_path / "locked"
    subprocess.run([lab.keygen, "-q", "-t", "ed25519", "-N", "open sesame", "-f", key], check=True)
    (tmp_path / "config").write_text(alias(lab, "locked", identity=key))
    with pytest.raises(HostUnreachable, match="passphrase") as caught:
        SshTransport(Host(name="locked"), config_file=tmp_path / "config")
    assert "ssh-add" in caught.value.hint
