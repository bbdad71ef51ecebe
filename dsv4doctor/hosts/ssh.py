"""A host over SSH, by paramiko: keys and agent, ProxyJump, and known_hosts taken strictly."""

from __future__ import annotations

import logging
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import paramiko

from dsv4doctor.hosts.inventory import Host
from dsv4doctor.hosts.runner import (
    HEARTBEAT,
    HEARTBEAT_S,
    command_line,
    first_input,
    read_answer,
)
from dsv4doctor.hosts.ssh_config import Route, parse_jump, resolve
from dsv4doctor.hosts.transport import (
    AnswerCut,
    Command,
    CommandResult,
    CommandTimeout,
    HostKeyRefused,
    HostUnreachable,
)

CONNECT_TIMEOUT_S = 15.0
KEEPALIVE_S = 15
READ_BYTES = 1 << 16
POLL_S = 0.2
ALGORITHM_HINT = (
    "OpenSSH older than 7.2 offers only algorithms that are no longer trusted; reach it by another "
    "way, for instance a ProxyJump that runs the command"
)


# Paramiko logs tracebacks of failures that it also raises; we tell those ourselves, in one line.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
logging.getLogger("paramiko").propagate = False


class SshTransport:
    """An open connection to `host`.

    Raises:
        HostUnreachable: if there is no connection or no login.
        HostKeyRefused: if a key on the way is unknown or not the known one.
        UsageError: if ssh's configuration names no host where it should.
    """

    def __init__(
        self,
        host: Host,
        *,
        config_file: Path | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        self._name = str(host)
        self._config_file = config_file
        self._timeout_s = connect_timeout_s
        self._clients: list[paramiko.SSHClient] = []
        try:
            self._client = self._connect(resolve(host, config_file), None)
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        return self._name

    def _connect(self, route: Route, through: paramiko.SSHClient | None) -> paramiko.SSHClient:
        """A client at the end of `route`, each hop opened inside the one before."""
        for hop in route.jumps:
            through = self._connect(resolve(parse_jump(hop), self._config_file), through)
        client = paramiko.SSHClient()
        self._clients.append(client)
        for path in route.known_hosts:
            _load_known_hosts(client, Path(path).expanduser())
        client.set_missing_host_key_policy(_Refuse(route))
        with _told_plainly(route):
            client.connect(
                route.hostname,
                port=route.port,
                username=route.user,
                key_filename=_existing(route.identity_files) or None,
                allow_agent=True,
                look_for_keys=not route.identities_only and not _existing(route.identity_files),
                timeout=self._timeout_s,
                banner_timeout=self._timeout_s,
                auth_timeout=self._timeout_s,
                sock=self._way(route, through),
            )
        transport = client.get_transport()
        assert transport is not None
        transport.set_keepalive(KEEPALIVE_S)
        return client

    def _way(self, route: Route, through: paramiko.SSHClient | None) -> Any:
        """The socket to connect over: a channel of the last hop, a command, or none of these."""
        if through is not None:
            transport = through.get_transport()
            assert transport is not None
            return transport.open_channel(
                "direct-tcpip",
                (route.hostname, route.port),
                ("127.0.0.1", 0),
                timeout=self._timeout_s,
            )
        if route.proxy_command:
            filled = route.proxy_command.replace("%h", route.hostname)
            filled = filled.replace("%p", str(route.port)).replace("%r", route.user)
            return paramiko.ProxyCommand(filled.removeprefix("exec "))
        return None

    def run(self, command: Command) -> CommandResult:
        """The command's answer.

        Raises:
            CommandTimeout: if it outran `command.timeout_s`; its processes are ended.
            AnswerCut: if the connection was lost before the answer was complete.
            HostUnreachable: if no channel could be opened.
        """
        nonce = secrets.token_hex(16)
        started = time.monotonic()
        channel = self._open(command_line(command, nonce))
        try:
            # Input on a thread of its own: a host that greets us at length must not block it.
            writer = threading.Thread(
                target=_send, args=(channel, first_input(command)), daemon=True
            )
            writer.start()
            out, err = self._drain(channel, writer, command, started)
        finally:
            channel.close()
        if not out.endswith(nonce.encode() + b"\n") and not self._is_connected():
            raise AnswerCut(
                f"{self._name}: the connection was lost after {len(out)} bytes of the answer",
                "what ran there was ended; run it again",
            )
        return read_answer(self._name, nonce, out, err, time.monotonic() - started)

    def _open(self, line: str) -> paramiko.Channel:
        transport = self._client.get_transport()
        try:
            if transport is None or not transport.is_active():
                raise paramiko.SSHException("the connection is closed")
            channel = transport.open_session(timeout=self._timeout_s)
            channel.exec_command(line)
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise HostUnreachable(
                f"{self._name}: cannot start a command: {error or 'the connection broke'}",
                "is the connection still up, and does the server allow another session?",
            ) from error
        return channel

    def _drain(
        self,
        channel: paramiko.Channel,
        writer: threading.Thread,
        command: Command,
        started: float,
    ) -> tuple[bytes, bytes]:
        out, err = bytearray(), bytearray()
        channel.settimeout(POLL_S)
        last_beat = started
        while True:
            try:
                chunk = channel.recv(READ_BYTES)
                if not chunk:
                    break
                out += chunk
            except TimeoutError:
                pass
            while channel.recv_stderr_ready():
                err += channel.recv_stderr(READ_BYTES)
            now = time.monotonic()
            if now - last_beat > HEARTBEAT_S and not writer.is_alive():
                _send(channel, HEARTBEAT)
                last_beat = now
            if now - started > command.timeout_s:
                raise CommandTimeout(
                    f"{self._name}: no answer within {command.timeout_s:g} s",
                    "give it more time, or look at what keeps the host busy",
                )
        while channel.recv_stderr_ready():
            err += channel.recv_stderr(READ_BYTES)
        return bytes(out), bytes(err)

    def _is_connected(self) -> bool:
        transport = self._client.get_transport()
        return transport is not None and bool(transport.is_active())

    def close(self) -> None:
        """Ends every connection, the last hop first; what still runs there is ended by its end."""
        for client in reversed(self._clients):
            client.close()
        self._clients.clear()


class _Refuse:
    """An unknown key is refused, with what is needed to accept it by hand."""

    def __init__(self, route: Route) -> None:
        self._route = route

    def missing_host_key(self, client: Any, hostname: str, key: paramiko.PKey) -> None:
        raise HostKeyRefused(
            f"{self._route.host}: its host key is unknown: {key.get_name()} {key.fingerprint}",
            f"compare the fingerprint, then: echo '{hostname} {key.get_name()} "
            f"{key.get_base64()}' >> {self._route.known_hosts[0]}",
        )


@contextmanager
def _told_plainly(route: Route) -> Iterator[None]:
    """paramiko's and the system's errors as one line that names the host."""
    where = f"{route.host} ({route.user}@{route.hostname}:{route.port})"
    try:
        yield
    except HostKeyRefused:
        raise
    except paramiko.BadHostKeyException as error:
        raise HostKeyRefused(
            f"{route.host}: its host key is not the known one: it shows "
            f"{error.key.get_name()} {error.key.fingerprint}, "
            f"known is {error.expected_key.fingerprint}",
            "if the host was set up anew, remove the old line with "
            f"`ssh-keygen -R '{error.hostname}'` and accept the new key; else do not connect",
        ) from error
    except paramiko.PasswordRequiredException as error:
        raise HostUnreachable(
            f"{where}: the private key has a passphrase", "load it: ssh-add"
        ) from error
    except paramiko.AuthenticationException as error:
        raise HostUnreachable(
            f"{where}: login refused", "does `ssh` get in without a password? try ssh-add -l"
        ) from error
    except socket.gaierror as error:
        raise HostUnreachable(f"{where}: no such host", "check the name") from error
    except paramiko.ChannelException as error:
        raise HostUnreachable(f"{where}: the jump host cannot reach it: {error.text}") from error
    except paramiko.SSHException as error:
        if "No authentication methods" in str(error):
            raise HostUnreachable(
                f"{where}: there is no key to log in with",
                "load one into the agent (ssh-add), or name it: IdentityFile in ~/.ssh/config",
            ) from error
        hint = ALGORITHM_HINT if "acceptable" in str(error) else "try `ssh -v` to the same host"
        raise HostUnreachable(f"{where}: {error}", hint) from error
    except (OSError, EOFError) as error:
        said = str(error).strip() or "the connection broke"
        raise HostUnreachable(f"{where}: {said}", "is the host up and its sshd running?") from error


def _existing(files: tuple[str, ...]) -> list[str]:
    paths = [Path(name).expanduser() for name in files]
    return [str(path) for path in paths if path.is_file()]


def _load_known_hosts(client: paramiko.SSHClient, path: Path) -> None:
    if path.is_file():
        client.load_system_host_keys(str(path))


def _send(channel: paramiko.Channel, data: bytes) -> None:
    """All of `data`; gives up silently when the channel ends, for the reading side tells why."""
    left = memoryview(data)
    while left and not channel.closed:
        try:
            sent = channel.send(bytes(left[:READ_BYTES]))
        except TimeoutError:
            continue
        except (OSError, EOFError):
            return
        if sent == 0:
            return
        left = left[sent:]
