"""Whatever ends an experiment, the deployment is put back, and the run can go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ab_runs import (
    ON_OFF,
    SMALL_RACE,
    ab,
    blocks,
    end_left_over,
    only_run,
    start_ab,
    wait_for,
    wait_for_records,
)
from cli_runs import COMMAND, doctor
from sshd import SshLab

INDEX_K = "SGLANG_DSV4_BF16_INDEX_K"


def server_info(base_url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{base_url}/server_info", timeout=5) as answer:
        return json.load(answer)


def has_hicache(base_url: str) -> bool | None:
    """What the server says; None while there is none."""
    try:
        return bool(server_info(base_url)["enable_hierarchical_cache"])
    except OSError:
        return None


def base_url_of(run_dir: Path) -> str:
    return str(json.loads((run_dir / "deployment.json").read_text())["base_url"])


def test_a_killed_doctor_leaves_the_baseline_and_the_run_goes_on(tmp_path: Path) -> None:
    """kill -9 in the middle of the arm that is not the baseline; then `--resume`."""
    rounds = ("--blocks", "3")  # the third is not needed: two tell the arms apart
    whole = ab(tmp_path / "whole", *ON_OFF, *SMALL_RACE, *rounds)
    assert any("2 of 3 rounds" in note for note in whole.body["notes"]), whole.body["notes"]
    order = [block["arm"] for block in blocks(whole.run_dir)]
    process = start_ab(tmp_path / "killed", *ON_OFF, *SMALL_RACE, *rounds, "--deadman", "5")
    run_dir = only_run(tmp_path / "killed")
    try:
        wait_for_records(run_dir, order.index("off"), process)
        base_url = base_url_of(run_dir)
        assert has_hicache(base_url) is False
        process.send_signal(signal.SIGKILL)
        process.communicate()
        wait_for((run_dir / "host" / "restored").exists)
        assert "restored by deadman" in (run_dir / "host" / "restored").read_text()
        assert has_hicache(base_url) is True
        told = doctor("report", "--json", run_dir)
        resumed = doctor("ab", "--json", "--no-progress", "--resume", run_dir)
    finally:
        process.kill()
        end_left_over(run_dir)
    so_far = told.document["report"]["runs"][0]
    assert so_far["recomputed"]
    assert len(so_far["summary"]["blocks"]) == order.index("off")
    assert f"dsv4doctor ab --resume {run_dir}" in so_far["notes"][0]
    assert resumed.code == whole.code == 1, resumed.stderr
    assert [c["verdict"] for c in resumed.body["comparisons"]] == [
        c["verdict"] for c in whole.body["comparisons"]
    ]
    fixed = ("number", "round", "arm", "prompt_seed")
    assert [[b[key] for key in fixed] for b in blocks(run_dir)] == [
        [b[key] for key in fixed] for b in blocks(whole.run_dir)
    ]
    assert resumed.body["segments"] == 2
    assert resumed.body["restored"] is True


def test_ctrl_c_puts_back_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    process = start_ab(tmp_path, *ON_OFF, *SMALL_RACE)
    run_dir = only_run(tmp_path)
    try:
        wait_for_records(run_dir, 1, process)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=120)
    finally:
        process.kill()
        end_left_over(run_dir)
    assert process.returncode == 130, stderr
    assert f"dsv4doctor ab --resume {run_dir}" in stderr
    body = json.loads(stdout)["ab"]
    assert body["restored"] is True
    assert body["interrupted"] is True
    assert len(body["blocks"]) == 1, "an unfinished block counts for nothing"


@pytest.fixture
def ssh(tmp_path: Path) -> Iterator[SshLab]:
    folder = tmp_path / "ssh"
    folder.mkdir()
    lab = SshLab(folder)
    try:
        lab.start("gpu7")
        yield lab
    finally:
        lab.stop()


DEPLOYMENT = """
name = "gpu7"
base_url = "{base_url}"

[[hosts]]
name = "gpu7"
ssh = "gpu7"
state_dir = "{state_dir}"

[[roles]]
name = "server"
kind = "server"
host = "gpu7"
launcher = "command"
url = "{base_url}"
stop_timeout_s = 5.0
ready = {{ timeout_s = 60.0 }}
"""


def started(*more: str) -> tuple[subprocess.Popen[bytes], str]:
    """A lab as a person starts it by hand, and its root."""
    process = subprocess.Popen(
        [
            *COMMAND, "lab", "serve", "--enable-hierarchical-cache", "--device-pages", "120",
            "--slack-ms", "0.1", "--itl-ms", "0", "--ttft-ms", "0", *more,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        env={**os.environ, INDEX_K: "1", "HF_TOKEN": "hf_secret_of_the_operator"},
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())["base_url"]


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A lab that a person has started by hand, and the file that describes it."""
    process, base_url = started()
    # The relaunched process needs the port that the first one drew.
    process.kill()
    process.wait()
    process, base_url = started("--port", base_url.rpartition(":")[2])
    state = tmp_path / "state"
    file = tmp_path / "deployment.toml"
    file.write_text(DEPLOYMENT.format(base_url=base_url, state_dir=state))
    try:
        yield base_url, file
    finally:
        process.kill()
        process.wait()
        note = state / "server" / "pid"
        if note.exists():
            subprocess.run(["kill", "-9", note.read_text().split()[0]], check=False)


def test_a_deployment_is_relaunched_over_ssh_and_put_back(
    tmp_path: Path, ssh: SshLab, deployed: tuple[str, Path]
) -> None:
    base_url, file = deployed
    before = server_info(base_url)
    done = ab(
        tmp_path / "runs", "--deployment", file, "--ssh-config", ssh.config, *ON_OFF,
        *SMALL_RACE[:4],
    )  # fmt: skip
    assert done.code == 1, done.stderr
    assert done.body["restored"] is True
    after = server_info(base_url)
    assert after["launch_command"] == before["launch_command"]
    assert after["internal_states"][0]["env_vars"] == before["internal_states"][0]["env_vars"]
    kept = [path for path in done.run_dir.rglob("*") if path.is_file()]
    assert not [path for path in kept if b"hf_secret_of_the_operator" in path.read_bytes()]
    assert (tmp_path / "state" / "server" / "baseline.sh").exists(), "the host can be put back"


def test_a_host_under_experiment_is_refused_and_restored_by_hand(
    tmp_path: Path, ssh: SshLab, deployed: tuple[str, Path]
) -> None:
    base_url, file = deployed
    arguments = ("--deployment", file, "--ssh-config", ssh.config, *ON_OFF, *SMALL_RACE[:4])
    process = start_ab(tmp_path / "first", *arguments)
    run_dir = only_run(tmp_path / "first")
    try:
        wait_for((tmp_path / "state" / "server" / "arm.sh").exists, 120)
        second = ab(tmp_path / "second", *arguments)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert second.code == 3
    assert f"under experiment already, by {run_dir.resolve()}" in second.stderr
    assert "ab restore" in second.stderr
    done = doctor("ab", "restore", "--json", "--ssh-config", ssh.config, run_dir)
    assert done.code == 0, done.stderr
    assert done.body["restored"] is True
    assert has_hicache(base_url) is True


def test_an_arm_that_the_server_ignored_is_not_compared(
    tmp_path: Path, ssh: SshLab, deployed: tuple[str, Path]
) -> None:
    """The file says that another variable means fp8: the server stays bf16, and says so."""
    _, file = deployed
    file.write_text(file.read_text() + "\n[index_k.fp8]\nvariables = { NO_SUCH_SWITCH = '0' }\n")
    done = ab(
        tmp_path / "runs", "--deployment", file, "--ssh-config", ssh.config,
        "--arm", "fp8:index_k=fp8", "--arm", "bf16:index_k=bf16", "--sessions", "3",
        "--turns", "2", "--blocks", "1", "--warmup", "0",
    )  # fmt: skip
    assert done.code == 4, done.stderr
    arms = {arm["name"]: arm for arm in done.body["arms"]}
    assert not arms["fp8"]["verified"]
    assert "refuted" in arms["fp8"]["verification"]["reason"]
    assert arms["bf16"]["verified"]
