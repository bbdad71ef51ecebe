"""One request against every canned behaviour: the reply, or the failure that says what happened."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket

import pytest

from dsv4doctor.client.http import HttpClient
from dsv4doctor.client.openai import ChatRequest, Outcome, chat, encode_body
from dsv4doctor.client.watch import Deadlines, Watchdog
from dsv4doctor.exchange import ToolCall
from dsv4doctor.label import Label
from dsv4doctor.reply import Usage
from dsv4doctor.target import parse_endpoint

BODY = encode_body({"model": "m", "messages": [], "max_tokens": 9, "stream": True})
QUICK = Deadlines(first_token_s=0.4, stall_s=0.4, total_s=20.0)
PATIENT = Deadlines(stall_s=20.0, total_s=30.0)


def ask(url: str, *, deadlines: Deadlines = PATIENT, times: int = 1, **request) -> list[Outcome]:
    """The outcomes of `times` requests after one another over one client."""

    async def run() -> list[Outcome]:
        watchdog = Watchdog(deadlines)
        async with HttpClient(parse_endpoint(url), connect_timeout_s=2.0) as http:
            guard = asyncio.create_task(watchdog.run())
            try:
                wanted = ChatRequest(**{"body": BODY, "stream": True, **request})
                return [await chat(http, wanted, watchdog) for _ in range(times)]
            finally:
                guard.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await guard

    return asyncio.run(run())


def ask_once(url: str, **options) -> Outcome:
    return ask(url, **options)[0]


GOOD = ["good", "byte_by_byte", "crlf", "gzipped", "deflated", "moved", "linger"]


@pytest.mark.parametrize("case", GOOD)
def test_a_good_stream_is_read_whole(canned: str, case: str) -> None:
    reply = ask_once(f"{canned}/{case}").reply
    assert reply.failure is None
    assert reply.response.content == "Hello wörld 😀"
    assert reply.response.finish_reason == "stop"
    assert reply.response.tool_calls is None
    assert reply.saw_done
    assert reply.usage == Usage(prompt_tokens=11, completion_tokens=3, cached_tokens=7)
    assert len(reply.timing.itl_ms) == 2
    assert 0 < reply.timing.ttft_ms <= reply.timing.e2e_latency_ms < 5000


@pytest.mark.parametrize("case", ["no_done", "done_unterminated"])
def test_a_finish_reason_is_enough(canned: str, case: str) -> None:
    reply = ask_once(f"{canned}/{case}").reply
    assert reply.failure is None
    assert (reply.response.content, reply.response.finish_reason) == ("fine", "stop")
    assert reply.saw_done == (case == "done_unterminated")


def test_done_with_output_but_no_finish_reason_is_left_to_judge(canned: str) -> None:
    reply = ask_once(f"{canned}/done_without_finish").reply
    assert reply.failure is None
    assert (reply.response.content, reply.response.finish_reason) == ("fine", None)


LOOK = {"id": "call_aa", "name": "look", "arguments": '{"a": -1}'}
STORE = {"id": "call_bb", "name": "store", "arguments": '{"b": 2}'}
MERGED = {
    "sglang_call": [{**LOOK, "index": 0}, {**STORE, "index": 1}],
    "vllm_call": [{**LOOK, "index": 0}],
    "late_names": [{**LOOK, "index": 0, "arguments": '{"a": -1}'}],
    "reused_index": [{**LOOK, "index": 0}, {**STORE, "index": 0}],
    "no_index": [{**LOOK, "index": None}, {**STORE, "index": None}],
    "call_only": [{**LOOK, "index": 0}],
    "whole": [{**LOOK, "index": 0}],
}


@pytest.mark.parametrize(("case", "calls"), MERGED.items(), ids=MERGED.keys())
def test_tool_calls_are_merged_as_each_server_emits_them(canned, case, calls) -> None:
    reply = ask_once(f"{canned}/{case}").reply
    assert reply.failure is None
    assert reply.response.finish_reason == "tool_calls"
    assert reply.response.tool_calls == tuple(ToolCall(type="function", **call) for call in calls)
    if case in {"sglang_call", "vllm_call"}:
        assert reply.response.reasoning_content == "think"


def test_a_whole_reply_is_read(canned: str) -> None:
    reply = ask_once(f"{canned}/whole", stream=False).reply
    assert reply.failure is None
    assert reply.response.content == ""
    assert reply.response.tool_calls == (ToolCall(type="function", index=0, **LOOK),)
    assert reply.usage == Usage(prompt_tokens=5, completion_tokens=2)
    assert reply.timing.ttft_ms is None


FAILURES = {
    "cut": (Label.PROTOCOL_ERROR, "stream cut", None),
    "cut_in_chunk": (Label.CONNECTION_ERROR, "middle of the reply", None),
    "close_unanswered": (Label.CONNECTION_ERROR, "closed the connection before answering", None),
    "reset": (Label.CONNECTION_ERROR, "", None),
    "not_http": (Label.PROTOCOL_ERROR, "does not speak HTTP", None),
    "mute": (Label.TIMEOUT, "no first token in 0.4 s", None),
    "silent": (Label.STALLED, "after 3 pieces", None),
    "pings": (Label.STALLED, "after 2 pieces", None),
    "error_frame": (Label.HTTP_ERROR, "KVTransferError: lost \\x1b[31mroom", 500),
    "invalid_json": (Label.PROTOCOL_ERROR, "frame 3 is no JSON", None),
    "array_frame": (Label.PROTOCOL_ERROR, "not an object", None),
    "done_alone": (Label.PROTOCOL_ERROR, "without output", None),
    "broken_gzip": (Label.PROTOCOL_ERROR, "broken gzip", None),
    "brotli": (Label.PROTOCOL_ERROR, "content-encoding 'br'", None),
    "moved_away": (Label.HTTP_ERROR, "another origin, https://elsewhere.example;", 302),
    "moved_around": (Label.PROTOCOL_ERROR, "more than 3 redirects", 308),
    "html": (Label.PROTOCOL_ERROR, "answered text/html instead of events: <html>\\x1b[2J", None),
    "status_401": (Label.HTTP_ERROR, "HTTP 401: Unauthorized", 401),
    "status_404": (Label.HTTP_ERROR, "The model `nope` does not exist.", 404),
    "status_429": (Label.HTTP_ERROR, "slow \\x1b[31mdown", 429),
    "status_500": (Label.HTTP_ERROR, "Internal Server Error", 500),
    "status_503": (Label.HTTP_ERROR, "HTTP 503", 503),
}


@pytest.mark.parametrize(("case", "expected"), FAILURES.items(), ids=FAILURES.keys())
def test_every_fault_is_one_clear_failure(canned, case, expected) -> None:
    kind, message, status = expected
    deadlines = QUICK if case in {"mute", "silent", "pings"} else PATIENT
    failure = ask_once(f"{canned}/{case}", deadlines=deadlines).reply.failure
    assert failure is not None
    assert (failure.kind, failure.http_status) == (kind, status)
    assert message in failure.message
    assert failure.message.isprintable()
    assert failure.is_stranger == (case in {"not_http", "html"})
    assert failure.is_refusal == (kind is Label.HTTP_ERROR or failure.is_stranger)


def test_an_invalid_chunk_header_does_not_hang(canned: str) -> None:
    # The library notices it or waits for ever, by how the bytes fell into reads.
    failure = ask_once(f"{canned}/bad_chunk_header", deadlines=QUICK).reply.failure
    assert failure.kind in {Label.PROTOCOL_ERROR, Label.STALLED}


def test_what_came_before_a_fault_is_kept(canned: str) -> None:
    reply = ask_once(f"{canned}/silent", deadlines=QUICK).reply
    assert reply.response.content == "abc"
    assert b'"content": "c"' in reply.raw
    assert not reply.raw_truncated
    assert ask_once(f"{canned}/invalid_json").reply.response.content == "ab"


def test_odd_text_is_kept_as_received(canned: str) -> None:
    reply = ask_once(f"{canned}/odd_types").reply
    assert reply.failure is None
    assert reply.response.content == "\ud800 ok raw \ufffd\ufffd\ufffd \ufffd nan"
    assert b"\xed\xa0\x80 \xff" in reply.raw


@pytest.mark.parametrize("case", ["huge_line", "huge_events"])
def test_a_body_of_100_mb_is_refused_in_bounded_memory(canned: str, case: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reply = ask_once(f"{canned}/{case}").reply
    assert reply.failure.kind is Label.PROTOCOL_ERROR
    assert "exceeds" in reply.failure.message
    assert len(reply.raw) == 4 << 20
    assert reply.raw_truncated
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown_mib < 100


def test_a_whole_reply_of_100_mb_is_refused(canned: str) -> None:
    failure = ask_once(f"{canned}/huge_whole", stream=False).reply.failure
    assert failure.message == "the reply exceeds 64 MiB; given up"


def test_nothing_listens(unused_port: int) -> None:
    failure = ask_once(f"http://127.0.0.1:{unused_port}").reply.failure
    assert failure.kind is Label.CONNECTION_ERROR
    assert f"no connection to http://127.0.0.1:{unused_port}" in failure.message


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_an_abort_hangs_up_after_so_many_tokens(canned: str) -> None:
    reply = ask_once(f"{canned}/slow", abort_after_tokens=3).reply
    assert reply.aborted
    assert reply.failure is None
    assert reply.response.content == "w0 w1 w2 "
    assert reply.timing.e2e_latency_ms < 700  # of the 800 that the stream takes


def test_a_kept_connection_that_was_closed_is_told_apart(canned: str) -> None:
    first, second = ask(f"{canned}/stale", times=2)
    assert first.reply.failure is None
    assert not first.reused
    assert second.reply.failure.kind is Label.CONNECTION_ERROR
    assert second.reused
    assert second.unanswered


def test_a_total_deadline_ends_a_stream_that_still_flows(canned: str) -> None:
    limits = Deadlines(stall_s=None, total_s=0.3)
    failure = ask_once(f"{canned}/pings", deadlines=limits).reply.failure
    assert failure.kind is Label.TIMEOUT
    assert failure.message == "no end of the reply in 0.3 s"


def test_another_ones_cancellation_is_not_swallowed(canned: str) -> None:
    async def run() -> None:
        watchdog = Watchdog(QUICK)
        async with HttpClient(parse_endpoint(f"{canned}/mute")) as http:
            task = asyncio.create_task(chat(http, ChatRequest(body=BODY, stream=True), watchdog))
            while not watchdog.watches:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not watchdog.watches

    asyncio.run(run())


def test_lone_surrogates_can_be_sent_back() -> None:
    assert encode_body({"content": "\ud800é"}) == b'{"content":"\\ud800\\u00e9"}'
