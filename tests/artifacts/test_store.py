"""A run directory survives killed writers, full disks, hostile text; it refuses two writers."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dsv4doctor.artifacts.manifest import NewRun
from dsv4doctor.artifacts.store import RECORDS, RunDirectory
from dsv4doctor.errors import DoctorError, UsageError
from dsv4doctor.finding import Evidence, Finding, Severity
from dsv4doctor.rate import Rate

NOW = datetime(2026, 11, 29, 10, 45, tzinfo=UTC)
NEW = NewRun(
    command="repro",
    label="tool-calls",
    argv=("dsv4doctor", "repro", "--api-key", "hunter2"),
    details={"seed": 42, "target": {"base_url": "http://u:hunter2@h:1", "api_key": "hunter2"}},
)


def create(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "reports", NEW, now=NOW)


def test_the_layout_of_a_finished_run(tmp_path: Path) -> None:
    run = create(tmp_path)
    run.append_record({"id": "s0000-t00", "response": {"content": "hi"}})
    assert run.save_raw("s0000-t00", b"data: \xff\r\n") == "raw/s0000-t00.txt"
    evidence = (Evidence(where="a", what="b"),)
    run.write_findings(
        [Finding(rule="DSML_LEAK", severity=Severity.ERROR, title="t", evidence=evidence)]
    )
    rate = Rate(k=0, n=0, estimate=None, low=0.0, high=1.0, method="clopper-pearson")
    run.write_summary({"verdict": "clean", "rate": rate, "bad": math.nan})
    run.write_text("report.md", "# \ud800 done\n")
    run.finish(now=NOW)

    assert run.path.name == "20261129T104500Z-repro-tool-calls"
    assert sorted(path.name for path in run.path.iterdir()) == [
        "findings.jsonl",
        "raw",
        "records.jsonl",
        "report.md",
        "run.json",
        "summary.json",
    ]
    loaded = RunDirectory.open(run.path)
    assert loaded.manifest["ended"] == "2026-11-29T10:45:00.000Z"
    assert loaded.manifest["versions"]["python"]
    assert loaded.manifest["seed"] == 42
    assert "hunter2" not in (run.path / "run.json").read_text()
    assert [record["id"] for record in loaded.records()] == ["s0000-t00"]
    assert [finding["rule"] for finding in loaded.findings()] == ["DSML_LEAK"]
    summary = loaded.summary()
    assert summary is not None
    assert summary["rate"]["estimate"] is None
    assert summary["bad"] is None
    assert (run.path / "raw/s0000-t00.txt").read_bytes() == b"data: \xff\r\n"


def test_runs_of_one_second_get_folders_of_their_own(tmp_path: Path) -> None:
    first, second = create(tmp_path), create(tmp_path)
    assert second.path.name == f"{first.path.name}-2"


HOSTILE = [
    "\ud800 lone",
    "\x1b[31mred\x00",
    "line\nbreak\u2028\u2029",
    "</script>",
    "｜DSML｜ 🦩",
    "\udcff\udcfe",
]


def test_text_is_stored_as_received(tmp_path: Path) -> None:
    run = create(tmp_path)
    for text in HOSTILE:
        run.append_record({"content": text})
    assert [record["content"] for record in run.records()] == HOSTILE
    assert (run.path / RECORDS).read_bytes().count(b"\n") == len(HOSTILE)
    run.append_record({"big": 2**70})
    assert list(run.records())[-1] == {"big": 2**70}
    run.append_record({"number": math.inf, "deep": [{"nan": math.nan}]})
    assert list(run.records())[-1] == {"number": None, "deep": [{"nan": None}]}


@pytest.mark.parametrize(
    ("tail", "kept", "torn"),
    [
        (b"", 2, 0),
        (b'{"id": 3', 2, 1),
        (b'{"id": "\xf0\x9f', 2, 1),
        (b'{"id": 3}', 3, 0),
        (b"\x00\x00\x00", 2, 1),
        (b'"a string"', 2, 1),
    ],
)
def test_a_torn_last_line_is_dropped_and_counted(
    tmp_path: Path, tail: bytes, kept: int, torn: int
) -> None:
    run = create(tmp_path)
    run.append_record({"id": 1})
    run.append_record({"id": 2})
    run.close()
    with (run.path / RECORDS).open("ab") as file:
        file.write(tail)

    read = RunDirectory.open(run.path)
    assert len(list(read.records())) == kept
    assert read.torn_lines == torn

    resumed = RunDirectory.resume(run.path, argv=("dsv4doctor", "repro", "--resume"))
    resumed.append_record({"id": 9})
    resumed.finish()
    again = RunDirectory.open(run.path)
    assert [record["id"] for record in again.records()] == [*range(1, kept + 1), 9]
    assert again.damage.unreadable_lines == 0
    assert again.torn_lines == torn
    assert len(again.manifest["segments"]) == 2


def test_damaged_lines_are_counted_and_named_and_the_rest_is_read(tmp_path: Path) -> None:
    run = create(tmp_path)
    run.append_record({"id": 1})
    run.close()
    with (run.path / RECORDS).open("ab") as file:
        file.write(b"not json\n\n[1]\n" + b"[" * 100_000 + b'\n{"id": 2}\n\xff\n')
    read = RunDirectory.open(run.path)
    assert [record["id"] for record in read.records()] == [1, 2]
    assert read.damage.unreadable_lines == 4
    assert str(read.damage) == "4 unreadable (line 2, 4, 5, 7)"


WRITER = """
import sys
from pathlib import Path
from dsv4doctor.artifacts.manifest import NewRun
from dsv4doctor.artifacts.store import RunDirectory
run = RunDirectory.create(Path(sys.argv[1]), NewRun(command="repro", label="x", argv=()))
print(run.path, flush=True)
number = 0
while True:
    run.append_record({"id": number, "pad": "x" * 5000})
    number += 1
    if number == 200:
        print("going", flush=True)
