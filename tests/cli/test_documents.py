"""Every command line in README and docs/ is one that the tool takes; the quick ones are run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.exceptions import TyperException

from dsv4doctor.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
COMMAND = re.compile(r"(?:^|`)(?:\$ )?(dsv4doctor [^`\n]*(?:\\\n[^`\n]*)*)", re.MULTILINE)
# Prose that names a command, and a report's first line; no command lines.
NOT_LINES = re.compile(r"^dsv4doctor(?: [a-z]+)*(?:$|: )")


def lines_of(page: Path) -> list[str]:
    """The command lines in code of a page: indented, fenced, and between backticks."""
    text = page.read_text(encoding="utf-8")
    code = []
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            code.append(line.strip())
        else:
            code += [f"`{span}" for span in re.findall(r"`([^`]*)`", line)]
    found = (match[1].replace("\\\n", " ").strip() for match in COMMAND.finditer("\n".join(code)))
    return [line for line in found if not NOT_LINES.match(line)]


def cases() -> list[Any]:
    return [
        pytest.param(line, id=f"{page.name}-{number}")
        for page in PAGES
        for number, line in enumerate(dict.fromkeys(lines_of(page)))
    ]


def words_of(line: str) -> list[str]:
    """The arguments; a comment, a pipe or a redirection behind them is the shell's."""
    words = shlex.split(line, comments=True)[1:]
    for number, word in enumerate(words):
        if word in ("|", ">", ">>", "2>", "&&", "||", ";", "&"):
            return words[:number]
    return words


def parse(words: list[str]) -> None:
    """Read `words` as the tool does, and run nothing."""
    command: Any = typer.main.get_group(app)
    context = command.make_context("dsv4doctor", list(words))
    while hasattr(command, "get_command"):
        rest = [*getattr(context, "_protected_args", []), *context.args]
        if not rest:
            return
        command = command.get_command(context, rest[0])
        assert command is not None, f"no command is called {rest[0]}"
        context = command.make_context(rest[0], rest[1:], parent=context)


@pytest.mark.parametrize("line", cases())
def test_every_command_line_in_the_documents_is_taken(line: str) -> None:
    words = words_of(line)
    if "--help" in words or "--version" in words or words == ["--help"]:
        return
    try:
        parse(words)
    except TyperException as error:
        pytest.fail(f"{line}: {error.format_message()}")


def test_a_flag_that_is_not_there_would_be_seen() -> None:
    with pytest.raises(TyperException):
        parse(words_of("dsv4doctor size --no-such-flag"))


QUICK = [
    line
    for page in PAGES
    for line in dict.fromkeys(lines_of(page))
    if words_of(line)[:1] == ["size"] or words_of(line)[:2] == ["ab", "plan"]
    if not re.search(r"[A-Z]{3,}|\.(json|jsonl|log|toml)|http|…|\.\.\.", line)
]


@pytest.mark.parametrize("line", dict.fromkeys(QUICK))
def test_examples_that_need_nothing_run(line: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dsv4doctor", *words_of(line)],
        capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60,
    )  # fmt: skip
    told = re.search(r"(?:exit )?code (\d)", line)
    assert done.returncode in ({int(told[1])} if told else {0, 1}), done.stderr
    assert done.stdout
