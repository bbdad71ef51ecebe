"""What `--redact` takes out, what it leaves, and that it counts rightly."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dsv4doctor.report.publish import PIECE_CHARS, Publisher
from tests.report.runs import PROMPT, corrupted_record, full_record

TARGET = {
    "base_url": "http://gpu7.example-corp.com:30000/v1",
    "server_args": {"host": "gpu7", "dist_init_addr": "10.20.30.40:5000", "nnodes": 2, "node": "1"},
}


@pytest.fixture
def publisher() -> Publisher:
    made = Publisher()
    made.know_target(TARGET)
    return made


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("connect to http://gpu7.example-corp.com:30000/v1/models failed", "gpu7"),
        ("gpu7: no route", "gpu7"),
        ("peer GPU7 hung", "GPU7"),
        ("from 10.20.30.40 and 192.168.1.9:22", "192.168"),
        ("fe80::1ff:fe23:4567:890a refused", "fe80"),
        ("see https://wiki.other.org/page", "wiki.other.org"),
        ("node3.cluster.local is down", "cluster"),
        ("Authorization: Bearer abcdef123456789", "abcdef123456789"),
        ("--api-key sk-abcdefghijklmnop1234", "abcdefghijklmnop"),
        ("/home/alice/models/v4", "alice"),
    ],
)
def test_it_goes(publisher: Publisher, text: str, gone: str) -> None:
    assert gone.lower() not in publisher.text(text).lower()


@pytest.mark.parametrize(
    "text",
    [
        "sglang 0.5.18 on python 3.11.7",
        "call 0 file_report, site; planted in turn 2",
        "at 12:30:45 UTC",
        "https://github.com/sgl-project/sglang/issues/36179",
        '{"ticket": "VGQM-DPPY-RSBH"}',
        "max_tokens 512, 60 sessions of 6 turns",
        "<｜DSML｜invoke name=x>",
        "1.2.3.4.5 is no address, 300.1.1.1 neither",
    ],
)
def test_it_stays(publisher: Publisher, text: str) -> None:
    assert publisher.text(text) == text


def test_one_host_has_one_name_everywhere(publisher: Publisher) -> None:
    shown = publisher.value(TARGET)
    assert shown["base_url"] == "http://[host-1]:30000/v1"
    assert shown["server_args"]["host"] != "[host-1]"
    assert publisher.text("gpu7") == shown["server_args"]["host"]
    assert shown["server_args"]["nnodes"] == 2
    assert shown["server_args"]["node"] == "1"


def test_a_prompt_goes_and_what_replies_repeat_of_it(publisher: Publisher) -> None:
    reply = f"broken {PROMPT[10:60]} and salad of its own"
    response = {"content": reply, "finish_reason": "stop"}
    shown = publisher.record(corrupted_record(0, 1, response=response))
    assert "prompt" not in shown
    assert shown["response"]["content"] == (
        "broken [50 characters of the prompt] and salad of its own"
    )
    assert publisher.removed.as_json()["prompts"] == 1
    assert publisher.removed.as_json()["prompt_pieces"] == 1


def test_pieces_of_earlier_turns_are_known(publisher: Publisher) -> None:
    publisher.record(full_record(3, 0, prompt="an older page about the silver signal of the mill"))
    shown = publisher.record(
        corrupted_record(3, 1, response={"content": "page about the silver signal of the mill"})
    )
    assert "silver" not in json.dumps(shown)
    other = publisher.record(
        corrupted_record(4, 1, response={"content": "page about the silver signal of the mill"})
    )
    assert "silver" in json.dumps(other), "another session's reply is the evidence"


@pytest.mark.parametrize("start", range(14))
def test_every_stretch_of_the_least_length_is_found(publisher: Publisher, start: int) -> None:
    piece = PROMPT[start : start + PIECE_CHARS]
    shown = publisher.record(corrupted_record(0, 0, response={"content": f"Q{piece}Z"}))
    assert piece not in json.dumps(shown)
    shorter = PROMPT[start : start + PIECE_CHARS - 1]
    shown = publisher.record(corrupted_record(0, 1, response={"content": f"\u00a7{shorter}\u00a7"}))
    assert shorter in shown["response"]["content"]


def test_a_clean_reply_is_no_evidence_and_goes(publisher: Publisher) -> None:
    shown = publisher.record(full_record(0, 0))
    assert shown["response"] == {"finish_reason": "tool_calls"}


def test_a_finding_repeats_no_prompt(publisher: Publisher) -> None:
    publisher.record(full_record(7, 2))
    finding: dict[str, Any] = {
        "rule": "X",
        "evidence": [
            {"where": "records.jsonl s0007-t03 content", "what": f"'x' for '{PROMPT[:40]}'"},
            {"where": "", "what": "http://gpu7.example-corp.com is slow"},
        ],
    }
    shown = json.dumps(publisher.finding(finding))
    assert PROMPT[:40] not in shown
    assert "gpu7" not in shown


def test_nothing_to_remove_is_said_as_nothing() -> None:
    publisher = Publisher()
    assert publisher.text("plain words") == "plain words"
    assert set(publisher.removed.as_json().values()) == {0}
    assert "0 hosts" in str(publisher.removed)
