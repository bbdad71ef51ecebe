"""What is diagnosed: a server, however its base URL was spelt."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit, urlunsplit

from dsv4doctor.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A server's root: `base_url` has a scheme, no trailing slash or `/v1`, and no credentials."""

    base_url: str
    api_key: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    verify_tls: bool = True
    userinfo: str | None = None

    @property
    def chat_url(self) -> str:
        return f"{self.base_url}/v1/chat/completions"


def parse_endpoint(
    text: str,
    *,
    api_key: str | None = None,
    headers: tuple[tuple[str, str], ...] = (),
    verify_tls: bool = True,
) -> Endpoint:
    """The endpoint that `text` names: `h:30000`, `http://h:30000/` and `http://h:30000/v1` are one.

    A gateway prefix survives (`https://gw/ds4/v1` is `https://gw/ds4`). Credentials in the URL are
    kept apart, so that the printable URL never holds them.

    Raises:
        UsageError: if `text` names no server.
    """
    parts = _split(text)
    path = parts.path.rstrip("/")
    if path.endswith("/v1"):
        path = path[: -len("/v1")].rstrip("/")
    userinfo, _, location = parts.netloc.rpartition("@")
    return Endpoint(
        base_url=urlunsplit((parts.scheme, location, path, "", "")),
        api_key=api_key or None,
        headers=headers,
        verify_tls=verify_tls,
        userinfo=userinfo or None,
    )


def _split(text: str) -> SplitResult:
    stripped = text.strip()
    if "://" not in stripped:
        stripped = f"http://{stripped}"
    hint = "give it as http://HOST:PORT, with or without /v1"
    try:
        parts = urlsplit(stripped)
        port = parts.port
        (parts.hostname or "").encode("idna")  # what a name server is asked
    except ValueError as error:
        raise UsageError(f"--base-url {text!r} is no URL: {error}", hint) from error
    if parts.scheme not in {"http", "https"}:
        raise UsageError(f"--base-url {text!r} has scheme {parts.scheme!r}", hint)
    if not parts.hostname or any(c.isspace() for c in parts.netloc) or port == 0:
        raise UsageError(f"--base-url {text!r} names no host", hint)
    return parts
