"""JSON as the lab writes it."""

from __future__ import annotations

import json

import orjson


def encode_json(body: object) -> bytes:
    """`body` as JSON, also where it holds lone surrogates, which only escapes can write."""
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:
        return json.dumps(body).encode()
