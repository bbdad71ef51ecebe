"""The flags that every action of `checksum` takes, before the action's name or after it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import typer

from dsv4doctor.cli import options
from dsv4doctor.cli.bounds import MAX_SECONDS, MAX_SEED
from dsv4doctor.cli.groups import with_groups
from dsv4doctor.cli.host_flags import HostFlags
from dsv4doctor.cli.telling import TellingFlags
from dsv4doctor.errors import UsageError
from dsv4doctor.units import parse_bytes

DEFAULT_SEED = 42


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags(HostFlags):
    """The flags that every action takes, before it or after it; None, empty, False: not given."""

    gpus: Annotated[
        str | None, typer.Option("--gpus", help="GPUs to use, e.g. 0,3; default: all.")
    ] = None
    max_bytes: Annotated[
        str | None,
        typer.Option(
            "--max-bytes",
            help="Most device memory to touch, e.g. 512MiB; default: what is free less 1 GiB.",
        ),
    ] = None
    time_budget: Annotated[
        float | None,
        typer.Option(
            "--time-budget",
            min=1,
            max=MAX_SECONDS,
            help="Seconds after which no further check begins [default: 300].",
        ),
    ] = None
    require_gpu: Annotated[bool, typer.Option("--require-gpu", help="No GPU is an error.")] = False
    index_k: Annotated[
        options.IndexK | None,
        typer.Option("--index-k", help="Index-K storage [default: fp8; race: all three]."),
    ] = None
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, max=MAX_SEED, help="Fixes every byte [default: 42]."),
    ] = None
    fail_on: Annotated[
        options.FailOn | None,
        typer.Option(
            "--fail-on", help="Least severity that makes the exit code 1 [default: warning]."
        ),
    ] = None
    as_json: options.AsJson = False
    no_color: options.NoColor = False

    def over(self, earlier: Flags) -> Flags:
        """These flags, with `earlier` ones where these were not given."""
        given = {
            each.name: getattr(earlier, each.name)
            for each in fields(self)
            if _is_absent(getattr(self, each.name))
        }
        return replace(self, **given)

    @property
    def seed_used(self) -> int:
        return DEFAULT_SEED if self.seed is None else self.seed

    def telling(self, *, no_progress: bool = False) -> TellingFlags:
        """How the outcome is shown, with `--fail-on`'s default where it was not given."""
        return TellingFlags(
            fail_on=self.fail_on or options.FailOn.WARNING,
            as_json=self.as_json,
            no_progress=no_progress,
            no_color=self.no_color,
        )

    @property
    def byte_limit(self) -> int | None:
        """`--max-bytes` as a number; None: not given.

        Raises:
            UsageError: if it is no size, or none at all.
        """
        text = self.max_bytes
        if text is None:
            return None
        try:
            value = parse_bytes(text)
        except UsageError as error:
            raise UsageError(f"--max-bytes {error}", error.hint) from error
        if value <= 0:
            raise UsageError(f"--max-bytes {text!r} leaves nothing", "for example 512MiB or 2GiB")
        return value


def _is_absent(value: object) -> bool:
    """By identity: a seed of 0 was given, though it equals False."""
    return value is None or value is False or value == []


def with_flags(action: Callable[..., None]) -> Callable[..., None]:
    """`action(context, flags=..., ...)` as a command that takes the shared flags beside its own.

    They reach it as one `Flags`, over those that were given before the action's name.
    """
    signature = inspect.signature(action, eval_str=True)

    @functools.wraps(action)
    def merged(*, context: typer.Context, flags: Flags, **own: Any) -> None:
        earlier = context.obj
        flags = flags.over(earlier) if isinstance(earlier, Flags) else flags
        action(context=context, flags=flags, **own)

    del merged.__wrapped__
    merged.__signature__ = signature  # type: ignore[attr-defined]
    return with_groups(merged)
