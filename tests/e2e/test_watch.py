"""`watch` beside a load: a wedge while /health says 200, corruption by canaries, and peace."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ab_runs import wait_for
from cli_runs import COMMAND, doctor
from sshd import SshLab

from dsv4doctor.lab.deployment import LabOptions, RunningLab, start_lab

SMALL = (("device-pages", "120"), ("slack-ms", "0.1"), ("ttft-ms", "0"), ("quiet-ms", "120"))


@contextmanager
def lab(fault: str, itl_ms: str) -> Iterator[RunningLab]:
    options = LabOptions(faults=(fault,), switches=(*SMALL, ("itl-ms", itl_ms)))
    with start_lab(options) as running:
        yield running


@contextmanager
def loaded(running: RunningLab, folder: Path, *arguments: str) -> Iterator[None]:
    """The users' own load, for as long as the block."""
    process = subprocess.Popen(
        [*COMMAND, "repro", "--json", "--no-progress", "--base-url", running.base_url,
         "--output-dir", folder, "--sessions", "12", *arguments],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def start_watch(running: RunningLab, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "watch", "--json", "--base-url", running.base_url, "--output-dir", folder,
         "--seed", "5", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> tuple[int, dict[str, Any]]:
    out, err = process.communicate(timeout=240)
    assert out, err
    return process.returncode, json.loads(out)


def test_a_wedge_is_found_within_three_intervals_though_health_says_200(tmp_path: Path) -> None:
    interval_s = 5.0
    with lab("abort-wedge", "3") as running:
        watch = start_watch(
            running, tmp_path, "--interval", str(interval_s), "--pulses", "40", "--fail-on", "error"
        )
        with loaded(running, tmp_path, "--scenario", "abort-storm", "--stall-timeout", "60"):
            code, document = ended(watch)
        with urllib.request.urlopen(f"{running.base_url}/health") as answer:
            assert answer.status == 200
        # A diagnosis that comes too late blames nobody.
        late = doctor(
            "diagnose", "--json", "--base-url", running.base_url, "--output-dir", tmp_path,
            "--stall-timeout", "3",
        )  # fmt: skip
        assert (late.code, late.document["verdict"]) == (4, "undecided"), late.stderr
        assert "stands still already" in late.body["notes"][0]
        assert not [c for c in late.body["causes"] if c["standing"] == "supported"]
    body = document["watch"]
    assert (code, document["verdict"]) == (1, "wedged")
    assert body["health_status"] == 200
    assert body["pulses_by_state"]["wedged"] == 1
    # From the last answer on: at most one interval until the next pulse, and two that are silent.
    unanswered = sum(n for state, n in body["pulses_by_state"].items() if state != "fine")
    assert unanswered <= 3, body["pulses_by_state"]
    assert document["findings"][0]["rule"] == "WEDGED"


def test_corruption_is_met_within_the_canaries_that_power_predicts(tmp_path: Path) -> None:
    """One canary alone loses no race: it is the load beside it that pushes its pages out."""
    with (
        lab("index-race", "0") as running,
        loaded(running, tmp_path, "--turns", "60", "--context-tokens", "2700:5600"),
    ):
        # The load's own rate is far higher; 16 % is the record's.
        watch = start_watch(
            running, tmp_path, "--interval", "0.5", "--timeout", "30", "--expect-rate", "0.16",
            "--pulses", "60",
        )  # fmt: skip
        code, document = ended(watch)
    body = document["watch"]
    assert (code, document["verdict"]) == (1, "corrupt"), body
    canaries = body["canaries"]
    assert canaries["corrupted"] == 1
    assert canaries["needed_for_95_percent"] == 18
    assert canaries["sent"] <= canaries["needed_for_95_percent"]
    assert "16 % of replies is met by 18 canaries" in canaries["said"]
    assert "computed afresh it is right" in body["why"]
    (record,) = [json.loads(line) for line in (Path(body["run_dir"]) / "records.jsonl").open()]
    assert record["corrupted"]
    assert (Path(body["run_dir"]) / record["raw"]).read_bytes()


def test_a_healthy_server_is_fine_for_cron_and_for_prometheus(tmp_path: Path) -> None:
    with lab("none", "0") as running:
        once = doctor("watch", "--once", "--base-url", running.base_url, "--output-dir", tmp_path)
        assert once.code == 0, once.stderr
        assert once.stdout.startswith("fine since ")
        assert not list(tmp_path.iterdir()), "nothing went wrong, so nothing is left behind"
        watch = start_watch(running, tmp_path, "--interval", "1", "--port", "0")
        try:
            text = scraped(watch)
        finally:
            watch.terminate()
            code, document = ended(watch)
    assert code == document["exit_code"] == 130
    assert 'dsv4doctor_watch_state{state="fine"} 1' in text
    assert "dsv4doctor_watch_canaries_corrupted_total 0" in text
    assert document["verdict"] == "fine"


def test_a_server_that_refuses_is_not_wedged(tmp_path: Path) -> None:
    options = LabOptions(faults=("none",), switches=(*SMALL, ("api-key", "right-key")))
    with start_lab(options) as running:
        at = ("watch", "--once", "--base-url", running.base_url, "--output-dir", tmp_path)
        refused = doctor(*at, "--api-key", "wrong-key")
        assert refused.code == 3, refused.stdout
        assert "unreachable" in refused.stdout
        assert "401" in refused.stdout
        assert "wrong-key" not in refused.stdout + refused.stderr
        assert doctor(*at, "--api-key", "right-key").code == 0


class _Page(BaseHTTPRequestHandler):
    """What lies on a wrong port: a web page, whatever is asked."""

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        page = b"<html>Welcome</html>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: requests are no news here."""


@pytest.mark.parametrize("command", [("watch", "--once"), ("diagnose",)])
def test_a_web_page_is_neither_wedged_nor_undecided(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Page) as pages:
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        at = f"http://127.0.0.1:{pages.server_address[1]}"
        done = doctor(*command, "--base-url", at, "--output-dir", tmp_path)
        pages.shutdown()
    assert done.code == 3, done.stdout
    assert "text/html instead of events" in done.stderr
    assert "check --base-url, --api-key" in done.stderr + done.stdout


def scraped(watch: subprocess.Popen[str]) -> str:
    """The watch's own metrics, once there are some; it tells its port on stderr."""
    assert watch.stderr is not None
    port = 0
    while not port:
        line = watch.stderr.readline()
        assert line, "it ended"
        if "metrics on port " in line:
            port = int(line.rpartition(" ")[2])
    texts: list[str] = []

    def is_there() -> bool:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            texts.append(answer.read().decode())
        return "dsv4doctor_watch_canaries_total 1" in texts[-1]

    wait_for(is_there)
    return texts[-1]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "no server to watch"),
        (("--base-url", "http://127.0.0.1:9", "--stack-dump"), 2, "needs the server's host"),
        (("--base-url", "http://127.0.0.1:9", "--once", "--port", "9464"), 2, "drop one"),
        (("--base-url", "http://127.0.0.1:9", "--once", "--pulses", "9"), 2, "drop one"),
        (("--base-url", "http://127.0.0.1:9", "--once"), 3, "unreachable"),
    ],
)
def test_what_cannot_be_watched_is_told(
    tmp_path: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = doctor("watch", "--output-dir", tmp_path, *arguments)
    assert done.code == code, done.stderr
    assert said in done.stderr + done.stdout


STUCK = """
import threading, time
held = threading.Lock()
def wait_for_a_load_that_never_lands():
    held.acquire()
    held.acquire()
print("ready", flush=True)
wait_for_a_load_that_never_lands()
"""


# What tells which py-spy was run, and for whom.
SPY = '#!/bin/sh\necho "Thread $4 (idle): beside $0"\n'


@contextmanager
def stuck(python: Path, name: str, **env: str) -> Iterator[int]:
    """A process that waits for ever, started as `python`; its id."""
    process = subprocess.Popen(
        [python, "-c", STUCK, name], stdout=subprocess.PIPE, text=True, env={**os.environ, **env},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process.pid
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def environment(folder: Path) -> Path:
    """A Python in an environment of its own, as a link to ours, and a py-spy beside it."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "py-spy").write_text(SPY)
    (folder / "bin" / "py-spy").chmod(0o755)
    (folder / "bin" / "python3").symlink_to(sys.executable)
    return folder / "bin" / "python3"


def test_a_stuck_process_is_seen_on_its_host(tmp_path: Path) -> None:
    """Over a real sshd; whichever of py-spy, gdb and /proc is there says where it stands. py-spy
    counts as there when it lies beside the Python that was started, or in its environment."""
    from dsv4doctor.flows.watch_stacks import dump_stacks
    from dsv4doctor.hosts.inventory import Host
    from dsv4doctor.hosts.ssh import SshTransport

    name = f"stuck-{tmp_path.name}"
    beside, active = environment(tmp_path / "beside"), environment(tmp_path / "active").parents[1]
    ssh = SshLab(tmp_path)
    with (
        stuck(Path(sys.executable), name, VIRTUAL_ENV="") as plain,
        stuck(beside, name, VIRTUAL_ENV="") as started,
        stuck(Path(sys.executable), name, VIRTUAL_ENV=str(active)) as activated,
    ):
        try:
            ssh.start("host")
            transport = SshTransport(Host(name="host"), config_file=ssh.config)
            dumps = {dump.pid: dump for dump in dump_stacks(transport, pattern=name)}
            transport.close()
        finally:
            ssh.stop()
    assert dumps.keys() == {plain, started, activated}
    assert dumps[plain].method in {"py-spy", "gdb", "/proc"}
    assert dumps[plain].stands_still is True, dumps[plain].text
    assert "Thread" in dumps[plain].text
    assert {dumps[pid].method for pid in (started, activated)} == {"py-spy"}
    if shutil.which("py-spy") is None:  # one on the host's path goes first
        assert f"Thread {started} (idle): beside {tmp_path}/beside/" in dumps[started].text
        assert f"Thread {activated} (idle): beside {tmp_path}/active/" in dumps[activated].text
