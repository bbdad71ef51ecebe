"""A command of one program and its arguments, for tests that send words rather than scripts."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from dsv4doctor.hosts.transport import Command


def argv_command(argv: Sequence[str]) -> Command:
    return Command(script=f"exec {shlex.join(argv)}\n")