"""


def test_a_killed_run_loads_and_resumes_and_holds_no_lock(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        path = Path(writer.stdout.readline().strip())
        assert writer.stdout.readline() == "going\n"
        with pytest.raises(UsageError, match="written by another process"):
            RunDirectory.resume(path, argv=())
        writer.send_signal(signal.SIGKILL)
        writer.wait(timeout=10)
    run = RunDirectory.resume(path, argv=())
    ids = [record["id"] for record in run.records()]
    assert len(ids) >= 200
    assert ids == list(range(len(ids)))
    run.append_record({"id": len(ids)})
    run.finish()
    assert RunDirectory.open(path).manifest["ended"]


def test_the_lock_ends_with_the_run(tmp_path: Path) -> None:
    run = create(tmp_path)
    with pytest.raises(UsageError):
        RunDirectory.resume(run.path, argv=())
    run.finish()
    RunDirectory.resume(run.path, argv=()).close()


@pytest.mark.parametrize(
    ("prepare", "problem"),
    [
        (lambda path: None, "there is no run directory"),
        (lambda path: path.mkdir(), "has no run.json"),
        (lambda path: path.write_text("x"), "has no run.json"),
        (lambda path: _manifest(path, b"{"), "is damaged"),
        (lambda path: _manifest(path, b"[]"), "holds no object"),
        (lambda path: _manifest(path, b"{}"), "no run's manifest"),
        (lambda path: _manifest(path, b'{"schema_version": 99, "command": "repro"}'), "newer"),
    ],
)
def test_what_is_no_run_directory(tmp_path: Path, prepare: Any, problem: str) -> None:
    path = tmp_path / "run"
    prepare(path)
    with pytest.raises(UsageError, match=problem) as caught:
        RunDirectory.open(path)
    assert str(path) in str(caught.value)
    assert caught.value.hint


def _manifest(path: Path, content: bytes) -> None:
    path.mkdir()
    (path / "run.json").write_bytes(content)


def test_unknown_keys_of_a_manifest_are_ignored(tmp_path: Path) -> None:
    _manifest(tmp_path / "run", b'{"schema_version": 1, "command": "repro", "later": 1}')
    run = RunDirectory.open(tmp_path / "run")
    assert list(run.records()) == []
    assert run.summary() is None


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_told_with_the_path_and_a_way_out(tmp_path: Path) -> None:
    run = create(tmp_path)
    run.close()
    (run.path / RECORDS).unlink()
    (run.path / RECORDS).symlink_to("/dev/full")
    full = RunDirectory(run.path, run.manifest, writable=True)
    with pytest.raises(DoctorError, match="No space left") as caught:
        full.append_record({"id": 1})
    assert str(run.path / RECORDS) in str(caught.value)
    assert "--resume" in caught.value.hint
    assert caught.value.exit_code == 3

    (run.path / f".summary.json.{os.getpid()}.tmp").symlink_to("/dev/full")
    run.path.joinpath("summary.json").write_text('{"old": true}')
    with pytest.raises(DoctorError, match=r"summary\.json: No space left"):
        full.write_summary({"new": True})
    assert json.loads((run.path / "summary.json").read_text()) == {"old": True}
    assert not list(run.path.glob(".*.tmp*"))


@pytest.mark.parametrize("output", ["file", "file/below"])
def test_an_output_directory_that_is_none(tmp_path: Path, output: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DoctorError, match="cannot write") as caught:
        RunDirectory.create(tmp_path / output, NEW, now=NOW)
    assert "--output-dir" in caught.value.hint


@pytest.mark.parametrize("record_id", ["../../etc/passwd", "a/b", "", ".", "x" * 300, "s1\x00"])
def test_raw_files_stay_in_their_folder(tmp_path: Path, record_id: str) -> None:
    run = create(tmp_path)
    relative = run.save_raw(record_id, b"x")
    assert (run.path / relative).resolve().parent == run.path / "raw"


def test_a_run_that_could_not_begin_leaves_nothing_behind(tmp_path: Path) -> None:
    run = create(tmp_path)
    (run.path / "lab.log").write_text("a lab's last words")
    with pytest.raises(DoctorError), run.writing():
        raise DoctorError("nothing answers")
    assert list((tmp_path / "reports").iterdir()) == []


@pytest.mark.parametrize("how", ["record", "amended", "file", "resumed"])
def test_a_run_that_an_error_ends_says_so_and_may_be_resumed(tmp_path: Path, how: str) -> None:
    run = create(tmp_path)
    if how == "resumed":
        run.close()
        run = RunDirectory.resume(run.path, argv=("dsv4doctor",))
    if how == "record":
        run.append_record({"id": "a"})
    if how == "amended":
        run.amend(restored=False)
    if how == "file":
        (run.path / "host").mkdir()
    with pytest.raises(DoctorError), run.writing():
        raise DoctorError("the server at http://u:hunter2@h:1 is gone")
    manifest = RunDirectory.open(run.path).manifest
    assert "is gone" in manifest["failed"]
    assert "hunter2" not in manifest["failed"]
    assert manifest["ended"] is None
    with RunDirectory.resume(run.path, argv=("dsv4doctor",)).writing():
        pass
    assert "failed" not in RunDirectory.open(run.path).manifest


def test_an_interrupt_that_nobody_answered_is_noted(tmp_path: Path) -> None:
    run = create(tmp_path)
    run.append_record({"id": "a"})
    with pytest.raises(KeyboardInterrupt), run.writing():
        raise KeyboardInterrupt
    assert RunDirectory.open(run.path).manifest["failed"] == "interrupted"
