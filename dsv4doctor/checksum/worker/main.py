"""One job on one host: which devices, what to do on each, and the answer as one JSON document."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

SKIPPED = "time budget spent"


def answer(job: Mapping[str, Any]) -> dict[str, Any]:
    """What `job` found: `devices`, one object each, and this host's `versions`."""
    try:
        import numpy  # noqa: F401
    except ImportError:
        return {"error": f"{sys.executable} has no numpy: name another with --remote-python"}
    from dsv4doctor.checksum.worker.devices import devices, versions, xid_events

    deadline = time.monotonic() + float(job.get("time_budget_s") or 300.0)
    found = [_on_device(device, job, deadline) for device in devices(job)]
    environment = {"versions": dict(versions()), "executable": sys.executable}
    return {"devices": found, "environment": environment, "xid_events": xid_events()}


def _on_device(device: Any, job: Mapping[str, Any], deadline: float) -> dict[str, Any]:
    from dsv4doctor.checksum.worker.devices import Refused, first_line, nvidia_facts

    if isinstance(device, Refused):
        return {"error": str(device)}
    engine = device.engine
    out: dict[str, Any] = {"device": engine.device, "backend": engine.backend, "note": device.note}
    if engine.backend == "cuda":
        out["gpu"] = nvidia_facts().get(engine.place.index, {})
    try:
        out |= ACTIONS[job["action"]](device, job, deadline)
    except MemoryError:
        out["error"] = "out of memory on the host"
    except Exception as error:  # a fan-out over devices: one's failure leaves the others' answers
        out["error"] = f"{type(error).__name__}: {first_line(error)}"
    return out


def _selftest(device: Any, job: Mapping[str, Any], deadline: float) -> dict[str, Any]:
    from dsv4doctor.checksum.worker.selftest import checks, pool_report
    from dsv4doctor.kernels.layouts import index_layout

    seed = int(job.get("seed", 0))
    out = pool_report(device.engine, index_layout(job["index_k"]), device.budget_bytes, seed)
    out["checks"] = []
    for check in checks(device.engine, device.budget_bytes, seed):
        out["checks"].append(check.plain())
        if time.monotonic() > deadline:
            out["error"] = f"{SKIPPED} after {len(out['checks'])} checks"
            break
    return out


def _race(device: Any, job: Mapping[str, Any], deadline: float) -> dict[str, Any]:
    from dsv4doctor.checksum.worker.race import DTYPES, machine_for, race

    rows: list[dict[str, Any]] = []
    asked = job.get("race_index_k")
    for machine in machine_for(device.engine):
        depths = job["depths"] if machine.name != "threads" else job["depths"][-1:]
        for dtype in [asked] if asked else DTYPES:
            if time.monotonic() > deadline:
                return {"race": rows, "error": f"{SKIPPED} after {len(rows)} races"}
            rows += race(machine, [dtype], depths, int(job.get("seed", 0)))
    return {"race": rows}


def _bench(device: Any, job: Mapping[str, Any], deadline: float) -> dict[str, Any]:
    from dsv4doctor.checksum.worker.bench import bench

    return {"bench": bench(device.engine, device.budget_bytes)}


ACTIONS = {"selftest": _selftest, "race": _race, "bench": _bench}


def main(job_text: str) -> None:
    """Print the answer to `job_text` alone on stdout; whatever libraries print goes to stderr."""
    real = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    document = json.dumps(answer(json.loads(job_text)))
    with os.fdopen(real, "w", encoding="utf-8") as out:
        out.write(document + "\n")
