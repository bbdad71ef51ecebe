"""`repro --base-url` against servers that are not the lab: bad ones, hostile ones, none at all.

The peers' functional test stands here too: every fault found on every response, no false failure,
silent streams reported within the stall time-out, nothing hangs.
"""

from __future__ import annotations

import http.server
import json
import os
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from cli_runs import COMMAND, Done, doctor, repro
from servers.running import canned

__all__ = ["canned"]

SMALL = ("--sessions", "4", "--turns", "2", "--model", "m", "--stall-timeout", "2")


def against(output_dir: Path, url: str, *extra: str) -> Done:
    done = repro(output_dir, "--base-url", url, *SMALL, *extra)
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.parametrize(
    ("case", "kind", "verdict", "code"),
    [
        ("cut", "protocol_error", "undecided", 4),
        ("cut_in_chunk", "connection_error", "unreachable", 3),
        ("error_frame", "http_error", "unreachable", 3),
        ("invalid_json", "protocol_error", "undecided", 4),
        ("broken_gzip", "protocol_error", "undecided", 4),
        ("moved_away", "http_error", "unreachable", 3),
        ("html", "protocol_error", "undecided", 4),
        ("huge_line", "protocol_error", "undecided", 4),
        ("huge_whole", "protocol_error", "undecided", 4),
        ("close_unanswered", "connection_error", "unreachable", 3),
        ("status_401", "http_error", "unreachable", 3),
        ("status_404", "http_error", "unreachable", 3),
        ("status_429", "http_error", "unreachable", 3),
        ("status_500", "http_error", "unreachable", 3),
        ("status_503", "http_error", "unreachable", 3),
    ],
)
def test_each_way_to_fail_has_its_kind_and_code(
    canned: str, tmp_path: Path, case: str, kind: str, verdict: str, code: int
) -> None:
    # 100 MB take a while to arrive on a busy machine; that is no stall.
    done = against(tmp_path, f"{canned}/{case}.e2e", "--stall-timeout", "20")
    assert done.body["by_failure"].keys() == {kind}, done.body
    assert (done.document["verdict"], done.code) == (verdict, code)
    assert done.body["responses"] == 0
    assert done.body["response_rate"]["estimate"] is None
    for record in done.records():
        assert record["failure"]["message"]
        assert "\x1b" not in record["failure"]["message"]
        assert (done.run_dir / record["raw"]).exists()


def test_every_invalid_argument_is_found(canned: str, tmp_path: Path) -> None:
    done = against(tmp_path, f"{canned}/bad_arguments.e2e")
    assert done.body["corrupted_responses"] == done.body["responses"] == 8
    found = {**done.body["by_label"], **done.body["also_label"]}
    assert found["malformed_arguments"] == 8
    assert done.code == 1


def test_every_dsml_leak_is_found(canned: str, tmp_path: Path) -> None:
    done = against(tmp_path, f"{canned}/leaked_dsml.e2e")
    assert done.body["by_label"] == {"dsml_leak": 8}
    assert done.code == 1


def test_a_reply_that_is_only_a_call_is_no_failure(canned: str, tmp_path: Path) -> None:
    done = against(tmp_path, f"{canned}/call_only.e2e")
    assert done.body["failures"] == 0
    assert done.body["responses"] == 8
    assert done.body["ttft_ms"]["n"] == 8


def test_two_silent_streams_are_told_and_the_rest_is_judged(canned: str, tmp_path: Path) -> None:
    began = time.monotonic()
    done = repro(
        tmp_path, "--base-url", f"{canned}/silent_two.e2e", "--model", "m", "--sessions", "16",
        "--turns", "1", "--stall-timeout", "3",
    )  # fmt: skip
    assert done.body["by_failure"] == {"stalled": 2}
    assert done.body["responses"] + done.body["aborted_by_us"] == 14
    assert done.body["wedge"] is None
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("case", ["gzipped", "deflated", "crlf", "byte_by_byte", "moved", "whole"])
def test_odd_but_legal_streams_are_judged(canned: str, tmp_path: Path, case: str) -> None:
    done = against(tmp_path, f"{canned}/{case}.e2e")
    assert done.body["failures"] == 0
    assert done.body["responses"] == 8


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = against(tmp_path, f"http://127.0.0.1:{port}")
    assert (done.document["verdict"], done.code) == ("unreachable", 3)
    unasked = repro(tmp_path, "--base-url", f"http://127.0.0.1:{port}", "--sessions", "2")
    assert (unasked.document["verdict"], unasked.code) == ("unreachable", 3)
    assert "is the server up?" in unasked.stderr


