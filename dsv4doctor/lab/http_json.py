"""JSON in and out of the lab's routes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from aiohttp import web


class BadRequest(Exception):
    """A request that SGLang answers with 400; `kind` is the error's `type`."""

    def __init__(self, message: str, kind: str = "BadRequestError") -> None:
        super().__init__(message)
        self.kind = kind


def encode_json(body: object) -> bytes:
    """`body` as JSON, also where it holds lone surrogates, which only escapes can write."""
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:
        return json.dumps(body).encode()


async def read_json(http: web.Request) -> Any:
    """The decoded body.

    Raises:
        BadRequest: if it is no JSON, or its content type says so.
    """
    if http.content_type != "application/json":
        raise BadRequest(
            "Unsupported Media Type: Only 'application/json' is allowed", "Bad Request"
        )
    try:
        return orjson.loads(await http.read())
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"JSON decode error: {error}", "Bad Request") from error


def json_response(body: Mapping[str, Any] | Sequence[Any], *, status: int = 200) -> web.Response:
    """`body` as a JSON response."""
    return web.Response(body=encode_json(body), status=status, content_type="application/json")
