"""Bytes alone corrupt: right ones give the healthy reply, the logged stale ones the served one."""

from __future__ import annotations

import ast
import inspect
import random
from collections import defaultdict
from dataclasses import replace
from typing import Any

from lab_sessions import SESSIONS, corrupted, engine_of, request_of, run, scripts, sick_run

from dsv4doctor.lab import model
from dsv4doctor.lab.groundtruth import read_log
from dsv4doctor.lab.replay import replay


def test_generate_is_handed_bytes_and_neither_fault_nor_log_nor_clock() -> None:
    assert list(inspect.signature(model.generate).parameters) == [
        "prompt",
        "plan",
        "gathered",
        "shape",
        "max_tokens",
    ]
    imports = {
        node.module
        for node in ast.walk(ast.parse(inspect.getsource(model)))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    named = {module.rsplit(".", 1)[-1] for module in imports}
    assert named.isdisjoint({"fault", "faults", "groundtruth", "clock", "config", "random", "time"})


def test_every_corrupted_reply_is_explained_by_its_bytes() -> None:
    done = sick_run()
    stale: dict[str, list[dict[str, Any]]] = defaultdict(list)
    served = {}
    for record in read_log(done.log):
        if record["kind"] == "stale_read":
            stale[record["rid"]].append(record)
        else:
            served[record["rid"]] = record["text"]
    bad = corrupted(done.answers)
    assert bad
    for answer in bad:
        assert done.engine.healthy_text(answer.request) == answer.expected
        again = replay(done.engine, answer.request, stale[answer.request.rid], done.log)
        assert again == answer.generation.text == served[answer.request.rid]
    sound = [answer for answer in done.answers if not answer.is_corrupted]
    assert any(stale[answer.request.rid] for answer in sound), "a stale read need not corrupt"


def test_stale_reads_name_session_turn_layer_page_and_owner() -> None:
    done = sick_run()
    reads = [record for record in read_log(done.log) if record["kind"] == "stale_read"]
    assert len(reads) == done.engine.ground_truth.stale_reads
    assert {read["layer"] for read in reads} == {0}, "by the second layer the copies have landed"
    assert {read["pool"] for read in reads} == {"index_k"}, "reads of the main pool wait"
    for read in reads:
        assert read["rid"] == f"test-s{read['session']:04d}-t{read['turn']:02d}"
        assert read["owner"] is None or read["owner"]["digest"] != read["expected"]


def test_neither_order_of_arrival_nor_names_change_anything() -> None:
    """The same run once more, its requests shuffled and renamed."""
    chosen = scripts("tool-calls", 0, SESSIONS)
    engine = engine_of()
    shuffle = random.Random(1)
    texts = {}
    for turn in range(6):
        order = list(chosen)
        shuffle.shuffle(order)
        requests = [
            replace(request_of(script, turn), rid=f"{place}-by-another-name")
            for place, script in enumerate(order)
        ]
        for script, reply in zip(order, engine.serve_round(requests), strict=True):
            texts[script.session, turn] = reply.text
    assert texts == {
        (answer.script.session, answer.turn): answer.generation.text
        for answer in sick_run().answers
    }


def test_the_seed_orders_batches_and_so_who_is_late() -> None:
    answers = run(engine_of(seed=1), scripts("tool-calls", 0, SESSIONS))
    hit, usual = (
        {(answer.script.session, answer.turn) for answer in corrupted(some)}
        for some in (answers, sick_run().answers)
    )
    assert hit != usual
