"""A router, a prefill and a decode server as others see them: processes, ports, routes, logs."""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import openai
import psutil
import pytest
from cli_runs import doctor, repro
from lab_client import fetch, wait_until

from dsv4doctor.errors import UsageError
from dsv4doctor.lab.deployment import LabOptions, RunningLab, start_lab
from dsv4doctor.sglang_log.boot import read_boot

FAST = (("itl-ms", "1"), ("ttft-ms", "1"), ("quiet-ms", "60"), ("disaggregation", "on"))
MESSAGES: list[Any] = [
    {
        "role": "user",
        "content": "The code for `amber-heron-3` is `K7F3-QM2X-9DTW`. Call the tool `lookup` now: "
        "set `code` to the code for `amber-heron-3`.",
    }
]
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "lookup",
            "parameters": {"type": "object", "properties": {"code": {"type": "string"}}},
        },
    }
]
BODY = {"messages": MESSAGES, "tools": TOOLS, "tool_choice": "required"}
ALL_RANKS = "/route?prefill_dp_rank=-1&prefill_cp_rank=-1&target_tp_rank=-1&target_pp_rank=-1"


@pytest.fixture(scope="module")
def lab() -> Iterator[RunningLab]:
    with start_lab(LabOptions(switches=FAST)) as running:
        yield running


def samples(text: str, name: str) -> dict[str, float]:
    """One gauge of both servers, by engine type."""
    found = {}
    for line in text.splitlines():
        if line.startswith(f"sglang:{name}{{"):
            engine = line.partition('engine_type="')[2].partition('"')[0]
            found[engine] = float(line.rpartition(" ")[2])
    return found


def call_of(text: str) -> dict[str, Any]:
    choice = json.loads(text)["choices"][0]
    return json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])


def test_a_call_goes_through_both_servers(lab: RunningLab) -> None:
    client = openai.OpenAI(base_url=f"{lab.base_url}/v1", api_key="none", max_retries=0, timeout=30)
    arguments, usage = "", None
    for chunk in client.chat.completions.create(
        model="m", messages=MESSAGES, tools=TOOLS, stream=True,
        stream_options={"include_usage": True},
    ):  # fmt: skip
        usage = chunk.usage or usage
        for choice in chunk.choices:
            for call in choice.delta.tool_calls or []:
                assert call.function is not None
                arguments += call.function.arguments or ""
    assert json.loads(arguments) == {"code": "K7F3-QM2X-9DTW"}
    assert usage is not None
    status, text = fetch(f"{lab.base_url}/v1/chat/completions", BODY)
    assert (status, call_of(text)) == (200, {"code": "K7F3-QM2X-9DTW"})
    assert fetch(f"{lab.base_url}/generate", {"text": "Say something about herons."})[0] == 200


