"""What a source tree proves, on small trees: each differs from the clean one by one fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsv4doctor.audit.source.gates import Standing, gate_table
from dsv4doctor.audit.source.prices import index_k_prices
from dsv4doctor.audit.source.report import SourceReport, read_source, source_findings
from dsv4doctor.audit.source.tree import (
    ASSEMBLER,
    CONFIGURATOR,
    MEMORY_POOL,
    PREFILL_GRAPHS,
    SourceTree,
)
from dsv4doctor.finding import Severity
from dsv4doctor.flows.audit_tree import audit_tree

POOL = '''
import os

def get_dsv4_indexer_bytes_per_token(index_head_dim, use_fp4_indexer):
    if use_fp4_indexer:
        return index_head_dim // 2 + index_head_dim // 32
    return index_head_dim + index_head_dim // 128 * 4


class DeepSeekV4IndexerPool(KVCache):
    def get_bytes_per_token(self):
        return get_dsv4_indexer_bytes_per_token(self.index_head_dim, self.use_fp4_indexer)

    def get_index_k_with_scale_buffer(self, layer_id):
        return self.index_k_with_scale_buffer[layer_id]

    def get_key_buffer(self, layer_id):
        raise NotImplementedError()


class DeepSeekV4TokenToKVPool(BaseSWAKVPool):
    def wait_layer_transfer(self, layer_id):
        if self.layer_transfer_counter is not None:
            self.layer_transfer_counter.wait_until(layer_id - self.start_layer)

    def get_index_k_with_scale_buffer(self, layer_id):
        """The layer's index-K pages."""
        self.wait_layer_transfer(layer_id)
        ratio, local, _ = self.layer_mapping[layer_id]
        return self._indexer_pool(ratio).get_index_k_with_scale_buffer(local)

    def get_index_k_rows(self, layer_id, rows):
        return self.get_index_k_with_scale_buffer(layer_id)[rows]

    def get_extra_key_buffer(self, layer_id):
        self.wait_layer_transfer(layer_id)
        _, local, compress_kv_pool = self.layer_mapping[layer_id]
        return compress_kv_pool.get_key_buffer(local)

    def get_extra_key_page_size(self, layer_id):
        return self.layer_mapping[layer_id][2].page_size

    def get_swa_raw_buffer(self, layer_id):
        return self.swa_kv_pool.kv_buffer[layer_id]

    def get_swa_key_buffer_radix(self, layer_id):
        if self.layer_transfer_counter is not None:
            self.layer_transfer_counter.wait_until(layer_id - self.start_layer)
        return self.swa_kv_pool.get_key_buffer(layer_id)

    def get_attention_compress_states(self, layer_id):
        self.wait_layer_transfer(layer_id)
        return self.compress_state_pools[layer_id]

    def get_contiguous_buf_infos(self):
        return [buf.data_ptr() for buf in self.swa_kv_pool.kv_buffer]
