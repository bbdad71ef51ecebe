"""The fixes on a miniature tree: what they change, what they leave, what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_tree import (
    CLEAN_MEMORY_POOL,
    MEMORY_POOL,
    NEW_CONFIGURATOR,
    OLD_CONFIGURATOR,
    SWITCH,
    write_tree,
)

from dsv4doctor.errors import UsageError
from dsv4doctor.flows.patch import run_patch
from dsv4doctor.patching.fixes import Standing, fix_tree
from dsv4doctor.patching.layer_gate import ungated_reads
from dsv4doctor.patching.tree import CONFIGURATOR, parse_module, read_index_store
from dsv4doctor.patching.tree import MEMORY_POOL as MEMORY_POOL_PATH


def fixed(configurator: str, memory_pool: str) -> dict[str, str]:
    fix = fix_tree({CONFIGURATOR: configurator, MEMORY_POOL_PATH: memory_pool})
    assert fix.standing is Standing.APPLICABLE, fix.reason
    return {patch.path: patch.after for patch in fix.patches}


def test_old_shape_is_priced_as_stored() -> None:
    after = fixed(OLD_CONFIGURATOR, MEMORY_POOL)[CONFIGURATOR]
    v4 = after.split("class DSV4PoolConfigurator")[1]
    assert f'os.environ.get("{SWITCH}", "")' in v4
    assert "self.indexer_bytes_per_token = self.indexer_head_dim * 2" in v4
    assert "elif get_exec().kernel.enable_deepseek_v4_fp4_indexer:" in v4
    assert "indexer_bytes = self.indexer_bytes_per_token" in v4
    assert "quant_block_size" not in v4
    assert "# what the model says" in v4
    assert "# a token" in v4
    assert "import logging\nimport os\n" in after
    assert "    get_disagg,\n    get_exec,\n    get_memory,\n" in after


def test_v32_keeps_its_line_to_the_letter() -> None:
    after = fixed(OLD_CONFIGURATOR, MEMORY_POOL)[CONFIGURATOR]

    def v32(text: str) -> str:
        return text.split("class DefaultPoolConfigurator")[1].split("class DSV4Pool", maxsplit=1)[0]

    assert v32(after) == v32(OLD_CONFIGURATOR)


def test_new_shape_is_priced_as_stored() -> None:
    after = fixed(NEW_CONFIGURATOR, MEMORY_POOL)[CONFIGURATOR]
    assert "_is_hip and" not in after
    assert (
        "            get_exec().kernel.enable_deepseek_v4_fp4_indexer"
        not in after.split("if os")[0]
    )
    compile(after, "configurator", "exec")


def test_reads_without_a_gate() -> None:
    assert ungated_reads(MEMORY_POOL) == ("get_index_k_fp4_payload_buffer",)
    assert ungated_reads(CLEAN_MEMORY_POOL) == ()


def test_the_gate_stands_after_the_docstring() -> None:
    text = MEMORY_POOL.replace(
        "        self.wait_layer_transfer(layer_id)\n        return", "        return"
    )
    assert ungated_reads(text) == (
        "get_index_k_with_scale_buffer",
        "get_index_k_scale_buffer",
        "get_index_k_fp4_payload_buffer",
    )
    after = fixed(OLD_CONFIGURATOR, text)[MEMORY_POOL_PATH]
    assert '"""Rows of a layer."""\n        self.wait_layer_transfer(layer_id)\n' in after
    assert ungated_reads(after) == ()


@pytest.mark.parametrize(
    "switch",
    [
        pytest.param(f'get_bool_env_var("{SWITCH}")', id="helper"),
        pytest.param(f"envs.{SWITCH}.get()", id="envs"),
        pytest.param("BF16", id="module-constant"),
    ],
)
def test_forms_of_the_switch(switch: str) -> None:
    text = MEMORY_POOL.replace("if BF16:", f"if {switch}:")
    assert read_index_store(parse_module(text, "x")).switch == SWITCH


def test_a_price_that_the_pool_and_the_configurator_share_is_right() -> None:
    text = MEMORY_POOL.replace(
        "    return 68 if", "    if BF16:\n        return 256\n    return 68 if"
    ).replace("        if BF16:\n            return self.index_head_dim * 2\n", "")
    fix = fix_tree({CONFIGURATOR: NEW_CONFIGURATOR, MEMORY_POOL_PATH: text})
    assert [patch.path for patch in fix.patches] == [MEMORY_POOL_PATH]


@pytest.mark.parametrize(
    ("configurator", "memory_pool", "standing", "words"),
    [
        pytest.param(
            OLD_CONFIGURATOR,
            CLEAN_MEMORY_POOL,
            Standing.NOTHING_TO_FIX,
            "nothing to fix",
            id="clean",
        ),
        pytest.param(
            "class Other: ...",
            MEMORY_POOL,
            Standing.UNRECOGNISED,
            "DSV4PoolConfigurator",
            id="no-v4",
        ),
        pytest.param(
            OLD_CONFIGURATOR, "class Other: ...", Standing.UNRECOGNISED, "IndexerPool", id="no-pool"
        ),
        pytest.param(
            OLD_CONFIGURATOR, "def broken(:", Standing.UNRECOGNISED, "no Python", id="no-python"
        ),
        pytest.param(
            OLD_CONFIGURATOR.replace("indexer_bytes = (", "other = ("),
            MEMORY_POOL,
            Standing.UNRECOGNISED,
            "does not price",
            id="other-formula",
        ),
        pytest.param(
            OLD_CONFIGURATOR,
            MEMORY_POOL.replace(SWITCH, "WIDE_KEYS"),
            Standing.UNRECOGNISED,
            "switch",
            id="unknown-switch",
        ),
    ],
)
def test_refusals(configurator: str, memory_pool: str, standing: Standing, words: str) -> None:
    fix = fix_tree({CONFIGURATOR: configurator, MEMORY_POOL_PATH: memory_pool})
    assert fix.standing is standing
    assert words in fix.reason
    assert not fix.patches


def test_write_keeps_a_backup_and_the_mode(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, OLD_CONFIGURATOR, MEMORY_POOL)
    file = tree / "sglang" / CONFIGURATOR
    file.chmod(0o640)
    outcome = run_patch(tree, write=True)
    assert outcome.verdict == "written"
    assert file.stat().st_mode & 0o777 == 0o640
    assert file.with_name(file.name + ".dsv4doctor.orig").read_text() == OLD_CONFIGURATOR
    assert run_patch(tree, write=True).verdict == "already_patched"


def test_carriage_returns_survive(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, OLD_CONFIGURATOR, MEMORY_POOL)
    file = tree / "sglang" / MEMORY_POOL_PATH
    file.write_bytes(MEMORY_POOL.replace("\n", "\r\n").encode())
    run_patch(tree, write=True)
    text = file.read_bytes()
    assert text.count(b"\r\n") == text.count(b"\n")


def test_without_write_nothing_is_touched(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, OLD_CONFIGURATOR, MEMORY_POOL)
    before = {path: path.read_bytes() for path in tree.rglob("*.py")}
    outcome = run_patch(tree, write=False)
    assert outcome.verdict == "applicable"
    assert "--- a/sglang/srt/model_executor/pool_configurator.py" in outcome.diff
    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("root", ["", "sglang", "python/sglang"])
def test_each_place_of_the_package(tmp_path: Path, root: str) -> None:
    write_tree(tmp_path / "x", OLD_CONFIGURATOR, MEMORY_POOL)
    target = tmp_path / "tree" / root
    target.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "x" / "sglang").rename(target)
    outcome = run_patch(tmp_path / "tree", write=False)
    assert outcome.prefix == (f"{root}/" if root else "")


def test_no_tree(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no SGLang tree"):
        run_patch(tmp_path, write=False)
    with pytest.raises(UsageError, match="no folder"):
        run_patch(tmp_path / "nowhere", write=False)
    (tmp_path / "sglang" / "srt").mkdir(parents=True)
    with pytest.raises(UsageError, match="pool_configurator"):
        run_patch(tmp_path, write=False)
