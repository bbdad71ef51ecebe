"""The lab as others see it: a real process, real HTTP, the `openai` client unchanged."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

from dsv4doctor.cli.app import main
from dsv4doctor.errors import DoctorError, UsageError
from dsv4doctor.lab.deployment import LabOptions, RunningLab, start_lab

FAST = (("itl-ms", "1"), ("ttft-ms", "1"), ("quiet-ms", "60"))
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "lookup",
            "parameters": {
                "type": "object",
                "properties": {"code": {"type": "string"}, "count": {"type": "number"}},
                "required": ["code", "count"],
            },
        },
    }
]
MESSAGES: list[Any] = [
    {"role": "system", "content": "You are the assistant of a records office."},
    {
        "role": "user",
        "content": "The code for `amber-heron-3` is `K7F3-QM2X-9DTW`. The number for `blue-fox-1` "
        "is `12.5`. Call the tool `lookup` now: set `code` to the code for `amber-heron-3`, set "
        "`count` to the number for `blue-fox-1`.",
    },
]
WANTED = {"code": "K7F3-QM2X-9DTW", "count": 12.5}


@pytest.fixture(scope="module")
def lab() -> Iterator[RunningLab]:
    with start_lab(LabOptions(switches=FAST)) as running:
        yield running


@pytest.fixture(scope="module")
def client(lab: RunningLab) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{lab.base_url}/v1", api_key="none", max_retries=0, timeout=20)


def get(lab: RunningLab, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(lab.base_url + path, timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def post(lab: RunningLab, path: str, body: Any) -> tuple[int, str]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(
        lab.base_url + path, data=data, headers={"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def metric(lab: RunningLab, name: str, label: str = "") -> float:
    for line in get(lab, "/metrics")[1].splitlines():
        if line.startswith(f"sglang:{name}{{") and label in line:
            return float(line.rpartition(" ")[2])
    raise AssertionError(f"no metric {name}")


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 15
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


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


async def hang_up_after(lab: RunningLab, frames: int, body: dict[str, Any]) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{lab.base_url}/v1/chat/completions", json=body) as response,
    ):
        async for line in response.content:
            frames -= line.startswith(b"data: ")
            if frames <= 0:
                return


def test_a_client_that_hangs_up_is_an_abort_and_holds_up_nobody(lab: RunningLab) -> None:
    before = metric(lab, "num_aborted_requests_total")
    body = {"model": "m", "messages": MESSAGES, "tools": TOOLS, "stream": True}
    asyncio.run(hang_up_after(lab, 3, body))
    wait_until(
        lambda: metric(lab, "num_aborted_requests_total") == before + 1, "the abort is not counted"
    )
    assert post(lab, "/v1/chat/completions", {"messages": MESSAGES})[0] == 200


def test_abort_request_ends_a_stream_with_its_reason() -> None:
    slow = (("itl-ms", "200"), ("quiet-ms", "20"))
    body = {"model": "m", "messages": MESSAGES, "stream": True, "max_tokens": 60}

    async def story(lab: RunningLab) -> list[Any]:
        chunks: list[Any] = []
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"{lab.base_url}/v1/chat/completions", json=body, headers={"X-Request-Id": "mine"}
            ) as response,
        ):
            async for line in response.content:
                if line.startswith(b"data: {"):
                    chunks.append(json.loads(line[6:]))
                if len(chunks) == 3:
                    await session.post(f"{lab.base_url}/abort_request", json={"rid": "mine"})
        return chunks

    with start_lab(LabOptions(switches=slow)) as lab:
        chunks = asyncio.run(asyncio.wait_for(story(lab), 15))
        assert chunks[0]["id"] == "mine"
        assert chunks[-1]["choices"][0]["finish_reason"] == "abort"
        assert len(chunks) < 10
        assert metric(lab, "num_aborted_requests_total") == 1


def long_conversation(number: int) -> list[Any]:
    """About eight pages of 256 tokens that no other number shares."""
    notes = " ".join(f"Note {number}-{line} says nothing of weight." for line in range(160))
    return [*MESSAGES[:1], {"role": "user", "content": f"{notes} {MESSAGES[1]['content']}"}]


def test_after_an_abort_the_wedge_hangs_whoever_needs_a_load_while_health_says_200() -> None:
    # Six conversations of eight pages do not fit: the first ones have to be loaded again.
    small = (("device-pages", "30"), ("prefill-batch", "2"))

    async def ask(lab: RunningLab, number: int, timeout_s: float) -> int:
        body = {"messages": long_conversation(number), "tools": TOOLS, "tool_choice": "required"}
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout_s)) as session,
            session.post(f"{lab.base_url}/v1/chat/completions", json=body) as response,
        ):
            reply = await response.json()
            return len(reply["choices"][0]["message"]["tool_calls"] or [])

    async def story(lab: RunningLab) -> None:
        for number in range(6):
            assert await ask(lab, number, 20) == 1
        assert await ask(lab, 0, 20) == 1
        loaded = metric(lab, "load_back_tokens_total")
        assert loaded > 0
        assert loaded == metric(lab, "cached_tokens_total", 'cache_source="host"')
        await hang_up_after(lab, 3, {"messages": MESSAGES, "stream": True})
        wait_until(lambda: metric(lab, "num_aborted_requests_total") == 1, "no abort")
        hanging = asyncio.create_task(ask(lab, 1, 60))
        while metric(lab, "num_decode_transfer_queue_reqs") == 0:
            await asyncio.sleep(0.05)
            assert not hanging.done()
        assert get(lab, "/health")[0] == 200
        assert get(lab, "/health_generate")[0] == 200
        assert metric(lab, "num_queue_reqs") == 1
        assert metric(lab, "num_running_reqs") == 0
        with pytest.raises(TimeoutError):
            await ask(lab, 2, 1.0)
        assert get(lab, "/flush_cache")[0] == 400
        assert post(lab, "/abort_request", {"abort_all": True})[0] == 200
        assert await hanging == 0
        wait_until(lambda: metric(lab, "num_queue_reqs") == 0, "the queue is not empty")

    with start_lab(LabOptions(faults=("abort-wedge",), switches=(*FAST, *small))) as lab:
        asyncio.run(asyncio.wait_for(story(lab), 60))


def test_the_parser_group_is_selected_at_launch() -> None:
    text = 'So <｜DSML｜invoke name="lookup"/>'
    with start_lab(LabOptions(switches=(*FAST, ("parser-group", "C")))) as lab:
        assert json.loads(get(lab, "/server_info")[1])["version"] == "0.5.22"
        answer = post(lab, "/parse_function_call", {"text": text, "tools": TOOLS})[1]
    # Group B would leave all of it in the text.
    assert json.loads(answer) == {
        "normal_text": "So ",
        "calls": [{"tool_index": 0, "name": "lookup", "parameters": "{}"}],
    }


def test_a_healthy_model_leaks_under_the_parser_fault_alone() -> None:
    messages = [
        {"role": "system", "content": "You are the assistant of a records office."},
        {
            "role": "user",
            "content": "The number for `blue-fox-1` is `-12.5`. Call the tool `lookup` now: set "
            "`count` to the number for `blue-fox-1`.",
        },
    ]
    body = {"messages": messages, "tools": TOOLS, "tool_choice": "required", "stream": True}
    leaks = {}
    for fault in ("parser-negative-number", "none"):
        with start_lab(LabOptions(faults=(fault,), switches=FAST)) as lab:
            leaks[fault] = "DSML" in post(lab, "/v1/chat/completions", body)[1]
    assert leaks == {"parser-negative-number": True, "none": False}


def test_a_key_is_asked_for() -> None:
    with start_lab(LabOptions(switches=(("api-key", "secret"),))) as lab:
        assert get(lab, "/v1/models") == (401, '{"error":"Unauthorized"}')
        assert get(lab, "/health")[0] == 200
        client = openai.OpenAI(base_url=f"{lab.base_url}/v1", api_key="secret", max_retries=0)
        assert len(list(client.models.list())) == 1
        info = client.get("/../server_info", cast_to=object)
        assert "secret" not in json.dumps(info)
        assert "secret" not in lab.log_text()


def test_sglangs_variable_and_switches_choose_the_index_k() -> None:
    environment = {"SGLANG_DSV4_BF16_INDEX_K": "1"}
    command = [sys.executable, "-m", "dsv4doctor", "lab", "serve", "--exit-with-stdin"]
    both = [*command, "--enable-deepseek-v4-fp4-indexer", "--disable-overlap-schedule"]
    for arguments, extra, item_bytes in ((command, environment, 16384), (both, {}, 4352)):
        ended = subprocess.run(
            [*arguments, "--enable-hierarchical-cache"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            env={**os.environ, **extra},
            check=False,
        )
        assert ended.returncode == 0
        assert f"item_bytes={item_bytes}" in ended.stderr


BAD_LAUNCHES = [
    (["--fault", "gremlins"], "no fault is called gremlins"),
    (["--fix", "prayer"], "no fix is called prayer"),
    (["--parser-group", "Z"], "no parser group Z"),
    (["--tool-call-parser", "hermes"], "no tool-call parser hermes"),
    (["--nonsense"], "No such option: --nonsense"),
    (["--device-pages", "0"], "--device-pages"),
    (["--index-k", "fp8", "--enable-deepseek-v4-fp4-indexer"], "the index-K dtype is given twice"),
]


UNWRITABLE = [
    ([flag, place], f"{flag} {place} cannot be written")
    for flag in ("--ground-truth", "--record")
    for place in ("/no/such/folder/file", "/tmp")
]


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [(*bad, 2) for bad in BAD_LAUNCHES] + [(*bad, 3) for bad in UNWRITABLE],
    ids=lambda v: str(v)[:40],
)
def test_bad_launches_are_told_in_one_line_and_the_next_step(
    arguments: list[str], message: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    on_term = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as ended:
            main(["lab", "serve", *arguments])
    finally:
        signal.signal(signal.SIGTERM, on_term)
    out, err = capsys.readouterr()
    problem, step = err.splitlines()
    assert (ended.value.code, out) == (code, "")
    assert problem.startswith("dsv4doctor: ")
    assert message in problem
    assert step.startswith("  try: ")


def test_a_launch_that_fails_is_told_by_who_started_it_in_its_own_words() -> None:
    with pytest.raises(UsageError, match="no fault is called gremlins") as usage:
        start_lab(LabOptions(faults=("gremlins",)))
    assert "index-race" in usage.value.hint
    with pytest.raises(UsageError, match="No such option: --nope") as unknown:
        start_lab(LabOptions(switches=(("nope", "1"),)))
    assert unknown.value.hint == "dsv4doctor lab serve --help"
    with pytest.raises(DoctorError, match=r"cannot listen on 203\.0\.113\.1:0") as refused:
        start_lab(LabOptions(switches=(("host", "203.0.113.1"),)))
    assert refused.value.exit_code == 3


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(DoctorError, match=f"cannot listen on 127.0.0.1:{port}") as raised:
            start_lab(LabOptions(switches=(("port", str(port)),)))
    assert raised.value.exit_code == 3


def test_a_lab_that_is_not_ready_in_time_is_not_left_behind() -> None:
    began = time.monotonic()
    with pytest.raises(DoctorError, match=r"not ready within 0\.01 s"):
        start_lab(LabOptions(), timeout_s=0.01)
    assert time.monotonic() - began < 5


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_stop_is_quick_and_final_also_in_the_middle_of_a_stream() -> None:
    lab = start_lab(LabOptions(switches=(("itl-ms", "500"), ("quiet-ms", "20"))))
    body = {"messages": MESSAGES, "stream": True}
    asyncio.run(asyncio.wait_for(hang_up_after(lab, 1, body), 10))
    began = time.monotonic()
    lab.stop()
    lab.stop()
    assert time.monotonic() - began < 2
    assert not alive(lab.pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it(number: signal.Signals) -> None:
    with start_lab(LabOptions()) as lab:
        os.kill(lab.pid, number)
        wait_until(lambda: not lab.alive, "it does not end")


def test_it_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    script = (
        "import time\n"
        "from dsv4doctor.lab.deployment import LabOptions, start_lab\n"
        "lab = start_lab(LabOptions())\n"
        "print(lab.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.kill()
    wait_until(lambda: not alive(pid), "the lab outlives its parent")


BROKEN_ENGINE = """
import asyncio, sys
from dsv4doctor.lab.config import EngineConfig
from dsv4doctor.lab.engine import Engine
from dsv4doctor.lab.http_launch import LaunchOptions
from dsv4doctor.lab.server import serve

class Broken(Engine):
    def serve_round(self, requests):
        raise RuntimeError("the pool is gone")

sys.exit(asyncio.run(serve(Broken(EngineConfig()), LaunchOptions(quiet_ms=1))))
"""


def test_an_engine_that_raises_ends_the_server_as_sglangs_scheduler_does() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BROKEN_ENGINE], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        base_url = json.loads(process.stdout.readline())["base_url"]
        request = urllib.request.Request(
            f"{base_url}/v1/chat/completions",
            data=json.dumps({"messages": MESSAGES}).encode(),
            headers={"Content-Type": "application/json"},
        )
        with pytest.raises(OSError, match=r"reset|closed|refused"):
            urllib.request.urlopen(request, timeout=10)
        log = process.communicate(timeout=10)[1].decode()
    assert process.returncode == 70
    assert "Scheduler hit an exception: Traceback" in log
    assert "RuntimeError: the pool is gone" in log


def test_starting_a_lab_imports_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "import dsv4doctor.lab.deployment\n"
        "print(sorted({'aiohttp', 'numpy', 'httpx', 'typer'} & set(sys.modules)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