def test_a_doctor_may_send_both_copies_itself(lab: RunningLab) -> None:
    bootstrap = urlsplit(lab.ready["bootstrap_url"])
    body = {
        **BODY,
        "bootstrap_host": bootstrap.hostname,
        "bootstrap_port": bootstrap.port,
        "bootstrap_room": 4711,
    }
    answers: dict[str, tuple[int, str]] = {}

    def send(role: str) -> None:
        answers[role] = fetch(f"{lab.ready[f'{role}_url']}/v1/chat/completions", body)

    threads = [threading.Thread(target=send, args=(role,)) for role in ("prefill", "decode")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert call_of(answers["decode"][1]) == {"code": "K7F3-QM2X-9DTW"}
    usage = json.loads(answers["prefill"][1])["usage"]
    assert usage["completion_tokens"] == 1
    status, text = fetch(f"{lab.ready['decode_url']}/v1/chat/completions", BODY)
    assert status == 400
    assert "without bootstrap room id" in text


def test_the_bootstrap_server_answers_as_sglangs(lab: RunningLab) -> None:
    url = lab.ready["bootstrap_url"]
    status, text = fetch(url + ALL_RANKS)
    assert status == 200
    assert json.loads(text)["page_size"] == 256
    assert fetch(url + ALL_RANKS.replace("-1", "0"))[0] == 200
    assert fetch(url + ALL_RANKS.replace("-1", "3"))[0] == 404
    assert fetch(f"{url}/route?prefill_dp_rank=0")[0] == 400
    assert fetch(f"{url}/health")[0] == 200


def test_the_router_tells_of_both_servers(lab: RunningLab) -> None:
    workers = json.loads(fetch(f"{lab.base_url}/workers")[1])["workers"]
    assert {w["worker_type"]: w["url"] for w in workers} == {
        "prefill": lab.ready["prefill_url"],
        "decode": lab.ready["decode_url"],
    }
    assert all(worker["is_healthy"] for worker in workers)
    info = json.loads(fetch(f"{lab.base_url}/server_info")[1])
    modes = [state["disaggregation_mode"] for state in info["internal_states"]]
    assert modes == ["prefill", "decode"]
    assert info["enable_hierarchical_cache"]
    assert not info["decode"][0]["enable_hierarchical_cache"], "it has nothing to cache"
    metrics = fetch(f"{lab.base_url}/metrics")[1]
    assert samples(metrics, "num_prefill_bootstrap_queue_reqs") == {"prefill": 0, "decode": 0}
    assert samples(metrics, "max_total_num_tokens").keys() == {"prefill", "decode"}
    loads = json.loads(fetch(f"{lab.base_url}/v1/loads")[1])["loads"]
    assert {"prefill_bootstrap", "decode_transfer"} <= loads[0]["queues"].keys()
    assert fetch(f"{lab.base_url}/flush_cache", {})[0] == 200


def test_audit_reads_every_surface(lab: RunningLab) -> None:
    done = doctor(
        "audit", "--json", "--router-url", lab.base_url,
        "--bootstrap-url", lab.ready["bootstrap_url"], "--base-url", lab.ready["decode_url"],
    )  # fmt: skip
    assert done.document["verdict"], done.stderr
    sources = {fact["source"].partition("/route")[0] for fact in done.body["facts"]}
    assert {lab.ready["bootstrap_url"], f"{lab.base_url}/workers"} <= sources


def test_the_log_has_the_lines_of_both_roles(lab: RunningLab) -> None:
    fetch(f"{lab.base_url}/v1/chat/completions", BODY)
    log = lab.log_text()
    boot = read_boot(log.splitlines())
    assert "deepseek_v4_c4_indexer" in {pool.name for pool in boot.host_pools}
    assert "CommonKVBootstrapServer started successfully on 127.0.0.1:" in log
    prefill = next(line for line in log.splitlines() if "Prefill batch" in line)
    assert "#pending-token: 0, #bootstrap-req: 0, #inflight-req: " in prefill
    decode = next(line for line in log.splitlines() if "Decode batch" in line)
    assert ", #prealloc-req: 0, #transfer-req: 0, #retracted-req: 0, cuda graph: " in decode


def test_each_server_is_a_process_and_goes_with_the_router() -> None:
    lab = start_lab(LabOptions(switches=FAST))
    try:
        children = psutil.Process(lab.pid).children()
        assert len(children) == 2
        os.kill(lab.pid, signal.SIGKILL)
        wait_until(
            lambda: not any(c.is_running() and c.status() != "zombie" for c in children),
            "a server outlived its router",
        )
    finally:
        lab.stop()


def test_a_wrong_name_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no fault is called"):
        start_lab(LabOptions(faults=("indx",), switches=FAST))


def test_an_abort_kills_the_bootstrap_thread_and_nobody_is_told() -> None:
    slow = (*FAST[1:], ("itl-ms", "50"))
    with start_lab(LabOptions(faults=("abort-wedge",), switches=slow)) as lab:
        address = urlsplit(lab.base_url)
        hung_up = http.client.HTTPConnection(str(address.hostname), address.port, timeout=30)
        text = json.dumps({**BODY, "stream": True})
        hung_up.request("POST", "/v1/chat/completions", text, {"Content-Type": "application/json"})
        hung_up.getresponse().read(100)
        hung_up.close()
        wait_until(lambda: "(bootstrap_thread)" in lab.log_text(), "the thread goes on")
        waiting = http.client.HTTPConnection(str(address.hostname), address.port, timeout=30)
        waiting.request("POST", "/v1/chat/completions", text, {"Content-Type": "application/json"})

        def stuck() -> bool:
            metrics = fetch(f"{lab.base_url}/metrics")[1]
            return samples(metrics, "num_prefill_bootstrap_queue_reqs").get("prefill") == 1

        wait_until(stuck, "the request is not in the bootstrap queue")
        assert fetch(f"{lab.base_url}/health_generate")[0] == 200
        assert fetch(lab.ready["bootstrap_url"] + ALL_RANKS)[0] == 200, "another server, alive"
        waiting.close()


def test_a_fault_between_two_servers_starts_them(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    done = repro(
        tmp_path, "--lab-fault", "layout-mismatch", "--sessions", "2", "--turns", "2",
        "--lab-option", f"ground-truth={truth}",
    )  # fmt: skip
    assert done.document["verdict"] == "corrupted", done.stderr
    assert done.body["target"]["lab"]["index_k"] == "fp8", "the format that it shows in"
    info = done.body["target"]["server_args"]
    assert info["disaggregation_mode"] == "prefill", "the launch arguments of the first server"
    misread = [json.loads(line) for line in truth.read_text(encoding="utf-8").splitlines()]
    corrupted = {(r["session"], r["turn"]) for r in done.records() if r["corrupted"]}
    assert corrupted <= {(e["session"], e["turn"]) for e in misread if e["kind"] == "misread"}


SICK_APART: dict[str, tuple[str, ...]] = {
    "decode-store": ("--lab-fault", "decode-store", "--lab-hicache", "off"),
    "early-send": ("--lab-fault", "early-send", "--scenario", "best-of-n"),
    "release 0.5.17": (
        "--lab-option", "as-version=0.5.17", "--lab-option", "disaggregation=on",
        "--scenario", "best-of-n",
    ),
}  # fmt: skip
FIXED_APART: dict[str, tuple[str, ...]] = {
    "decode-store": (*SICK_APART["decode-store"], "--lab-fix", "store-fence"),
    "early-send": (*SICK_APART["early-send"], "--lab-fix", "early-send-block"),
    "release 0.5.23": (
        "--lab-option", "as-version=0.5.23", "--lab-option", "disaggregation=on",
        "--scenario", "best-of-n",
    ),
}  # fmt: skip


def stale_reads(truth: Path) -> set[tuple[int, int]]:
    """(session, turn) of every request that read something which was not its own."""
    events = [json.loads(line) for line in truth.read_text(encoding="utf-8").splitlines()]
    return {(e["session"], e["turn"]) for e in events if e["kind"] == "stale_read"}


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", SICK_APART)
def test_labels_agree_with_what_the_decode_server_read(
    tmp_path: Path, name: str, seed: int
) -> None:
    truth = ("--lab-option", f"ground-truth={tmp_path / 'truth.jsonl'}")
    done = repro(tmp_path, *SICK_APART[name], *truth, "--seed", str(seed))
    assert done.document["verdict"] == "corrupted", done.stderr
    corrupted = {(r["session"], r["turn"]) for r in done.records() if r["corrupted"]}
    assert corrupted
    assert corrupted <= stale_reads(tmp_path / "truth.jsonl")
    assert stale_reads(tmp_path / "truth.prefill.jsonl") == set(), "the prefill server reads right"


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", FIXED_APART)
def test_nothing_is_wrong_between_servers_that_wait(tmp_path: Path, name: str, seed: int) -> None:
    done = repro(tmp_path, *FIXED_APART[name], "--seed", str(seed))
    assert (done.document["verdict"], done.body["corrupted_responses"]) == ("clean", 0), done.stderr


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_two_ranks_hang_under_load_and_not_without_overlap(tmp_path: Path, seed: int) -> None:
    fault = ("--lab-fault", "overlap-desync", "--stall-timeout", "8", "--seed", str(seed))
    sick = repro(tmp_path, *fault)
    assert sick.document["verdict"] == "wedged", sick.stderr
    assert sick.body["corrupted_responses"] == 0
    for cure in (
        ("--lab-option", "disable-overlap-schedule=on"),
        ("--lab-fix", "awaited-results"),
        ("--sessions", "12"),
    ):
        cured = repro(tmp_path, *fault, *cure)
        assert cured.document["verdict"] == "clean", (cure, cured.stderr)


@pytest.mark.soak
def test_early_send_is_a_factor_of_ab_on_the_lab(tmp_path: Path) -> None:
    done = doctor(
        "ab", "--json", "--no-progress", "--output-dir", tmp_path, "--scenario", "best-of-n",
        "--lab-fault", "early-send", "--arm", "on:early_send=on", "--arm", "off:early_send=off",
        "--sessions", "36", "--lab-option", "device-pages=220",
    )  # fmt: skip
    assert done.document["verdict"] == "differ", done.stderr
    arms = {arm["name"]: arm for arm in done.body["arms"]}
    assert all(arm["verified"] for arm in arms.values())
    assert arms["on"]["corrupted_responses"] > 0
    assert arms["off"]["corrupted_responses"] == 0
    assert done.body["restored"]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_replies_are_the_same_apart_and_together(tmp_path: Path, seed: int) -> None:
    """What was read too early on the way into a prefill is what decode gets, byte for byte."""
    apart = repro(tmp_path, "--seed", str(seed), "--lab-option", "disaggregation=on")
    again = repro(tmp_path, "--seed", str(seed), "--lab-option", "disaggregation=on")
    together = repro(tmp_path, "--seed", str(seed))
    said = [
        {
            (r["session"], r["turn"]): (r["response"]["content"], _calls(r))
            for r in done.records()
            if not r["aborted"]
        }
        for done in (apart, again, together)
    ]
    assert said[0] == said[1] == said[2]
    assert apart.document["verdict"] == "corrupted"


def _calls(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [call["function"] for call in record["response"]["tool_calls"] or ()]
