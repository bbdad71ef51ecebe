"""The flags that every action of `checksum` takes, before the action's name or after it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from dsv4doctor.cli import options

_WHERE = "Where"

SshHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--ssh-host",
        help="Run there instead of here: [USER@]HOST[:PORT] or a name of ~/.ssh/config; "
        "repeatable.",
        rich_help_panel=_WHERE,
    ),
]
SshHostFiles = Annotated[
    list[Path] | None,
    typer.Option("--ssh-hosts", help="File of hosts, one a line.", rich_help_panel=_WHERE),
]
SshConfig = Annotated[
    Path | None,
    typer.Option("--ssh-config", help="Instead of ~/.ssh/config.", rich_help_panel=_WHERE),
]
RemotePython = Annotated[
    str | None,
    typer.Option(
        "--remote-python",
        help="Interpreter there; default: that of the running SGLang, else python3.",
        rich_help_panel=_WHERE,
    ),
]
RemotePrefix = Annotated[
    str | None,
    typer.Option(
        "--remote-prefix",
        metavar="CMD",
        help="Enters a container first, e.g. 'docker exec -i NAME' or 'kubectl exec -i POD --'.",
        rich_help_panel=_WHERE,
    ),
]
Gpus = Annotated[
    str | None,
    typer.Option("--gpus", help="GPUs to use, e.g. 0,3; default: all.", rich_help_panel=_WHERE),
]
MaxBytes = Annotated[
    str | None,
    typer.Option(
        "--max-bytes",
        help="Most device memory to touch, e.g. 512MiB; default: what is free less 1 GiB.",
        rich_help_panel=_WHERE,
    ),
]
TimeBudget = Annotated[
    float | None,
    typer.Option(
        "--time-budget",
        min=1,
        help="Seconds after which no further check begins [default: 300].",
        rich_help_panel=_WHERE,
    ),
]
RequireGpu = Annotated[
    bool, typer.Option("--require-gpu", help="No GPU is an error.", rich_help_panel=_WHERE)
]
FailOnFlag = Annotated[
    options.FailOn | None,
    typer.Option("--fail-on", help="Least severity that makes the exit code 1 [default: warning]."),
]
IndexKFlag = Annotated[
    options.IndexK | None,
    typer.Option("--index-k", help="Index-K storage [default: fp8; race: all three]."),
]
SeedFlag = Annotated[int | None, typer.Option("--seed", help="Fixes every byte [default: 42].")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The flags that every action takes, before it or after it; None or empty: not given."""

    ssh_host: tuple[str, ...] = ()
    ssh_hosts: tuple[Path, ...] = ()
    ssh_config: Path | None = None
    remote_python: str | None = None
    remote_prefix: str | None = None
    gpus: str | None = None
    max_bytes: str | None = None
    time_budget: float | None = None
    require_gpu: bool = False
    index_k: options.IndexK | None = None
    seed: int | None = None
    fail_on: options.FailOn | None = None
    as_json: bool = False
    no_color: bool = False

    def over(self, earlier: Flags) -> Flags:
        """These flags, with `earlier` ones where these were not given."""
        given = {
            each.name: getattr(earlier, each.name)
            for each in fields(self)
            if getattr(self, each.name) in (None, (), False)
        }
        return replace(self, **given)


def _shared(
    ssh_host: SshHosts = None,
    ssh_hosts: SshHostFiles = None,
    ssh_config: SshConfig = None,
    remote_python: RemotePython = None,
    remote_prefix: RemotePrefix = None,
    gpus: Gpus = None,
    max_bytes: MaxBytes = None,
    time_budget: TimeBudget = None,
    require_gpu: RequireGpu = False,
    index_k: IndexKFlag = None,
    seed: SeedFlag = None,
    fail_on: FailOnFlag = None,
    as_json: options.AsJson = False,
    no_color: options.NoColor = False,
) -> None:
    """The shared flags as typer reads them; never called."""


def with_flags(action: Callable[..., None]) -> Callable[..., None]:
    """`action(context, flags, ...)` as a command that takes the shared flags beside its own.

    Its own parameters come first in `--help`; the shared ones reach it as one `Flags`, over those
    that were given before the action's name.
    """
    own = inspect.signature(action, eval_str=True).parameters
    shared = inspect.signature(_shared, eval_str=True).parameters
    kept = [parameter for name, parameter in own.items() if name != "flags"]

    @functools.wraps(action)
    def command(**given: Any) -> None:
        values = {name: given.pop(name) for name in shared}
        action(**given, flags=_flags(values, given["context"].obj))

    parameters = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*kept, *shared.values())
    ]
    del command.__wrapped__  # its signature is not the command's
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _flags(values: dict[str, Any], earlier: Any) -> Flags:
    for name in ("ssh_host", "ssh_hosts"):
        values[name] = tuple(values[name] or ())
    flags = Flags(**values)
    return flags.over(earlier) if isinstance(earlier, Flags) else flags
