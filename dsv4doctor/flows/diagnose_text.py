"""Is the text right? What the model wrote, read by the server's parser and by our strict one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsv4doctor.client.chunk import NotJson, load_object
from dsv4doctor.client.http import HttpClient
from dsv4doctor.client.http_errors import HttpFailure
from dsv4doctor.client.openai import encode_body
from dsv4doctor.dsml.strict import DsmlError, read_strict
from dsv4doctor.target import Endpoint

ROUTE = "/parse_function_call"
DEADLINE_S = 10.0
DEFAULT_PARSER = "deepseekv4"

Call = tuple[str, Any]  # name, arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCheck:
    """Of `texts` saved, with markup in them, `ours` are right by our strict reading, `servers` by
    the server's parser (None: it has no such route)."""

    texts: int
    ours: int
    servers: int | None

    @property
    def right(self) -> int:
        """Texts that one of the two readers finds right."""
        return max(self.ours, self.servers or 0)

    @property
    def said(self) -> str:
        if not self.texts:
            return ""
        said = f"of {self.texts} saved texts {self.ours} are right by DeepSeek's grammar"
        if self.servers is None:
            return f"{said}; the server has no {ROUTE}"
        return f"{said}, {self.servers} by the server's own {ROUTE}"


def check_texts(
    endpoint: Endpoint, records: Sequence[Mapping[str, Any]], parser: str | None
) -> TextCheck:
    """What the saved texts of wrong replies say when they are read anew."""
    texts = [record for record in records if _text(record)]
    if not texts:
        return TextCheck(texts=0, ours=0, servers=None)
    parsed = asyncio.run(_ask_all(endpoint, texts, parser or DEFAULT_PARSER))
    answered = [calls is not None for calls in parsed]
    return TextCheck(
        texts=len(texts),
        ours=sum(is_answer(record, _strict(_text(record))) for record in texts),
        servers=sum(
            calls is not None and is_answer(record, calls)
            for record, calls in zip(texts, parsed, strict=True)
        )
        if any(answered)
        else None,
    )


def is_answer(record: Mapping[str, Any], calls: Iterable[Call]) -> bool:
    """True when `calls` carry every canary that the record's request asked for."""
    given = list(calls)
    wanted = [canary for canary in record["canaries"] if canary["tool"]]
    if not wanted or len(given) != 1 + max(canary["call_index"] for canary in wanted):
        return False
    for canary in wanted:
        name, arguments = given[canary["call_index"]]
        values = arguments if isinstance(arguments, Mapping) else {}
        if name != canary["tool"] or values.get(canary["argument"]) != canary["value"]:
            return False
    return True


def _text(record: Mapping[str, Any]) -> str:
    """The reply's text where markup is left in it."""
    content = (record["response"] or {}).get("content")
    return content if isinstance(content, str) and "DSML" in content else ""


def _strict(text: str) -> list[Call]:
    try:
        return [(call.name, dict(call.arguments)) for call in read_strict(text).calls]
    except DsmlError:
        return []


async def _ask_all(
    endpoint: Endpoint, records: Sequence[Mapping[str, Any]], parser: str
) -> list[list[Call] | None]:
    async with HttpClient(endpoint, connect_timeout_s=DEADLINE_S) as http:
        return [await _ask(http, record, parser) for record in records]


async def _ask(http: HttpClient, record: Mapping[str, Any], parser: str) -> list[Call] | None:
    body = {"text": _text(record), "tools": record["tools"], "tool_call_parser": parser}
    try:
        answer = await http.fetch(
            ROUTE, deadline_s=DEADLINE_S, method="POST", content=encode_body(body)
        )
        if answer.status != 200:
            return None
        calls = load_object(answer.body).get("calls")
    except (HttpFailure, NotJson):
        return None
    return [_call(item) for item in calls if isinstance(item, Mapping)] if calls else []


def _call(item: Mapping[str, Any]) -> Call:
    try:
        return str(item.get("name")), json.loads(str(item.get("parameters")))
    except ValueError:
        return str(item.get("name")), None
