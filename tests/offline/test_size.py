"""`dsv4doctor size` as a person runs it: real processes, exit codes, one line for bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest

HEAVY = ("numpy", "pandas", "scipy", "torch", "httpx", "aiohttp", "paramiko", "msgspec")


def size(*args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENAI_")}
    return subprocess.run(
        [sys.executable, "-m", "dsv4doctor", "size", *args],
        capture_output=True,
        text=True,
        input=stdin,
        timeout=60,
        check=False,
        env=env | {"NO_COLOR": "1"},
    )


def size_json(*args: str) -> tuple[int, dict[str, Any]]:
    done = size(*args, "--json")
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    assert document["exit_code"] == done.returncode
    return done.returncode, document


def test_bare_size() -> None:
    code, document = size_json()
    body = document["size"]
    assert (code, document["verdict"], body["version"]) == (0, "fits", "0.5.23")
    assert body["model"] == "V4-Flash"
    assert body["available_bytes"] == 28_883_655_065
    assert [row["dtype"] for row in body["index_k_formats"]] == ["fp8", "bf16", "fp4"]
    assert body["figures_are"] == "computed and checked"


@pytest.mark.parametrize("version", ["0.5.12", "0.5.13"])
def test_the_records_over_commit(version: str) -> None:
    fp8 = size_json("--version", version, "--available", "26.9GiB")[1]["size"]
    right = size_json("--version", version, "--index-k", "bf16_priced")[1]["size"]
    assert fp8["bytes_per_full_token"] == pytest.approx(15897.45, rel=1e-12)
    assert right["bytes_per_full_token"] == pytest.approx(16548.45, rel=1e-12)
    code, document = size_json("--version", version, "--index-k", "bf16")
    assert (code, document["verdict"]) == (1, "over_commit")
    assert document["size"]["over_commit_bytes"] / 2**30 == pytest.approx(1.2, abs=0.01)
    assert "stored as bf16" in document["size"]["over_commit_cause"]
    assert document["findings"][0]["rule"] == "SIZING_OVER_COMMIT"


def test_report_shows_bar_pools_and_formats() -> None:
    done = size()
    assert done.returncode == 0
    for part in ("V4-Flash on sglang 0.5.23", "fits", "SSSS", "over ^", "index_k", "bf16"):
        assert part in done.stdout
    assert "\x1b[" not in done.stdout


def test_the_users_own_launch_command() -> None:
    code, document = size_json(
        "--launch",
        "SGLANG_DSV4_BF16_INDEX_K=1 python -m sglang.launch_server --model-path "
        "deepseek-ai/DeepSeek-V4-Flash --tp 4 --max-running-requests 64 --disaggregation-mode "
        "decode --enable-hierarchical-cache",
        "--version",
        "0.5.13",
        "--available-gib",
        "26.9",
    )
    assert code == 1
    assert document["size"]["index_k"] == {
        "dtype": "bf16",
        "bytes_per_token_counted": 132,
        "bytes_per_token_allocated": 256,
    }


def test_v32_is_not_confused_with_v4(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "deepseek_v32", "num_hidden_layers": 61}))
    code, document = size_json("--model-config", str(config))
    assert (code, document["size"]["path"]) == (0, "dsa")
    assert document["findings"][0]["rule"] == "SIZING_DSA_PATH"
    assert document["size"]["figures_are"] == "estimate"


def test_an_unknown_newer_version_is_used_with_a_warning() -> None:
    done = size("--version", "0.6.1", "--json")
    assert done.returncode == 0
    assert "0.6.1 is unknown here: sized by 0.5.23's accounting" in done.stderr
    body = json.loads(done.stdout)["size"]
    assert (body["version"], body["accounting"], body["figures_are"]) == (
        "0.6.1",
        "0.5.23",
        "estimate",
    )


def test_sessions_and_fraction() -> None:
    code, document = size_json(
        "--gpu", "H200", "--gpus", "8", "--tp", "4", "--weight-bytes", "40GiB",
        "--session-tokens", "64K", "--max-running-requests", "64",
    )  # fmt: skip
    assert code == 0
    capacity, fraction = document["size"]["capacity"], document["size"]["mem_fraction_static"]
    assert capacity["replicas"] == 2
    assert capacity["sessions"] <= 128
    assert 0.5 < fraction["mem_fraction_static"] < 0.95
    assert fraction["figures_are"] == "estimate"


def test_sweep_as_csv() -> None:
    done = size("--sweep", "available_bytes=20GiB,30GiB", "--sweep", "index_dtype=fp8,bf16",
                "--csv", "-")  # fmt: skip
    lines = done.stdout.splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("available_bytes,index_dtype,tokens,")
    assert lines[1].startswith("21474836480,fp8,")


def test_vllm() -> None:
    code, document = size_json("--engine", "vllm", "--available-bytes", "28883655065")
    assert (code, document["size"]["capacity_tokens"]) == (0, 2_803_758)


def golden_lines(shared_data: Path) -> tuple[list[str], list[dict[str, Any]]]:
    rows = json.loads((shared_data / "sizing" / "golden_public.json").read_text())["rows"]
    vllm = json.loads((shared_data / "sizing" / "vllm_golden.json").read_text())
    lines = [json.dumps({**row["inputs"], "version": row["version"]}) for row in rows]
    lines += [
        json.dumps({**row["inputs"], "engine": "vllm", "model": row["model"]}) for row in vllm
    ]
    return lines, rows + vllm


def test_batch_answers_every_golden_row_in_order(shared_data: Path, tmp_path: Path) -> None:
    lines, rows = golden_lines(shared_data)
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(lines) + "\n")
    done = size("--batch", str(path))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(rows)
    for row, answer in zip(rows, answers, strict=True):
        if "outputs" not in row:
            assert answer["capacity_tokens"] == row["capacity_tokens"]
        elif row["error"]:
            assert answer["error"] == row["error"]
        else:
            assert answer["pool_sizes"] == row["outputs"]["pool_sizes"]
            assert answer["over_commit_bytes"] == row["outputs"].get(
                "over_commit_bytes", answer["over_commit_bytes"]
            )
    assert done.returncode == 1  # some of them over-commit


def test_batch_goes_on_after_a_line_that_is_no_spec() -> None:
    good = json.dumps({"model": "V4-Flash", "available_bytes": 28_883_655_065})
    done = size("--batch", "-", stdin=f'{{"broken"\n{good}\n\n{{"colour": 1}}\n')
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [sorted(answer)[:1] for answer in (answers[0], answers[2])] == [["error"], ["error"]]
    assert answers[1]["verdict"] == "fits"
    assert done.returncode == 2


LOGS = {
    "0.5.12": (
        "[2026-05-15 10:11:12 TP0] DSV4 memory calculation: bytes_per_full_token=15955.85, "
        "available_bytes=19.58 GB, full_token=1317632\n",
        15955.85,
    ),
    "0.5.15": (
        "[2026-07-20 08:00:01 TP0] DSV4 memory calculation: bytes_per_full_token=13735.04, "
        "available_bytes=118.93 GB, c128_state_fixed=1.01 GB, full_token=9217792\n"
        "[2026-07-20 08:00:01 TP0] DSV4 pool sizes: full=9217792, swa=1382656, c4=2304448, "
        "c128=72014, c4_state=86416, c128_state=0\n"
        "[2026-07-20 08:00:02 TP0] Initialize DeepSeekV4TokenToKVPool with max_num_reqs=64 "
        "swa_size=1382656\n",
        13735.0375,
    ),
    "0.5.20": (
        "[2026-08-20 08:00:01 TP0] DSV4 memory calculation: unified=False, unified_fp8=False, "
        "bytes_per_full_token=7705.45, available_bytes=26.90 GB, c128_state_fixed=2.53 GB, "
        "swa_ring_fixed=0.00 GB, c4_state_fixed=0.00 GB, full_token=3395840\n",
        7705.45,
    ),
    "0.5.21": (
        "[2026-09-15 10:11:12 TP0] DSV4 memory calculation: unified=False, unified_fp8=False, "
        "dspark_draft_bf16=False, bytes_per_full_token=1670.75, available_bytes=11.71 GB, "
        "c128_state_fixed=0.00 GB, c2_state_fixed=0.00 GB, swa_fixed=0.86 GB, "
        "swa_ring_fixed=0.00 GB, c4_state_fixed=0.00 GB, full_token=6973696\n"
        "[2026-09-15 10:11:12 TP0] DSV4 SWA sizing: mode=cap, swa_tokens=38400, "
        "request_cap+headroom=38400, prefix_tails=32\n"
        "[2026-09-15 10:11:13 TP0] Initialize DeepSeekV4TokenToKVPool with max_num_reqs=8 "
        "swa_size=38400\n",
        1670.75,
    ),
}


@pytest.mark.parametrize("version", sorted(LOGS))
def test_boot_log_is_recomputed(version: str, tmp_path: Path) -> None:
    text, price = LOGS[version]
    log = tmp_path / "boot.log"
    log.write_text("noise before\n" + text + "noise after\n")
    _, document = size_json("--from-log", str(log))
    body = document["size"]
    assert body["bytes_per_full_token"] == pytest.approx(price, rel=1e-12)
    assert body["from_log"]["differences"]
    assert all(row["within_rounding"] for row in body["from_log"]["differences"])


def test_boot_log_that_says_something_else(tmp_path: Path) -> None:
    log = tmp_path / "boot.log"
    log.write_text(LOGS["0.5.15"][0].replace("full_token=9217792", "full_token=9000000"))
    code, document = size_json("--from-log", str(log))
    assert code == 1
    (finding,) = [f for f in document["findings"] if f["rule"] == "SIZING_LOG_DIFFERS"]
    assert "log 9e+06" in finding["evidence"][0]["what"]


def test_host_pool_proves_the_index_format(tmp_path: Path) -> None:
    log = tmp_path / "boot.log"
    host = (
        "[2026-05-15 10:11:15 TP0] Allocating 3.20 GB host memory for V4 paged pool "
        "'deepseek_v4_c4_indexer' (layers=21, pages=19000, item_bytes=16384, layout=layer_first).\n"
    )
    log.write_text(LOGS["0.5.12"][0] + host)
    code, document = size_json("--from-log", str(log))
    assert (code, document["verdict"]) == (1, "over_commit")
    assert document["size"]["index_k"]["dtype"] == "bf16"


class ServerInfo(BaseHTTPRequestHandler):
    """SGLang's /server_info of a bf16 server, and nothing else."""

    answer: ClassVar = {
        "version": "0.5.13",
        "model_path": "deepseek-ai/DeepSeek-V4-Flash",
        "max_running_requests": 64,
        "swa_full_tokens_ratio": 0.1,
        "max_total_num_tokens": 1_816_832,
        "internal_states": [{"env_vars": {"SGLANG_DSV4_BF16_INDEX_K": "1"}}],
    }

    def do_GET(self) -> None:
        known = self.path.startswith("/server_info")
        body = json.dumps(self.answer if known else {}).encode()
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Tests are quiet."""


def test_a_live_server_is_sized_by_what_it_says() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), ServerInfo)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        code, document = size_json("--base-url", f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()
    body = document["size"]
    assert (code, document["verdict"], body["version"]) == (1, "over_commit", "0.5.13")
    assert abs(body["pool_sizes"]["full"] - 1_816_832) <= 256
    assert body["index_k"]["dtype"] == "bf16"


@pytest.mark.parametrize(
    ("args", "words", "code"),
    [
        pytest.param(["--launch", "sglang serve --model-path 'm"], "closing quotation", 2, id="q"),
        pytest.param(["--version", "0.4.9"], "0.4.9", 2, id="old-version"),
        pytest.param(["--model", "qwen"], "qwen", 2, id="other-model"),
        pytest.param(["--index-k", "int8"], "int8", 2, id="index-format"),
        pytest.param(["--available", "much"], "much", 2, id="size"),
        pytest.param(["--spec", "nowhere.json"], "nowhere.json", 2, id="no-file"),
        pytest.param(["--batch", "nowhere.jsonl"], "nowhere.jsonl", 2, id="no-batch"),
        pytest.param(["--from-log", "nowhere.log"], "nowhere.log", 2, id="no-log"),
        pytest.param(["--spec", "a", "--launch", "b"], "--spec, --launch", 2, id="two-sources"),
        pytest.param(["--sweep", "colour=red"], "colour", 2, id="sweep"),
        pytest.param(["--gpus", "2", "--tp", "4"], "2 GPUs", 2, id="too-few-gpus"),
        pytest.param(["--no-such-flag"], "no-such-flag", 2, id="flag"),
        pytest.param(
            ["--speculative-algorithm", "EAGLE", "--env", "SGLANG_OPT_USE_ONLINE_COMPRESS=1"],
            "SGLang 0.5.23 refuses this combination",
            2,
            id="impossible-combination",
        ),
        pytest.param(["--model", "V4.1-Flash", "--version", "0.5.20"], "ratio 1 or 2", 2, id="v41"),
        pytest.param(["--base-url", "http://127.0.0.1:9"], "127.0.0.1:9", 3, id="nobody-there"),
    ],
)
def test_bad_input_is_one_clear_line(args: list[str], words: str, code: int) -> None:
    done = size(*args)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if "no budget given" not in line]
    assert len(lines) == 2, done.stderr
    assert words in lines[0]
    assert lines[1].startswith("  try: ")


@pytest.mark.parametrize(
    ("name", "text", "flag", "words"),
    [
        pytest.param("config.json", '{"model_type": ', "--model-config", "no JSON", id="config"),
        pytest.param(
            "config.json", '{"model_type": "llama"}', "--model-config", "llama", id="family"
        ),
        pytest.param("boot.log", LOGS["0.5.12"][0][:90], "--from-log", "middle of", id="cut-log"),
        pytest.param("boot.log", LOGS["0.5.12"][0][:-4], "--from-log", "middle of", id="cut-digit"),
        pytest.param("boot.log", "hello\n", "--from-log", "no `DSV4 memory", id="other-log"),
        pytest.param("spec.json", "[1, 2]", "--spec", "no JSON object", id="list"),
        pytest.param("spec.json", '{"colour": 1}', "--spec", "colour", id="unknown-key"),
    ],
)
def test_broken_files(tmp_path: Path, name: str, text: str, flag: str, words: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    done = size(flag, str(path))
    assert done.returncode == 2
    assert words in done.stderr.splitlines()[0]
    assert "Traceback" not in done.stderr


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys\n"
        "from dsv4doctor.cli.app import main\n"
        "try:\n    main(['size', '--json'])\n"
        "except SystemExit as end:\n    assert end.code == 0, end.code\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_batch_of_nothing_says_so(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n\n")
    done = size("--batch", str(empty))
    assert (done.returncode, done.stdout) == (0, "")
    assert f"{empty} holds no spec" in done.stderr


def test_a_table_that_cannot_be_written_is_code_3(tmp_path: Path) -> None:
    done = size(
        "--sweep", "chunked_prefill_size=4096,8192", "--csv", str(tmp_path / "no" / "t.csv")
    )
    assert done.returncode == 3
    assert "cannot write" in done.stderr
    assert "try: " in done.stderr
