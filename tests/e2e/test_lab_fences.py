"""The missing fences through the whole tool, and runs that are kept and run again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cli_runs import UNPACED, Done, doctor, repro

# A pool of little more than one batch, as 420 pages are at sixty sessions.
SMALL = (
    "--sessions", "24", "--lab-option", "device-pages=220", "--lab-option", "prefill-batch=6",
    *UNPACED,
)  # fmt: skip
OVERLAP_OFF = ("--lab-option", "disable-overlap-schedule=")
COARSE = {"SGLANG_FORCE_COARSE_WAR_BARRIER": "1"}


def as_version(version: str) -> tuple[str, ...]:
    """The release's own orderings, and nothing wrong beside."""
    return ("--lab-fault", "none", "--lab-option", f"as-version={version}")


def verdict(done: Done) -> tuple[int, str]:
    return done.code, done.document["verdict"]


@pytest.mark.parametrize("fault", ["load-fence", "write-fence"])
def test_a_missing_fence_is_seen_from_outside(tmp_path: Path, fault: str) -> None:
    done = repro(tmp_path, "--lab-fault", fault, *SMALL)
    assert verdict(done) == (1, "corrupted"), done.stderr
    assert done.body["failures"] == 0
    first_turn = done.body["by_turn"][0]
    assert (first_turn["turn"], first_turn["corrupted"]) == (0, 0)


def test_the_coarse_barrier_is_read_from_the_environment(tmp_path: Path) -> None:
    done = repro_with(COARSE, tmp_path, *as_version("0.5.18"))
    assert verdict(done) == (0, "clean"), done.body["by_label"]
    assert done.body["target"]["version"] == "0.5.18"


def repro_with(environment: dict[str, str], folder: Path, *arguments: str) -> Done:
    return doctor(
        "repro", "--json", "--no-progress", "--output-dir", folder, *SMALL, *arguments,
        env={**os.environ, **environment},
    )  # fmt: skip


@pytest.mark.soak
@pytest.mark.parametrize(
    ("arguments", "is_sick"),
    [
        pytest.param(("--lab-fault", "load-fence", "--lab-fix", "load-fence"), False, id="load"),
        pytest.param(("--lab-fault", "write-fence", "--lab-fix", "write-fence"), False, id="write"),
        pytest.param(("--lab-fault", "load-fence", *OVERLAP_OFF), False, id="load, one stream"),
        pytest.param(("--lab-fault", "write-fence", *OVERLAP_OFF), False, id="write, one stream"),
        pytest.param(as_version("0.5.18"), True, id="0.5.18"),
        pytest.param((*as_version("0.5.18"), *OVERLAP_OFF), False, id="0.5.18, overlap off"),
        pytest.param((*as_version("0.5.20"), "--lab-fix", "write-fence"), False, id="0.5.20"),
        pytest.param(as_version("0.5.23"), False, id="0.5.23"),
    ],
)
def test_releases_and_fixes_have_their_signature(
    tmp_path: Path, arguments: tuple[str, ...], is_sick: bool
) -> None:
    done = repro(tmp_path, *SMALL, *arguments)
    assert verdict(done) == ((1, "corrupted") if is_sick else (0, "clean")), done.body["by_label"]


def test_a_served_run_is_replayed_exactly(tmp_path: Path) -> None:
    kept = tmp_path / "run.jsonl"
    run = repro(
        tmp_path, "--sessions", "6", "--turns", "3", "--lab-fault", "load-fence",
        "--lab-option", f"record={kept}",
    )  # fmt: skip
    assert run.body["responses"] + run.body["aborted_by_us"] == 18
    again = doctor("lab", "replay", kept, "--json")
    assert verdict(again) == (0, "same"), again.stdout
    assert again.body["requests"] == 18
    assert again.body["config"]["faults"] == ["load-fence"]


def test_a_race_is_found_kept_and_run_again(tmp_path: Path) -> None:
    kept = tmp_path / "race.json"
    found = doctor("lab", "search", "--as-version", "0.5.18", "--save", kept, "--json")
    assert verdict(found) == (1, "races")
    assert found.document["findings"][0]["rule"] == "UNORDERED_ACCESS"
    again = doctor("lab", "replay", kept)
    assert again.code == 1
    assert "B reads at device page" in again.stdout
    assert json.loads(kept.read_text(encoding="utf-8"))["order"][-1] in again.stdout
    assert doctor("lab", "replay", kept, "--as-version", "0.5.20").code == 0
    assert doctor("lab", "search", "--as-version", "0.5.23").code == 0


def test_bad_input_ends_with_two_lines() -> None:
    for words in (
        ("lab", "serve", "--as-version", "0.5.11"),
        ("lab", "search", "--as-version", "0.6.0"),
        ("lab", "replay", "/nowhere/at/all.json"),
        ("lab", "serve", "--disaggregation", "--record", "/tmp/run.jsonl"),
    ):
        done = doctor(*words)
        assert done.code == 2, done.stderr
        assert len(done.stderr.strip().splitlines()) == 2, done.stderr
