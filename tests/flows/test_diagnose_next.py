"""What a diagnosis advises is a command that can be typed when its lab is gone."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import typer.main

from dsv4doctor.cli.app import app
from dsv4doctor.differential.causes import CAUSES, Cause
from dsv4doctor.flows.diagnose_next import next_command
from dsv4doctor.flows.diagnose_plan import DiagnosePlan
from dsv4doctor.flows.live_target import LabOptions
from dsv4doctor.target import Endpoint

LAB = LabOptions(
    faults=("early-send",),
    fixes=("index-gate",),
    index_k="fp4",
    hicache=False,
    switches=(("device-pages", "160"),),
)
GIVEN = {
    "lab_fault": ["early-send"], "lab_fix": ["index-gate"], "lab_index_k": "fp4",
    "lab_hicache": "off", "lab_option": ["device-pages=160"],
}  # fmt: skip


def parsed(line: str) -> dict[str, object]:
    """The flags of a command line by name, read by the very command that it names."""
    program, *words = shlex.split(line)
    assert program == "dsv4doctor"
    command = typer.main.get_command(app)
    context = command.make_context(program, ["--help"], resilient_parsing=True)
    while words and words[0] in getattr(command, "list_commands", lambda _: ())(context):
        command, words = command.get_command(context, words[0]), words[1:]
    return dict(command.make_context("dsv4doctor", words).params)


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name.value)
def test_the_lab_that_was_diagnosed_is_started_again(cause: Cause, tmp_path: Path) -> None:
    plan = DiagnosePlan(seed=7, output_dir=tmp_path, lab=LAB)
    flags = parsed(next_command(cause, plan))
    given = {name: flags[name] for name in GIVEN}
    assert {name: getattr(value, "value", value) for name, value in given.items()} == GIVEN
    assert flags["seed"] == 7
    assert not flags.get("base_url")


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name.value)
def test_a_server_is_asked_again_by_its_own_address(cause: Cause, tmp_path: Path) -> None:
    endpoint = Endpoint(base_url="http://gpu7:30000")
    line = next_command(cause, DiagnosePlan(seed=7, output_dir=tmp_path, endpoint=endpoint))
    flags = parsed(line)
    assert flags.get("base_url") in (endpoint.base_url, [endpoint.base_url], None)
    assert endpoint.base_url in shlex.split(line) or "--deployment FILE.toml" in line
    assert "{" not in line


def test_what_is_the_labs_default_is_not_spelt_out(tmp_path: Path) -> None:
    line = next_command(CAUSES[0], DiagnosePlan(seed=1, output_dir=tmp_path))
    assert "--lab-fault index-race --seed 1" in line
    assert "--lab-index-k" not in line
