"""`ab` on the lab: the case's own experiment, and experiments that must not claim anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from ab_runs import SMALL_RACE, ab, blocks
from cli_runs import UNPACED, doctor, repro

from dsv4doctor.lab.deployment import LabOptions, start_lab

SICK = "bf16-on"


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory):
    """The experiment of the case, as `dsv4doctor ab --json` runs it, but for the stream's pace."""
    return ab(tmp_path_factory.mktemp("case"), *UNPACED)


def test_the_case_is_found_by_its_own_experiment(case) -> None:
    assert case.code == 1, case.stderr
    assert case.document["verdict"] == "differ"
    verdicts = {frozenset((c["a"], c["b"])): c["verdict"] for c in case.body["comparisons"]}
    names = [arm["name"] for arm in case.body["arms"]]
    assert sorted(names) == ["bf16-off", "bf16-on", "fp8-off", "fp8-on"]
    for pair in combinations(names, 2):
        expected = "differ" if SICK in pair else "undecided"
        assert verdicts[frozenset(pair)] == expected, pair
    assert case.body["interaction"]["found"]
    assert {finding["rule"] for finding in case.document["findings"]} == {"ARMS_DIFFER"}


def test_every_arm_was_proved_and_hicache_by_host_hits(case) -> None:
    for arm in case.body["arms"]:
        assert arm["verified"], arm["verification"]
        reads = {check["setting"]: check["read"] for check in arm["verification"]["checks"]}
        assert "host-hit tokens" in reads[f"hicache={arm['factors']['hicache']}"]
        assert arm["sessions"] == 120
        assert arm["failures"] == 0


def test_the_lab_was_put_back_read_back_and_stopped(case) -> None:
    assert case.body["restored"] is True
    said = " ".join(case.body["restored_evidence"])
    assert "command line" in said
    assert "enable_hierarchical_cache = True" in said
    host = case.run_dir / "host"
    pid = (host / "server" / "pid").read_text().split()[0]
    assert not Path(f"/proc/{pid}/stat").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text()
    assert not (host / "lock").exists()


def test_the_run_directory_tells_the_same(case) -> None:
    summary = json.loads((case.run_dir / "summary.json").read_text())
    assert summary["verdict"] == "differ"
    assert len(blocks(case.run_dir)) == 8
    # One round has the same prompts for every arm, the next has new ones.
    seeds = [block["prompt_seed"] for block in blocks(case.run_dir)]
    assert len(set(seeds[:4])) == len(set(seeds[4:])) == 1
    assert seeds[0] != seeds[4]
    records = [json.loads(line) for line in (case.run_dir / "records.jsonl").open()]
    assert len({record["id"] for record in records}) == len(records) == 8 * 60 * 6
    report = (case.run_dir / "report.md").read_text()
    assert "they differ" in report
    assert "host-hit tokens" in report
    retold = doctor("report", "--format", "markdown", "--output", "-", case.run_dir)
    assert "they differ" in retold.stdout
    logs = list((case.run_dir / "logs").glob("*.log"))
    assert len(logs) == 8
    assert all("ready to roll" in log.read_text() for log in logs)


def test_a_vacuous_arm_is_undecided_and_never_compared(tmp_path: Path) -> None:
    """Three sessions fill no pool: HiCache is on, but no token ever comes back from the host."""
    done = ab(
        tmp_path, "--arm", "on:hicache=on", "--arm", "off:hicache=off", "--sessions", "3",
        "--turns", "2", "--blocks", "1", "--warmup", "0", *UNPACED,
    )  # fmt: skip
    assert done.code == 4, done.stderr
    assert done.document["verdict"] == "undecided"
    on = next(arm for arm in done.body["arms"] if arm["name"] == "on")
    assert not on["verified"]
    assert "vacuous: 0 host-hit tokens" in on["verification"]["reason"]
    (pair,) = done.body["comparisons"]
    assert pair["verdict"] == "undecided"
    assert "vacuous" in pair["reason"]
    assert [finding["rule"] for finding in done.document["findings"]] == ["ARM_NOT_PROVED"]


def test_client_side_factors_are_proved_by_what_was_seen(tmp_path: Path) -> None:
    done = ab(
        tmp_path, "--arm", "one:concurrency=1,aborts=off,stream=on",
        "--arm", "all:concurrency=4,aborts=off,stream=off", "--sessions", "4", "--turns", "2",
        "--blocks", "1", "--warmup", "0", *UNPACED,
    )  # fmt: skip
    for arm in done.body["arms"]:
        assert arm["verified"], arm["verification"]
    assert done.body["arms"][0]["aborted_by_us"] == 0


