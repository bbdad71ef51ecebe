"""`dsv4doctor patch` as a person runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "patching"))
from small_tree import CLEAN_MEMORY_POOL, MEMORY_POOL, OLD_CONFIGURATOR, write_tree


def patch(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dsv4doctor", "patch", *args],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    return write_tree(tmp_path, OLD_CONFIGURATOR, MEMORY_POOL)


def test_the_diff_is_the_result(faulty: Path) -> None:
    done = patch("--source", str(faulty))
    assert done.returncode == 0
    assert done.stdout.startswith("--- a/sglang/srt/model_executor/pool_configurator.py\n")
    assert "+        self.wait_layer_transfer(layer_id)\n" in done.stdout
    applied = subprocess.run(
        ["git", "apply", "--check", "-"], input=done.stdout, text=True, cwd=faulty, check=False
    )
    assert applied.returncode == 0


def test_check_then_write_then_again(faulty: Path) -> None:
    source = ("--source", str(faulty))
    checked = patch(*source, "--check")
    assert (checked.returncode, checked.stdout) == (1, "")
    written = patch(*source, "--write")
    assert written.returncode == 0
    assert "Restart the server" in written.stderr
    again = patch(*source, "--write")
    assert (again.returncode, again.stdout) == (0, "")
    assert "already patched" in again.stderr
    assert patch(*source, "--check").returncode == 0


def test_json(faulty: Path) -> None:
    document = json.loads(patch("--source", str(faulty), "--check", "--json").stdout)
    body = document["patch"]
    assert (document["verdict"], document["exit_code"], body["applicable"]) == (
        "applicable",
        1,
        True,
    )
    assert [file["path"] for file in body["files"]] == [
        "sglang/srt/model_executor/pool_configurator.py",
        "sglang/srt/mem_cache/deepseek_v4_memory_pool.py",
    ]
    assert {finding["rule"] for finding in document["findings"]} == {
        "PATCH_INDEX_K_PRICE",
        "PATCH_INDEX_K_GATE",
    }


def test_a_healthy_tree_is_refused(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, OLD_CONFIGURATOR, CLEAN_MEMORY_POOL)
    done = patch("--source", str(tree), "--json")
    body = json.loads(done.stdout)["patch"]
    assert (done.returncode, body["applicable"], body["files"]) == (0, False, [])
    assert "nothing to fix" in body["refused"]


@pytest.mark.parametrize(
    ("configurator", "words", "code"),
    [
        pytest.param(None, "no SGLang tree", 2, id="no-sglang"),
        pytest.param("x = 1\n", "DSV4PoolConfigurator", 3, id="unknown-tree"),
    ],
)
def test_other_trees(tmp_path: Path, configurator: str | None, words: str, code: int) -> None:
    if configurator is not None:
        write_tree(tmp_path, configurator, MEMORY_POOL)
    done = patch("--source", str(tmp_path))
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr
