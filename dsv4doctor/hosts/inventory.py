"""Which hosts: `--ssh-host` values and `--ssh-hosts` files → `Host`s, in order, each once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dsv4doctor.errors import UsageError

_HOST = re.compile(
    r"(?:(?P<user>[^@\s]+)@)?(?:\[(?P<six>[0-9A-Fa-f:.%\w]+)\]|(?P<name>[^@\s:\[\]]+))(?::(?P<port>\d+))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A host as the user named it; `~/.ssh/config` says the rest."""

    name: str
    user: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        name = f"[{self.name}]" if ":" in self.name and self.port else self.name
        user = f"{self.user}@" if self.user else ""
        return f"{user}{name}{f':{self.port}' if self.port else ''}"


def parse_host(text: str) -> Host:
    """`[user@]host[:port]`, an alias of ssh's configuration, or `[IPv6]:port`.

    Raises:
        UsageError: if `text` names no host.
    """
    stripped = text.strip()
    bare_six = stripped.count(":") > 1 and "[" not in stripped
    match = _HOST.fullmatch(f"[{stripped}]" if bare_six and "@" not in stripped else stripped)
    hint = "give it as HOST, USER@HOST, HOST:PORT or a name from ~/.ssh/config"
    if match is None or stripped.startswith("-"):
        raise UsageError(f"--ssh-host {text!r} names no host", hint)
    port = int(match["port"]) if match["port"] else None
    if port is not None and not 0 < port < 65536:
        raise UsageError(f"--ssh-host {text!r} has port {port}", hint)
    name = match["six"] or match["name"]
    if name.startswith("-"):
        raise UsageError(f"--ssh-host {text!r} names no host", hint)
    return Host(name=name, user=match["user"], port=port)


def read_inventory(hosts: Sequence[str], files: Iterable[Path]) -> tuple[Host, ...]:
    """The named hosts, then those of each file (one a line, `#` begins a comment); no host twice.

    Raises:
        UsageError: if a file cannot be read or a line names no host.
    """
    found = [parse_host(text) for text in hosts]
    for path in files:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"--ssh-hosts {path}: {error}", "give a text file with one host a line"
            ) from error
        for number, line in enumerate(lines, start=1):
            text = line.partition("#")[0].strip()
            if not text:
                continue
            try:
                found.append(parse_host(text))
            except UsageError as error:
                raise UsageError(f"{path}:{number}: {text!r} names no host", error.hint) from error
    return tuple(dict.fromkeys(found))