def test_a_dead_server_is_given_up_on(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = repro(
        tmp_path, "--base-url", f"http://127.0.0.1:{port}", "--model", "m", "--sessions", "2000"
    )
    assert (done.document["verdict"], done.code) == ("unreachable", 3)
    assert done.body["failures"] < 1000
    assert any("nobody answers" in note for note in done.body["notes"])


class _Echo(http.server.BaseHTTPRequestHandler):
    """Repeats the key that it was sent, in an error: what careless gateways do."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps({"error": f"bad key {self.headers['authorization']}"}).encode()
        self.send_response(401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        """Silent."""


def test_a_key_that_the_server_repeats_is_kept_out(tmp_path: Path) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    done = repro(
        tmp_path, "--base-url", f"http://127.0.0.1:{server.server_port}", "--api-key",
        "SECRETKEY123", "--extra-body", '{"password": "hk5secret"}', *SMALL,
    )  # fmt: skip
    server.shutdown()
    assert "bad key" in next(done.records())["failure"]["message"]
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for secret in ("SECRETKEY123", "hk5secret"):
        assert secret not in done.stdout + done.stderr
        assert secret.encode() not in written


def test_a_host_that_does_not_exist(tmp_path: Path) -> None:
    done = against(tmp_path, "http://no-such-host.invalid:30000")
    assert (done.document["verdict"], done.code) == ("unreachable", 3)


def test_a_server_that_speaks_no_http(tmp_path: Path, canned: str) -> None:
    done = repro(tmp_path, "--base-url", f"{canned}/not_http.e2e", *SMALL)
    assert done.code in {3, 4}
    assert done.body["responses"] == 0
    assert "Traceback" not in done.stderr


def test_hostile_text_is_shown_harmlessly_and_stored_as_received(
    canned: str, tmp_path: Path
) -> None:
    done = doctor(
        "repro", "--no-progress", "--output-dir", tmp_path, "--base-url",
        f"{canned}/odd_types.e2e", *SMALL,
    )  # fmt: skip
    assert done.code == 1
    assert "\x1b" not in done.stdout
    run_dir = next(tmp_path.iterdir())
    raw = next((run_dir / "raw").iterdir()).read_bytes()
    assert rb"\ud800 ok" in raw
    assert b"\xed\xa0\x80 \xff" in raw
    assert "\x1b" not in (run_dir / "report.md").read_text(encoding="utf-8")


def test_the_key_is_nowhere_in_what_a_run_leaves(canned: str, tmp_path: Path) -> None:
    secret = "sk-verysecret0123456789"
    done = repro(
        tmp_path, "--base-url", f"{canned}/good.key", "--api-key", secret,
        "-H", f"Authorization=Bearer {secret}x", *SMALL,
    )  # fmt: skip
    assert done.body["responses"] == 8
    assert secret not in done.stdout + done.stderr
    for path in done.run_dir.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
            assert b"s3cret" not in path.read_bytes(), path


def test_openai_base_url_is_heard_and_a_lab_flag_outranks_it(canned: str, tmp_path: Path) -> None:
    env = {**os.environ, "OPENAI_BASE_URL": f"{canned}/good.env/v1"}
    flags = ("--json", "--no-progress", "--output-dir", tmp_path, "--sessions", "2")
    heard = doctor("repro", *flags, "--turns", "1", "--model", "m", env=env)
    assert heard.body["target"]["base_url"] == f"{canned}/good.env"
    lab = doctor("repro", *flags, "--turns", "1", "--lab-fault", "none", env=env)
    assert lab.body["target"]["lab"]["faults"] == ["none"]


def test_a_full_disk_is_told_in_one_line(canned: str, tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", mount], capture_output=True, check=False
    ).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        done = subprocess.run(
            [*COMMAND, "repro", "--json", "--no-progress", "--output-dir", str(mount),
             "--base-url", f"{canned}/good.disk", "--sessions", "40", "--model", "m"],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
    finally:
        subprocess.run(["umount", mount], check=True)
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert "full" in done.stderr
    assert "No space" in done.stderr or "space" in done.stderr
