"""`dsv4doctor checksum` as a process: here, and on hosts behind a real OpenSSH server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sshd import Namespaces, SshLab

HOSTS = ("gate", "one", "behind", "picky", "dying")
LIMIT_S = 400  # three selftests under the interpreter side by side on two busy cores


def run(*arguments: str | Path, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "dsv4doctor", "checksum", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env=os.environ | (env or {}),
    )
    return done.returncode, done.stdout, done.stderr


def document(*arguments: str | Path, env: dict[str, str] | None = None) -> dict[str, Any]:
    code, out, err = run(*arguments, "--json", env=env)
    assert out, err
    found: dict[str, Any] = json.loads(out)
    assert found["command"] == "checksum"
    assert found["exit_code"] == code
    return found


def python_with(tmp_path: Path, **modules: str) -> Path:
    """This interpreter with `modules` (name → source) before everything that is installed."""
    folder = tmp_path / "before"
    folder.mkdir()
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source)
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}" exec "{sys.executable}" "$@"\n')
    program.chmod(0o755)
    return program


NO_MODULE = "raise ModuleNotFoundError(f'No module named {__name__!r}', name=__name__)"
TORCH_WITHOUT_CUDA = """
class version: cuda = hip = None
class cuda:
    @staticmethod
    def is_available(): return False
"""
# Just enough of torch for a GPU whose memory the server has taken.
TORCH_WITH_A_FULL_GPU = """
class version: cuda, hip = "13.0", None
class cuda:
    @staticmethod
    def is_available(): return True
    @staticmethod
    def device_count(): return 1
    @staticmethod
    def mem_get_info(index): return 300 << 20, 141 << 30
