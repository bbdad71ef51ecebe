"""A reply generated again from the ground-truth log: right bytes, the logged stale ones put in.

What a test needs to say that the bytes, and nothing else, made a reply what it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dsv4doctor.lab.engine import Engine
from dsv4doctor.lab.groundtruth import INDEX_POOL, MAIN_POOL, read_blob
from dsv4doctor.lab.requests import EngineRequest


def replay(
    engine: Engine, request: EngineRequest, stale_reads: Iterable[Mapping[str, Any]], log: Path
) -> str:
    """The text that the model makes of `request` when it reads what the log says that it read.

    `engine` lends its configuration and its model; `stale_reads` are the request's records of the
    ground-truth log at `log`.
    """
    right = engine.right_bytes(request)
    index_k = [pages.copy() for pages in right.index_k]
    latents = right.latents.copy()
    for record in stale_reads:
        data = read_blob(log, record["digest"])
        if record["pool"] == INDEX_POOL:
            index_k[record["layer"]][record["logical_page"]] = data
        elif record["pool"] == MAIN_POOL:
            latents[record["logical_page"]] = data
    return engine.generate_from(request, replace(right, index_k=tuple(index_k), latents=latents))
