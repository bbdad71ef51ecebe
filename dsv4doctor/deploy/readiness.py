"""When a launched deployment is ready: its log line, its health, PD's bootstrap, a generation."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dsv4doctor.client.http import HttpClient
from dsv4doctor.client.http_errors import HttpFailure
from dsv4doctor.client.sglang import inspect_server
from dsv4doctor.client.words import http_failure
from dsv4doctor.deploy.document import Role
from dsv4doctor.deploy.launchers.launcher import Snippets
from dsv4doctor.deploy.shell import HostShell
from dsv4doctor.errors import DoctorError
from dsv4doctor.target import Endpoint, parse_endpoint

POLL_S = 0.25
# One question to a server that may still be loading.
ASK_S = 25.0
# All four -1: the overall answer, given once every rank has registered.
BOOTSTRAP_ROUTE = "/route?prefill_dp_rank=-1&prefill_cp_rank=-1&target_tp_rank=-1&target_pp_rank=-1"
_LOG_LINES_TOLD = 3
MOST_SAID_BYTES = 4096


class NotReady(DoctorError):
    """A launch that died, or was not ready in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One role that is coming up."""

    role: Role
    shell: HostShell
    snippets: Snippets


def wait_until_ready(watched: Watched, *, sleep: Callable[[float], None] = time.sleep) -> None:
    """Returns when the role is ready.

    Raises:
        NotReady: with the last lines of its log.
    """
    role, ready = watched.role, watched.role.ready
    deadline = time.monotonic() + ready.timeout_s
    checks: list[tuple[str, Callable[[], bool]]] = []
    if ready.log_line:
        checks.append((f"the log line {ready.log_line!r}", lambda: _has_line(watched)))
    if ready.health:
        checks.append((ready.health, lambda: answers(parse_endpoint(role.url), ready.health)))
    if ready.bootstrap_url:
        bootstrap = parse_endpoint(ready.bootstrap_url)
        checks.append(("the bootstrap server", lambda: answers(bootstrap, BOOTSTRAP_ROUTE)))
    for what, is_there in checks:
        while not is_there():
            if not _is_alive(watched):
                raise NotReady(f"{role.name} died while starting: {_last_lines(watched)}", _HINT)
            if time.monotonic() > deadline:
                raise NotReady(
                    f"{role.name} was not ready within {ready.timeout_s:g} s: {what} is missing; "
                    f"its log ends: {_last_lines(watched)}",
                    _HINT,
                )
            sleep(POLL_S)


_HINT = "see the log in the run directory; try the launch by hand"


def answers(endpoint: Endpoint, route: str) -> bool:
    """True when `route` answers 200."""

    async def ask() -> bool:
        async with HttpClient(endpoint, connect_timeout_s=ASK_S) as http:
            try:
                return (await http.fetch(route, deadline_s=ASK_S)).status == 200
            except HttpFailure:
                return False

    return asyncio.run(ask())


def server_args(endpoint: Endpoint, *, patience_s: float = 0.0) -> dict[str, Any]:
    """What the server says of its launch; empty where it says nothing. A silent one is asked again
    for `patience_s`: one that is busy must not pass for one that has no such route."""
    until = time.monotonic() + patience_s
    while True:
        arguments = dict(inspect_server(endpoint, deadline_s=ASK_S).server_args)
        if arguments or time.monotonic() >= until:
            return arguments
        time.sleep(POLL_S)


def generate_once(endpoint: Endpoint, model: str, *, deadline_s: float) -> None:
    """One real generation of a few tokens through the whole deployment.

    Raises:
        NotReady: if none comes.
    """
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Say the word ready."}],
        "max_tokens": 8,
        "temperature": 0,
    }

    async def ask() -> str:
        async with HttpClient(endpoint, connect_timeout_s=ASK_S) as http:
            try:
                async with asyncio.timeout(deadline_s):
                    reply = await http.open(
                        "POST",
                        endpoint.chat_url,
                        content=json.dumps(body).encode(),
                        headers={"Content-Type": "application/json"},
                    )
                    said = await reply.read(MOST_SAID_BYTES)
                    await reply.close()
            except TimeoutError:
                return f"no answer within {deadline_s:g} s"
            except HttpFailure as failure:
                return str(failure)
            return "" if reply.status == 200 else http_failure(reply.status, said).message

    problem = asyncio.run(ask())
    if problem:
        raise NotReady(f"{endpoint.base_url} is up but does not generate: {problem}", _HINT)


def _has_line(watched: Watched) -> bool:
    script = f'line=$(cat); {{ {watched.snippets.log}; }} 2>/dev/null | grep -qF -- "$line"'
    line = watched.role.ready.log_line.encode()
    return watched.shell.run(script, stdin=line).exit_code == 0


def _is_alive(watched: Watched) -> bool:
    return watched.shell.run(watched.snippets.alive).exit_code == 0


def _last_lines(watched: Watched) -> str:
    log = watched.shell.run(f"{{ {watched.snippets.log}; }} 2>/dev/null | tail -n 20").text
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return " / ".join(lines[-_LOG_LINES_TOLD:]) or "(empty)"
