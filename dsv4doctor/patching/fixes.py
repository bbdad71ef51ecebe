"""All fixes over the two files of a tree: what each would change, or why nothing is changed."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from dsv4doctor.patching.indexer_bytes import is_priced, price_as_stored
from dsv4doctor.patching.layer_gate import gate_reads, ungated_reads
from dsv4doctor.patching.tree import (
    CONFIGURATOR,
    MEMORY_POOL,
    Unrecognised,
    parse_module,
    read_index_store,
)


class Standing(StrEnum):
    """What a tree is to the fixes."""

    APPLICABLE = "applicable"
    ALREADY_PATCHED = "already_patched"
    NOTHING_TO_FIX = "nothing_to_fix"
    UNRECOGNISED = "unrecognised"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePatch:
    """One file's change: `path` under the package, what it fixes, both texts."""

    path: str
    fixes: tuple[str, ...]
    before: str
    after: str

    def diff(self, prefix: str) -> str:
        """A unified diff with `prefix` as the package's folder."""
        return "".join(
            difflib.unified_diff(
                self.before.splitlines(keepends=True),
                self.after.splitlines(keepends=True),
                fromfile=f"a/{prefix}{self.path}",
                tofile=f"b/{prefix}{self.path}",
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFix:
    """The outcome over a tree; `reason` says why nothing is changed."""

    standing: Standing
    patches: tuple[FilePatch, ...] = ()
    reason: str = ""


def fix_tree(files: Mapping[str, str], *, was_patched: bool = False) -> TreeFix:
    """What the fixes make of the texts of `CONFIGURATOR` and `MEMORY_POOL`.

    `was_patched`: a backup of ours lies beside the files: without faults, the tree is patched.
    """
    try:
        store = read_index_store(parse_module(files[MEMORY_POOL], MEMORY_POOL))
        missing = ungated_reads(files[MEMORY_POOL])
        priced = is_priced(files[CONFIGURATOR], store)
        patches = []
        if store.stores_bf16 and not priced:
            before = files[CONFIGURATOR]
            patches.append(
                FilePatch(
                    path=CONFIGURATOR,
                    fixes=("index-K is priced as the pool stores it",),
                    before=before,
                    after=price_as_stored(before, store),
                )
            )
        if missing:
            before = files[MEMORY_POOL]
            patches.append(
                FilePatch(
                    path=MEMORY_POOL,
                    fixes=tuple(f"{name} waits for its layer" for name in missing),
                    before=before,
                    after=gate_reads(before, missing),
                )
            )
    except Unrecognised as problem:
        return TreeFix(standing=Standing.UNRECOGNISED, reason=str(problem))
    if patches:
        return TreeFix(standing=Standing.APPLICABLE, patches=tuple(patches))
    if was_patched or (store.stores_bf16 and priced):
        return TreeFix(
            standing=Standing.ALREADY_PATCHED,
            reason="already patched: index-K is priced as stored and every read of it waits",
        )
    return TreeFix(
        standing=Standing.NOTHING_TO_FIX,
        reason="nothing to fix: this tree stores no bf16 index-K, and every read of index-K waits "
        "for its layer (so does every released SGLang)",
    )