def test_forced_misses_really_miss_and_hits_hit(tmp_path: Path) -> None:
    done = ab(
        tmp_path, "--arm", "miss:cache=miss", "--arm", "hit:cache=hit", "--sessions", "3",
        "--turns", "3", "--blocks", "1", *UNPACED,
    )  # fmt: skip
    cached = {"miss": 0, "hit": 0}
    for record in done.records():
        cached[record["arm"]] += record["cached_tokens"] or 0
    assert cached["miss"] == 0
    assert cached["hit"] > 3 * 2048
    for arm in done.body["arms"]:
        assert arm["verified"], arm["verification"]
        assert arm["corrupted_responses"] == 0
        # As the server counts them, not only as its replies say.
        read = next(c["read"] for c in arm["verification"]["checks"])
        assert read.startswith("0 cached tokens") == (arm["name"] == "miss"), read


def test_runs_made_earlier_are_looked_at_once(tmp_path: Path) -> None:
    small = (*SMALL_RACE[:2], *SMALL_RACE[4:])
    sick = repro(tmp_path / "sick", *small)
    well = repro(tmp_path / "well", *small, "--lab-hicache", "off")
    done = ab(tmp_path, "--run", f"sick={sick.run_dir}", "--run", f"well={well.run_dir}")
    (pair,) = done.body["comparisons"]
    assert (done.code, pair["verdict"], pair["test"]) == (1, "differ", "boschloo")
    assert pair["e_value"] is None
    assert done.body["restored"] is None
    assert done.body["arms"][0]["corrupted_sessions"] == sick.body["corrupted_sessions"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--arm", "a:spec=on", "--arm", "b:spec=off"), "the lab cannot honour spec=on"),
        (("--arm", "a:SGLANG_X=1", "--arm", "b"), "the lab cannot honour SGLANG_X=1"),
        (
            ("--base-url", "http://127.0.0.1:9", "--arm", "a:hicache=on", "--arm", "b"),
            "cannot honour hicache=on",
        ),
        (("--arm", "a=http://h:1", "--arm", "b=http://h:2", "--lab-fault", "none"), "beside"),
        (("--deployment", "nowhere.toml"), "nowhere.toml"),
        (("--max-sessions", "10"), "less than one block"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_touched(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = doctor("ab", "--output-dir", tmp_path / "runs", *arguments)
    assert done.code == 2
    assert said in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[str, str]]:
    """Two labs that run already: one that loses the race, one without HiCache."""
    switches = (
        ("device-pages", "120"), ("slack-ms", "0.1"), ("itl-ms", "0"), ("ttft-ms", "0"),
    )  # fmt: skip
    with (
        start_lab(LabOptions(switches=switches)) as sick,
        start_lab(LabOptions(switches=switches, hicache=False)) as well,
    ):
        yield sick.base_url, well.base_url


def test_servers_that_already_run_are_compared_as_they_are(
    tmp_path: Path, servers: tuple[str, str]
) -> None:
    sick, well = servers
    done = ab(
        tmp_path, "--arm", f"sick={sick}", "--arm", f"well={well}", "--sessions", "12",
        "--blocks", "1", "--warmup", "0",
    )  # fmt: skip
    assert done.code == 1, done.stderr
    (pair,) = done.body["comparisons"]
    assert pair["verdict"] == "differ"
    assert pair["e_value"] > 20
    assert pair["unit"] == "session"
    assert done.body["restored"] is None
    assert all(arm["verified"] for arm in done.body["arms"])


def test_one_server_against_itself_shows_no_difference(
    tmp_path: Path, servers: tuple[str, str]
) -> None:
    """The cache is emptied between the arms, or the second would find the first one's prompts."""
    _, well = servers
    done = ab(
        tmp_path, "--base-url", well, "--arm", "a:concurrency=4", "--arm", "b:concurrency=8",
        "--sessions", "8", "--turns", "3", "--blocks", "1", "--warmup", "0",
    )  # fmt: skip
    assert done.code == 4, done.stderr
    assert done.document["verdict"] == "undecided"
    records = [json.loads(line) for line in (done.run_dir / "records.jsonl").open()]
    first = {record["arm"]: 0 for record in records}
    for record in records:
        if record["turn"] == 0:
            first[record["arm"]] = max(first[record["arm"]], record["cached_tokens"] or 0)
    # Nothing but the shared system prompt may be cached at a session's first turn.
    assert max(first.values()) < 1024, first
