"""Flags that several commands share: one spelling, one help text, one environment variable each."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dsv4doctor.cli.bounds import MAX_SECONDS, MAX_SEED, MAX_TURNS


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


DEFAULT_PORT = 30000
Host = Annotated[str | None, typer.Option("--host", help="Server host, as SGLang spells it.")]
Port = Annotated[
    int | None,
    typer.Option("--port", min=1, max=65535, help=f"Server port (default {DEFAULT_PORT})."),
]
Model = Annotated[
    str | None, typer.Option("--model", help="Model name; else the first of /v1/models.")
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        envvar="OPENAI_API_KEY",
        help="Bearer token; never written to any artifact.",
        show_envvar=True,
    ),
]
Headers = Annotated[
    list[str] | None, typer.Option("--header", "-H", help="Extra header KEY=VALUE; repeatable.")
]
ExtraBody = Annotated[
    str | None,
    typer.Option(
        "--extra-request-body", "--extra-body", help="JSON object merged into every request body."
    ),
]
Insecure = Annotated[bool, typer.Option("--insecure", help="Do not verify TLS certificates.")]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=MAX_SEED, help="Fixes every byte that is sent.")
]
StallTimeout = Annotated[
    float,
    typer.Option(
        "--stall-timeout",
        min=0.1,
        max=MAX_SECONDS,
        help="Seconds without a token that count as a stall.",
    ),
]
RequestTimeout = Annotated[
    float, typer.Option("--timeout", min=0.1, max=MAX_SECONDS, help="Seconds a request may take.")
]
Turns = Annotated[
    int | None, typer.Option("--turns", min=1, max=MAX_TURNS, help="Turns a session.")
]
ScenarioName = Annotated[
    str, typer.Option("--scenario", help="The load: name or TOML file (see repro/).")
]
SshConfig = Annotated[Path | None, typer.Option("--ssh-config", help="Instead of ~/.ssh/config.")]
Resume = Annotated[
    Path | None,
    typer.Option("--resume", metavar="RUN_DIR", help="Finish a run that was cut short."),
]
OutputDir = Annotated[Path, typer.Option("--output-dir", help="Where run directories are made.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colours (as NO_COLOR).")]
NoProgress = Annotated[
    bool, typer.Option("--no-progress", "--disable-tqdm", help="No live display.")
]
FailOnFlag = Annotated[
    FailOn, typer.Option("--fail-on", help="Least severity that makes the exit code 1.")
]
