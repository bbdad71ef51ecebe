"""`audit --log`: the facts of a server's boot lines, and the lines that tell of trouble."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dsv4doctor.audit.facts import Facts, gather_facts
from dsv4doctor.audit.rule import AuditFinding
from dsv4doctor.audit.trouble import find_troubles
from dsv4doctor.errors import UsageError
from dsv4doctor.flows.audit_sources import derived
from dsv4doctor.flows.size_sources import read_lines
from dsv4doctor.sglang_log.boot import BootReport, read_boot
from dsv4doctor.sglang_log.prefix import split_prefix


def facts_of_log(
    path: Path, stated: Mapping[str, Any], has: frozenset[int]
) -> tuple[Facts, list[AuditFinding]]:
    """What the log at `path` says of its server, and the trouble it tells.

    Raises:
        UsageError: it cannot be read, or holds nothing of a server's.
    """
    lines = list(read_lines(path, "--log"))
    found = list(find_troubles(lines, str(path)))
    boot = read_boot(lines)
    says_something = found or boot.memory or boot.server_args or boot.host_pools
    if not says_something and not any(split_prefix(line).when for line in lines):
        raise UsageError(
            f"{path} holds no line of a server's log",
            "give what SGLang wrote to stderr, with its [time] prefixes",
        )
    return _facts(boot, str(path), stated, has), found


def _facts(boot: BootReport, path: str, stated: Mapping[str, Any], has: frozenset[int]) -> Facts:
    """The arguments line makes the facts whole; the environment stays unknown."""
    args: dict[str, Any] = {k: v for k, v in boot.server_args.items() if v != "None"}
    said: dict[str, Any] = {"engine": "sglang"} if boot.memory or args else {}
    if boot.version is not None:
        said["version"] = boot.version
    for pool in boot.host_pools:
        if pool.name == "deepseek_v4_c4_indexer" and pool.item_bytes == 64 * 256:
            said["index_k"] = "bf16"
    if boot.host_pools:
        said["enable_hierarchical_cache"] = True
    if boot.memory and "model_family" not in said:
        said["model_family"] = "v4"
    groups: list[tuple[str, Mapping[str, Any]]] = [
        (path, {**said, **args, **derived(args)}),
        ("stated", stated),
    ]
    return gather_facts(path, groups, complete=bool(args), has_changes=has)
