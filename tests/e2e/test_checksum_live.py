"""`checksum live` as a process: against the lab, a running server, and hosts behind OpenSSH."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cli_runs import COMMAND, LIMIT_S, Done, doctor
from sshd import SshLab

from dsv4doctor.client.probes import probe_states
from dsv4doctor.lab.deployment import LabOptions, RunningLab, start_lab
from dsv4doctor.target import Endpoint

# Batches of four, a fifth of the record's pool: bf16 loads lose the race, fp8 ones win it.
SMALL = (("prefill-batch", "4"), ("device-pages", "130"), ("slack-ms", "0.3"))
SMALL_LAB = [word for name, value in SMALL for word in ("--lab-option", f"{name}={value}")]
LOAD = ("--sessions", "11", "--turns", "4")
HEALTHY = ("--lab-fix", "index-gate")


def live(output_dir: Path, *arguments: str | Path, env: dict[str, str] | None = None) -> Done:
    words = ("checksum", "live", "--json", "--no-progress", "--output-dir", output_dir)
    return doctor(*words, *arguments, env=os.environ | (env or {}))


def body(done: Done) -> dict[str, Any]:
    found: dict[str, Any] = done.body["live"]
    return found


def rules(done: Done) -> set[str]:
    return {finding["rule"] for finding in done.document["findings"]}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def stale_truly(log: Path) -> set[tuple[str, int, int, int]]:
    return {
        (record["rid"], record["layer"], record["logical_page"], record["physical_page"])
        for record in lines(log)
        if record["kind"] == "stale_read" and record["pool"] == "index_k"
    }


def test_the_race_is_named_with_its_pages_and_with_the_responses_that_it_corrupted(
    tmp_path: Path,
) -> None:
    log = tmp_path / "truth.jsonl"
    done = live(tmp_path, *LOAD, *SMALL_LAB, "--lab-option", f"ground-truth={log}")
    assert (done.code, done.document["verdict"]) == (1, "changed"), done.stderr
    found, truth = body(done), stale_truly(log)
    bad = found["first_bad_hop"]
    assert bad["hop"] == "read"
    assert (bad["request"], bad["layer"], bad["index"], bad["page"]) in truth
    assert bad["distance_ms"] < 0
    assert found["stale_reads"] == len(truth)
    run_dir = Path(found["run_dir"])
    assert {
        (row["request"], row["layer"], row["index"], row["page"])
        for row in lines(run_dir / "changes.jsonl")
    } == truth
    joined = found["joined"]
    assert joined["corrupted_with_stale"] > 0
    assert joined["corrupted_without"] == 0
    assert joined["p_value"] < 0.01
    assert found["self_test"]["passed"]
    assert set(found["self_test"]["hops"]) == {"backup", "host", "host_load", "load", "read"}
    assert rules(done) >= {"STALE_READ", "READ_NOT_ORDERED"}
    assert all(check["passed"] for check in done.body["checks"])
    told = (run_dir / "report.md").read_text()
    assert "Corrupted responses and stale reads" in told
    assert "changed first at the hop" in told
    assert list((run_dir / "observations").iterdir())
    assert json.loads((run_dir / "summary.json").read_text())["checksum"]["live"] == found


def test_with_the_gate_it_is_clean_after_a_passed_self_test_and_not_without_one(
    tmp_path: Path,
) -> None:
    done = live(tmp_path, *LOAD, *SMALL_LAB, *HEALTHY)
    assert (done.code, done.document["verdict"]) == (0, "clean"), done.document["findings"]
    found = body(done)
    assert found["first_bad_hop"] is None
    assert found["stale_reads"] == 0
    assert found["self_test"]["passed"]
    assert found["self_test"]["hop"] == "read"
    assert found["joined"]["clean_without"] == found["responses"] > 30
    untried = live(tmp_path, "--sessions", "3", "--turns", "2", *HEALTHY, "--no-perturb")
    assert (untried.code, untried.document["verdict"]) == (4, "undecided")
    assert rules(untried) == {"NOT_SELF_TESTED"}
    assert body(untried)["self_test"] == {"passed": None, "hop": None, "hops": [], "tests": []}


def test_a_response_that_was_corrupted_by_something_else_is_shown_as_such(tmp_path: Path) -> None:
    flags = ("--scenario", "parser-probe", "--sessions", "8")
    done = live(tmp_path, *flags, "--lab-fault", "parser-negative-number")
    assert (done.code, done.document["verdict"]) == (1, "corrupted_elsewhere")
    assert rules(done) == {"CORRUPTED_WITHOUT_STALE_READ"}
    joined = body(done)["joined"]
    assert joined["corrupted_without"] > 0
    assert joined["corrupted_with_stale"] == joined["clean_with_stale"] == 0
    assert joined["named_without"]


def test_a_ring_that_overflowed_is_told_and_never_called_clean(tmp_path: Path) -> None:
    env = {"DSV4DOCTOR_PROBE_RECORDS": "40"}
    done = live(tmp_path, "--sessions", "6", "--turns", "3", *HEALTHY, env=env)
    assert (done.code, done.document["verdict"]) == (4, "undecided")
    assert "NOT_SEEN" in rules(done)
    told = [each["what"] for each in body(done)["not_seen"] if each["blinds"]]
    assert any("overwritten unread" in what for what in told), told


@contextmanager
def probed_lab() -> Iterator[tuple[RunningLab, Path]]:
    """A healthy lab with a probe, and its socket's folder: a path of at most 107 characters."""
    folder = Path(tempfile.mkdtemp(prefix="probe-"))
    options = LabOptions(
        fixes=("index-gate",), switches=SMALL, environment={"DSV4DOCTOR_PROBE_DIR": str(folder)}
    )
    try:
        with start_lab(options) as lab:
            yield lab, folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def healthy() -> Iterator[tuple[RunningLab, Path]]:
    with probed_lab() as found:
        yield found


