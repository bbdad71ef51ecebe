"""`make bench`: every figure of speed, measured anew and written beside its script.

    python -m benchmarks [NAME...]

Nothing here is asserted by a test: machines differ. Ratios within one run are what to compare.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
# name -> arguments beside `--write benchmarks/NAME.md`
SCRIPTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "startup": ("startup.py", ()),
    "lab": ("lab.py", ()),
    "client": ("client_cost.py", ("--judge", "dsv4doctor.detect:judge")),
    "bench": ("bench_accuracy.py", ()),
    "size": ("size.py", ()),
    "report": ("report.py", ()),
    "probe": ("probe.py", ()),
}


def main() -> int:
    wanted = sys.argv[1:] or list(SCRIPTS)
    failed = []
    for name in wanted:
        if name not in SCRIPTS:
            print(f"no benchmark {name!r}; there are {', '.join(SCRIPTS)}", file=sys.stderr)
            return 2
        script, arguments = SCRIPTS[name]
        target = FOLDER / f"{name}.md"
        print(f"== {name}", flush=True)
        done = subprocess.run(
            [sys.executable, FOLDER / script, *arguments, "--write", target], check=False
        )
        if done.returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return len(failed)


sys.exit(main())
