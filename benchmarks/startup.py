"""What a command costs before it works: `--help`, and the time to the first request of `repro`.

    python benchmarks/startup.py [--repeats 5] [--write FILE]

`--help` is compared, pair by pair, with the `--help` of an empty typer app that has as many
commands, in CPU time (user and system) of a whole process. The first request is timed from the
start of the process to the arrival of its bytes at a server that notes them.
"""

from __future__ import annotations

import argparse
import http.server
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from stamping import stamp

from dsv4doctor.cli.app import COMMANDS

EMPTY_APP = """\
import typer
app = typer.Typer(rich_markup_mode=None)
{commands}
app()
"""
EMPTY_COMMAND = """
@app.command("c{number}")
def c{number}() -> None:
    "Nothing."
"""


def cpu_s(command: list[str]) -> float:
    """CPU seconds of one run of `command`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def help_cost(repeats: int) -> tuple[float, float, float, int]:
    """Median CPU of our `--help` and of the empty app's, the median ratio, and the commands."""
    count = len(COMMANDS)
    commands = "".join(EMPTY_COMMAND.format(number=number) for number in range(count))
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.py"
        empty.write_text(EMPTY_APP.format(commands=commands), encoding="utf-8")
        ours = [str(Path(sys.executable).with_name("dsv4doctor")), "--help"]
        theirs = [sys.executable, str(empty), "--help"]
        cpu_s(ours), cpu_s(theirs)  # byte code is compiled once
        pairs = [(cpu_s(ours), cpu_s(theirs)) for _ in range(repeats)]
    ratio = statistics.median(a / b for a, b in pairs)
    return (
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
        ratio,
        count,
    )


class _Noting(http.server.BaseHTTPRequestHandler):
    first: float | None = None

    def do_POST(self) -> None:
        if _Noting.first is None:
            _Noting.first = time.monotonic()
        self.send_error(503)

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        """Silent."""


def first_request_s(repeats: int) -> float:
    """Median seconds from the command's start to its first chat request at the server."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Noting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(repeats + 1):
            _Noting.first = None
            began = time.monotonic()
            subprocess.run(
                [
                    sys.executable, "-m", "dsv4doctor", "repro", "--sessions", "1", "--turns", "1",
                    "--model", "m", "--base-url", f"http://127.0.0.1:{server.server_port}",
                    "--output-dir", folder, "--json", "--no-progress",
                ],
                capture_output=True, check=False, env={**os.environ, "NO_COLOR": "1"},
            )  # fmt: skip
            if _Noting.first is None:
                sys.exit("the command sent no request")
            seconds.append(_Noting.first - began)
    server.shutdown()
    return statistics.median(seconds[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    ours, empty, ratio, count = help_cost(options.repeats)
    first = first_request_s(options.repeats)
    text = f"""# What starting costs

`python benchmarks/startup.py`; medians of {options.repeats}; CPU is user plus system of
the whole process.

| what | figure | aim |
|---|---|---|
| `dsv4doctor --help`, CPU | {ours:.3f} s | |
| an empty typer app with as many commands ({count}), CPU | {empty:.3f} s | |
| ratio, median of the pairs | {ratio:.2f} | at most 1.5 |
| start of `repro --base-url` to its first request at the server | {first:.2f} s | at most 1 s |

{stamp()}
"""
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
