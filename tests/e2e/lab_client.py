"""The lab asked from outside: requests of the tests' own, gauges, and a client that hangs up."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import aiohttp

from dsv4doctor.lab.deployment import RunningLab

FAST = (("itl-ms", "1"), ("ttft-ms", "1"), ("quiet-ms", "60"))
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "lookup",
            "parameters": {
                "type": "object",
                "properties": {"code": {"type": "string"}, "count": {"type": "number"}},
                "required": ["code", "count"],
            },
        },
    }
]
MESSAGES: list[Any] = [
    {"role": "system", "content": "You are the assistant of a records office."},
    {
        "role": "user",
        "content": "The code for `amber-heron-3` is `K7F3-QM2X-9DTW`. The number for `blue-fox-1` "
        "is `12.5`. Call the tool `lookup` now: set `code` to the code for `amber-heron-3`, set "
        "`count` to the number for `blue-fox-1`.",
    },
]
WANTED = {"code": "K7F3-QM2X-9DTW", "count": 12.5}


def fetch(url: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, str]:
    """Status and text; a `body` is posted, as JSON unless it is bytes."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    asked = urllib.request.Request(
        url, data=data, headers={"Content-Type": "application/json", **(headers or {})}
    )
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def get(lab: RunningLab, path: str) -> tuple[int, str]:
    return fetch(lab.base_url + path)


def post(lab: RunningLab, path: str, body: Any) -> tuple[int, str]:
    return fetch(lab.base_url + path, body)


def metric(lab: RunningLab, name: str, label: str = "") -> float:
    for line in get(lab, "/metrics")[1].splitlines():
        if line.startswith(f"sglang:{name}{{") and label in line:
            return float(line.rpartition(" ")[2])
    raise AssertionError(f"no metric {name}")


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


async def hang_up_after(lab: RunningLab, frames: int, body: dict[str, Any]) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{lab.base_url}/v1/chat/completions", json=body) as response,
    ):
        async for line in response.content:
            frames -= line.startswith(b"data: ")
            if frames <= 0:
                return
