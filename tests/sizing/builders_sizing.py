"""Sizings for tests: one spec, changed in a few keys."""

from __future__ import annotations

from typing import Any

from dsv4doctor.sizing.plan import Plan, make_plan
from dsv4doctor.sizing.spec import read_spec
from dsv4doctor.sizing.verdict import Judged, judge
from dsv4doctor.sizing.versions import accounting_of

AVAILABLE = 28_883_655_065  # 26.9 GiB


def spec(**keys: Any) -> dict[str, Any]:
    return {"model": "V4-Flash", "available_bytes": AVAILABLE, "version": "0.5.23"} | keys


def plan(**keys: Any) -> Plan:
    read = read_spec(spec(**keys))
    return make_plan(read.inputs, accounting_of(read.version)[0])


def judged(**keys: Any) -> Judged:
    read = read_spec(spec(**keys))
    accounting, executed = accounting_of(read.version)
    return judge(make_plan(read.inputs, accounting), read.version, executed=executed)
