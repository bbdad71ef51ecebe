"""Boot lines of a DSV4 server: what the configurator computed and what the pools were given.

One key=value reader serves every release: the lines differ in the keys they carry, not in form.
"GB" in them is GiB, rounded to two places.

Source: `model_executor/pool_configurator.py`, `mem_cache/deepseek_v4_memory_pool.py` and
`mem_cache/memory_pool_host.py` of SGLang 0.5.12-0.5.23.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dsv4doctor.sglang_log.prefix import split_prefix
from dsv4doctor.units import GIB

MEMORY = "DSV4 memory calculation: "
POOLS = "DSV4 pool sizes: "
SWA = "DSV4 SWA sizing: "
INITIALIZE = "Initialize DeepSeekV4TokenToKVPool with "
ONLINE = "DSV4 compressed attention: online c128 enabled"

_PAIR = re.compile(r"(\w+)=([^,\s]+)")
_HOST_POOL = re.compile(
    r"Allocating ([\d.]+) GB host memory for V4 (?:paged|state) pool '(\w+)' \((.*)\)"
)
_HOOK = re.compile(r"Setting (max_running_requests|swa_full_tokens_ratio) to ([\d.]+) for ")
_SERVER_ARGS = re.compile(r"server_args=ServerArgs\((.*)")
_ARGUMENT = re.compile(r"(\w+)=('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^,()\[\]{}\s]+)")
_VERSION = re.compile(r"\bsglang[ =]+v?(\d+\.\d+\.\d+(?:\.post\d+)?)", re.IGNORECASE)

# Releases by the keys that the memory line first carried.
_ERAS = (
    ("c2_state_fixed", ("0.5.21", "0.5.22", "0.5.23")),
    ("swa_ring_fixed", ("0.5.20",)),
    ("c128_state_fixed", ("0.5.15", "0.5.16", "0.5.17", "0.5.18", "0.5.19")),
    ("bytes_per_full_token", ("0.5.12", "0.5.13", "0.5.14")),
)
# Every memory line ends with this key: without it the line was cut.
_LAST_KEY = "full_token"
_ROUNDING_GIB = 0.05  # what rounding to two places can add up to in one line


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPool:
    """A HiCache host pool: `item_bytes` of `deepseek_v4_c4_indexer` proves the index-K format."""

    name: str
    gib: float
    pages: int | None
    item_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BootReport:
    """What a log says of one server's boot; empty mappings where the lines are missing.

    `memory`, `pools` and `initialize` are the target worker's: the first of each kind. `differing`
    counts ranks whose memory line says something else.
    """

    memory: Mapping[str, str] = field(default_factory=dict)
    pools: Mapping[str, int] = field(default_factory=dict)
    swa: Mapping[str, str] = field(default_factory=dict)
    initialize: Mapping[str, str] = field(default_factory=dict)
    hooks: Mapping[str, str] = field(default_factory=dict)
    server_args: Mapping[str, str] = field(default_factory=dict)
    host_pools: tuple[HostPool, ...] = ()
    online_c128: bool = False
    version: str | None = None
    lines: int = 0
    differing: int = 0
    cut: str | None = None  # a sizing line that ends before its last value

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases whose memory line carries these keys; empty without a memory line."""
        for key, releases in _ERAS:
            if key in self.memory:
                return releases
        return ()


def key_values(text: str) -> dict[str, str]:
    """The `key=value` pairs of a sizing line; a unit after a value is left out."""
    return {match[1]: match[2] for match in _PAIR.finditer(text)}


def read_boot(lines: Iterable[str]) -> BootReport:
    """The boot that `lines` tell of; lines of other kinds are passed over."""
    found: dict[str, dict[str, str]] = {}
    hooks: dict[str, str] = {}
    arguments: dict[str, str] = {}
    host_pools: dict[str, HostPool] = {}
    count, differing, online, version, cut = 0, 0, False, None, None
    for raw in lines:
        count += 1
        message = split_prefix(raw).message
        online = online or ONLINE in message
        for head, pairs in _memory_lines(message):
            if _is_cut(head, pairs):
                cut = cut or raw.strip()
            elif head not in found:
                found[head] = pairs
            elif head == MEMORY and pairs != found[head]:
                differing += 1
        if (hook := _HOOK.search(message)) is not None:
            hooks.setdefault(hook[1], hook[2])
        if not arguments and (line := _SERVER_ARGS.search(message)) is not None:
            arguments = {m[1]: m[2].strip("'\"") for m in _ARGUMENT.finditer(line[1])}
        if (pool := _host_pool(message)) is not None:
            host_pools.setdefault(pool.name, pool)
        if version is None and (said := _VERSION.search(message)) is not None:
            version = said[1]
    return BootReport(
        memory=found.get(MEMORY, {}),
        pools=_integers(found.get(POOLS, {})),
        swa=found.get(SWA, {}),
        initialize=found.get(INITIALIZE, {}),
        hooks=hooks,
        server_args=arguments,
        host_pools=tuple(host_pools.values()),
        online_c128=online,
        version=version,
        lines=count,
        differing=differing,
        cut=cut,
    )


def _memory_lines(message: str) -> Iterator[tuple[str, dict[str, str]]]:
    for head in (MEMORY, POOLS, SWA, INITIALIZE):
        start = message.find(head)
        if start >= 0:
            yield head, key_values(message[start + len(head) :])


def _is_cut(head: str, pairs: Mapping[str, str]) -> bool:
    """A memory line ends with its token count and a pool line with its state pools."""
    if head == POOLS:
        return "c128_state" not in pairs
    if head != MEMORY:
        return False
    try:
        tokens = int(pairs[_LAST_KEY])
        price = float(pairs["bytes_per_full_token"])
        left = float(pairs["available_bytes"]) - sum(
            float(value) for key, value in pairs.items() if key.endswith("_fixed")
        )
    except (KeyError, ValueError):
        return True
    # A count that lost its last digits buys a tenth of what the line's own bytes buy.
    return 2 * tokens * price < (left - _ROUNDING_GIB) * GIB


def _integers(pairs: Mapping[str, str]) -> dict[str, int]:
    return {key: int(value) for key, value in pairs.items() if value.isdigit()}


def _host_pool(message: str) -> HostPool | None:
    match = _HOST_POOL.search(message)
    if match is None:
        return None
    pairs = _integers(key_values(match[3]))
    return HostPool(
        name=match[2],
        gib=float(match[1]),
        pages=pairs.get("pages"),
        item_bytes=pairs.get("item_bytes"),
    )
