"""Finds scenarios and decodes them, strictly: the only code that knows where `repro/*.toml` lie."""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dsv4doctor.codec import ShapeError, from_builtins
from dsv4doctor.errors import UsageError
from dsv4doctor.scenario import Sampling, Scenario

_PACKAGE = Path(__file__).resolve().parent.parent
# In an installed wheel the files lie inside the package, in a checkout beside it.
_FOLDERS = (_PACKAGE / "scenarios", _PACKAGE.parent / "repro")

_TOOL_CHOICES = ("auto", "required")
_VALUES = ("codes", "numbers", "probes")
_MOST_CANARIES = 6
_MOST_CALLS = 8
_MOST_TURNS = 256
_MOST_JITTER = 0.5


def scenario_names() -> tuple[str, ...]:
    """The names of the scenarios that come with the program, in alphabetical order."""
    return tuple(sorted(path.stem for path in _folder().glob("*.toml")))


def load_scenario(name_or_file: str) -> Scenario:
    """The scenario of that name, or the one in the TOML file at that path.

    Raises:
        UsageError: if there is none, or the file does not decode strictly into a `Scenario`.
    """
    if name_or_file in scenario_names():
        return _decode(_folder() / f"{name_or_file}.toml")
    path = Path(name_or_file)
    if path.suffix == ".toml" or path.exists() or len(path.parts) > 1:
        return _decode(path)
    near = difflib.get_close_matches(name_or_file, scenario_names(), n=1)
    guess = f"did you mean {near[0]}? " if near else ""
    raise UsageError(
        f"no scenario is called {name_or_file!r}",
        f"{guess}there are {', '.join(scenario_names())}; or give a TOML file",
    )


def _folder() -> Path:
    for folder in _FOLDERS:
        if folder.is_dir():
            return folder
    raise UsageError(f"no scenarios at {_FOLDERS[0]} or {_FOLDERS[1]}", "install dsv4doctor again")


def _decode(path: Path) -> Scenario:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(
            f"no scenario file at {path}", f"or one of the names {', '.join(scenario_names())}"
        ) from error
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "give a TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no TOML: {error}", "see repro/tool-calls.toml") from error
    _refuse_unknown(path, table, Scenario, at="")
    sampling = table.get("sampling")
    if isinstance(sampling, Mapping):
        _refuse_unknown(path, sampling, Sampling, at="sampling.")
    try:
        scenario = from_builtins(Scenario, table)
    except ShapeError as error:
        raise UsageError(f"{path}: {error}", "see repro/tool-calls.toml for the form") from error
    for key, is_right, want in _rules(scenario):
        if not is_right:
            raise UsageError(f"{path}: `{key}` is {_value(scenario, key)!r}", f"it must be {want}")
    return scenario


def _refuse_unknown(
    path: Path, table: Mapping[str, Any], into: type[Scenario] | type[Sampling], *, at: str
) -> None:
    known = [each.name for each in dataclasses.fields(into)]
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            guess = f"did you mean `{at}{near[0]}`?" if near else f"known are {', '.join(known)}"
            raise UsageError(f"{path}: unknown key `{at}{key}`", guess)


def _value(scenario: Scenario, key: str) -> object:
    value: object = scenario
    for part in key.split("."):
        value = getattr(value, part)
    return value


def _rules(scenario: Scenario) -> Iterable[tuple[str, bool, str]]:
    """What a well-typed scenario must fulfil besides: key, whether it does, what it must be."""
    yield from _shape_rules(scenario)
    yield from _call_rules(scenario)
    yield from _sampling_rules(scenario.sampling)


def _shape_rules(scenario: Scenario) -> Iterable[tuple[str, bool, str]]:
    first, last = scenario.context_tokens
    shared, jitter = scenario.shared_prompt_tokens, scenario.context_jitter
    rising = f"[first, last], rising, and above shared_prompt_tokens ({shared})"
    yield "name", bool(scenario.name) and "/" not in scenario.name, "a name without slashes"
    yield "turns", 1 <= scenario.turns <= _MOST_TURNS, f"1 to {_MOST_TURNS}"
    yield "context_tokens", shared < first <= last, rising
    yield "turn_kinds", bool(scenario.turn_kinds), "a list of at least one kind"
    yield "context_jitter", 0 <= jitter <= _MOST_JITTER, f"0 to {_MOST_JITTER}"
    yield "shared_prompt_tokens", shared > 0, "above 0"


def _call_rules(scenario: Scenario) -> Iterable[tuple[str, bool, str]]:
    canaries, calls, choice = (
        scenario.canaries_per_call, scenario.calls_per_turn, scenario.tool_choice,
    )  # fmt: skip
    yield "canaries_per_call", 1 <= canaries <= _MOST_CANARIES, f"1 to {_MOST_CANARIES}"
    yield "calls_per_turn", 1 <= calls <= _MOST_CALLS, f"1 to {_MOST_CALLS}"
    yield "values", scenario.values in _VALUES, f"one of {', '.join(_VALUES)}"
    yield "long_text_tokens", scenario.long_text_tokens >= 40, "at least 40"
    yield "abort_after_tokens", scenario.abort_after_tokens >= 1, "at least 1"
    yield "tool_choice", choice in _TOOL_CHOICES, f"one of {', '.join(_TOOL_CHOICES)}"


def _sampling_rules(sampling: Sampling) -> Iterable[tuple[str, bool, str]]:
    temperature, top_p = sampling.temperature, sampling.top_p
    yield "sampling.max_tokens", sampling.max_tokens >= 1, "at least 1"
    yield "sampling.temperature", temperature is None or temperature >= 0, "0 or more"
    yield "sampling.top_p", top_p is None or 0 < top_p <= 1, "above 0, at most 1"
