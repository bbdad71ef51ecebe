"""A real OpenSSH server on loopback for tests: own keys, own port, stopped by its pid.

Several servers on 127.0.0.1, 127.0.0.2, … stand for several hosts. `SshLab` writes the client's
side too: an ssh configuration with one alias a host, and known_hosts with the keys that are known.
`Namespaces` are hosts with network stacks of their own, some reachable only through another; they
need root and `ip netns`, so what must run everywhere uses loopback.
"""

from __future__ import annotations

import os
import pwd
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from needs import program

START_S = 10.0


@dataclass
class Server:
    """One running sshd."""

    alias: str
    address: str
    port: int
    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def public_key(self) -> str:
        return (self.folder / "host_key.pub").read_text().rsplit(" ", 1)[0].strip()

    @property
    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def sessions(self) -> list[int]:
        """Process ids of the server's open connections."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == self.process.pid:
                found.append(int(path.parent.name))
        return found

    def drop_connections(self) -> None:
        """Cut every connection as a dying host would: no goodbye on the SSH level."""
        for pid in self.sessions():
            os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        self.drop_connections()
        self.process.terminate()
        self.process.wait(timeout=10)


class Namespaces:
    """Network namespaces with a sshd each: outer ones are our neighbours, inner ones a gate's."""

    def __init__(self) -> None:
        self.ip = program("ip", package="iproute2")
        self.names: list[str] = []
        self.links: list[str] = []

    def _run(self, *arguments: str) -> None:
        done = subprocess.run([self.ip, *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            if os.environ.get("CI") and os.geteuid() == 0:
                pytest.fail(f"ip {' '.join(arguments)}: {done.stderr}")
            pytest.skip(f"no network namespaces here: {done.stderr.strip()}")

    def add(self, *, behind: str = "") -> tuple[str, str]:
        """(namespace, its address): a neighbour of ours, or of the namespace `behind`."""
        number = len(self.names)
        name, ours, theirs = (f"{kind}{os.getpid() % 100000}n{number}" for kind in ("d", "o", "t"))
        self._run("netns", "add", name)
        self.names.append(name)
        near = ("-n", behind) if behind else ()
        self._run(*near, "link", "add", ours, "type", "veth", "peer", "name", theirs)
        if not behind:
            self.links.append(ours)
        self._run(*near, "link", "set", theirs, "netns", name)
        self._run(*near, "addr", "add", f"10.213.{number}.1/30", "dev", ours)
        self._run(*near, "link", "set", ours, "up")
        self._run("-n", name, "addr", "add", f"10.213.{number}.2/30", "dev", theirs)
        self._run("-n", name, "link", "set", theirs, "up")
        self._run("-n", name, "link", "set", "lo", "up")
        return name, f"10.213.{number}.2"

    def remove(self) -> None:
        for link in self.links:
            subprocess.run([self.ip, "link", "del", link], check=False, capture_output=True)
        for name in self.names:
            subprocess.run([self.ip, "netns", "del", name], check=False, capture_output=True)


@dataclass
class SshLab:
    """Servers on loopback and one client configuration that knows them."""

    folder: Path
    servers: dict[str, Server] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sshd = program("sshd", package="openssh-server")
        self.keygen = program("ssh-keygen", package="openssh-client")
        Path("/run/sshd").mkdir(exist_ok=True)
        self._make_key(self.folder / "user_key")
        (self.folder / "known_hosts").touch()
        (self.folder / "config").touch()
        self.temporary.mkdir()

    @property
    def config(self) -> Path:
        return self.folder / "config"

    @property
    def temporary(self) -> Path:
        """TMPDIR of every session on these hosts."""
        return self.folder / "tmp"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    def _make_key(self, path: Path) -> None:
        subprocess.run([self.keygen, "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)

    def start(
        self, alias: str, *, address: str = "127.0.0.1", jump: str = "", is_known: bool = True,
        extra: str = "", namespace: str = "",
    ) -> Server:  # fmt: skip
        """A server that the client configuration calls `alias`; in `namespace` if one is named."""
        folder = self.folder / alias
        folder.mkdir()
        self._make_key(folder / "host_key")
        port = 22 if namespace else _free_port(address)
        (folder / "sshd_config").write_text(
            f"Port {port}\nListenAddress {address}\nHostKey {folder}/host_key\n"
            f"AuthorizedKeysFile {self.folder}/user_key.pub\nPidFile {folder}/pid\n"
            "StrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            f"UsePAM no\nMaxStartups 100\nMaxSessions 50\nPermitRootLogin yes\n"
            f"SetEnv TMPDIR={self.temporary}\n{extra}\n"
        )
        command = [self.sshd, "-D", "-f", str(folder / "sshd_config"), "-E", str(folder / "log")]
        inside = ["ip", "netns", "exec", namespace] if namespace else []
        process = subprocess.Popen([*inside, *command])
        server = Server(alias, address, port, folder, process)
        self.servers[alias] = server
        self._wait_until_listening(server)
        if is_known:
            self.learn(server)
        self.describe(alias, address, port, jump)
        return server

    def learn(self, server: Server) -> None:
        name = server.address if server.port == 22 else f"[{server.address}]:{server.port}"
        with self.known_hosts.open("a") as file:
            file.write(f"{name} {server.public_key}\n")

    def describe(self, alias: str, address: str, port: int, jump: str = "") -> None:
        """An alias in the client's configuration, for a host that need not exist."""
        user = pwd.getpwuid(os.getuid()).pw_name
        with self.config.open("a") as file:
            file.write(
                f"Host {alias}\n  HostName {address}\n  Port {port}\n  User {user}\n"
                f"  IdentityFile {self.folder}/user_key\n  IdentitiesOnly yes\n"
                f"  UserKnownHostsFile {self.known_hosts}\n  GlobalKnownHostsFile /dev/null\n"
                + (f"  ProxyJump {jump}\n" if jump else "")
            )

    def _wait_until_listening(self, server: Server) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if "Server listening" in server.log:
                return
            assert server.process.poll() is None, server.log
            time.sleep(0.02)
        raise AssertionError(f"sshd does not listen: {server.log}")

    def stop(self) -> None:
        for server in self.servers.values():
            if server.process.poll() is None:
                server.stop()


def _free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        port: int = probe.getsockname()[1]
        return port
