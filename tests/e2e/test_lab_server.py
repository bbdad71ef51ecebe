"""The lab as others see it: a real process, real HTTP, the `openai` client unchanged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from lab_client import FAST, MESSAGES, TOOLS, WANTED, get, hang_up_after, metric, post, wait_until

from dsv4doctor.lab.deployment import LabOptions, RunningLab, start_lab


@pytest.fixture(scope="module")
def lab() -> Iterator[RunningLab]:
    with start_lab(LabOptions(switches=FAST)) as running:
        yield running


@pytest.fixture(scope="module")
def client(lab: RunningLab) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{lab.base_url}/v1", api_key="none", max_retries=0, timeout=20)


def test_openai_client_without_streaming(client: openai.OpenAI) -> None:
    reply = client.chat.completions.create(
        model="m", messages=MESSAGES, tools=TOOLS, tool_choice="required"
    )
    choice = reply.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls is not None
    call: Any = choice.message.tool_calls[0]
    assert (call.function.name, json.loads(call.function.arguments)) == ("lookup", WANTED)
    assert reply.usage is not None
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


def test_openai_client_streams_a_call(client: openai.OpenAI) -> None:
    name, arguments, reasons, usage = "", "", [], None
    for chunk in client.chat.completions.create(
        model="m",
        messages=MESSAGES,
        tools=TOOLS,
        stream=True,
        stream_options={"include_usage": True},
    ):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            reasons.append(choice.finish_reason)
            assert "DSML" not in (choice.delta.content or "")
            for call in choice.delta.tool_calls or []:
                assert call.function is not None
                name += call.function.name or ""
                arguments += call.function.arguments or ""
    assert (name, json.loads(arguments)) == ("lookup", WANTED)
    assert reasons[-1] == "tool_calls"
    assert usage is not None
    # The same prompt was served before: its whole pages come from the cache.
    assert usage.prompt_tokens_details is not None
    assert usage.prompt_tokens_details.cached_tokens == 256


def test_openai_stream_helper_accumulates(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(model="m", messages=MESSAGES, tools=TOOLS) as stream:
        final = stream.get_final_completion()
    calls = final.choices[0].message.tool_calls
    assert calls is not None
    assert json.loads(calls[0].function.arguments) == WANTED


@pytest.mark.parametrize("choice", ["none", "auto"])
def test_without_an_ask_the_answer_is_prose(client: openai.OpenAI, choice: Any) -> None:
    reply = client.chat.completions.create(
        model="m",
        messages=[{"role": "user", "content": "Good morning, what a fine day."}],
        tools=TOOLS,
        tool_choice=choice,
    )
    assert reply.choices[0].message.tool_calls is None
    assert reply.choices[0].message.content


def test_a_named_tool_is_called(client: openai.OpenAI) -> None:
    reply = client.chat.completions.create(
        model="m",
        messages=[{"role": "user", "content": "Good morning."}],
        tools=TOOLS,
        tool_choice={"type": "function", "function": {"name": "lookup"}},
    )
    calls: Any = reply.choices[0].message.tool_calls
    assert calls[0].function.name == "lookup"
    assert set(json.loads(calls[0].function.arguments)) >= {"code", "count"}


def test_max_tokens_stops_with_length(client: openai.OpenAI) -> None:
    reply = client.chat.completions.create(model="m", messages=MESSAGES, max_completion_tokens=3)
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage is not None
    assert reply.usage.completion_tokens == 3


def test_openai_client_reads_errors(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="Messages cannot be empty"):
        client.chat.completions.create(model="m", messages=[])
    with pytest.raises(openai.BadRequestError, match="LoRA adapter"):
        client.chat.completions.create(model="base:adapter", messages=MESSAGES)
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        client.models.retrieve("nobody")
    assert [model.owned_by for model in client.models.list()] == ["sglang"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{not json", "JSON decode error"),
        ({"messages": MESSAGES, "n": 3}, "n must be 1"),
        ([1], "not a JSON object"),
        ({"messages": MESSAGES, "tools": [{"function": {"name": "f", "parameters": 1}}]}, "schema"),
    ],
)
def test_bad_bodies(lab: RunningLab, body: Any, message: str) -> None:
    status, text = post(lab, "/v1/chat/completions", body)
    error = json.loads(text)
    assert status == 400
    assert (error["object"], error["code"]) == ("error", 400)
    assert message in error["message"]


def test_a_prompt_that_the_pool_cannot_hold_is_refused(lab: RunningLab) -> None:
    messages = [{"role": "user", "content": "word and word " * 60_000}]
    status, text = post(lab, "/v1/chat/completions", {"messages": messages})
    assert status == 400
    assert "exceeds the maximum allowed length (107520 tokens)" in text


def test_unknown_routes_and_methods(lab: RunningLab) -> None:
    assert get(lab, "/nowhere") == (404, '{"detail":"Not Found"}')
    assert get(lab, "/v1/chat/completions")[0] == 405


@pytest.mark.parametrize("path", ["/health", "/health_generate", "/ready", "/ping", "/"])
def test_health(lab: RunningLab, path: str) -> None:
    assert get(lab, path)[0] == 200


def test_it_says_what_it_is(lab: RunningLab) -> None:
    info = json.loads(get(lab, "/server_info")[1])
    assert info["version"] == "0.5.20"
    assert info["enable_hierarchical_cache"] is True
    assert info["tool_call_parser"] == "deepseekv4"
    assert "lab serve" in info["launch_command"]
    assert info["internal_states"][0]["env_vars"] == {"SGLANG_DSV4_BF16_INDEX_K": "1"}
    assert json.loads(get(lab, "/get_server_info")[1])["page_size"] == 256
    model = json.loads(get(lab, "/model_info")[1])
    assert (model["is_generation"], model["model_type"]) == (True, "deepseek_v4")
    loads = json.loads(get(lab, "/v1/loads")[1])
    assert loads["loads"][0]["dp_rank"] == 0
    log = lab.log_text()
    assert "The server is fired up and ready to roll!" in log
    assert "'deepseek_v4_c4_indexer' (layers=2, pages=1680, item_bytes=16384" in log


def test_metrics_count(lab: RunningLab, client: openai.OpenAI) -> None:
    before = {
        name: metric(lab, name) for name in ("prompt_tokens_total", "generation_tokens_total")
    }
    device = metric(lab, "cached_tokens_total", 'cache_source="device"')
    reply = client.chat.completions.create(model="m", messages=MESSAGES, tools=TOOLS)
    assert reply.usage is not None
    usage = reply.usage
    assert metric(lab, "prompt_tokens_total") - before["prompt_tokens_total"] == usage.prompt_tokens
    generated = metric(lab, "generation_tokens_total") - before["generation_tokens_total"]
    assert generated == usage.completion_tokens
    assert metric(lab, "cached_tokens_total", 'cache_source="device"') - device in (0, 256)
    assert metric(lab, "gen_throughput") > 0
    wait_until(lambda: metric(lab, "gen_throughput") == 0, "the throughput never falls to 0")
    assert metric(lab, "num_running_reqs") == 0


def test_flush_forgets_the_prefixes(lab: RunningLab, client: openai.OpenAI) -> None:
    client.chat.completions.create(model="m", messages=MESSAGES, tools=TOOLS)
    status, text = post(lab, "/flush_cache", {})
    assert (status, text.splitlines()[0]) == (200, "Cache flushed.")
    reply = client.chat.completions.create(model="m", messages=MESSAGES, tools=TOOLS)
    assert reply.usage is not None
    assert reply.usage.prompt_tokens_details is None


def test_parse_function_call(lab: RunningLab) -> None:
    text = (
        'So.\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="lookup">\n'
        '<｜DSML｜parameter name="code" string="true">a</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
        "</｜DSML｜tool_calls>"
    )
    body = {"text": text, "tools": TOOLS, "tool_call_parser": "deepseekv4"}
    status, answer = post(lab, "/parse_function_call", body)
    assert status == 200
    assert json.loads(answer) == {
        "normal_text": "So.",
        "calls": [{"tool_index": 0, "name": "lookup", "parameters": '{"code": "a"}'}],
    }


def test_generate_is_free_of_any_parser(lab: RunningLab) -> None:
    status, text = post(
        lab, "/generate", {"text": "Good morning.", "sampling_params": {"max_new_tokens": 8}}
    )
    assert status == 200
    assert json.loads(text)["meta_info"]["finish_reason"]["type"] in {"stop", "length"}


def test_a_client_that_hangs_up_is_an_abort_and_holds_up_nobody(lab: RunningLab) -> None:
    before = metric(lab, "num_aborted_requests_total")
    body = {"model": "m", "messages": MESSAGES, "tools": TOOLS, "stream": True}
    asyncio.run(hang_up_after(lab, 3, body))
    wait_until(
        lambda: metric(lab, "num_aborted_requests_total") == before + 1, "the abort is not counted"
    )
    assert post(lab, "/v1/chat/completions", {"messages": MESSAGES})[0] == 200
