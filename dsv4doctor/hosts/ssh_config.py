"""How to reach a host: what `~/.ssh/config` says, read by ssh itself where it is installed."""

from __future__ import annotations

import getpass
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dsv4doctor.errors import UsageError
from dsv4doctor.hosts.inventory import Host, parse_host
from dsv4doctor.hosts.transport import HostUnreachable

DEFAULT_PORT = 22
DEFAULT_KNOWN_HOSTS = ("~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts")
SSH_G_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One host's address, who to be there, and the hosts to pass on the way (nearest first)."""

    host: str
    hostname: str
    port: int
    user: str
    identity_files: tuple[str, ...]
    identities_only: bool
    known_hosts: tuple[str, ...]
    jumps: tuple[str, ...] = ()
    proxy_command: str | None = None


def resolve(host: Host, config_file: Path | None = None) -> Route:
    """The route to `host` under `config_file` (ssh's own default when None).

    Raises:
        HostUnreachable: if ssh cannot make sense of its configuration.
        UsageError: if a ProxyJump names no host.
    """
    settings = _by_ssh(host, config_file)
    if settings is None:
        settings = _by_paramiko(host, config_file)
    proxy = _single(settings, "proxycommand")
    jump = _single(settings, "proxyjump")
    known = " ".join(
        value for key in ("userknownhostsfile", "globalknownhostsfile")
        for value in settings.get(key, ())
    )  # fmt: skip
    return Route(
        host=str(host),
        hostname=_single(settings, "hostname") or host.name,
        port=host.port or int(_single(settings, "port") or DEFAULT_PORT),
        user=host.user or _single(settings, "user") or getpass.getuser(),
        identity_files=tuple(settings.get("identityfile", ())),
        identities_only=_single(settings, "identitiesonly") == "yes",
        known_hosts=tuple(known.split()) or DEFAULT_KNOWN_HOSTS,
        jumps=() if jump in (None, "none") else tuple(jump.split(",")),
        proxy_command=None if proxy in (None, "none") else proxy,
    )


def parse_jump(text: str) -> Host:
    """A hop of ProxyJump: `[user@]host[:port]` or `ssh://…`.

    Raises:
        UsageError: if it names no host.
    """
    try:
        return parse_host(text.removeprefix("ssh://"))
    except UsageError as error:
        raise UsageError(f"ProxyJump {text!r} names no host", "see ssh_config(5)") from error


def _by_ssh(host: Host, config_file: Path | None) -> Mapping[str, list[str]] | None:
    """`ssh -G`, which follows Include and Match exactly; None where there is no ssh."""
    ssh = shutil.which("ssh")
    if ssh is None:
        return None
    options = ["-F", str(config_file)] if config_file else []
    if host.user:
        options += ["-l", host.user]
    if host.port:
        options += ["-p", str(host.port)]
    try:
        done = subprocess.run(
            [ssh, *options, "-G", "--", host.name],
            capture_output=True,
            text=True,
            timeout=SSH_G_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise HostUnreachable(
            f"{host}: `ssh -G {host.name}` does not end", "look at Match exec in ~/.ssh/config"
        ) from error
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise HostUnreachable(f"{host}: ssh refuses its configuration: {said}", "see `ssh -G`")
    settings: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        key, _, value = line.partition(" ")
        settings.setdefault(key.lower(), []).append(value)
    return settings


def _by_paramiko(host: Host, config_file: Path | None) -> Mapping[str, list[str]]:
    from paramiko import SSHConfig

    path = config_file or Path("~/.ssh/config").expanduser()
    if not path.is_file():
        return {}
    found = SSHConfig.from_path(str(path)).lookup(host.name)
    return {key: value if isinstance(value, list) else [value] for key, value in found.items()}


def _single(settings: Mapping[str, list[str]], key: str) -> str | None:
    values = settings.get(key)
    return values[0] if values else None
