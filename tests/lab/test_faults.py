"""Each fault is a mechanism: what it does, when, and that it does nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab_sessions import SESSIONS, corrupted, engine_of, request_of, run, scripts

from dsv4doctor.errors import UsageError
from dsv4doctor.lab import faults
from dsv4doctor.lab.faults.fault import RowWrite
from dsv4doctor.lab.faults.foreign_page import FAULT as FOREIGN_PAGE


def test_the_tuple_lists_every_file() -> None:
    folder = Path(faults.__file__).parent
    files = {path.stem.replace("_", "-") for path in folder.glob("*.py")} - {"--init--", "fault"}
    assert files == set(faults.FAULT_NAMES)
    assert faults.FAULTS[0].name == "index-race", "the default comes first"


@pytest.mark.parametrize(
    "settings", [{"faults": ("index-rase",)}, {"fixes": ("gate",)}, {"index_k": "int8"}]
)
def test_unknown_names_are_usage_errors(settings: dict[str, object]) -> None:
    with pytest.raises(UsageError) as error:
        engine_of(**settings)
    assert error.value.hint.startswith("one of ")


def test_a_slipped_row_keeps_one_page_of_the_row_before() -> None:
    row = RowWrite(pages=(1, 2, 3, 9), restored=3, previous_row=(1, 5, 6, 7, 8))
    assert FOREIGN_PAGE.page_row(row) == (1, 2, 6, 9)


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(RowWrite(pages=(1, 2), restored=0, previous_row=(7, 8)), id="nothing cached"),
        pytest.param(RowWrite(pages=(1, 2), restored=1, previous_row=()), id="first of its batch"),
        pytest.param(RowWrite(pages=(1, 2, 3), restored=3, previous_row=(7,)), id="shorter before"),
    ],
)
def test_a_row_without_a_predecessor_cannot_slip(row: RowWrite) -> None:
    assert FOREIGN_PAGE.page_row(row) == row.pages


def test_foreign_page_shows_other_sessions_values() -> None:
    chosen = scripts("tool-calls", 0, SESSIONS)
    owners = {
        canary.value: script.session
        for script in chosen
        for turn in script.turns
        for canary in turn.canaries
        if canary.tool is not None
    }
    answers = run(engine_of(faults=("foreign-page",)), chosen)
    bad = corrupted(answers)
    foreign = [
        answer
        for answer in bad
        if any(
            str(value) in answer.generation.text
            for value, session in owners.items()
            if session != answer.script.session
        )
    ]
    assert len(foreign) >= 5
    assert not [answer for answer in bad if answer.turn == 0], "nothing is restored yet"


def test_foreign_page_needs_a_neighbour() -> None:
    assert corrupted(run(engine_of(faults=("foreign-page",)), scripts("tool-calls", 0, 1))) == []


def test_abort_wedges_at_the_next_load_and_not_before() -> None:
    chosen = scripts("tool-calls", 0, SESSIONS)
    engine = engine_of(faults=("abort-wedge",))
    first = [request_of(script, 0) for script in chosen]
    assert not any(reply.hung for reply in engine.serve_round(first))
    engine.on_abort("test-s0003-t00")
    assert engine.wedged is None, "a dead transfer thread is silent"
    hung_at = None
    for turn in range(1, 6):
        replies = engine.serve_round([request_of(script, turn) for script in chosen])
        if any(reply.hung for reply in replies):
            hung_at = turn
            break
    assert hung_at is not None
    assert engine.wedged is not None
    assert engine.wedged.after_rid == "test-s0003-t00"
    assert all(reply.hung and not reply.pieces for reply in engine.serve_round(first)), (
        "the compute stream stands still, also for prompts that load nothing"
    )
    assert not engine.flush_cache()


def test_an_abort_is_harmless_without_the_fault() -> None:
    chosen = scripts("tool-calls", 0, SESSIONS)
    engine = engine_of(faults=("none",))
    engine.on_abort("test-s0003-t00")
    assert corrupted(run(engine, chosen)) == []
    assert engine.wedged is None
    assert engine.gauges()["num_aborted_requests_total"] == 1


def test_the_parser_fault_is_a_flag_on_a_healthy_engine() -> None:
    assert engine_of(faults=("parser-negative-number",)).parser_leaks_negative_numbers
    assert not engine_of().parser_leaks_negative_numbers
