"""Ctrl-C at any moment of the start: one line, code 130, no traceback."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# Interrupts itself when a module is about to be imported, as a person may at that moment.
_INTERRUPTED_AT = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.argv = {argv!r}
from dsv4doctor.cli.app import main
main()
"""


def interrupted_at(module: str, *argv: str) -> subprocess.CompletedProcess[str]:
    code = _INTERRUPTED_AT.format(module=module, argv=["dsv4doctor", *argv])
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize(
    "module",
    [
        pytest.param("typer", id="importing-the-command-line"),
        pytest.param("typer._adapters", id="reading-the-flags"),
        pytest.param("dsv4doctor.flows.repro", id="importing-the-flow"),
        pytest.param("aiohttp", id="importing-the-client"),
    ],
)
def test_an_interrupted_start_says_one_line(module: str) -> None:
    done = interrupted_at(module, "repro", "--base-url", "127.0.0.1:9", "--no-progress")
    assert done.returncode == 130
    assert done.stderr == "dsv4doctor: interrupted\n"
    assert done.stdout == ""


def test_an_interrupted_start_with_json_is_a_document_too() -> None:
    done = interrupted_at("dsv4doctor.flows.repro", "repro", "--base-url", "127.0.0.1:9", "--json")
    document = json.loads(done.stdout)
    assert (document["verdict"], document["exit_code"]) == ("interrupted", done.returncode)
    assert document["repro"] == {"error": "interrupted", "hint": None}


def test_an_ignored_interrupt_stays_ignored() -> None:
    """`nohup` and a supervisor ignore SIGINT for us; it must not come back to life."""
    code = (
        "import signal, sys\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "sys.argv = ['dsv4doctor', '--version']\nfrom dsv4doctor.cli.app import main\n"
        "try:\n    main()\nfinally:\n"
        "    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_somebody_who_imports_us_keeps_the_usual_interrupt() -> None:
    code = (
        "import signal, sys\nsys.argv = ['pytest']\nimport dsv4doctor.cli.app\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
