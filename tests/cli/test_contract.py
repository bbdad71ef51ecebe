"""What the contract promises of every command alike: common flags, code 2, one document."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer.main

from dsv4doctor.cli.app import app, main
from tests.cli.test_app import all_commands
from tests.report.runs import finish_run, small_run, write_run

PROMISED = {"--json", "--no-color"}


def command_of(words: tuple[str, ...]) -> Any:
    command: Any = typer.main.get_group(app)
    for word in words:
        command = command.get_command(typer.Context(command), word)
    return command


def runs_itself(words: tuple[str, ...]) -> bool:
    """False of a group that only holds other commands (`lab`, `probe`)."""
    command = command_of(words)
    return not getattr(command, "commands", None) or command.invoke_without_command


COMMANDS = [words for words in all_commands() if runs_itself(words)]


@pytest.fixture(autouse=True)
def signals_as_they_were() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    return int(ended.value.code or 0)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_the_common_flags(words: tuple[str, ...]) -> None:
    flags = {flag for each in command_of(words).params for flag in each.opts}
    assert flags >= PROMISED


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_flag_that_is_not_there_is_code_2_in_two_lines(
    words: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(*words, "--no-such-flag") == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "dsv4doctor: No such option: --no-such-flag",
        f"  try: dsv4doctor {' '.join(words)} --help",
    ]


NO_NUMBERS = ("many", "1٢x", "", "--")
# Past every bound, or past what a float holds; `nan` is neither small nor large.
OUT_OF_RANGE = ("1" + 30 * "0", "-1" + 30 * "0", "nan", "inf", "-inf", "1e400")


def numbers_of(words: tuple[str, ...]) -> list[str]:
    """The flags whose value is a number, by their first spelling."""
    return [each.opts[0] for each in command_of(words).params if is_number(each)]


def is_number(parameter: Any) -> bool:
    told = parameter.type_descriptor.annotation
    return bool({int, float} & {told, *get_args(told)})


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_number_has_a_least_and_a_most(words: tuple[str, ...]) -> None:
    numbers = [each for each in command_of(words).params if is_number(each)]
    assert [each.opts[0] for each in numbers if each.min is None or each.max is None] == []


@pytest.mark.parametrize("words", [each for each in COMMANDS if numbers_of(each)], ids=" ".join)
def test_a_number_that_is_none_is_code_2_and_named(
    words: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    for place, flag in enumerate(numbers_of(words)):
        for value in (each[place % len(each)] for each in (NO_NUMBERS, OUT_OF_RANGE)):
            assert run(*words, f"{flag}={value}") == 2, (flag, value)
            out, err = capfd.readouterr()
            assert out == ""
            assert len(err.splitlines()) == 2, err
            assert flag in err


def takers_of(words: tuple[str, ...]) -> list[str]:
    """The flags that take a value, by their first spelling."""
    options = [each for each in command_of(words).params if each.param_type_name == "option"]
    return [each.opts[0] for each in options if not each.is_flag and not each.count]


MAY_BE_EMPTY = {"--api-key", "--remote-prefix"}  # no key, no prefix: it says what it does


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_value_that_is_empty_is_code_2_and_named(
    words: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    flags = [flag for flag in takers_of(words) if flag not in MAY_BE_EMPTY]
    lines = [(flag, (f"{flag}=",)) for flag in flags] + [(flag, (flag, " \t")) for flag in flags]
    if any(each.param_type_name == "argument" for each in command_of(words).params):
        lines.append(("", ("",)))
    for flag, line in lines:
        assert run(*words, *line) == 2, line
        out, err = capfd.readouterr()
        assert out == ""
        said, step = err.splitlines()
        assert said.startswith(f"dsv4doctor: {flag}")
        assert said.endswith(" is empty")
        assert step.startswith("  try: ")


def test_every_command_that_takes_a_server_refuses_an_empty_one(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    takers = [words for words in COMMANDS if "--base-url" in takers_of(words)]
    assert {words[0] for words in takers} == {
        "ab", "audit", "bench", "checksum", "diagnose", "repro", "size", "watch",
    }  # fmt: skip
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    for words in takers:
        assert run(*words, "--base-url", "") == 2, words
        out, err = capfd.readouterr()
        assert out == ""
        assert err.splitlines()[0] == "dsv4doctor: --base-url is empty"


@pytest.mark.parametrize("flag", sorted(MAY_BE_EMPTY))
def test_what_may_be_empty_is_taken(flag: str, capfd: pytest.CaptureFixture[str]) -> None:
    takers = [words for words in COMMANDS if flag in takers_of(words)]
    assert takers
    for words in takers:
        assert run(*words, flag, "", "--no-such-flag") == 2
        assert "No such option" in capfd.readouterr().err


def document_of(text: str) -> dict[str, Any]:
    """The one document there is: a second would be extra data."""
    assert text.count("\n") == 1
    document: dict[str, Any] = json.loads(text)
    assert set(document) == {
        "schema_version", "dsv4doctor_version", "command", "verdict", "exit_code", "findings",
        document["command"],
    }  # fmt: skip
    return document


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_with_json_a_usage_error_is_a_document_too(
    words: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(*words, "--json", "--no-such-flag") == 2
    out, err = capfd.readouterr()
    document = document_of(out)
    assert (document["command"], document["verdict"], document["exit_code"]) == (
        words[0], "usage", 2,
    )  # fmt: skip
    told = document[words[0]]
    assert err.splitlines() == [f"dsv4doctor: {told['error']}", f"  try: {told['hint']}"]


CLOSED = ("--base-url", "http://127.0.0.1:9")  # nobody listens on the discard port
ARMS = ("--arm", "a=http://127.0.0.1:9", "--arm", "b=http://127.0.0.1:9")
FAILS = [
    (("ab", *ARMS), 3, "could not run"),
    (("ab", "plan", "--p0", "7"), 2, "usage"),
    (("ab", "restore", "NOWHERE"), 2, "usage"),
    (("audit", *CLOSED), 3, "could not run"),
    (("checksum", "compare", "NOWHERE", "NOWHERE"), 2, "usage"),
    (("lab", "replay", "NOWHERE"), 2, "usage"),
    (("lab", "serve", "--fault", "none-such"), 2, "usage"),
    (("patch", "--source", "NOWHERE"), 2, "usage"),
    (("report", "NOWHERE"), 2, "usage"),
    (("scan", "NOWHERE"), 2, "usage"),
    (("size", *CLOSED), 3, "could not run"),
    (("size", "--spec", "NOWHERE"), 2, "usage"),
]


@pytest.mark.parametrize(("words", "code", "verdict"), FAILS, ids=str)
def test_with_json_what_could_not_be_done_is_a_document_too(
    words: tuple[str, ...],
    code: int,
    verdict: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*words) == code
    out, plainly = capfd.readouterr()
    assert out == ""
    assert run(*words, "--json") == code
    out, err = capfd.readouterr()
    assert err == plainly
    document = document_of(out)
    assert (document["command"], document["verdict"], document["exit_code"]) == (
        words[0], verdict, code,
    )  # fmt: skip
    assert document["findings"] == []
    told = document[words[0]]
    assert err.splitlines()[-2:] == [f"dsv4doctor: {told['error']}", f"  try: {told['hint']}"]


QUICK = [
    ("ab", "plan", "--p0", "0.18", "--p1", "0.01"),
    ("audit", "--launch", "python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V4"),
    ("lab", "search", "--as-version", "0.5.18", "--save", "race.json"),
    ("lab", "replay", "race.json"),
    ("report", "RUN"),
    ("report", "RUN", "--format", "html", "--output", "page.html"),
    ("repro", *CLOSED),
    ("scan", "RUN/records.jsonl"),
    ("size",),
    ("watch", "--once", *CLOSED),
]


def test_with_json_there_is_one_document_on_stdout_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    write_run(tmp_path / "made", small_run()).rename("RUN")
    finish_run(Path("RUN"), {"verdict": "clean", "exit_code": 0, "repro": {"responses": 1}})
    for words in QUICK:
        code = run(*words, "--json", "--no-color")
        out, err = capfd.readouterr()
        assert out, (words, code, err)
        document = document_of(out)
        assert (document["command"], document["exit_code"]) == (words[0], code), err
        assert all(each["evidence"] for each in document["findings"])
        assert "Traceback" not in err
