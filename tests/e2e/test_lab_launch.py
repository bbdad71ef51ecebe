"""How the lab is launched, told what it cannot do, and ended."""

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
import urllib.request
from pathlib import Path

import openai
import pytest
from lab_client import FAST, MESSAGES, TOOLS, get, hang_up_after, post, wait_until

from dsv4doctor.cli.app import main
from dsv4doctor.errors import DoctorError, UsageError
from dsv4doctor.lab.deployment import LabOptions, start_lab


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
    (["--device-pages", "99999999999"], "--device-pages"),
    (["--hicache-ratio", "inf"], "--hicache-ratio"),
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


def test_a_host_that_is_no_name_is_told() -> None:
    with pytest.raises(DoctorError, match="cannot listen on") as told:
        start_lab(LabOptions(switches=(("host", "h\u202e"),)))
    assert told.value.exit_code == 3


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
    assert time.monotonic() - began < 3  # after so long it would be killed
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
