"""Flags that several commands share: one spelling, one help text, one environment variable each."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class OnOff(StrEnum):
    ON = "on"
    OFF = "off"


class IndexK(StrEnum):
    FP8 = "fp8"
    BF16 = "bf16"
    FP4 = "fp4"


class FailOn(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


_SERVER = "Server"
_LAB = "Lab (the embedded miniature deployment)"
_OUTPUT = "Output"
_LOAD = "Load"

BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        envvar="OPENAI_BASE_URL",
        help="Server root, with or without /v1. Without it the lab is started.",
        rich_help_panel=_SERVER,
    ),
]
Host = Annotated[
    str | None,
    typer.Option("--host", help="Server host, as SGLang spells it.", rich_help_panel=_SERVER),
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port", min=1, max=65535, help="Server port (default 30000).", rich_help_panel=_SERVER
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model", help="Model name; else the first of /v1/models.", rich_help_panel=_SERVER
    ),
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        envvar="OPENAI_API_KEY",
        help="Bearer token; never written to any artifact.",
        show_envvar=True,
        rich_help_panel=_SERVER,
    ),
]
Headers = Annotated[
    list[str] | None,
    typer.Option(
        "--header", "-H", help="Extra header KEY=VALUE; repeatable.", rich_help_panel=_SERVER
    ),
]
ExtraBody = Annotated[
    str | None,
    typer.Option(
        "--extra-request-body",
        "--extra-body",
        help="JSON object merged into every request body.",
        rich_help_panel=_SERVER,
    ),
]
Insecure = Annotated[
    bool,
    typer.Option("--insecure", help="Do not verify TLS certificates.", rich_help_panel=_SERVER),
]
LabIndexK = Annotated[
    IndexK | None,
    typer.Option(
        "--lab-index-k", help="Index-K storage of the lab [default: bf16].", rich_help_panel=_LAB
    ),
]
LabHicache = Annotated[
    OnOff | None,
    typer.Option("--lab-hicache", help="HiCache in the lab [default: on].", rich_help_panel=_LAB),
]
LabFault = Annotated[
    list[str] | None,
    typer.Option(
        "--lab-fault", help="Fault of the lab [default: index-race].", rich_help_panel=_LAB
    ),
]
LabFix = Annotated[
    list[str] | None,
    typer.Option(
        "--lab-fix", help="Fix applied in the lab, e.g. index-gate.", rich_help_panel=_LAB
    ),
]
LabOption = Annotated[
    list[str] | None,
    typer.Option(
        "--lab-option",
        help="Further `lab serve` switch as NAME=VALUE, e.g. device-pages=620; repeatable.",
        rich_help_panel=_LAB,
    ),
]
MAX_SEED = 2**63 - 1  # what a signed 64-bit integer holds, here and in every language
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=MAX_SEED, help="Fixes every byte that is sent.")
]
StallTimeout = Annotated[
    float,
    typer.Option(
        "--stall-timeout",
        min=0.1,
        help="Seconds without a token that count as a stall.",
        rich_help_panel=_LOAD,
    ),
]
RequestTimeout = Annotated[
    float,
    typer.Option("--timeout", min=0.1, help="Seconds a request may take.", rich_help_panel=_LOAD),
]
OutputDir = Annotated[
    Path,
    typer.Option("--output-dir", help="Where run directories are made.", rich_help_panel=_OUTPUT),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document on stdout.", rich_help_panel=_OUTPUT),
]
NoColor = Annotated[
    bool, typer.Option("--no-color", help="No colours (as NO_COLOR).", rich_help_panel=_OUTPUT)
]
NoProgress = Annotated[
    bool,
    typer.Option(
        "--no-progress", "--disable-tqdm", help="No live display.", rich_help_panel=_OUTPUT
    ),
]
FailOnFlag = Annotated[
    FailOn,
    typer.Option(
        "--fail-on", help="Least severity that makes the exit code 1.", rich_help_panel=_OUTPUT
    ),
]
