"""Where every error ends: stderr for people, the document for programs, one of each."""

from __future__ import annotations

import errno
import json
import os

import pytest

from dsv4doctor.cli import output
from dsv4doctor.cli.failing import Failing

COMMANDS = ("scan", "size")


@pytest.fixture(autouse=True)
def nothing_is_printed_yet() -> None:
    output.begin()


def test_a_bug_has_its_traceback_on_stderr_and_a_document(
    capsys: pytest.CaptureFixture[str],
) -> None:
    try:
        raise ZeroDivisionError("odd")
    except ZeroDivisionError:
        assert Failing(["scan", "--json"], COMMANDS).tell_bug() == 70
    out, err = capsys.readouterr()
    assert "ZeroDivisionError: odd" in err
    document = json.loads(out)
    assert (document["command"], document["verdict"], document["exit_code"]) == ("scan", "bug", 70)
    assert "a bug in dsv4doctor" in document["scan"]["error"]


def test_behind_a_document_there_is_no_second(capsys: pytest.CaptureFixture[str]) -> None:
    output.emit_json("scan", "clean", 0, (), {})
    assert Failing(["scan", "--json"], COMMANDS).tell_interrupted() == 130
    out, err = capsys.readouterr()
    assert json.loads(out)["verdict"] == "clean"
    assert err == "dsv4doctor: interrupted\n"


@pytest.mark.parametrize(
    ("words", "is_document"),
    [
        pytest.param(["size", "--json"], True, id="asked-for"),
        pytest.param(["size"], False, id="not-asked-for"),
        pytest.param(["scan", "--", "--json"], False, id="a-file-of-that-name"),
        pytest.param(["size", "--batch", "x", "--json"], False, id="answers-in-lines"),
        pytest.param(["scan", "--batch", "x", "--json"], True, id="has-no-such-flag"),
        pytest.param(["--json"], True, id="no-command"),
    ],
)
def test_a_document_where_json_was_asked_for(
    words: list[str], is_document: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Failing(words, COMMANDS).tell("it\nfailed\x1b[31m", "that", exit_code=3) == 3
    out, err = capsys.readouterr()
    assert err == "dsv4doctor: it failed\\x1b[31m\n  try: that\n"
    assert bool(out) is is_document
    if is_document:
        command = words[0] if words[0] in COMMANDS else "dsv4doctor"
        assert json.loads(out)[command] == {"error": "it failed\\x1b[31m", "hint": "that"}


def test_an_error_of_the_system_that_is_no_full_disk_is_a_bug(
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    assert Failing(["scan"], COMMANDS).tell_os_error(error) == 70
    assert "a bug in dsv4doctor" in capsys.readouterr().err