"""


def test_a_bare_checksum_is_a_selftest_of_this_machine():
    found = document()
    assert (found["verdict"], found["exit_code"]) == ("passed", 0)
    body = found["checksum"]
    (host,) = body["hosts"]
    assert host["host"] == "localhost"
    assert host["backend"] in ("interpreter", "cpu", "cuda", "hip")
    assert host["error"] is None
    assert host["mismatches"] == []
    assert len(host["digest"]) == 16
    assert host["bytes"] == host["pages"] * 8448
    assert host["gb_per_s"] == pytest.approx(host["bytes"] / host["seconds"] / 1e9)
    assert len(body["checks"]) >= 30
    assert all(check["passed"] and check["planted"] == check["found"] for check in body["checks"])


def test_without_the_extra_the_cpu_path_needs_only_numpy_and_says_so(tmp_path: Path):
    python = python_with(tmp_path, torch=NO_MODULE, triton=NO_MODULE, numba=NO_MODULE)
    code, out, err = run("--remote-python", python)
    assert code == 0, err
    assert "the CPU path ran" in out
    assert "no torch in this Python" in out
    assert "numba is not installed" in out


def test_the_digest_of_equal_pages_is_the_same_on_every_path(tmp_path: Path):
    python = python_with(tmp_path, torch=NO_MODULE, numba=NO_MODULE)
    plain = document("--remote-python", python, "--seed", "5")
    usual = document("--seed", "5")
    digests = {each["checksum"]["hosts"][0]["digest"] for each in (plain, usual)}
    assert len(digests) == 1
    assert (
        document("--seed", "6", "--remote-python", python)["checksum"]["hosts"][0]["digest"]
        not in digests
    )


@pytest.mark.parametrize(
    ("modules", "flags", "words"),
    [
        ({"torch": NO_MODULE}, ("--require-gpu",), "no torch in this Python"),
        ({"torch": TORCH_WITHOUT_CUDA}, ("--require-gpu",), "built without CUDA"),
        ({"torch": TORCH_WITHOUT_CUDA}, ("--gpus", "0"), "built without CUDA"),
        ({"torch": TORCH_WITH_A_FULL_GPU, "triton": ""}, (), "GPU 0 has 300 MiB free"),
        (
            {"torch": TORCH_WITH_A_FULL_GPU, "triton": ""},
            ("--gpus", "3"),
            "there is no GPU 3: this host has 1",
        ),
        ({"numpy": NO_MODULE}, (), "has no numpy"),
    ],
)
def test_what_a_host_lacks_is_one_clear_line(
    tmp_path: Path, modules: dict[str, str], flags: tuple[str, ...], words: str
):
    found = document("--remote-python", python_with(tmp_path, **modules), *flags)
    assert (found["verdict"], found["exit_code"]) == ("could not run", 3)
    (host,) = found["checksum"]["hosts"]
    assert words in host["error"]
    assert "\n" not in host["error"]


def test_a_python_that_is_not_there_is_named():
    found = document("--remote-python", "/nope/python")
    assert found["exit_code"] == 3
    assert "/nope/python" in found["checksum"]["hosts"][0]["error"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--max-bytes", "1e"), "--max-bytes '1e'"),
        (("--gpus", "a"), "--gpus 'a'"),
        (("--remote-prefix", "docker 'exec"), "--remote-prefix"),
        (("--ssh-host", "-oProxyCommand=touch /tmp/x"), "names no host"),
        (("--ssh-hosts", "/nope"), "--ssh-hosts /nope"),
        (("race", "--depths", "0"), "--depths: 0 is not 1 to"),
        (("compare", "/nope.pt"), "two files"),
        (("compare", "/nope.pt", "/nope2.pt"), "/nope.pt: no such file"),
        (("selftest", "--index-k", "fp7"), "fp7"),
    ],
)
def test_bad_flags_are_usage_errors(arguments: tuple[str, ...], words: str):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


def test_flags_may_stand_before_or_after_the_action(tmp_path: Path):
    python = python_with(tmp_path, torch=NO_MODULE, numba=NO_MODULE)
    flags = ("--seed", "3", "--max-bytes", "64KiB", "--remote-python", python)
    before = document(*flags, "selftest")
    after = document("selftest", *flags)
    digests = [each["checksum"]["hosts"][0]["digest"] for each in (before, after)]
    assert digests[0] == digests[1]
    assert before["checksum"]["hosts"][0]["pages"] == 2


def test_race_reports_windows_and_shares():
    found = document("race", "--index-k", "bf16", "--depths", "1,4")
    assert found["verdict"] == "passed"
    rows = found["checksum"]["race"]
    gated = [row for row in rows if row["gate"] == "own"]
    assert gated
    assert all(row["stale_share"] == 0 for row in gated)
    assert any(row["stale_share"] > 0 for row in rows if row["gate"] == "none")
    assert all(row["window_us"] > 0 for row in rows)


def test_bench_reports_each_layout_beside_a_copy():
    rows = document("bench")["checksum"]["bench"]
    assert [row["layout"] for row in rows] == ["fp8", "bf16", "fp4", "fp4-rocm", "c4", "swa"]
    for row in rows:
        assert row["ratio"] == pytest.approx(row["gb_per_s"] / row["copy_gb_per_s"])


def test_compare_names_pages_tokens_and_owners(tmp_path: Path):
    pages = bytearray(os.urandom(4 * 8448))
    good, bad = tmp_path / "good.bin", tmp_path / "bad.bin"
    good.write_bytes(pages)
    pages[2 * 8448 : 3 * 8448] = pages[:8448]
    bad.write_bytes(pages)
    found = document("compare", good, bad, "--layout", "fp8")
    assert (found["verdict"], found["exit_code"]) == ("differ", 1)
    compared = found["checksum"]["compare"]
    assert (compared["pages"], compared["differing_pages"]) == (4, 1)
    (difference,) = compared["differences"]
    assert (difference["page"], difference["kind"]) == (2, "another page")
    assert difference["instead"] == "page 0"
    assert found["findings"][0]["rule"] == "PAGES_DIFFER"
    assert document("compare", good, good, "--layout", "fp8")["exit_code"] == 0

    manifest = tmp_path / "good.json"
    written = document("compare", good, "--layout", "fp8", "--write-manifest", manifest)
    assert written["verdict"] == "written"
    by_manifest = document("compare", manifest, bad, "--layout", "fp8")
    assert by_manifest["checksum"]["compare"]["differing_pages"] == 1


def start_hosts(lab: SshLab, place: Callable[[str], dict[str, str]]) -> None:
    """gate, one, behind (only through gate), picky (lets nobody in) and dying."""
    lab.start("gate", **place("gate"))
    lab.start("one", **place("one"))
    lab.start("behind", jump="gate", **place("behind"))
    lab.start("picky", extra="DenyUsers *", **place("picky"))
    # A host that dies: its connection is killed a second after a command has begun.
    dying = lab.folder / "dying.sh"
    dying.write_text('#!/bin/sh\n(sleep 1; kill -9 $PPID) & exec "$@"\n')
    dying.chmod(0o755)
    force = f'ForceCommand {dying} sh -c "$SSH_ORIGINAL_COMMAND"'
    lab.start("dying", extra=force, **place("dying"))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshLab]:
    """Five hosts on loopback addresses."""
    lab = SshLab(tmp_path_factory.mktemp("ssh"))
    addresses = {name: f"127.0.1.{n}" for n, name in enumerate(HOSTS, start=1)}
    try:
        start_hosts(lab, lambda name: {"address": addresses[name]})
        yield lab
    finally:
        lab.stop()


@pytest.fixture
def separate_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshLab]:
    """Five hosts in network namespaces; `behind` has no way to us but through `gate`."""
    spaces = Namespaces()
    lab = SshLab(tmp_path_factory.mktemp("ssh"))
    made: dict[str, str] = {}

    def place(name: str) -> dict[str, str]:
        made[name], address = spaces.add(behind=made["gate"] if name == "behind" else "")
        return {"namespace": made[name], "address": address}

    try:
        start_hosts(lab, place)
        yield lab
    finally:
        lab.stop()
        spaces.remove()


def left_behind(lab: SshLab) -> list[str]:
    """Directories and processes of ours that are still there."""
    found = [str(path) for path in lab.temporary.iterdir()]
    mark = f"TMPDIR={lab.temporary}/dsv4doctor.".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


def nothing_is_left(lab: SshLab) -> bool:
    deadline = time.monotonic() + 5
    while left_behind(lab) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left_behind(lab) == []


def test_three_hosts_answer_and_two_that_fail_are_named(separate_lab: SshLab):
    lab, hosts = separate_lab, ["one", "picky", "behind", "dying", "gate"]
    flags = [part for host in hosts for part in ("--ssh-host", host)]
    found = document(*flags, "--ssh-config", lab.config, "--remote-python", sys.executable)
    rows = {row["host"]: row for row in found["checksum"]["hosts"]}
    assert list(rows) == hosts
    assert (found["verdict"], found["exit_code"]) == ("passed", 0)
    assert "login refused" in rows["picky"]["error"]
    assert "connection was lost" in rows["dying"]["error"]
    digests = {rows[host]["digest"] for host in ("one", "behind", "gate")}
    assert len(digests) == 1
    assert None not in digests
    for host in ("one", "behind", "gate"):
        checks = [check for check in found["checksum"]["checks"] if check["host"] == host]
        assert len(checks) >= 30
        assert all(check["passed"] for check in checks)
        assert rows[host]["environment"]["versions"]["numpy"]
    assert {f["rule"] for f in found["findings"]} == {"HOST_FAILED"}
    assert nothing_is_left(lab)


def test_only_failures_are_exit_code_3(lab: SshLab):
    found = document("--ssh-host", "picky", "--ssh-config", lab.config)
    assert (found["verdict"], found["exit_code"]) == ("could not run", 3)
    assert "login refused" in found["checksum"]["hosts"][0]["error"]


def test_a_container_prefix_reaches_the_python_inside(lab: SshLab):
    """`env` stands for `docker exec -i NAME`: everything of ours runs behind it."""
    found = document(
        "race", "--depths", "1", "--index-k", "fp8", "--ssh-host", "one", "--ssh-config",
        lab.config, "--remote-python", sys.executable, "--remote-prefix", "env INSIDE=yes",
    )  # fmt: skip
    assert found["exit_code"] == 0


def test_the_python_of_a_running_sglang_is_found(lab: SshLab, tmp_path: Path):
    """A process that looks like SGLang's launcher: its interpreter is the one that is asked."""
    python = tmp_path / "venv" / "bin" / "python3"
    python.parent.mkdir(parents=True)
    marked = tmp_path / "asked"
    python.write_text(f'#!/bin/sh\n: >"{marked}"\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    # Its argv is the launcher's; what really runs only waits.
    code = "import sys; sys.stdin.read()"
    server = subprocess.Popen(
        [str(python), "-c", code, "sglang.launch_server"],
        executable=sys.executable,
        stdin=subprocess.PIPE,
    )
    try:
        found = document(
            "race", "--depths", "1", "--index-k", "fp8", "--ssh-host", "one", "--ssh-config",
            lab.config,
        )  # fmt: skip
        assert found["exit_code"] == 0
        assert marked.exists()
    finally:
        server.kill()
        server.wait()


@pytest.mark.parametrize("where", ["here", "one"])
def test_ctrl_c_ends_what_runs_here_and_there(lab: SshLab, where: str):
    flags = [] if where == "here" else ["--ssh-host", "one", "--ssh-config", str(lab.config)]
    process = subprocess.Popen(
        [sys.executable, "-m", "dsv4doctor", "checksum", "race", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(lab.temporary)},
    )
    deadline = time.monotonic() + 60
    while not left_behind(lab) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left_behind(lab)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    assert nothing_is_left(lab)


def test_a_finding_below_fail_on_is_no_failure(lab: SshLab, tmp_path: Path):
    python = python_with(tmp_path, torch=NO_MODULE, numba=NO_MODULE)
    flags = (
        "--max-bytes", "64KiB", "--remote-python", python, "--ssh-config", lab.config,
        "--ssh-host", "one", "--ssh-host", "picky",
    )  # fmt: skip
    assert document(*flags)["exit_code"] == 0
    assert document(*flags, "--fail-on", "info")["exit_code"] == 1
