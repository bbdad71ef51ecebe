"""However `diagnose` and `checksum live` end: one document, a directory that `report` can tell."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import IO

import psutil
import pytest
from cli_runs import COMMAND, LIMIT_S, doctor

from dsv4doctor.artifacts.catalog import load_scenario
from dsv4doctor.errors import UsageError
from dsv4doctor.flows.checksum import Targets
from dsv4doctor.flows.checksum_live import run_live
from dsv4doctor.flows.checksum_live_plan import LivePlan
from dsv4doctor.flows.diagnose import run_diagnose
from dsv4doctor.flows.diagnose_plan import DiagnosePlan
from dsv4doctor.flows.live_target import LabOptions
from dsv4doctor.flows.repro import run_repro
from dsv4doctor.flows.repro_plan import ReproPlan
from dsv4doctor.progress import Silent

# Nobody listens on the port of `discard`.
NOBODY = "http://127.0.0.1:9"
NO_LAB = LabOptions(switches=(("device-pages", "banana"),))
# An arm that is far from over when its first reply is there, and one that is over at once.
LONG = ("--sessions", "40", "--turns", "8")
SHORT = ("--sessions", "2", "--turns", "1")


@pytest.mark.parametrize("command", [("diagnose",), ("checksum", "live")], ids=" ".join)
def test_where_nothing_answers_stdout_has_the_one_document(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    flags = ("--json", "--no-progress", "--base-url", NOBODY, "--output-dir", tmp_path)
    done = doctor(*command, *flags)
    assert (done.code, done.document["exit_code"]) == (3, 3), done.stderr
    assert done.document["verdict"] == "unreachable"
    (finding,) = done.document["findings"]
    assert finding["rule"] == "UNREACHABLE"
    assert NOBODY in finding["evidence"][0]["what"]
    (line,) = done.stderr.splitlines()
    assert NOBODY in line
    assert "try: " in line
    (run_dir,) = tmp_path.iterdir()
    told = doctor("report", run_dir)
    assert (told.code, told.stderr) == (0, "")
    assert "unreachable" in told.stdout.splitlines()[0]
    assert "Traceback" not in told.stdout


def test_a_lab_that_refuses_its_switches_leaves_no_directory(tmp_path: Path) -> None:
    scenario = load_scenario("tool-calls")
    load = ReproPlan(scenario=scenario, sessions=1, seed=1, output_dir=tmp_path, lab=NO_LAB)
    for start in (
        lambda: run_repro(load, Silent()),
        lambda: run_diagnose(DiagnosePlan(seed=1, output_dir=tmp_path, lab=NO_LAB), Silent()),
        lambda: run_live(LivePlan(load=load, targets=Targets()), Silent()),
    ):
        with pytest.raises(UsageError, match="device-pages"):
            start()
    assert list(tmp_path.iterdir()) == []


def started(output_dir: Path, *flags: str) -> subprocess.Popen[str]:
    words = (*COMMAND, "diagnose", "--json", "--no-progress", "--lab-fault", "none", *flags)
    return subprocess.Popen(
        [*words, "--output-dir", str(output_dir)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(stderr: IO[str] | None, word: str) -> None:
    assert stderr is not None
    for line in stderr:
        if word in line:
            return
    raise AssertionError(f"it ended without a word of {word}")


def wait_for_a_record(run_dir: Path) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not (run_dir / "records.jsonl").stat().st_size:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_ctrl_c_in_an_arm_saves_what_was_seen_and_leaves_no_lab(tmp_path: Path) -> None:
    with started(tmp_path, *LONG) as process:
        wait_for(process.stderr, "arm load")
        (run_dir,) = tmp_path.iterdir()
        wait_for_a_record(run_dir)
        labs = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)
    assert labs
    assert not psutil.wait_procs(labs, timeout=LIMIT_S)[1]
    document = json.loads(out)
    assert (process.returncode, document["exit_code"]) == (130, 130), err
    assert document["verdict"] == "undecided"
    assert "cannot be resumed" in err
    (load,) = document["diagnose"]["arms"]
    assert load["not_proved"] == "interrupted before its end"
    considered = document["diagnose"]["considered"]
    # An arm that was cut short rules out nothing; what the server says of itself does.
    assert {each["name"] for each in considered if each["standing"] == "ruled out"} == {
        "early_send"
    }
    told = doctor("report", run_dir)
    assert told.code == 0
    assert "did not come to its end" in told.stdout


def test_of_a_killed_diagnosis_the_arms_that_ended_are_told(tmp_path: Path) -> None:
    with started(tmp_path, *SHORT) as process:
        wait_for(process.stderr, "arm values")  # the next begins when the one before is on disk
        labs = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.communicate(timeout=LIMIT_S)
    assert labs
    assert not psutil.wait_procs(labs, timeout=LIMIT_S)[1]
    (run_dir,) = tmp_path.iterdir()
    told = doctor("report", run_dir, "--json")
    assert told.code == 0, told.stderr
    assert "was killed, or is still going" in told.stderr
    (run,) = told.body["runs"]
    assert run["verdict"] == "undecided"
    assert [arm["name"] for arm in run["summary"]["arms"]] == ["load"]
