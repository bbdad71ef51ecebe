"""Boot lines of every era: read whole, recognised, cut ones named."""

from __future__ import annotations

import pytest

from dsv4doctor.sglang_log.boot import HostPool, key_values, read_boot
from dsv4doctor.sglang_log.prefix import split_prefix

ERA_12 = (
    "[2026-05-15 10:11:12 TP0] DSV4 memory calculation: bytes_per_full_token=15955.85, "
    "available_bytes=19.58 GB, full_token=1317632\n"
)
ERA_15 = (
    "[2026-07-20 08:00:01 DP1 TP1] DSV4 memory calculation: bytes_per_full_token=13735.04, "
    "available_bytes=118.93 GB, c128_state_fixed=1.01 GB, full_token=9217792\n"
)
ERA_20 = (
    "[2026-08-20 08:00:01 TP0] DSV4 memory calculation: unified=False, unified_fp8=False, "
    "bytes_per_full_token=7705.45, available_bytes=26.90 GB, c128_state_fixed=2.53 GB, "
    "swa_ring_fixed=0.00 GB, c4_state_fixed=0.00 GB, full_token=3395840\n"
)
ERA_21 = (
    "[2026-09-15 10:11:12 TP0] DSV4 memory calculation: unified=False, unified_fp8=False, "
    "dspark_draft_bf16=False, bytes_per_full_token=1670.75, available_bytes=11.71 GB, "
    "c128_state_fixed=0.00 GB, c2_state_fixed=0.00 GB, swa_fixed=0.86 GB, swa_ring_fixed=0.00 GB, "
    "c4_state_fixed=0.00 GB, full_token=6973696\n"
)
POOLS = (
    "[2026-05-15 10:11:12 TP0] DSV4 pool sizes: full=1317632, swa=131584, c4=329408, c128=10294, "
    "c4_state=8224, c128_state=131584\n"
)


@pytest.mark.parametrize(
    ("line", "releases", "tokens"),
    [
        pytest.param(ERA_12, ("0.5.12", "0.5.14"), "1317632", id="12-to-14"),
        pytest.param(ERA_15, ("0.5.15", "0.5.19"), "9217792", id="15-to-19"),
        pytest.param(ERA_20, ("0.5.20", "0.5.20"), "3395840", id="20"),
        pytest.param(ERA_21, ("0.5.21", "0.5.23"), "6973696", id="21-to-23"),
    ],
)
def test_eras(line: str, releases: tuple[str, str], tokens: str) -> None:
    boot = read_boot([line])
    assert (boot.releases[0], boot.releases[-1]) == releases
    assert boot.memory["full_token"] == tokens
    assert boot.cut is None


def test_a_whole_boot() -> None:
    boot = read_boot(
        [
            "INFO: something else\n",
            "[2026-05-15 10:11:00 TP0] Setting max_running_requests to 256 for X.\n",
            "[2026-05-15 10:11:00 TP0] Setting swa_full_tokens_ratio to 0.1 for X.\n",
            ERA_12,
            POOLS,
            "[2026-05-15 10:11:13 TP0] Initialize DeepSeekV4TokenToKVPool with max_num_reqs=64 "
            "swa_size=131584 c4_size=329408\n",
            "[2026-05-15 10:11:14 TP0] DSV4 compressed attention: online c128 enabled "
            "(ring_size=1)\n",
            "[2026-05-15 10:11:15 TP0] Allocating 3.20 GB host memory for V4 paged pool "
            "'deepseek_v4_c4_indexer' (layers=21, pages=19000, item_bytes=8448, "
            "layout=layer_first).\n",
        ]
    )
    assert boot.pools["c128_state"] == 131584
    assert boot.initialize["max_num_reqs"] == "64"
    assert boot.hooks == {"max_running_requests": "256", "swa_full_tokens_ratio": "0.1"}
    assert boot.online_c128
    assert boot.host_pools == (
        HostPool(name="deepseek_v4_c4_indexer", gib=3.2, pages=19000, item_bytes=8448),
    )
    assert boot.lines == 8


def test_server_arguments_line() -> None:
    boot = read_boot(
        [
            "[2026-05-15 10:11:00] server_args=ServerArgs(model_path='ds/DeepSeek-V4-Pro', "
            "tp_size=8, max_running_requests=64, swa_full_tokens_ratio=0.15, "
            "speculative_algorithm=None, disable_radix_cache=False)\n"
        ]
    )
    assert boot.server_args["model_path"] == "ds/DeepSeek-V4-Pro"
    assert boot.server_args["max_running_requests"] == "64"
    assert boot.server_args["speculative_algorithm"] == "None"


@pytest.mark.parametrize("length", [70, 95, 118, len(ERA_12) - 4])
def test_a_line_cut_short_is_named(length: int) -> None:
    boot = read_boot([ERA_12[:length]])
    assert not boot.memory
    assert boot.cut is not None


def test_a_line_without_newline_is_whole() -> None:
    assert read_boot([ERA_12.rstrip("\n")]).memory["full_token"] == "1317632"


def test_ranks_that_agree_and_one_that_does_not() -> None:
    other = ERA_12.replace("TP0", "TP1").replace("19.58", "19.31")
    boot = read_boot([ERA_12, ERA_12.replace("TP0", "TP2"), other])
    assert boot.differing == 1
    assert boot.memory["available_bytes"] == "19.58"


@pytest.mark.parametrize(
    ("text", "rank", "message"),
    [
        pytest.param("[2026-05-15 10:11:12] hello", "", "hello", id="plain"),
        pytest.param("[2026-05-15 10:11:12 DP0 TP3] hello", "DP0 TP3", "hello", id="ranks"),
        pytest.param(
            "May 15 host sglang[77]: [2026-05-15 10:11:12 TP3] hello", "TP3", "hello", id="journal"
        ),
        pytest.param("\x1b[32m[2026-05-15 10:11:12 TP3]\x1b[0m hello", "TP3", "hello", id="colour"),
        pytest.param("Traceback (most recent call last):", "", None, id="no-prefix"),
    ],
)
def test_prefix(text: str, rank: str, message: str | None) -> None:
    line = split_prefix(text + "\n")
    assert line.rank == rank
    assert line.message == (text if message is None else message)


def test_key_values_leave_the_unit_out() -> None:
    assert key_values("a=1.50 GB, b=x") == {"a": "1.50", "b": "x"}
