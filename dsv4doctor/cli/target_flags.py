"""Flags that name a server or set the lab -> an endpoint, lab options, an extra body."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dsv4doctor.cli import options
from dsv4doctor.cli.console import say
from dsv4doctor.errors import UsageError

if TYPE_CHECKING:
    from dsv4doctor.flows.live_target import LabOptions
    from dsv4doctor.target import Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class LabFlags:
    """The lab, where no server is named."""

    lab_index_k: Annotated[
        options.IndexK | None,
        typer.Option("--lab-index-k", help="Index-K storage of the lab [default: bf16]."),
    ] = None
    lab_hicache: Annotated[
        options.OnOff | None,
        typer.Option("--lab-hicache", help="HiCache in the lab [default: on]."),
    ] = None
    lab_fault: Annotated[
        list[str] | None,
        typer.Option("--lab-fault", help="Fault of the lab [default: index-race]."),
    ] = None
    lab_fix: Annotated[
        list[str] | None,
        typer.Option("--lab-fix", help="Fix applied in the lab, e.g. index-gate."),
    ] = None
    lab_option: Annotated[
        list[str] | None,
        typer.Option(
            "--lab-option",
            help="Further `lab serve` switch as NAME=VALUE, e.g. device-pages=620; repeatable.",
        ),
    ] = None

    def asked_for(self) -> LabOptions | None:
        """The lab that they ask for; None when none was given.

        Raises:
            UsageError: if a fault does not exist, or a switch is no NAME=VALUE.
        """
        from dsv4doctor.flows.lab import default_index_k
        from dsv4doctor.flows.live_target import LabOptions

        if self == LabFlags():
            return None
        faults = tuple(self.lab_fault or LabOptions().faults)
        return LabOptions(
            index_k=self.lab_index_k.value if self.lab_index_k else default_index_k(faults),
            hicache=self.lab_hicache is not options.OnOff.OFF,
            faults=faults,
            fixes=tuple(self.lab_fix or ()),
            switches=tuple(_name_value(item, "--lab-option") for item in self.lab_option or ()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFlags:
    """A server, and what it takes to be let in."""

    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url",
            envvar="OPENAI_BASE_URL",
            help="Server root, with or without /v1. Without it the lab is started.",
        ),
    ] = None
    host: options.Host = None
    port: options.Port = None
    model: options.Model = None
    api_key: options.ApiKey = None
    header: options.Headers = None
    insecure: options.Insecure = False

    def endpoint(self, lab: LabOptions | None) -> Endpoint | None:
        """The server that they name; None for the lab.

        Raises:
            UsageError: if a server is typed beside `lab`, or what names it cannot be read.
        """
        from dsv4doctor.target import parse_endpoint

        headers = tuple(_name_value(item, "--header") for item in self.header or ())
        is_host_given = bool(self.host or self.port)
        if lab is not None:
            if (self.base_url and _was_typed("--base-url")) or is_host_given:
                raise UsageError(
                    "a server and --lab-* flags were both given",
                    "drop --base-url/--host/--port to use the lab, or the --lab-* flags",
                )
            return None
        if self.base_url and is_host_given:
            say("--host and --port are ignored beside --base-url")
        if not (self.base_url or is_host_given):
            return None
        if self.insecure:
            say("TLS certificates are not verified (--insecure)")
        return parse_endpoint(
            self.base_url
            or f"http://{self.host or '127.0.0.1'}:{self.port or options.DEFAULT_PORT}",
            api_key=self.api_key,
            headers=headers,
            verify_tls=not self.insecure,
        )


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
    """The object that `--extra-request-body` holds; empty without one.

    Raises:
        UsageError: if it is no JSON object.
    """
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
