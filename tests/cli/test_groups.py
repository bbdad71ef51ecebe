"""Flags that are declared as a dataclass: where they stand, what reaches the command."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from dsv4doctor.cli.checksum_flags import Flags
from dsv4doctor.cli.groups import with_groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A group: one flag that has to be given, one that need not be."""

    host: Annotated[str, typer.Option("--host")]
    names: Annotated[list[str] | None, typer.Option("--name")] = None


@with_groups
def command(
    *,
    first: Annotated[int, typer.Option("--first")] = 1,
    where: Where,
    last: Annotated[int, typer.Option("--last")] = 3,
) -> None:
    typer.echo(f"{first} {where} {last}")


def test_the_flags_of_a_group_stand_where_it_stands() -> None:
    assert list(inspect.signature(command).parameters) == ["first", "host", "names", "last"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "h"], "1 Where(host='h', names=None) 3\n"),
        (["--last", "9", "--host", "h", "--name", "a", "--name", "b"],
         "1 Where(host='h', names=['a', 'b']) 9\n"),
    ],
)  # fmt: skip
def test_a_group_reaches_the_command_as_one_value(words: list[str], said: str) -> None:
    app = typer.Typer()
    app.command()(command)
    assert CliRunner().invoke(app, words).stdout == said


def test_a_field_without_a_default_has_to_be_given() -> None:
    app = typer.Typer()
    app.command()(command)
    assert CliRunner().invoke(app, []).exit_code == 2


def test_flags_behind_an_action_outrank_those_before_it() -> None:
    earlier = Flags(seed=7, require_gpu=True, ssh_host=["a"], max_bytes="1GiB")
    later = Flags(seed=0, ssh_host=["b"])
    merged = later.over(earlier)
    assert merged == Flags(seed=0, require_gpu=True, ssh_host=["b"], max_bytes="1GiB")
