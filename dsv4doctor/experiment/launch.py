"""Settings -> what changes in a launch: flags and variables, applied to an argv and an environment.

SGLang's own spellings. What bf16 and fp8 mean on a build is the deployment's to say:
`INDEX_K_CHANGES` is upstream's fp8 and fp4 and the usual variable of a fork for bf16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dsv4doctor.experiment.factors import Setting, Side
from dsv4doctor.experiment.proofs import (
    BF16_INDEX_K_VARIABLE,
    COARSE_BARRIER_VARIABLE,
    EARLY_SEND_VARIABLE,
)

FP4_INDEXER_FLAG = "--enable-deepseek-v4-fp4-indexer"
SPECULATIVE_PREFIX = "--speculative-"

# SGLang's switches of these names take no value: the word behind one is not theirs.
BARE_SWITCHES = ("--enable-", "--disable-")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchChange:
    """`flags`: name and value, "" for a bare switch, None to take it out; a name that ends in `*`
    takes out all that begin so. `variables`: name and value, None to take it out."""

    flags: tuple[tuple[str, str | None], ...] = ()
    variables: tuple[tuple[str, str | None], ...] = ()

    def plus(self, other: LaunchChange) -> LaunchChange:
        return LaunchChange(
            flags=self.flags + other.flags, variables=self.variables + other.variables
        )


INDEX_K_CHANGES = {
    "fp8": LaunchChange(
        flags=((FP4_INDEXER_FLAG, None),), variables=((BF16_INDEX_K_VARIABLE, None),)
    ),
    "bf16": LaunchChange(
        flags=((FP4_INDEXER_FLAG, None),), variables=((BF16_INDEX_K_VARIABLE, "1"),)
    ),
    "fp4": LaunchChange(
        flags=((FP4_INDEXER_FLAG, ""),), variables=((BF16_INDEX_K_VARIABLE, None),)
    ),
}


def _switch(flag: str, *, present: bool) -> LaunchChange:
    return LaunchChange(flags=((flag, "" if present else None),))


CHANGES: dict[tuple[str, str], LaunchChange] = {
    ("hicache", "on"): _switch("--enable-hierarchical-cache", present=True),
    # The newer spelling of the same switch goes too.
    ("hicache", "off"): LaunchChange(
        flags=(("--enable-hierarchical-cache", None), ("--enable-hicache", None))
    ),
    ("overlap", "on"): _switch("--disable-overlap-schedule", present=False),
    ("overlap", "off"): _switch("--disable-overlap-schedule", present=True),
    ("cuda_graph", "on"): _switch("--disable-cuda-graph", present=False),
    ("cuda_graph", "off"): _switch("--disable-cuda-graph", present=True),
    ("early_send", "on"): LaunchChange(variables=((EARLY_SEND_VARIABLE, "1"),)),
    ("early_send", "off"): LaunchChange(variables=((EARLY_SEND_VARIABLE, "0"),)),
    ("war_barrier", "coarse"): LaunchChange(variables=((COARSE_BARRIER_VARIABLE, "1"),)),
    ("war_barrier", "default"): LaunchChange(variables=((COARSE_BARRIER_VARIABLE, None),)),
    # What the deployment drafts with is its own; "on" leaves it as the baseline has it.
    ("spec", "on"): LaunchChange(),
    ("spec", "off"): LaunchChange(flags=((f"{SPECULATIVE_PREFIX}*", None),)),
}


def launch_change(
    settings: Sequence[Setting], index_k: Mapping[str, LaunchChange] = INDEX_K_CHANGES
) -> LaunchChange:
    """What the server-side settings of an arm change in a launch; the client-side ones nothing."""
    total = LaunchChange()
    for setting in settings:
        if setting.side is not Side.SERVER:
            continue
        total = total.plus(_change(setting, index_k))
    return total


def apply_to_argv(argv: Sequence[str], change: LaunchChange) -> list[str]:
    """`argv` with the flags changed: old ones out (`--f v`, `--f=v`), new ones at the end."""
    result = list(argv)
    for flag, value in change.flags:
        result = _without(result, flag)
        if value is not None:
            result += [flag, value] if value else [flag]
    return result


def apply_to_environment(environment: Mapping[str, str], change: LaunchChange) -> dict[str, str]:
    """`environment` with the variables changed."""
    result = dict(environment)
    for name, value in change.variables:
        if value is None:
            result.pop(name, None)
        else:
            result[name] = value
    return result


def _change(setting: Setting, index_k: Mapping[str, LaunchChange]) -> LaunchChange:
    if setting.is_flag:
        value = {"on": "", "off": None, "unset": None}.get(setting.value, setting.value)
        return LaunchChange(flags=((setting.factor, value),))
    if setting.is_variable:
        removed = setting.value == "unset"
        return LaunchChange(variables=((setting.factor, None if removed else setting.value),))
    if setting.factor == "index_k":
        return index_k[setting.value]
    return CHANGES[setting.factor, setting.value]


def _without(argv: Sequence[str], flag: str) -> list[str]:
    """`argv` less every occurrence of `flag` and of the values behind it."""
    result: list[str] = []
    dropping = False
    for word in argv:
        if word.startswith("--"):
            name = word.partition("=")[0]
            dropping = name.startswith(flag[:-1]) if flag.endswith("*") else name == flag
            if dropping:
                dropping = "=" not in word and not name.startswith(BARE_SWITCHES)
                continue
        if not dropping:
            result.append(word)
    return result