'''

CONFIG = """
class DSV4PoolConfigurator:
    def __init__(self, kvc):
        self.indexer_head_dim = kvc.index_head_dim
        self.indexer_bytes_per_token = get_dsv4_indexer_bytes_per_token(
            self.indexer_head_dim, _is_hip and kvc.enable_deepseek_v4_fp4_indexer
        )
"""

HOST = """
class HostKVCache:
    pass

class DeepSeekV4PagedHostPool(HostKVCache):
    def init(self):
        self.item_bytes = self.device.nbytes

class DSAIndexerPoolHost(HostKVCache):
    def init(self):
        # SGLANG_DSV4_BF16_INDEX_K in a comment is no edit
        self.item_bytes = 132
"""

STACK = """
def build_deepseek_v4_hicache_stack(params, kind: DSAIndexerPoolHost):
    assert not isinstance(kind, DSAIndexerPoolHost)
    return [DeepSeekV4PagedHostPool(pool) for pool in params]

def build_dsa_stack(params):
    return DSAIndexerPoolHost(params)
"""

GRAPHS = """
class PrefillCudaGraphRunner:
    def __init__(self):
        self._is_full_backend = isinstance(self.backend, FullCudaGraphBackend)

    def _wait_for_layer_loads(self):
        if self._is_full_backend:
            self.counter.wait_until(self.counter.num_layers - 1)

    def execute(self):
        self._wait_for_layer_loads()
        return self.backend.replay(self.key)
"""

MODEL = """
class Attention:
    def forward(self, pool):
        swa_cache = pool.get_swa_raw_buffer(self.layer_id)
        page = pool.swa_kv_pool.page_size
        return fused_norm_swa_store(swa_cache=swa_cache, page=page)
"""
MODEL_PATH, HOST_PATH = "srt/models/deepseek_v4.py", "srt/mem_cache/memory_pool_host.py"

CLEAN = {
    MEMORY_POOL: POOL,
    CONFIGURATOR: CONFIG,
    HOST_PATH: HOST,
    ASSEMBLER: STACK,
    PREFILL_GRAPHS: GRAPHS,
    MODEL_PATH: MODEL,
}
WAIT = "        self.wait_layer_transfer(layer_id)\n"


def edited(path: str, old: str, new: str) -> dict[str, str]:
    text = CLEAN[path]
    assert text.count(old) >= 1, old
    return {**CLEAN, path: text.replace(old, new, 1)}


def report_of(files: dict[str, str]) -> SourceReport:
    return read_source(SourceTree(files))


def findings_of(files: dict[str, str]) -> list[tuple[str, Severity, str]]:
    found = source_findings(report_of(files), "tree")
    return [(f.finding.rule, f.finding.severity, f.finding.evidence[0].what) for f in found]


def test_a_clean_tree_gives_nothing() -> None:
    assert findings_of(CLEAN) == []
    facts = report_of(CLEAN).facts()
    assert facts == {"index_k_gated": True, "index_k_priced": True, "prefill_graph_waits": True}


def test_the_gate_table_names_every_methods_standing() -> None:
    table = {(g.pool, g.method): g.standing for g in gate_table(SourceTree(CLEAN))}
    token, inner = "DeepSeekV4TokenToKVPool", "DeepSeekV4IndexerPool"
    assert table == {
        (inner, "get_index_k_with_scale_buffer"): Standing.BEHIND,
        (inner, "get_key_buffer"): Standing.REFUSES,
        (token, "get_index_k_with_scale_buffer"): Standing.GATED,
        (token, "get_index_k_rows"): Standing.DELEGATED,
        (token, "get_extra_key_buffer"): Standing.GATED,
        (token, "get_extra_key_page_size"): Standing.NO_READ,
        (token, "get_swa_raw_buffer"): Standing.WRITE_ONLY,
        (token, "get_swa_key_buffer_radix"): Standing.GATED,
        (token, "get_attention_compress_states"): Standing.GATED,
        (token, "get_contiguous_buf_infos"): Standing.ADDRESSES,
    }


INDEX_READ = f'        """The layer\'s index-K pages."""\n{WAIT}'


@pytest.mark.parametrize(
    ("files", "method", "why"),
    [
        pytest.param(
            edited(MEMORY_POOL, INDEX_READ, ""),
            "get_index_k_with_scale_buffer", "never waits", id="removed",
        ),
        pytest.param(
            edited(MEMORY_POOL, INDEX_READ, "        # self.wait_layer_transfer(layer_id)\n"),
            "get_index_k_with_scale_buffer", "never waits", id="commented-out",
        ),
        pytest.param(
            edited(MEMORY_POOL, f"{WAIT}        _, local, comp", "        _, local, comp"),
            "get_extra_key_buffer", "never waits", id="mapped-pool",
        ),
        pytest.param(
            edited(MEMORY_POOL, f"{WAIT}        return self.compress_state_pools[layer_id]",
                   f"        p = self.compress_state_pools[layer_id]\n{WAIT}        return p"),
            "get_attention_compress_states", "before it waits", id="too-late",
        ),
        pytest.param(
            edited(MEMORY_POOL, f"{WAIT}        return self.comp",
                   "        if self.eager:\n            self.wait_layer_transfer(layer_id)\n"
                   "        return self.comp"),
            "get_attention_compress_states", "under a condition", id="conditional",
        ),
        pytest.param(
            edited(MEMORY_POOL, f"{WAIT}        return self.comp",
                   "        self.wait_layer_transfer(layer_id - 1)\n        return self.comp"),
            "get_attention_compress_states", "another layer", id="another-layer",
        ),
    ],
)  # fmt: skip
def test_a_missing_gate_is_found(files: dict[str, str], method: str, why: str) -> None:
    found = findings_of(files)
    assert (found[0][0], found[0][1]) == ("SRC-01", Severity.ERROR)
    assert method in found[0][2]
    assert why in found[0][2]
    # What hands over to an ungated read is one itself; nothing else is.
    also = [what for _, _, what in found[1:]]
    assert all("get_index_k_rows" in what for what in also)
    assert report_of(files).facts()["index_k_gated"] is ("index_k" not in method)


def test_a_gate_that_waits_for_nothing_gates_nothing() -> None:
    files = edited(
        MEMORY_POOL,
        "        if self.layer_transfer_counter is not None:\n"
        "            self.layer_transfer_counter.wait_until(layer_id - self.start_layer)\n",
        "        return\n",
    )
    found = findings_of(files)
    assert len(found) == 5
    assert all("waits for nothing" in what for _, _, what in found)


def test_a_fork_that_derives_its_own_pool_is_read_too() -> None:
    fork = POOL + (
        "\nclass ForkPool(DeepSeekV4TokenToKVPool):\n"
        "    def get_index_k_with_scale_buffer(self, layer_id):\n"
        "        return self.c4_indexer_kv_pool.get_index_k_with_scale_buffer(layer_id)\n"
    )
    ((rule, _, what),) = findings_of({**CLEAN, MEMORY_POOL: fork})
    assert rule == "SRC-01"
    assert "ForkPool" in what


@pytest.mark.parametrize(
    ("read", "is_found"),
    [
        pytest.param("return score(pool.swa_kv_pool.kv_buffer[0])", True, id="direct"),
        pytest.param("sub = pool.c4_indexer_kv_pool\n        return score(sub.get_index_k_rows(0))",
                     True, id="alias"),
        pytest.param("return score(pool.get_swa_raw_buffer(0))", True, id="raw-buffer-read"),
        pytest.param("return pool.swa_kv_pool.page_size", False, id="size"),
        pytest.param("return swa_store(pool.swa_kv_pool.kv_buffer[0])", False, id="store"),
        pytest.param("return pool.get_swa_key_buffer_radix(0)", False, id="accessor"),
    ],
)  # fmt: skip
def test_reads_past_the_accessors(read: str, is_found: bool) -> None:
    files = {**CLEAN, MODEL_PATH: f"{MODEL}\n    def more(self, pool):\n        {read}\n"}
    assert [rule for rule, _, _ in findings_of(files)] == (["SRC-02"] if is_found else [])


def test_a_prefill_graph_that_does_not_wait() -> None:
    files = edited(PREFILL_GRAPHS, "        self._wait_for_layer_loads()\n", "")
    assert [(rule, severity) for rule, severity, _ in findings_of(files)] == [
        ("SRC-03", Severity.INFO)
    ]
    assert report_of(files).facts()["prefill_graph_waits"] is False
    without = {path: text for path, text in CLEAN.items() if path != PREFILL_GRAPHS}
    assert "prefill_graph_waits" not in report_of(without).facts()


BF16 = edited(
    MEMORY_POOL,
    "        return get_dsv4_indexer_bytes_per_token(self.",
    '        if os.environ.get("SGLANG_DSV4_BF16_INDEX_K") == "1":\n'
    "            return self.index_head_dim * 2\n"
    "        return get_dsv4_indexer_bytes_per_token(self.",
)


def test_bf16_stored_and_counted_as_fp8() -> None:
    (found,) = source_findings(report_of(BF16), "tree")
    assert (found.finding.rule, found.finding.severity) == ("SRC-04", Severity.ERROR)
    assert "256 B" in found.finding.title
    assert "651 B" in found.finding.title
    assert "SGLANG_DSV4_BF16_INDEX_K" in found.finding.evidence[0].what
    facts = report_of(BF16).facts()
    assert (facts["index_k_priced"], facts["custom_build"]) == (False, True)


def test_bf16_counted_as_stored_is_right() -> None:
    counted = CONFIG + "        if BF16:\n            self.indexer_bytes_per_token = "
    counted += "self.indexer_head_dim * 2\n"
    assert findings_of({**BF16, CONFIGURATOR: counted}) == []


def test_fp4_counted_as_fp8_is_a_waste_not_a_danger() -> None:
    old = """
class DSV4PoolConfigurator:
    def _get_bytes_per_full_token(self):
        quant_block_size = 128
        indexer_bytes = self.indexer_head_dim + self.indexer_head_dim // quant_block_size * 4
        return indexer_bytes / 4
"""
    tree = SourceTree({**CLEAN, CONFIGURATOR: old})
    assert [price.bytes for price in index_k_prices(tree).counted] == [132]
    ((rule, severity, _),) = findings_of({**CLEAN, CONFIGURATOR: old})
    assert (rule, severity) == ("SRC-04", Severity.INFO)


def test_an_edit_of_a_class_that_v4_does_not_use() -> None:
    files = edited(
        HOST_PATH,
        "        self.item_bytes = 132\n",
        '        bf16 = os.environ.get("SGLANG_DSV4_BF16_INDEX_K")\n'
        "        self.item_bytes = 256 if bf16 else 132\n",
    )
    (found,) = source_findings(report_of(files), "tree")
    assert (found.finding.rule, found.finding.severity) == ("SRC-05", Severity.WARNING)
    assert "DSAIndexerPoolHost" in found.finding.title
    assert found.finding.evidence[1].what == "V4 uses DeepSeekV4PagedHostPool"


def test_the_same_edit_where_v4_does_look_is_none() -> None:
    files = edited(
        HOST_PATH,
        "        self.item_bytes = self.device.nbytes\n",
        '        self.item_bytes = 256 if os.environ.get("SGLANG_DSV4_BF16_INDEX_K") else 132\n',
    )
    assert findings_of(files) == []


def test_an_edit_without_a_switch_shows_beside_the_unedited_tree() -> None:
    files = edited(HOST_PATH, "        self.item_bytes = 132\n", "        self.item_bytes = 256\n")
    assert findings_of(files) == []
    report = read_source(SourceTree(files), SourceTree(CLEAN))
    (found,) = source_findings(report, "tree")
    assert found.finding.evidence[0].what == "differs from the unedited tree"
    live = edited(HOST_PATH, "self.device.nbytes", "self.device.nbytes * 2")
    report = read_source(SourceTree(live), SourceTree(CLEAN))
    assert report.edits.dead == ()
    assert [edit.rpartition(" ")[2] for edit in report.edits.live] == ["DeepSeekV4PagedHostPool"]


def test_a_broken_file_is_left_out_and_named(tmp_path: Path) -> None:
    for path, text in {**CLEAN, MODEL_PATH: "def pool.swa_kv_pool(:\n"}.items():
        file = tmp_path / "sglang" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    notes: list[str] = []
    audit = audit_tree(tmp_path, None, notes.append)
    assert audit.findings == ()
    assert "line 1" in notes[0]
    assert "deepseek_v4.py" in notes[0]
