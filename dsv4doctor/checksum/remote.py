"""A job on one host: which Python to run it in, and what came back."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsv4doctor.checksum.payload import program
from dsv4doctor.hosts.transport import Command, HostError, Transport

# Over the worker's own budget: its imports, compiling, and the way there and back.
SLACK_S = 120.0
# A login script that prints comes before what the program says.
NOISY = "let nothing on the host print at a login without a terminal (`ssh HOST true` says nothing)"

# The interpreter of the running SGLang: its launcher's argv[0] (schedulers rename themselves), else
# the virtual environment in its environment, else its executable. Processes of other containers
# are told apart by their mount namespace; their Python is not on this file system.
FIND_PYTHON = r"""
here=$(readlink /proc/self/ns/mnt)
elsewhere=
for p in /proc/[0-9]*; do
  line=$(tr '\0' ' ' 2>/dev/null <"$p/cmdline") || continue
  case "$line" in
    *sglang.launch_server*|*sglang\ serve*|sglang::*) ;;
    *) continue ;;
  esac
  [ "$p" = "/proc/$$" ] && continue
  if [ "$(readlink "$p/ns/mnt" 2>/dev/null)" != "$here" ]; then
    [ -r "$p/ns/mnt" ] && elsewhere=${p#/proc/}
    continue
  fi
  first=${line%% *}
  venv=$(tr '\0' '\n' 2>/dev/null <"$p/environ" | sed -n 's/^VIRTUAL_ENV=//p')
  for candidate in "$first" "$venv/bin/python" "$(readlink "$p/exe" 2>/dev/null)"; do
    case "$candidate" in
      /*python*) [ -x "$candidate" ] && python=$candidate && break 2 ;;
    esac
  done
done
if [ -z "$python" ] && [ -n "$elsewhere" ]; then
  echo "SGLang (process $elsewhere) runs in a container: name it with --remote-prefix" >&2
fi
[ -n "$python" ] || python=$(command -v python3) || {
  echo "no python3 here: name one with --remote-python" >&2
  exit 95
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """How a host's Python is reached: its path (None: found) and a prefix into a container."""

    python: str | None = None
    prefix: tuple[str, ...] = ()


def run_job(transport: Transport, job: Mapping[str, Any], where: Where) -> dict[str, Any]:
    """The worker's answer to `job` on the host of `transport`.

    Raises:
        HostError: if the host could not run it; the problem says what it said.
    """
    timeout_s = float(job.get("time_budget_s") or 0) + SLACK_S
    return run_program(transport, program(job), where, timeout_s)


def run_program(
    transport: Transport, text: bytes, where: Where, timeout_s: float
) -> dict[str, Any]:
    """The JSON object that a Python program prints on the host of `transport`.

    Raises:
        HostError: if the host could not run it; the problem says what it said.
    """
    choose = FIND_PYTHON if where.python is None else f"python={shlex.quote(where.python)}\n"
    # Caches go to the directory that is removed afterwards; no bytecode beside the libraries.
    script = (
        f"python=\n{choose}"
        'export TRITON_CACHE_DIR="$TMPDIR/triton" PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1\n'
        'exec "$python" -\n'
    )
    result = transport.run(
        Command(script=script, stdin=text, timeout_s=timeout_s, prefix=where.prefix)
    )
    said = _last_words(result.stderr)
    if result.exit_code:
        raise HostError(
            f"{transport.name}: {said or f'Python ended with status {result.exit_code}'}",
            "name an interpreter that has numpy, best the server's own, with --remote-python",
        )
    try:
        answer = json.loads(result.stdout)
    except ValueError as error:
        raise HostError(f"{transport.name}: the answer is no JSON: {said}", NOISY) from error
    if not isinstance(answer, dict):
        raise HostError(f"{transport.name}: the answer is no JSON object", NOISY)
    return answer


def here() -> Where:
    """This machine, in the Python that runs us."""
    return Where(python=sys.executable)


def _last_words(data: bytes) -> str:
    lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    return "".join(c if c.isprintable() else "?" for c in lines[-1])[:300] if lines else ""
