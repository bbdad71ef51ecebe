"""What a running server's probes say of themselves in `/server_info`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from dsv4doctor.client.http import HttpClient
from dsv4doctor.client.sglang import DEADLINE_S, document
from dsv4doctor.probe_protocol import STATE_KEY
from dsv4doctor.target import Endpoint


def probe_states(
    endpoint: Endpoint, *, deadline_s: float = DEADLINE_S
) -> tuple[Mapping[str, Any], ...] | None:
    """The probes' statuses as they came, of the ranks that answer; None without `/server_info`."""

    async def read() -> dict[str, Any] | None:
        async with HttpClient(endpoint, connect_timeout_s=deadline_s) as http:
            return await document(http, "/server_info", "/get_server_info", deadline_s=deadline_s)

    said = asyncio.run(read())
    if said is None:
        return None
    states = said.get("internal_states")
    found = [state.get(STATE_KEY) for state in states or () if isinstance(state, Mapping)]
    return tuple(each for each in found if isinstance(each, Mapping))
