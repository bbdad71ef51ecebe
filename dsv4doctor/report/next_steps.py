"""What to try next after a `repro` run: commands that tell the suspects apart."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from dsv4doctor.report.document import Block, Command, Note
from dsv4doctor.report.members import mapping, sequence

DEFAULT_SCENARIO = "tool-calls"
# A clean run of sixty proves little; this many prove 1 %.
_SESSIONS_FOR_ONE_PERCENT = 299
_LAB_INDEX_K = "bf16"
_LAB_FAULT = "index-race"
_LAB_SUSPECTS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"hicache": False}, "nothing is loaded back: clean means that loading has a part in it"),
    ({"index_k": "fp8"}, "half the bytes to load: clean means that the time it takes matters"),
    ({"fixes": ["index-gate"]}, "the index read waits for its load: clean names the cause"),
)
_PARSER_LABELS = frozenset({"dsml_leak", "malformed_arguments", "schema_violation"})


def next_steps(verdict: str, summary: Mapping[str, Any]) -> tuple[Block, ...]:
    """The commands worth running after this verdict, the most telling first."""
    if verdict == "corrupted":
        return tuple(_after_corruption(summary))
    if verdict == "wedged":
        return _after_wedge(summary)
    if verdict == "clean":
        return _after_clean(summary)
    if verdict == "unreachable":
        return _after_unreachable(summary)
    return (
        Command(
            line=f"{_same(summary)} --max-concurrency 8",
            why="fewer requests at a time: do they still fail? The failures above say how",
        ),
    )


def same_again(summary: Mapping[str, Any]) -> Command:
    """The command that sends the same bytes again."""
    words = ["--sessions", str(summary.get("sessions")), "--turns", str(summary.get("turns"))]
    context = sequence(summary.get("context_tokens"))
    if len(context) == 2:
        words += ["--context-tokens", f"{context[0]}:{context[1]}"]
    return Command(line=f"{_same(summary)} {shlex.join(words)}", why="sends the same prompts again")


def _is_lab(summary: Mapping[str, Any]) -> bool:
    return bool(mapping(summary.get("target")).get("lab"))


def _other(summary: Mapping[str, Any], scenario: str, **lab: Any) -> str:
    """The command that was run, with another scenario and with `lab` changed."""
    words = ["dsv4doctor", "repro"]
    target = mapping(summary.get("target"))
    if _is_lab(summary):
        words += _lab_flags({**mapping(target.get("lab")), **lab})
    elif target.get("base_url"):
        words += ["--base-url", str(target["base_url"])]
    words += ["--seed", str(summary.get("seed"))]
    return shlex.join(words if scenario == DEFAULT_SCENARIO else [*words, "--scenario", scenario])


def _same(summary: Mapping[str, Any], **lab: Any) -> str:
    return _other(summary, str(summary.get("scenario") or DEFAULT_SCENARIO), **lab)


def _lab_flags(lab: Mapping[str, Any]) -> list[str]:
    """The `--lab-*` flags of a lab that is not set as it is by default."""
    words = []
    if lab.get("index_k", _LAB_INDEX_K) != _LAB_INDEX_K:
        words += ["--lab-index-k", str(lab["index_k"])]
    if lab.get("hicache", True) is not True:
        words += ["--lab-hicache", "off"]
    faults = sequence(lab.get("faults"))
    for name in () if list(faults) == [_LAB_FAULT] else faults:
        words += ["--lab-fault", str(name)]
    for name in sequence(lab.get("fixes")):
        words += ["--lab-fix", str(name)]
    for switch in sequence(lab.get("switches")):
        if len(sequence(switch)) == 2:
            words += ["--lab-option", f"{switch[0]}={switch[1]}"]
    return words


def _after_corruption(summary: Mapping[str, Any]) -> Sequence[Block]:
    steps: list[Block] = [
        Command(
            line=f"{_same(summary)} --sessions 1",
            why="one session alone: clean means that the fault needs company (shared cache, load)",
        ),
        Command(
            line=_other(summary, "short-context"),
            why="below 2,048 tokens the indexer cannot choose wrongly: clean means that the fault "
            "is in what it reads",
        ),
    ]
    if _PARSER_LABELS & set(mapping(summary.get("by_label"))):
        steps.append(
            Command(
                line=f"{_other(summary, 'parser-probe')} --sessions 8",
                why="unusual values in short contexts: corrupt means that the tool parser has a "
                "part in it",
            )
        )
    if not _is_lab(summary):
        steps.append(
            Note(
                text="Then relaunch the server with one suspect changed (hierarchical cache off; "
                "another index-K format) and run the same command with the same seed."
            )
        )
        return steps
    for lab, why in _LAB_SUSPECTS:
        line = _same(summary, **lab)
        if line != _same(summary):
            steps.append(Command(line=line, why=why))
    return steps


def _after_wedge(summary: Mapping[str, Any]) -> tuple[Block, ...]:
    return (
        Note(
            text="Before restarting anything, take stack dumps of the scheduler and transfer "
            "processes (py-spy dump --pid PID): they are gone after a restart."
        ),
        Command(
            line=_other(summary, "abort-storm"),
            why="after a restart: does it wedge again, and sooner, when requests are aborted?",
        ),
        Command(
            line=_other(summary, "long-text"),
            why="the same load without an abort: clean means that aborts are what it takes",
        ),
    )


def _after_clean(summary: Mapping[str, Any]) -> tuple[Block, ...]:
    sessions = summary.get("sessions")
    steps: list[Block] = []
    if not isinstance(sessions, int) or sessions < _SESSIONS_FOR_ONE_PERCENT:
        steps.append(
            Command(
                line=f"{_same(summary)} --sessions {_SESSIONS_FOR_ONE_PERCENT}",
                why="as many clean sessions prove a rate below 1 %",
            )
        )
    steps.append(
        Command(
            line=f"{_other(summary, DEFAULT_SCENARIO)} --context-tokens 8000:32000",
            why="longer contexts load more pages at a time: a narrow window opens there",
        )
    )
    return tuple(steps)


def _after_unreachable(summary: Mapping[str, Any]) -> tuple[Block, ...]:
    url = str(mapping(summary.get("target")).get("base_url") or "http://HOST:PORT")
    return (
        Command(line=shlex.join(["curl", "-sS", f"{url}/health"]), why="is anything there?"),
        Command(line="dsv4doctor repro", why="the same sessions against the built-in lab"),
    )
