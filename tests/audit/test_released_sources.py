"""The source audit on real releases: the expected gate table, and faults planted into each tree.

Wheels are taken by pip into a temporary folder. CI runs the newest release, `make soak` all.
"""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

import pytest
from planting import MEMORY_POOL, SWITCH, plant_bf16_store, remove_gate
from released import fetch_wheel, unpack

from dsv4doctor.audit.rule import AuditFinding
from dsv4doctor.audit.source.gates import Standing
from dsv4doctor.audit.source.tree import GLOBS, PREFILL_GRAPHS
from dsv4doctor.finding import Severity
from dsv4doctor.flows.audit_tree import TreeAudit, audit_tree

OLDER = [pytest.param(n, marks=pytest.mark.soak, id=f"0.5.{n}") for n in range(12, 23)]
pytestmark = pytest.mark.upstream

ALWAYS = range(12, 24)
# Which releases have which reads of the token pool; every one of them waits, but for LATENT.
READS = {
    "get_index_k_with_scale_buffer": ALWAYS,
    "get_index_k_scale_buffer": ALWAYS,
    "get_extra_key_buffer": ALWAYS,
    "get_swa_key_buffer_radix": ALWAYS,
    "get_swa_key_buffer": range(12, 20),
    "get_attention_compress_states": ALWAYS,
    "get_indexer_compress_states": ALWAYS,
    "get_unified_kv": range(14, 24),
    "get_unified_kv_rope": range(20, 24),
    "get_index_k_fp4_payload_buffer": range(20, 24),
    "get_index_k_fp4_scale_buffer": range(20, 24),
    "get_low_ratio_index_k_dequant": range(21, 24),
    "get_low_ratio_index_k_fp4": range(21, 24),
}
LATENT = {("get_unified_kv", 14), ("get_unified_kv", 15)}
WRITES = {"get_swa_raw_buffer": range(15, 24)}


@pytest.fixture(scope="module", params=[*OLDER, pytest.param(23, id="0.5.23")])
def release(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def wheel(release: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fetch_wheel(f"0.5.{release}", tmp_path_factory.mktemp(f"source-{release}"))


@pytest.fixture
def tree(wheel: Path, tmp_path: Path) -> Path:
    return sources_of(wheel, tmp_path / "tree")


def sources_of(wheel: Path, folder: Path) -> Path:
    """The files that are read, and the wheel's own list of its files."""
    patterns = ["*/RECORD", *(f"sglang/{pattern.replace('**/', '*')}" for pattern in GLOBS)]
    return unpack(wheel, folder, lambda name: any(fnmatch.fnmatch(name, p) for p in patterns))


def audit(tree: Path, base: Path | None = None) -> TreeAudit:
    return audit_tree(tree, base, print)


def grave(found: TreeAudit) -> list[AuditFinding]:
    return [one for one in found.findings if one.finding.severity is not Severity.INFO]


def test_the_gate_table_of_the_release(release: int, tree: Path) -> None:
    found = audit(tree)
    table = {
        gate.method: gate.standing
        for gate in found.report.gates
        if gate.pool == "DeepSeekV4TokenToKVPool"
        and gate.standing
        in (Standing.GATED, Standing.DELEGATED, Standing.UNGATED, Standing.WRITE_ONLY)
    }
    expected = {
        name: Standing.UNGATED if (name, release) in LATENT else Standing.GATED
        for name, releases in READS.items()
        if release in releases
    }
    expected |= {name: Standing.WRITE_ONLY for name, rs in WRITES.items() if release in rs}
    assert table == expected


def test_a_released_tree_has_nothing_above_info(release: int, tree: Path) -> None:
    found = audit(tree)
    assert grave(found) == []
    assert (found.release, found.edited) == (f"0.5.{release}", ())
    rules = {one.finding.rule for one in found.findings}
    assert ("SRC-01" in rules) == (release in (14, 15))
    assert ("SRC-03" in rules) == (15 <= release <= 22)
    # 0.5.13-0.5.19 count fp4 as fp8.
    assert ("SRC-04" in rules) == (13 <= release <= 19)
    assert all(escape.is_store for escape in found.report.escapes)
    assert bool(found.report.escapes) == (release > 12)


@pytest.mark.parametrize(
    "method",
    ["get_index_k_with_scale_buffer", "get_index_k_scale_buffer", "get_extra_key_buffer",
     "get_swa_key_buffer_radix", "get_attention_compress_states", "get_indexer_compress_states"],
)  # fmt: skip
def test_a_planted_missing_gate(method: str, tree: Path) -> None:
    remove_gate(tree / "sglang", method)
    found = audit(tree)
    (one,) = grave(found)
    assert one.finding.rule == "SRC-01"
    assert method in one.finding.title
    assert found.facts["index_k_gated"].value is ("index_k" not in method)
    assert found.edited == (MEMORY_POOL.as_posix(),)


def test_planted_bf16_store(tree: Path) -> None:
    plant_bf16_store(tree / "sglang")
    found = audit(tree)
    (one,) = grave(found)
    assert one.finding.rule == "SRC-04"
    assert SWITCH in one.finding.evidence[0].what
    assert (found.facts["index_k_priced"].value, found.facts["custom_build"].value) == (False, True)


def test_planted_edit_of_the_dsa_host_pool(wheel: Path, tree: Path, tmp_path: Path) -> None:
    path, text = next(
        (path, text)
        for path in sorted((tree / "sglang/srt/mem_cache").rglob("*.py"))
        if re.search(r"^class (?:DSA|NSA)IndexerPoolHost\(", text := path.read_text(), re.MULTILINE)
    )
    planted = re.sub(
        r"^(class (?:DSA|NSA)IndexerPoolHost\([^)]*\):\n(?:    \"\"\"(?:.|\n)*?\"\"\"\n)?)",
        rf'\1    is_bf16 = __import__("os").environ.get("{SWITCH}") == "1"\n',
        text, count=1, flags=re.MULTILINE,
    )  # fmt: skip
    path.write_text(planted)
    (one,) = grave(audit(tree))
    assert one.finding.rule == "SRC-05"
    assert "DeepSeekV4PagedHostPool" in one.finding.evidence[1].what
    # Without the switch it shows beside the unedited tree only.
    path.write_text(planted.replace(SWITCH, "PLAIN"))
    assert grave(audit(tree)) == []
    (one,) = grave(audit(tree, sources_of(wheel, tmp_path / "base")))
    assert one.finding.rule == "SRC-05"


def test_planted_read_past_the_accessor(tree: Path) -> None:
    path = tree / "sglang/srt/models/deepseek_v4.py"
    read = "\n\ndef planted(pool, layer):\n    return pool.c4_kv_pool.kv_buffer[layer].sum()\n"
    path.write_text(path.read_text() + read)
    (one,) = grave(audit(tree))
    assert one.finding.rule == "SRC-02"


def test_planted_graph_without_its_wait(release: int, tree: Path) -> None:
    if release < 23:
        pytest.skip("no release before 0.5.23 has that wait")
    path = tree / "sglang" / PREFILL_GRAPHS
    text = path.read_text()
    assert text.count("self._wait_for_layer_loads()\n") == 1
    path.write_text(text.replace("self._wait_for_layer_loads()\n", "pass\n"))
    found = audit(tree)
    assert "SRC-03" in {one.finding.rule for one in found.findings}
    assert found.facts["prefill_graph_waits"].value is False
