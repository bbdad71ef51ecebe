"""`dsv4doctor audit` as a person runs it: launches, answers, logs, a live server, a source tree."""

from __future__ import annotations

import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "patching"))
from small_tree import CLEAN_MEMORY_POOL, MEMORY_POOL, OLD_CONFIGURATOR, write_tree

FLASH = "python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V4-Flash --tp 4"
RECORD = (
    f"SGLANG_DSV4_BF16_INDEX_K=1 {FLASH} --enable-hierarchical-cache --disaggregation-mode decode "
    "--disaggregation-transfer-backend nixl"
)


def audit(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dsv4doctor", "audit", *args],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def audit_json(*args: str) -> tuple[int, dict[str, Any]]:
    done = audit(*args, "--json")
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    assert document["exit_code"] == done.returncode
    return done.returncode, document


def rules(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {finding["rule"]: finding for finding in document["findings"]}


def test_the_records_launch() -> None:
    code, document = audit_json("--launch", RECORD)
    found = rules(document)
    assert code == 1
    assert {"CASE-01", "CASE-02", "CASE-03"} <= set(found)
    assert (found["CASE-01"]["severity"], found["CASE-01"]["support"]) == ("error", "reported")
    assert found["CASE-02"]["support"] == "confirmed"
    assert all(finding["evidence"] for finding in document["findings"])
    sources = {fact["source"] for fact in document["audit"]["facts"]}
    assert sources == {"launch 1"}


def test_a_healthy_launch() -> None:
    code, document = audit_json(
        "--launch", f"{FLASH} --tool-call-parser deepseekv4 --reasoning-parser deepseek-v4",
        "--fact", "version=0.5.23",
    )  # fmt: skip
    assert (code, document["verdict"]) == (0, "clean")
    assert all(finding["severity"] == "info" for finding in document["findings"])


def test_source_settles_what_the_launch_leaves_open(tmp_path: Path) -> None:
    launch = ("--launch", RECORD)
    faulty = write_tree(tmp_path / "faulty", OLD_CONFIGURATOR, MEMORY_POOL)
    clean = write_tree(tmp_path / "clean", OLD_CONFIGURATOR, CLEAN_MEMORY_POOL)
    assert {"CASE-01", "CASE-02"} <= set(rules(audit_json(*launch, "--source", str(faulty))[1]))
    settled = rules(audit_json(*launch, "--source", str(clean))[1])
    assert not {"CASE-01", "CASE-02"} & set(settled)


def test_source_alone_gives_its_tables(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, OLD_CONFIGURATOR, MEMORY_POOL)
    code, document = audit_json("--source", str(tree))
    found = rules(document)
    assert code == 1
    assert "get_index_k_fp4_payload_buffer" in found["SRC-01"]["title"]
    # The gravest first: bf16 counted as fp8, then fp4 that is only reserved in vain.
    bf16, fp4 = (finding for finding in document["findings"] if finding["rule"] == "SRC-04")
    assert ("651 B" in bf16["title"], bf16["severity"]) == (True, "error")
    assert ("336 B" in fp4["title"], fp4["severity"]) == (True, "info")
    where = f"{tree}/sglang/srt/mem_cache/deepseek_v4_memory_pool.py:"
    assert bf16["evidence"][0]["where"].startswith(where)
    gates = document["audit"]["source"]["gates"]
    standings = {(gate["pool"], gate["method"]): gate["standing"] for gate in gates}
    token = "DeepSeekV4TokenToKVPool"
    assert standings[token, "get_index_k_with_scale_buffer"] == "gated"
    assert standings[token, "get_index_k_scale_buffer"] == "delegated"
    assert standings[token, "get_index_k_fp4_payload_buffer"] == "ungated"
    stored = document["audit"]["source"]["index_k"]["stored"]
    assert [price["bytes"] for price in stored] == [256, 68, 132]
    shown = " ".join(audit("--source", str(tree)).stdout.split())
    assert "2 reads wait for their layer, 1 do not" in shown
    assert "stored in 256/68/132 B" in shown
    facts = {fact["name"]: fact for fact in document["audit"]["facts"]}
    assert facts["index_k_gated"]["source"] == str(tree / "sglang")


def test_the_tree_is_never_imported(tmp_path: Path) -> None:
    marker = tmp_path / "imported"
    pool = f"open({str(marker)!r}, 'w')\n{CLEAN_MEMORY_POOL}"
    tree = write_tree(tmp_path / "tree", OLD_CONFIGURATOR, pool)
    assert audit("--source", str(tree)).returncode == 0
    assert not marker.exists()


def test_a_healthy_servers_own_answer(tmp_path: Path) -> None:
    """What DSV4 sets at boot is in the answer, and is nobody's choice."""
    path = tmp_path / "info.json"
    path.write_text(
        json.dumps(
            {
                "version": "0.5.23", "model_path": "deepseek-ai/DeepSeek-V4-Flash", "tp_size": 4,
                "dp_size": 1, "pp_size": 1, "attention_backend": "dsv4", "page_size": 256,
                "kv_cache_dtype": "fp8_e4m3", "swa_full_tokens_ratio": 0.1,
                "max_running_requests": 256, "enable_hierarchical_cache": False,
                "hicache_size": 0, "hicache_ratio": 2.0, "hicache_io_backend": "kernel",
                "hicache_mem_layout": "page_first", "hicache_storage_backend": None,
                "disaggregation_mode": "null", "disaggregation_transfer_backend": "mooncake",
                "speculative_algorithm": None, "speculative_num_draft_tokens": None,
                "disable_overlap_schedule": False, "disable_radix_cache": False,
                "enable_dp_attention": False, "enable_deepseek_v4_fp4_indexer": False,
                "kv_canary": "none", "kv_canary_real_data": "none",
                "tool_call_parser": "deepseekv4", "reasoning_parser": "deepseek-v4",
            }
        )
    )  # fmt: skip
    code, document = audit_json("--server-info", str(path))
    assert [f for f in document["findings"] if f["severity"] != "info"] == []
    assert (code, document["verdict"]) == (0, "clean")


def test_a_run_tells_its_client_and_its_server(tmp_path: Path) -> None:
    """A run directory as `repro` leaves it; only what was sent differs between the two."""
    run = tmp_path / "20261129T104500Z-repro-tool-calls"
    run.mkdir()
    target = {
        "engine": "sglang", "version": "0.5.20", "model": "deepseek-ai/DeepSeek-V4-Flash",
        "server_args": {
            "model_path": "deepseek-ai/DeepSeek-V4-Flash", "tool_call_parser": "deepseekv4",
        },
    }  # fmt: skip
    manifest = {"schema_version": 1, "dsv4doctor_version": "0.1.0", "command": "repro",
                "label": "tool-calls", "argv": [], "versions": {}, "segments": [],
                "started": "2026-11-29T10:45:00Z", "ended": None, "target": target,
                "plan": {"sessions": 60}}  # fmt: skip
    (run / "run.json").write_text(json.dumps(manifest))
    tools = [{"type": "function", "function": {"name": f"tool{n}"}} for n in range(60)]
    record = {"id": "s0-t0", "tools": tools, "tool_choice": "auto", "stream": True,
              "max_tokens": 512, "prompt_tokens": 2700, "response": {"content": "a"}}  # fmt: skip
    records = run / "records.jsonl"
    records.write_text(json.dumps(record) + "\n")
    _, document = audit_json("--run", str(run))
    found = rules(document)
    assert {"MODEL-02", "SG-10"} <= set(found)
    assert any(item["where"] == str(records) for item in found["MODEL-02"]["evidence"])
    values = {fact["name"]: fact["value"] for fact in document["audit"]["facts"]}
    assert (values["client.concurrency"], values["client.context_tokens"]) == (60, 2700)
    records.write_text(json.dumps({**record, "tools": tools[:20]}) + "\n")
    assert "MODEL-02" not in rules(audit_json("--run", str(run))[1])


def test_server_info_file(tmp_path: Path) -> None:
    answer = {
        "version": "0.5.13",
        "model_path": "deepseek-ai/DeepSeek-V4-Flash",
        "enable_hierarchical_cache": True,
        "internal_states": [{"env_vars": {"SGLANG_DSV4_BF16_INDEX_K": "1"}}],
    }
    path = tmp_path / "info.json"
    path.write_text(json.dumps(answer))
    assert "CASE-01" in rules(audit_json("--server-info", str(path))[1])
    answer["enable_hierarchical_cache"] = False
    path.write_text(json.dumps(answer))
    assert "CASE-01" not in rules(audit_json("--server-info", str(path))[1])


def test_an_environment_that_is_not_told_is_not_assumed(tmp_path: Path) -> None:
    path = tmp_path / "info.json"
    path.write_text(
        json.dumps({"model_path": "DeepSeek-V4-Flash", "enable_hierarchical_cache": True})
    )
    document = audit_json("--server-info", str(path))[1]
    assert "CASE-01" not in rules(document)
    missing = {item["rule"]: item["missing"] for item in document["audit"]["not_determined"]}
    assert "env.SGLANG_DSV4_BF16_INDEX_K" in missing["CASE-01"]


def test_log_lines(tmp_path: Path) -> None:
    log = tmp_path / "boot.log"
    ordinary = "[2026-05-15 10:11:12 TP0] The server is fired up and ready to roll!\n"
    trouble = "[2026-05-15 10:11:12 TP0] Request 7 timed out after 300.1s in KVPoll.Bootstrapping\n"
    log.write_text(ordinary + trouble)
    code, document = audit_json("--log", str(log))
    assert code == 1
    assert rules(document)["LOG_PD_TIMEOUT"]["evidence"][0]["where"] == f"{log}:2"
    log.write_text(ordinary)
    assert audit_json("--log", str(log))[0] == 0


class Server(BaseHTTPRequestHandler):
    """SGLang's /server_info with HiCache on, and a gauge that says that nothing was loaded."""

    answers: ClassVar = {
        "/server_info": json.dumps(
            {
                "version": "0.5.23",
                "model_path": "deepseek-ai/DeepSeek-V4-Flash",
                "enable_hierarchical_cache": True,
            }
        ),
        "/metrics": "sglang:load_back_tokens_total 0.0\n",
        "/workers": json.dumps(
            {
                "workers": [
                    {"url": "http://p:30000", "worker_type": "prefill", "is_healthy": True},
                    {"url": "http://d:30001", "worker_type": "decode", "is_healthy": False},
                ],
                "total": 2,
            }
        ),
        "/route": json.dumps({"page_size": 256, "kv_cache_dtype": "fp8_e4m3"}),
    }

    def do_GET(self) -> None:
        body = self.answers.get(self.path.partition("?")[0], "").encode()
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Tests are quiet."""


@pytest.fixture
def server() -> Any:
    running = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    running.server_close()


def test_live_server_and_bootstrap(server: str) -> None:
    _, document = audit_json("--base-url", server, "--bootstrap-url", server)
    found = rules(document)
    assert "SW-04" in found
    assert any("/metrics" in item["where"] for item in found["SW-04"]["evidence"])
    names = {(fact["name"], fact["value"]) for fact in document["audit"]["facts"]}
    assert ("page_size", 256) in names


def test_a_router_names_the_worker_it_holds_unhealthy(server: str) -> None:
    code, document = audit_json("--router-url", server)
    assert (code, "SW-07" in rules(document)) == (1, True)
    values = {fact["name"]: fact["value"] for fact in document["audit"]["facts"]}
    assert values["router_unhealthy"] == "http://d:30001"
    assert (values["router_prefill_workers"], values["router_decode_workers"]) == (1, 1)


def test_a_log_cut_in_the_middle_of_a_line_is_read(tmp_path: Path) -> None:
    log = tmp_path / "cut.log"
    line = b"[2026-05-15 10:11:12 TP0] KV cache pool is full. Retract requests. #retr"
    log.write_bytes(b"\xff\xfe\x00 torn\n" + line)
    code, document = audit_json("--log", str(log))
    assert (code, set(rules(document))) == (1, {"LOG_KV_POOL_FULL"})


def test_env_block_hides_secrets() -> None:
    launch = f"{FLASH} --api-key plain-words --model-loader-extra sk-1234567890abcdef1234"
    done = audit("--env-block", "--launch", launch)
    assert "model: deepseek-ai/DeepSeek-V4-Flash" in done.stdout
    assert "sk-1234567890abcdef1234" not in done.stdout
    assert "plain-words" not in done.stdout


def test_check_env_block(tmp_path: Path) -> None:
    block = tmp_path / "env.txt"
    block.write_text("Python: 3.12\nsglang: 0.5.13\nGPU 0: NVIDIA H200\nflashinfer_python: 0.6.1\n")
    _, document = audit_json("--check-env", str(block), "--launch", FLASH)
    values = {fact["name"]: fact["value"] for fact in document["audit"]["facts"]}
    assert (values["version"], values["gpu"]) == ("0.5.13", "NVIDIA H200")


@pytest.mark.parametrize(
    ("args", "words", "code"),
    [
        pytest.param([], "nothing to audit", 2, id="nothing"),
        pytest.param(["--launch", "sglang serve 'm"], "quotation", 2, id="quotes"),
        pytest.param(["--server-info", "nowhere.json"], "nowhere.json", 2, id="no-file"),
        pytest.param(["--log", "nowhere.log"], "nowhere.log", 2, id="no-log"),
        pytest.param(["--log", "prose.txt"], "no line of a server's log", 2, id="prose-log"),
        pytest.param(["--source", "."], "no SGLang tree", 2, id="no-tree"),
        pytest.param(["--source", "broken"], "no Python that can be read, line 1", 2, id="broken"),
        pytest.param(["--source", "old"], "has no srt/model_executor", 2, id="older-tree"),
        pytest.param(["--source-base", "."], "compares nothing", 2, id="base-alone"),
        pytest.param(["--run", "."], "run.json", 2, id="no-run"),
        pytest.param(["--run", "nowhere"], "nowhere", 2, id="no-run-folder"),
        pytest.param(["--check-env", "prose.txt"], "check_env", 2, id="no-check-env"),
        pytest.param(["--server-info", "list.json"], "list.json", 2, id="no-object"),
        pytest.param(["--server-info", "cut.json"], "cut.json", 2, id="cut-json"),
        pytest.param(["--server-info", "other.json"], "no /server_info answer", 2, id="other-json"),
        pytest.param(["--ssh-host", "a b"], "names no host", 2, id="host-name"),
        pytest.param(["--ssh-hosts", "nowhere"], "nowhere", 2, id="no-host-file"),
        pytest.param(["--router-url", "http://127.0.0.1:9"], "/workers", 3, id="no-router"),
        pytest.param(["--bootstrap-url", "http://127.0.0.1:9"], "/route", 3, id="no-bootstrap"),
        pytest.param(["--fact", "colour"], "NAME=VALUE", 2, id="fact"),
        pytest.param(["--base-url", "http://127.0.0.1:9"], "127.0.0.1:9", 3, id="nobody"),
    ],
)
def test_bad_input(args: list[str], words: str, code: int, tmp_path: Path) -> None:
    write_tree(tmp_path / "broken", OLD_CONFIGURATOR, "class DeepSeekV4TokenToKVPool(:\n")
    (tmp_path / "old" / "sglang" / "srt").mkdir(parents=True)
    (tmp_path / "prose.txt").write_text("it worked yesterday\n")
    for name, text in (("list", "[1]"), ("cut", '{"version": "0.5'), ("other", '{"a": 1}')):
        (tmp_path / f"{name}.json").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "dsv4doctor", "audit", *args],
        capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 2, done.stderr
    assert words in lines[0]
    assert lines[1].startswith("  try: ")
