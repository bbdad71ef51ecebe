"""The same seed and the same arrivals give the same bytes; a file is enough to have them again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lab_sessions import request_of, scripts

from dsv4doctor.errors import DoctorError, UsageError
from dsv4doctor.flows.lab_replay import replay_file, search_races
from dsv4doctor.lab.config import EngineConfig
from dsv4doctor.lab.engine import Engine
from dsv4doctor.lab.kept import from_document
from dsv4doctor.lab.recording import Recorder

# Small, and sick all the same: the pool holds one batch, and late stores are frequent.
SETTINGS: dict[str, Any] = {
    "faults": ("load-fence", "write-fence"),
    "device_pages": 120,
    "prefill_batch_requests": 4,
}


def record(path: Path, *, sessions: int = 12, turns: int = 4, **settings: Any) -> Engine:
    """A run with an abort and a flush in it, kept at `path`."""
    config = EngineConfig(**(SETTINGS | settings))
    engine = Engine(config, recorder=Recorder(path, config))
    for turn in range(turns):
        requests = [request_of(script, turn) for script in scripts("tool-calls", 0, sessions)]
        engine.serve_round(requests)
        engine.on_abort(requests[0].rid)
    engine.flush_cache()
    engine.serve_round(requests[:3])
    engine.close()
    return engine


def test_a_recorded_run_is_served_again_byte_for_byte(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("first.jsonl", "second.jsonl")]
    first, second = (record(path) for path in paths)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert first.ground_truth.stale_reads == second.ground_truth.stale_reads > 0
    outcome = replay_file(paths[0], as_version=None)
    assert (outcome.verdict, outcome.exit_code) == ("same", 0)
    assert outcome.body["requests"] == 12 * 4 + 3
    assert outcome.body["stale_reads"] == first.ground_truth.stale_reads


def test_another_reading_of_one_byte_shows(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    record(path, sessions=4, turns=2)
    lines = path.read_text(encoding="utf-8").splitlines()
    altered = json.loads(lines[1])
    altered["made"][0]["read"] = "0" * 32
    path.write_text("\n".join([lines[0], json.dumps(altered), *lines[2:]]), encoding="utf-8")
    outcome = replay_file(path, as_version=None)
    assert (outcome.verdict, outcome.exit_code) == ("differs", 1)
    assert outcome.body["different"] == [altered["made"][0]["rid"]]


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    record(path, sessions=2, turns=2)
    path.write_text(path.read_text(encoding="utf-8")[:-40], encoding="utf-8")
    assert replay_file(path, as_version=None).body["rounds"] == 2


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("[1, 2]", id="no object"),
        pytest.param('{"kind": "run", "config": {"colour": 1}}', id="another version"),
        pytest.param('{"kind": "interleaving", "schema_version": 1}', id="half an interleaving"),
        pytest.param('{"kind": "interleaving", "schema_version": 2}', id="a later schema"),
    ],
)
def test_other_files_are_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"other\.json"):
        replay_file(path, as_version=None)


def test_a_kept_interleaving_fails_again_and_a_fence_makes_it_impossible(tmp_path: Path) -> None:
    path = tmp_path / "race.json"
    found = search_races([], as_version="0.5.18", overlap=True, save_to=path)
    assert (found.verdict, found.exit_code) == ("races", 1)
    again = replay_file(path, as_version=None)
    assert (again.verdict, again.exit_code, again.body["same"]) == ("reproduced", 1, True)
    assert again.body["race"] == "load-fence"
    closed = replay_file(path, as_version="0.5.20")
    assert (closed.verdict, closed.exit_code) == ("closed", 0)
    assert "comes behind" in closed.body["closed_by"]


def test_nothing_is_kept_where_nothing_goes_wrong(tmp_path: Path) -> None:
    path = tmp_path / "race.json"
    found = search_races([], as_version="0.5.23", overlap=True, save_to=path)
    assert (found.verdict, found.exit_code) == ("ordered", 0)
    assert not path.exists()


def test_unknown_races_are_usage_and_unwritable_files_are_not(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="load-fense"):
        search_races(["load-fense"], as_version=None, overlap=True, save_to=None)
    with pytest.raises(DoctorError, match="cannot be written") as told:
        search_races([], as_version="0.5.18", overlap=True, save_to=tmp_path / "no" / "file")
    assert told.value.exit_code == 3


def test_a_file_of_unknown_orderings_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "race.json"
    search_races([], as_version="0.5.18", overlap=True, save_to=path)
    document = json.loads(path.read_text(encoding="utf-8"))
    document["orderings"]["luck"] = True
    with pytest.raises(UsageError, match="orderings luck"):
        from_document(document, path)