def test_a_rank_that_dies_is_told_and_never_called_clean(
    tmp_path: Path,
) -> None:
    with probed_lab() as (lab, _):
        command = [*COMMAND, "checksum", "live", "--json", "--no-progress", "--during", "repro"]
        command += ["--base-url", lab.base_url, "--output-dir", str(tmp_path), *LOAD]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            deadline = time.monotonic() + LIMIT_S
            while not list(tmp_path.glob("*/observations/*")):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            os.kill(lab.pid, signal.SIGKILL)
            out, _ = process.communicate(timeout=LIMIT_S)
    found = json.loads(out)
    assert (process.returncode, found["verdict"]) == (4, "undecided")
    told = [each["what"] for each in found["checksum"]["live"]["not_seen"] if each["blinds"]]
    assert any("stopped answering" in what for what in told), told


def test_ctrl_c_saves_what_was_seen_and_leaves_no_rank_observing(
    tmp_path: Path, healthy: tuple[RunningLab, Path]
) -> None:
    base_url = healthy[0].base_url
    command = [*COMMAND, "checksum", "live", "--json", "--no-progress"]
    command += ["--base-url", base_url, "--output-dir", str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "observing 1 rank" in line:
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    assert "dsv4doctor report" in err
    assert json.loads(out)["checksum"]["live"]["interrupted"]
    states = probe_states(Endpoint(base_url=base_url))
    assert states is not None
    assert [state["armed"] for state in states] == [False]


def test_over_ssh_a_server_is_watched_under_load_and_a_host_that_fails_is_told(
    tmp_path: Path, healthy: tuple[RunningLab, Path]
) -> None:
    lab, folder = healthy
    (tmp_path / "ssh").mkdir()
    hosts = SshLab(tmp_path / "ssh")
    try:
        hosts.start("one")
        hosts.describe("gone", "127.0.0.1", 1)
        done = live(
            tmp_path, "--ssh-host", "one", "--ssh-host", "gone", "--ssh-config", hosts.config,
            "--remote-python", COMMAND[0], "--probe-dir", folder, "--base-url", lab.base_url,
            "--during", "repro", "--sessions", "3", "--turns", "3",
        )  # fmt: skip
    finally:
        hosts.stop()
    assert (done.code, done.document["verdict"]) == (4, "undecided"), done.stderr
    found = body(done)
    told = [each["what"] for each in found["not_seen"] if each["blinds"]]
    assert len(told) == 1
    assert "gone" in told[0], "all else was seen"
    assert found["self_test"]["passed"]
    rows = {row["host"]: row["error"] for row in done.body["hosts"]}
    assert rows["one"] is None
    assert "Unable to connect" in rows["gone"]
    assert found["joined"]["clean_without"] > 5
    assert found["compared"]["read"] > 0


def test_traffic_of_others_is_watched_for_as_long_as_is_asked(
    tmp_path: Path, healthy: tuple[RunningLab, Path]
) -> None:
    """Nobody sends anything: nothing is proved, and that is said."""
    done = live(tmp_path, "--base-url", healthy[0].base_url, "--time-budget", "1")
    assert (done.code, done.document["verdict"]) == (4, "undecided")
    assert body(done)["joined"] is None
    assert body(done)["pages_seen"] == 0


def test_a_server_without_a_probe_is_refused_with_the_next_step(tmp_path: Path) -> None:
    with start_lab(LabOptions()) as lab:
        done = live(tmp_path, "--base-url", lab.base_url)
    assert done.code == 3
    assert "has no probe in it" in done.stderr
    assert "probe install" in done.stderr


@pytest.mark.soak
@pytest.mark.parametrize("disaggregation", ["off", "on"])
@pytest.mark.parametrize("hicache", ["on", "off"])
@pytest.mark.parametrize("index_k", ["bf16", "fp8"])
def test_all_arms_at_sixty_sessions_agree_with_the_ground_truth(
    tmp_path: Path, index_k: str, hicache: str, disaggregation: str
) -> None:
    log = tmp_path / "truth.jsonl"
    arm = ("--lab-index-k", index_k, "--lab-hicache", hicache)
    flags = (*arm, "--lab-option", f"disaggregation={disaggregation}")
    done = live(tmp_path, *flags, "--lab-option", f"ground-truth={log}")
    is_sick = (index_k, hicache) == ("bf16", "on")
    assert done.code == (1 if is_sick else 0), done.document["findings"]
    found = body(done)
    first = found["first_bad_hop"]
    assert (first["hop"] if first else None) == ("read" if is_sick else None)
    seen = {
        (row["request"], row["layer"], row["index"], row["page"])
        for row in lines(Path(found["run_dir"]) / "changes.jsonl")
        if row["seen_at"] == "read" and row["pool"] == "index_k" and " prefill " not in row["rank"]
    }
    assert seen == stale_truly(log)
    assert found["joined"]["corrupted_without"] == 0
    assert (found["joined"]["corrupted_with_stale"] > 0) == is_sick


@pytest.mark.soak
def test_an_early_send_at_sixty_sessions_is_named_at_the_send(tmp_path: Path) -> None:
    flags = ("--lab-fault", "early-send", "--scenario", "best-of-n")
    done = live(tmp_path, *flags)
    assert (done.code, body(done)["first_bad_hop"]["hop"]) == (1, "send")
    assert body(done)["joined"]["corrupted_without"] == 0
    mended = live(tmp_path, *flags, "--lab-fix", "early-send-block")
    assert (mended.code, mended.document["verdict"]) == (0, "clean")
