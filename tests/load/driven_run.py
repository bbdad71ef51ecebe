"""A run in a process of its own, for tests that interrupt or kill it.

    python driven_run.py URL PROCESSES

Prints `turn` for each turn, `interrupted` when Ctrl-C came, then how the run ended.
"""

from __future__ import annotations

import sys

from builders_load import script

from dsv4doctor.load.runner import RunEnded, RunOptions, TurnDone, run_sessions
from dsv4doctor.target import parse_endpoint


def main() -> None:
    options = RunOptions(model="m", processes=int(sys.argv[2]))
    scripts = (script(session, turns=1000) for session in range(4))
    with run_sessions(parse_endpoint(sys.argv[1]), scripts, options) as run:
        try:
            for event in run:
                if isinstance(event, TurnDone):
                    print("turn", flush=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            run.stop()
            for event in run:
                if isinstance(event, RunEnded):
                    print(event.end, flush=True)


if __name__ == "__main__":
    main()
