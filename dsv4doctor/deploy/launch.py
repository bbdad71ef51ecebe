"""What a process is started with, and the shell text that starts it so (pure text)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# What a shell sets for itself; two environments that differ only here are the same.
SHELL_OWN = frozenset({"PWD", "OLDPWD", "SHLVL", "_"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A command line, its whole environment and its folder. `is_whole` False: the environment is
    added to the one that the host's login gives."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    workdir: str | None = None
    is_whole: bool = True

    @property
    def significant(self) -> dict[str, str]:
        """The environment without what a shell sets for itself."""
        return {name: v for name, v in self.environment.items() if name not in SHELL_OWN}


def start_script(launch: Launch) -> str:
    """A shell script that becomes the process. It holds the values, so keep it private.

    Variables whose names no shell can set (exported functions) are left out: no server reads them.
    """
    lines = ["#!/bin/sh", "# Written by dsv4doctor: starts the process as it was recorded."]
    for name, value in launch.environment.items():
        if _NAME.match(name) and name not in SHELL_OWN:
            lines.append(f"export {name}={shlex.quote(value)}")
    if launch.workdir:
        lines.append(f"cd -- {shlex.quote(launch.workdir)} || exit 126")
    lines.append(f"exec {shlex.join(launch.argv)}")
    return "\n".join(lines) + "\n"
