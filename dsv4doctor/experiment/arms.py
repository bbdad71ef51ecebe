"""Arms: a name, and what stands behind it: settings, a running endpoint, or a run already made."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dsv4doctor.errors import UsageError
from dsv4doctor.experiment.factors import Setting, Side, parse_setting


class ArmKind(StrEnum):
    SETTINGS = "settings"  # one target, changed by the arm's settings (none: as it is)
    ENDPOINT = "endpoint"  # a server that already runs
    RUN = "run"  # a run directory made earlier


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """`base_url` is there for an endpoint, `run_dir` for a run; `settings` in the order given."""

    name: str
    kind: ArmKind = ArmKind.SETTINGS
    settings: tuple[Setting, ...] = ()
    base_url: str | None = None
    run_dir: str | None = None

    @property
    def factors(self) -> dict[str, str]:
        """Factor to value, as `ab.arms[].factors` shows them."""
        return {setting.factor: setting.value for setting in self.settings}

    @property
    def is_relaunched(self) -> bool:
        return any(setting.side is Side.SERVER for setting in self.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Honoured:
    """What a target can do: each factor it knows with its values (None: any value), and whether it
    takes any flag or variable. `target` is how it is called in a refusal."""

    target: str
    factors: Mapping[str, frozenset[str] | None]
    any_flag: bool = False
    any_variable: bool = False

    def honours(self, setting: Setting) -> bool:
        if setting.is_flag:
            return self.any_flag
        if setting.is_variable:
            return self.any_variable
        if setting.factor not in self.factors:
            return False
        values = self.factors[setting.factor]
        return values is None or setting.value in values


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """Four arms that cross two factors of two levels each: which arm stands in which cell."""

    factors: tuple[str, str]
    levels: tuple[tuple[str, str], tuple[str, str]]
    cells: Mapping[tuple[str, str], str]


def _experiment_of_the_case() -> tuple[Arm, ...]:
    return tuple(
        Arm(
            name=f"{index_k}-{hicache}",
            settings=(
                Setting(factor="index_k", value=index_k, side=Side.SERVER),
                Setting(factor="hicache", value=hicache, side=Side.SERVER),
            ),
        )
        for index_k in ("bf16", "fp8")
        for hicache in ("on", "off")
    )


# What `ab` runs when no arm is given: index-K {bf16, fp8} x HiCache {on, off}.
CASE_ARMS = _experiment_of_the_case()

# A name is a file name and a column head.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}\Z")


def parse_arm(text: str) -> Arm:
    """The arm of `NAME`, `NAME:factor=value,...` or `NAME=URL`.

    Raises:
        UsageError: naming what cannot be read.
    """
    name, separator, rest = _split(text)
    if separator == "=":
        return Arm(name=_named(name, text), kind=ArmKind.ENDPOINT, base_url=_given(rest, text))
    settings = tuple(parse_setting(part) for part in rest.split(",")) if separator else ()
    names = [setting.factor for setting in settings]
    if len(set(names)) < len(names):
        raise UsageError(f"--arm {text!r} sets a factor twice", "give each factor once")
    return Arm(name=_named(name, text), settings=settings)


def parse_run(text: str) -> Arm:
    """The arm of `NAME=RUN_DIR`.

    Raises:
        UsageError: naming what cannot be read.
    """
    name, separator, rest = text.partition("=")
    if not separator:
        raise UsageError(f"--run {text!r} names no run directory", "write NAME=RUN_DIR")
    return Arm(name=_named(name, text), kind=ArmKind.RUN, run_dir=_given(rest, text))


def parse_arms(arms: Sequence[str], runs: Sequence[str] = ()) -> tuple[Arm, ...]:
    """All arms of one experiment, those of the case where none is given.

    Raises:
        UsageError: on one arm alone, a name used twice, or arms of different kinds: a run made
            earlier was not interleaved with anything.
    """
    parsed = (*map(parse_arm, arms), *map(parse_run, runs))
    if not parsed:
        return CASE_ARMS
    names = [arm.name for arm in parsed]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two arms are called {twice!r}", "give each arm a name of its own")
    if len(parsed) < 2:
        raise UsageError("one arm is no comparison", "give at least two --arm or --run")
    if len({arm.kind for arm in parsed}) > 1:
        raise UsageError(
            "arms of different kinds cannot be compared",
            "give all as factors, all as NAME=URL, or all as --run NAME=RUN_DIR",
        )
    return parsed


def refuse_unhonoured(arms: Sequence[Arm], honoured: Honoured) -> None:
    """Nothing, where the target can be made what every arm says.

    Raises:
        UsageError: naming the arm, the factor and what the target can do instead.
    """
    for arm in arms:
        for setting in arm.settings:
            if honoured.honours(setting):
                continue
            values = honoured.factors.get(setting.factor)
            hint = f"it can change {', '.join(sorted(honoured.factors)) or 'nothing'}"
            if values:
                hint = f"there {setting.factor} may be {' or '.join(sorted(values))}"
            raise UsageError(f"{honoured.target} cannot honour {setting} of arm {arm.name}", hint)


def crossing(arms: Sequence[Arm]) -> Crossing | None:
    """The two factors that four arms cross, levels in the order of the arms; None for any others.

    Factors at which all arms agree are no part of it.
    """
    if len(arms) != 4 or any(arm.kind is not ArmKind.SETTINGS for arm in arms):
        return None
    names = list(dict.fromkeys(name for arm in arms for name in arm.factors))
    if any(name not in arm.factors for arm in arms for name in names):
        return None
    levels = {name: tuple(dict.fromkeys(arm.factors[name] for arm in arms)) for name in names}
    varied = [name for name in names if len(levels[name]) > 1]
    if len(varied) != 2 or any(len(levels[name]) != 2 for name in varied):
        return None
    first, second = varied
    cells = {(arm.factors[first], arm.factors[second]): arm.name for arm in arms}
    if len(cells) < 4:
        return None
    (a, b), (c, d) = levels[first], levels[second]
    return Crossing(factors=(first, second), levels=((a, b), (c, d)), cells=cells)


def _split(text: str) -> tuple[str, str, str]:
    """Name, the separator that comes first, and the rest: a URL's colon stands behind its `=`."""
    found = re.search(r"[:=]", text)
    if found is None:
        return text, "", ""
    return text[: found.start()], found.group(), text[found.end() :]


def _named(name: str, text: str) -> str:
    stripped = name.strip()
    if not _NAME.match(stripped):
        raise UsageError(
            f"{text!r} has no usable arm name",
            "begin with a name of letters, digits, '.', '_' and '-'",
        )
    return stripped


def _given(rest: str, text: str) -> str:
    if not rest.strip():
        raise UsageError(f"{text!r} has nothing behind the name", "write NAME=URL or NAME=RUN_DIR")
    return rest.strip()
