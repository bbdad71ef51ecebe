"""Stacks of the processes that stand still, taken on their host without stopping them for long.

py-spy where it is there (beside the process's own Python, too), else gdb, else what the kernel says
of each thread in /proc; the dump says which. Two dumps a few seconds apart: a thread that stands
where it stood is stuck, not busy. Nothing is installed and no signal is sent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dsv4doctor.hosts.fanout import HostResult
from dsv4doctor.hosts.transport import Command, Transport

APART_S = 5
DUMP_TIMEOUT_S = 180.0
MOST_PROCESSES = 16
# What a serving engine's processes are called; setproctitle rewrites SGLang's children.
PATTERN = "sglang::|sglang[.]launch_server|sglang serve|VLLM::|vllm serve|dsv4doctor lab serve"

# Where py-spy may be: on our own path, else beside the Python that was started. In a virtual
# environment /proc/PID/exe is the Python outside it, and a renamed child has no command line, so
# its parents' are read too.
_SCRIPT = r"""
spies() {
  command -v py-spy 2>/dev/null
  q=$1
  tr '\0' '\n' <"/proc/$q/environ" 2>/dev/null | sed -n 's|^VIRTUAL_ENV=\(/.*\)|\1/bin/py-spy|p'
  for up in 0 1 2; do
    exe=$(readlink "/proc/$q/exe" 2>/dev/null)
    first=$(tr '\0' '\n' <"/proc/$q/cmdline" 2>/dev/null | head -n 1)
    for python in "$first" "$exe"; do
      case $python in /*python*) echo "${python%/*}/py-spy";; esac
    done
    q=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$q/status" 2>/dev/null)
    [ "${q:-0}" -gt 1 ] || break
  done
}
dump() {
  p=$1
  spies "$p" | awk '!seen[$0]++' >"$TMPDIR/spies"
  while IFS= read -r spy; do
    if [ -x "$spy" ] && timeout 20 "$spy" dump --nonblocking --pid "$p" \
         2>/dev/null </dev/null >"$TMPDIR/d" && [ -s "$TMPDIR/d" ]; then
      echo "METHOD py-spy"; cat "$TMPDIR/d"; return
    fi
  done <"$TMPDIR/spies"
  if command -v gdb >/dev/null 2>&1 && timeout 30 gdb -p "$p" -batch -nx \
       -ex "set debuginfod enabled off" -ex "thread apply all bt 40" 2>/dev/null >"$TMPDIR/d" \
     && grep -q "^#0" "$TMPDIR/d"; then
    echo "METHOD gdb"; grep -E "^(Thread|#)" "$TMPDIR/d"; return
  fi
  echo "METHOD /proc"
  for t in /proc/$p/task/*; do
    echo "Thread ${t##*/} $(cat "$t/comm" 2>/dev/null)"
    echo "  state $(sed -n 's/^State:[[:space:]]*//p' "$t/status" 2>/dev/null)"
    echo "  waits in $(cat "$t/wchan" 2>/dev/null)"
    echo "  syscall $(cut -d' ' -f1 "$t/syscall" 2>/dev/null)"
    sed 's/^/  /' "$t/stack" 2>/dev/null
  done
}
pids=$(pgrep -f -- "$PATTERN" | grep -vx "$$" | head -n "$MOST")
[ -n "$pids" ] || { echo NONE; exit 0; }
for round in 1 2; do
  for p in $pids; do
    [ -r "/proc/$p/cmdline" ] || continue
    echo "PROCESS $round $p $(tr '\0\n' '  ' </proc/$p/cmdline | cut -c1-120)"
    dump "$p"
    echo "END $round $p"
  done
  [ "$round" = 1 ] && sleep "$APART"
done
"""
_BLOCK = re.compile(
    r"^PROCESS (?P<round>\d) (?P<pid>\d+) (?P<name>[^\n]*)\nMETHOD (?P<method>\S+)\n(?P<text>.*?)"
    r"^END (?P=round) (?P=pid)$",
    re.MULTILINE | re.DOTALL,
)
# What differs between two looks at a thread that did not move.
_MOVING = re.compile(r"0x[0-9a-f]+|\d+\.\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class StackDump:
    """One process of one host: `method` took it, `stands_still` says that both dumps are alike."""

    host: str
    pid: int
    process: str
    method: str
    stands_still: bool | None
    text: str


def dump_stacks(transport: Transport, *, pattern: str = PATTERN) -> tuple[StackDump, ...]:
    """The stacks of the serving processes on a host; empty where there are none.

    Raises:
        HostError: if the host gives no complete answer.
    """
    settings = f"PATTERN='{pattern}'\nMOST={MOST_PROCESSES}\nAPART={APART_S}\n"
    result = transport.run(Command(script=settings + _SCRIPT, timeout_s=DUMP_TIMEOUT_S))
    return parse_dumps(transport.name, result.text)


def parse_dumps(host: str, text: str) -> tuple[StackDump, ...]:
    """The dumps in the script's output, the first of each process with what the second says."""
    rounds: dict[str, dict[int, re.Match[str]]] = {"1": {}, "2": {}}
    for block in _BLOCK.finditer(text):
        rounds.setdefault(block["round"], {})[int(block["pid"])] = block
    dumps = []
    for pid, first in rounds["1"].items():
        second = rounds["2"].get(pid)
        dumps.append(
            StackDump(
                host=host,
                pid=pid,
                process=first["name"].strip(),
                method=first["method"],
                stands_still=None if second is None else _alike(first["text"], second["text"]),
                text=first["text"].rstrip(),
            )
        )
    return tuple(dumps)


def _alike(one: str, other: str) -> bool:
    return _MOVING.sub("", one) == _MOVING.sub("", other)


def told(results: Sequence[HostResult[tuple[StackDump, ...]]]) -> list[dict[str, object]]:
    """The dumps as JSON types; a host's failure is its own entry."""
    found: list[dict[str, object]] = []
    for result in results:
        if result.problem is not None:
            found.append({"host": result.host, "error": result.problem})
        for dump in result.answer or ():
            found.append(
                {
                    "host": dump.host,
                    "pid": dump.pid,
                    "process": dump.process,
                    "method": dump.method,
                    "stands_still": dump.stands_still,
                    "stack": dump.text,
                }
            )
        if result.problem is None and not result.answer:
            found.append({"host": result.host, "error": "no serving process was found"})
    return found
