"""The frame of the command line: exit codes, streams, what errors look like."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import typer
import typer.main

from dsv4doctor.cli.app import COMMANDS, CommandGroup, app
from dsv4doctor.cli.output import emit_json, plain
from dsv4doctor.finding import Evidence, Finding, Severity

DOCTOR = (sys.executable, "-m", "dsv4doctor")


def doctor(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DOCTOR, *arguments], capture_output=True, text=True, input=stdin, check=False, timeout=60
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_begins_as_the_list_says(name: str) -> None:
    done = doctor(name, "--help")
    assert done.returncode == 0
    said = " ".join(done.stdout.split())
    first = " ".join(COMMANDS[name].summary.rstrip(".:").split()[:2])
    assert first in said


def all_commands() -> list[tuple[str, ...]]:
    """Every command and every action of a command."""
    group = typer.main.get_group(app)
    context = typer.Context(group)
    found: list[tuple[str, ...]] = []
    for name in COMMANDS:
        command = group.get_command(context, name)
        found.append((name,))
        found += [(name, action) for action in getattr(command, "commands", {})]
    return found


@pytest.mark.parametrize("words", all_commands(), ids=" ".join)
def test_every_help_has_an_example_of_its_own_command(words: tuple[str, ...]) -> None:
    group: Any = typer.main.get_group(app)
    command, context = group, typer.Context(group, info_name="dsv4doctor")
    for word in words:
        command = command.get_command(context, word)
        context = typer.Context(command, info_name=word, parent=context)
    said = " ".join(command.get_help(context).split())
    assert f"Example: dsv4doctor {' '.join(words)}" in said


def test_the_list_of_commands_imports_none_of_them() -> None:
    assert isinstance(app.info.cls, type)
    assert issubclass(app.info.cls, CommandGroup)
    code = (
        "import sys\nfrom dsv4doctor.cli.app import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([m for m in sys.modules if m.startswith('dsv4doctor.cli.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    # `early` answers Ctrl-C while these are imported, `failing` what goes wrong.
    names = ("early", "streams", "failing", "app")
    assert done.stdout.splitlines()[-1] == str([f"dsv4doctor.cli.{name}" for name in names])


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("repro", "--sessions", "-3"), "--sessions"),
        (("repro", "--sessions", "many"), "--sessions"),
        (("repro", "--nope"), "--nope"),
        (("nope",), "nope"),
        (("lab",), "Missing command"),
        (("probe",), "dsv4doctor probe --help"),
        (("repro", "--scenario", "tool-cals"), "tool-calls"),
        (("repro", "--base-url", "ftp://h"), "ftp"),
        (("repro", "--base-url", "h:1", "--lab-hicache", "off"), "--lab-*"),
        (("repro", "--header", "novalue"), "novalue"),
        (("repro", "--extra-request-body", "[1]"), "--extra-request-body"),
        (("repro", "--context-tokens", "x:y"), "x"),
        (("repro", "--context-tokens", "2000:99999999999"), "at most 1,048,576"),
        (("repro", "--base-url", "http://\u202eh\u00fc"), "is no URL"),
        (("repro", "--resume", "/nonexistent"), "/nonexistent"),
        (("repro", "--lab-fault", "no-such-fault"), "no-such-fault"),
        (("repro", "--lab-fix", "no-such-fix"), "no-such-fix"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_bad_usage_is_two_lines_and_code_2(
    arguments: tuple[str, ...], names: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    output = tmp_path_factory.mktemp("reports")
    extra = ("--output-dir", str(output)) if arguments[0] == "repro" else ()
    done = doctor(*arguments, *extra)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if "starting the lab" not in line]
    assert len(lines) == 2, done.stderr
    assert lines[0].startswith("dsv4doctor: ")
    assert lines[1].startswith("  try: ")
    assert names in done.stderr
    assert "Traceback" not in done.stderr


def test_what_a_name_holds_does_nothing_to_the_terminal() -> None:
    done = doctor("report", "run\x1b[31m\u202e\nx")
    assert done.returncode == 2
    said, step = done.stderr.splitlines()
    assert said == "dsv4doctor: there is no run directory run\\x1b[31m\\u202e x"
    assert step.startswith("  try: ")


@pytest.mark.parametrize("words", ["size --json", "size"], ids=str)
def test_a_closed_pipe_is_no_error(words: str) -> None:
    # The reader is gone before the first byte: nothing depends on how fast either of them starts.
    command = f"{sys.executable} -m dsv4doctor {words}"
    pipe = f"(sleep 0.1; {command}) | (exec 0<&-); echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", pipe], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "0"
    assert "Traceback" not in done.stderr


def test_json_is_ascii_and_never_holds_nan(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = (Evidence(where="a", what="\ud800"),)
    finding = Finding(rule="R", severity=Severity.INFO, title="\x1b[31m", evidence=hostile)
    emit_json("x", "v", 0, [finding], {"nan": float("nan"), "tuple": (1, 2)})
    text = capsys.readouterr().out
    assert text.isascii()
    assert "\x1b" not in text
    document = json.loads(text)
    assert document["x"] == {"nan": None, "tuple": [1, 2]}
    assert document["findings"][0]["severity"] == "info"


def test_what_has_no_json_form_is_told() -> None:
    with pytest.raises(TypeError, match="object"):
        plain(object())
