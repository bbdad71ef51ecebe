"""Flags that name a server or set the lab -> an endpoint, lab options, an extra body."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from dsv4doctor.cli import options
from dsv4doctor.cli.console import say
from dsv4doctor.errors import UsageError

if TYPE_CHECKING:
    from dsv4doctor.flows.live_target import LabOptions
    from dsv4doctor.target import Endpoint

DEFAULT_PORT = 30000


def lab_of(
    index_k: options.IndexK | None,
    hicache: options.OnOff | None,
    fault: list[str] | None,
    fix: list[str] | None,
    extra: list[str] | None,
) -> LabOptions | None:
    """The lab that the `--lab-*` flags ask for; None when none was given."""
    from dsv4doctor.flows.lab import default_index_k
    from dsv4doctor.flows.live_target import LabOptions

    if index_k is None and hicache is None and not fault and not fix and not extra:
        return None
    faults = tuple(fault or LabOptions().faults)
    return LabOptions(
        index_k=index_k.value if index_k else default_index_k(faults),
        hicache=hicache is not options.OnOff.OFF,
        faults=faults,
        fixes=tuple(fix or ()),
        switches=tuple(_name_value(item, "--lab-option") for item in extra or ()),
    )


def endpoint_of(
    base_url: str | None,
    host: str | None,
    port: int | None,
    api_key: str | None,
    header: list[str] | None,
    *,
    insecure: bool,
    lab: LabOptions | None,
) -> Endpoint | None:
    """The server that the flags name; None for the lab."""
    from dsv4doctor.target import parse_endpoint

    headers = tuple(_name_value(item, "--header") for item in header or ())
    if lab is not None:
        if (base_url and _was_typed("--base-url")) or host or port:
            raise UsageError(
                "a server and --lab-* flags were both given",
                "drop --base-url/--host/--port to use the lab, or the --lab-* flags",
            )
        return None
    if base_url and (host or port):
        say("--host and --port are ignored beside --base-url")
    if not base_url and (host or port):
        base_url = f"http://{host or '127.0.0.1'}:{port or DEFAULT_PORT}"
    if not base_url:
        return None
    if insecure:
        say("TLS certificates are not verified (--insecure)")
    return parse_endpoint(base_url, api_key=api_key, headers=headers, verify_tls=not insecure)


def _was_typed(flag: str) -> bool:
    """True when the flag stood on the command line, not only in the environment."""
    return any(word == flag or word.startswith(f"{flag}=") for word in sys.argv)


def _name_value(text: str, flag: str) -> tuple[str, str]:
    """`NAME=VALUE` (or `NAME: VALUE`, as curl spells headers)."""
    for separator in ("=", ":"):
        name, found, value = text.partition(separator)
        if found and name.strip() and " " not in name.strip():
            return name.strip(), value.strip()
    raise UsageError(f"{flag} {text!r} is no NAME=VALUE", f"write it as {flag} NAME=VALUE")


def extra_body_of(text: str | None) -> dict[str, Any]:
    """The object that `--extra-request-body` holds; empty without one."""
    if text is None:
        return {}
    hint = "give a JSON object, e.g. --extra-request-body '{\"top_k\": 1}'"
    try:
        body = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--extra-request-body is no JSON: {error}", hint) from error
    if not isinstance(body, dict):
        raise UsageError("--extra-request-body is no JSON object", hint)
    return body
