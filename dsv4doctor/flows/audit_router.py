"""`audit --router-url`: the workers that a router counts, and which of them it holds healthy."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dsv4doctor.audit.facts import Facts, gather_facts
from dsv4doctor.errors import DoctorError

if TYPE_CHECKING:
    from dsv4doctor.target import Endpoint


def facts_of_router(endpoint: Endpoint, has: frozenset[int]) -> Facts:
    """What the router's `/workers` says; absent fields stay unknown.

    Raises:
        DoctorError: no router answers there.
    """
    from dsv4doctor.client.http import HttpClient
    from dsv4doctor.client.sglang import document

    async def read() -> dict[str, Any] | None:
        async with HttpClient(endpoint, connect_timeout_s=5.0) as http:
            return await document(http, "/workers")

    answer = asyncio.run(read())
    if answer is None or not isinstance(answer.get("workers"), list):
        raise DoctorError(
            f"no list of workers from {endpoint.base_url}/workers",
            "the root of an sglang-router or smg; the Python mini-lb has no such list",
        )
    source = f"{endpoint.base_url}/workers"
    groups = [(source, _said(answer["workers"]))]
    return gather_facts(source, groups, complete=False, has_changes=has)


def _said(workers: list[Any]) -> dict[str, Any]:
    known = [worker for worker in workers if isinstance(worker, Mapping)]
    found: dict[str, Any] = {"frontend": "sglang-router", "router_workers": len(known)}
    for kind in ("prefill", "decode"):
        count = sum(str(worker.get("worker_type", "")).lower() == kind for worker in known)
        if count:
            found[f"router_{kind}_workers"] = count
    # `WorkerInfo` of sglang-router 0.3 and of smg says `is_healthy`; smg's manual shows `healthy`.
    healths = [(w, w.get("is_healthy", w.get("healthy"))) for w in known]
    told = [(worker, bool(healthy)) for worker, healthy in healths if healthy is not None]
    if told:
        found["router_unhealthy_workers"] = sum(not healthy for _, healthy in told)
        sick = [str(worker.get("url")) for worker, healthy in told if not healthy]
        if sick:
            found["router_unhealthy"] = ", ".join(sick)
    return found
