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
_PARSER_LABELS = frozenset({"dsml_leak", "malformed_arguments", "schema_violation"})


def next_steps(verdict: str, summary: Mapping[str, Any]) -> tuple[Block, ...]:
    """The commands worth running after this verdict, the most telling first."""
    base = _base_command(summary)
    is_lab = _is_lab(summary)
    if verdict == "corrupted":
        return tuple(_after_corruption(base, summary, is_lab=is_lab))
    if verdict == "wedged":
        return _after_wedge(base)
    if verdict == "clean":
        return _after_clean(base, summary)
    if verdict == "unreachable":
        return _after_unreachable(summary)
    return (
        Command(
            line=f"{base} --max-concurrency 8",
            why="fewer requests at a time: do they still fail? The failures above say how",
        ),
    )


def same_again(summary: Mapping[str, Any]) -> Command:
    """The command that sends the same bytes again."""
    words = ["--sessions", str(summary.get("sessions")), "--turns", str(summary.get("turns"))]
    context = sequence(summary.get("context_tokens"))
    if len(context) == 2:
        words += ["--context-tokens", f"{context[0]}:{context[1]}"]
    line = " ".join((_same_command(summary), *_lab_flags(summary), shlex.join(words)))
    return Command(line=line, why="sends the same prompts again")


def _is_lab(summary: Mapping[str, Any]) -> bool:
    return bool(mapping(summary.get("target")).get("lab"))


def _base_command(summary: Mapping[str, Any]) -> str:
    """The command that was run, as far as it matters for the next."""
    words = ["dsv4doctor", "repro"]
    target = mapping(summary.get("target"))
    if not _is_lab(summary) and target.get("base_url"):
        words += ["--base-url", str(target["base_url"])]
    return shlex.join([*words, "--seed", str(summary.get("seed"))])


def _same_command(summary: Mapping[str, Any]) -> str:
    scenario = str(summary.get("scenario") or DEFAULT_SCENARIO)
    base = _base_command(summary)
    return base if scenario == DEFAULT_SCENARIO else f"{base} --scenario {shlex.quote(scenario)}"


def _lab_flags(summary: Mapping[str, Any]) -> list[str]:
    """The `--lab-*` flags of a run against the lab, as far as it says how the lab was set."""
    lab = mapping(mapping(summary.get("target")).get("lab"))
    flags = []
    if lab.get("index_k"):
        flags.append(shlex.join(["--lab-index-k", str(lab["index_k"])]))
    if "hicache" in lab:
        flags.append(f"--lab-hicache {'on' if lab['hicache'] else 'off'}")
    flags += [shlex.join(["--lab-fault", str(name)]) for name in sequence(lab.get("faults"))]
    flags += [shlex.join(["--lab-fix", str(name)]) for name in sequence(lab.get("fixes"))]
    return flags


def _after_corruption(base: str, summary: Mapping[str, Any], *, is_lab: bool) -> Sequence[Block]:
    same = _same_command(summary)
    steps: list[Block] = [
        Command(
            line=f"{same} --sessions 1",
            why="one session alone: clean means that the fault needs company (shared cache, load)",
        ),
        Command(
            line=f"{base} --scenario short-context",
            why="below 2,048 tokens the indexer cannot choose wrongly: clean means that the fault "
            "is in what it reads",
        ),
    ]
    if _PARSER_LABELS & set(mapping(summary.get("by_label"))):
        steps.append(
            Command(
                line=f"{base} --scenario parser-probe --sessions 8",
                why="unusual values in short contexts: corrupt means that the tool parser has a "
                "part in it",
            )
        )
    if is_lab:
        for flag in ("--lab-hicache off", "--lab-index-k fp8", "--lab-fix index-gate"):
            steps.append(
                Command(line=f"{same} {flag}", why="the same load with one suspect changed")
            )
    else:
        steps.append(
            Note(
                text="Then relaunch the server with one suspect changed (hierarchical cache off; "
                "another index-K format) and run the same command with the same seed."
            )
        )
    return steps


def _after_wedge(base: str) -> tuple[Block, ...]:
    return (
        Note(
            text="Before restarting anything, take stack dumps of the scheduler and transfer "
            "processes (py-spy dump --pid PID): they are gone after a restart."
        ),
        Command(
            line=f"{base} --scenario abort-storm",
            why="after a restart: does it wedge again, and sooner, when requests are aborted?",
        ),
        Command(
            line=f"{base} --scenario long-text",
            why="the same load without an abort: clean means that aborts are what it takes",
        ),
    )


def _after_clean(base: str, summary: Mapping[str, Any]) -> tuple[Block, ...]:
    same = _same_command(summary)
    sessions = summary.get("sessions")
    steps: list[Block] = []
    if not isinstance(sessions, int) or sessions < _SESSIONS_FOR_ONE_PERCENT:
        steps.append(
            Command(
                line=f"{same} --sessions {_SESSIONS_FOR_ONE_PERCENT}",
                why="as many clean sessions prove a rate below 1 %",
            )
        )
    steps.append(
        Command(
            line=f"{base} --context-tokens 8000:32000",
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
