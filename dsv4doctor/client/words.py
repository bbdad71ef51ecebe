"""What a server says when it refuses, in one line that a terminal does not obey."""

from __future__ import annotations

import json
from typing import Any

from dsv4doctor.client.chunk import NotJson, decode_text, load_object
from dsv4doctor.label import Label
from dsv4doctor.reply import Failure

MESSAGE_CHARS = 500


def http_failure(status: int, body: bytes) -> Failure:
    """The failure of an answer with an error status, with the server's own words."""
    try:
        document = load_object(body)
    except NotJson:
        text = one_line(decode_text(body))
    else:
        error = document.get("error") or document
        text = error_text(error)
    message = f"HTTP {status}: {text[:MESSAGE_CHARS]}" if text else f"HTTP {status}"
    return Failure(kind=Label.HTTP_ERROR, message=message, http_status=status)


def error_text(error: Any) -> str:
    """What an error object says, as one printable line."""
    if isinstance(error, dict):
        said = error.get("message") or error.get("detail") or error.get("error") or error
        if isinstance(said, dict | list):
            said = json.dumps(said)
    else:
        said = error
    return one_line(str(said))[:MESSAGE_CHARS]


def one_line(text: str) -> str:
    """`text` without anything that a terminal would obey."""
    spaced = " ".join(text.split())
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in spaced)
