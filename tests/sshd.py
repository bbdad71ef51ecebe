"""A real OpenSSH server on loopback for tests: own keys, own port, stopped by its pid.

Several servers on 127.0.0.1, 127.0.0.2, … stand for several hosts. `SshLab` writes the client's
side too: an ssh configuration with one alias a host, and known_hosts with the keys that are known.
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
        return (self.folder / "log").read_text(errors="replace")

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

    @property
    def config(self) -> Path:
        return self.folder / "config"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    def _make_key(self, path: Path) -> None:
        subprocess.run([self.keygen, "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)

    def start(
        self, alias: str, *, address: str = "127.0.0.1", jump: str = "", is_known: bool = True,
        extra: str = "",
    ) -> Server:  # fmt: skip
        """A server that the client configuration calls `alias`."""
        folder = self.folder / alias
        folder.mkdir()
        self._make_key(folder / "host_key")
        with socket.socket() as probe:
            probe.bind((address, 0))
            port = probe.getsockname()[1]
        (folder / "sshd_config").write_text(
            f"Port {port}\nListenAddress {address}\nHostKey {folder}/host_key\n"
            f"AuthorizedKeysFile {self.folder}/user_key.pub\nPidFile {folder}/pid\n"
            "StrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            f"UsePAM no\nMaxStartups 100\nMaxSessions 50\nPermitRootLogin yes\n{extra}\n"
        )
        process = subprocess.Popen(
            [self.sshd, "-D", "-f", folder / "sshd_config", "-E", folder / "log"]
        )
        server = Server(alias, address, port, folder, process)
        self.servers[alias] = server
        self._wait_until_listening(server)
        if is_known:
            self.learn(server)
        self.describe(alias, address, port, jump)
        return server

    def learn(self, server: Server) -> None:
        with self.known_hosts.open("a") as file:
            file.write(f"[{server.address}]:{server.port} {server.public_key}\n")

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
            with socket.socket() as probe:
                probe.settimeout(1)
                if probe.connect_ex((server.address, server.port)) == 0:
                    return
            assert server.process.poll() is None, server.log
            time.sleep(0.02)
        raise AssertionError(f"sshd does not listen: {server.log}")

    def stop(self) -> None:
        for server in self.servers.values():
            if server.process.poll() is None:
                server.stop()
