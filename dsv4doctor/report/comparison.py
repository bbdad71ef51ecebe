"""Several runs side by side: rates with their intervals, and what was decided of each pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dsv4doctor.codec import to_builtins
from dsv4doctor.report.document import (
    Column,
    Note,
    RateRow,
    RateTable,
    Report,
    Section,
    Table,
    Tone,
)
from dsv4doctor.report.members import integer, mapping, number
from dsv4doctor.report.wording import NO_VALUE, count, milliseconds, moment, percent
from dsv4doctor.units import many
from dsv4doctor.verdict import Comparison

_TONES = {"differ": Tone.BAD, "equivalent": Tone.GOOD, "undecided": Tone.CAUTION}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """One run of a comparison: its name there (a letter), verdict and `repro` object."""

    name: str
    directory: str
    verdict: str
    summary: Mapping[str, Any]
    started_unix: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """The runs, and what was decided of each pair; without a decision, `undecidable` says why."""

    runs: tuple[RunEntry, ...]
    comparisons: tuple[Comparison, ...] = ()
    undecidable: str = ""
    verdict: str = "undecided"
    notes: tuple[str, ...] = field(default_factory=tuple)


def build_comparison_report(compared: RunComparison, *, exit_code: int | None = None) -> Report:
    """The report of several runs. It claims a difference only where `comparisons` do."""
    runs = compared.runs
    sections = [
        Section(title="The runs", blocks=(_runs_table(runs), *map(_note, compared.notes))),
        Section(
            title="Rates",
            blocks=(
                _rates(runs, "session_rate", "sessions"),
                _rates(runs, "response_rate", "responses"),
            ),
        ),
        _decision(compared),
        Section(title="Kinds", blocks=(_kinds(runs),)),
        Section(title="Latency", blocks=(_latency(runs),)),
    ]
    return Report(
        command="report",
        title=f"dsv4doctor report: {many(len(runs), 'run')} compared",
        verdict=compared.verdict,
        verdict_sentence=_sentence(compared),
        tone=_TONES.get(compared.verdict, Tone.PLAIN) if compared.comparisons else Tone.PLAIN,
        sections=tuple(sections),
        data={
            "runs": [
                {
                    "name": run.name,
                    "directory": run.directory,
                    "verdict": run.verdict,
                    "summary": run.summary,
                }
                for run in runs
            ],
            "comparisons": to_builtins(compared.comparisons),
            "undecidable": compared.undecidable,
        },
        exit_code=exit_code,
    )


def _note(text: str) -> Note:
    return Note(text=text)


def _sentence(compared: RunComparison) -> str:
    rates = "; ".join(
        f"{run.name}: {_hit(mapping(run.summary.get('session_rate')))}" for run in compared.runs
    )
    if not compared.comparisons:
        return f"Sessions corrupted: {rates}. No difference is claimed: {compared.undecidable}."
    said = {
        "differ": "at least two of them differ",
        "equivalent": "they are equivalent within the margin",
        "undecided": "that is too little to say whether they differ",
    }[compared.verdict]
    return f"Sessions corrupted: {rates}; {said}."


def _hit(rate: Mapping[str, Any]) -> str:
    if rate.get("estimate") is None:
        return "none judged"
    return f"{rate['k']:,} of {rate['n']:,} ({percent(rate['estimate'])})"


def _runs_table(runs: Sequence[RunEntry]) -> Table:
    columns = (
        Column(title="run"),
        Column(title="directory"),
        Column(title="verdict"),
        Column(title="server"),
        Column(title="scenario"),
        Column(title="seed", is_number=True),
        Column(title="sessions", is_number=True),
        Column(title="failures", is_number=True),
        Column(title="started"),
    )
    return Table(columns=columns, rows=tuple(_run_row(run) for run in runs))


def _run_row(run: RunEntry) -> tuple[str, ...]:
    summary = run.summary
    target = mapping(summary.get("target"))
    lab = mapping(target.get("lab"))
    server = str(target.get("base_url") or NO_VALUE)
    if lab:
        fixes = f", fix {', '.join(map(str, lab.get('fixes') or ()))}" if lab.get("fixes") else ""
        hicache = "on" if lab.get("hicache") else "off"
        faults = ", ".join(map(str, lab.get("faults") or ()))
        server = f"the lab: index-K {lab.get('index_k')}, HiCache {hicache}, fault {faults}{fixes}"
    return (
        run.name,
        run.directory,
        run.verdict,
        server,
        str(summary.get("scenario")),
        str(summary.get("seed")),
        count(summary.get("sessions")),
        count(integer(summary, "failures")),
        moment(run.started_unix),
    )


def _rates(runs: Sequence[RunEntry], key: str, of: str) -> RateTable:
    nothing = {"k": 0, "n": 0, "estimate": None, "low": 0.0, "high": 1.0, "level": 0.95}
    return RateTable(
        caption=f"{of.capitalize()} corrupted",
        group_title="run",
        of=of,
        rows=tuple(
            RateRow(group=run.name, rate=mapping(run.summary.get(key)) or nothing) for run in runs
        ),
    )


def _decision(compared: RunComparison) -> Section:
    title = "Do they differ?"
    if not compared.comparisons:
        return Section(title=title, blocks=(Note(text=f"Not decided: {compared.undecidable}."),))
    columns = (
        Column(title="pair"),
        Column(title="verdict"),
        Column(title="difference", is_number=True),
        Column(title="p, adjusted", is_number=True),
        Column(title="why"),
    )
    rows = tuple(
        (
            f"{pair.a} less {pair.b}",
            pair.verdict.value,
            _difference(pair),
            f"{pair.p_value_adjusted:.2g}",
            pair.reason,
        )
        for pair in compared.comparisons
    )
    note = Note(
        text="Sessions are the unit; the test is exact and for runs looked at once (Holm over all "
        "pairs). Each run here is one launch at one time: what else changed between them is not "
        "told apart from what you changed. dsv4doctor ab interleaves them."
    )
    return Section(title=title, blocks=(Table(columns=columns, rows=rows), note))


def _difference(pair: Comparison) -> str:
    contrast = pair.difference
    if contrast.estimate is None:
        return NO_VALUE
    points = (contrast.estimate, contrast.low, contrast.high)
    estimate, low, high = (f"{100 * value:+.1f}" for value in points)
    return f"{estimate} ({low} to {high}) points"


def _kinds(runs: Sequence[RunEntry]) -> Table:
    labels = sorted({label for run in runs for label in mapping(run.summary.get("by_label"))})
    columns = (
        Column(title="label"),
        *(Column(title=run.name, is_number=True) for run in runs),
    )
    rows = tuple(
        (label, *(count(integer(mapping(run.summary.get("by_label")), label)) for run in runs))
        for label in labels
    )
    return Table(columns=columns, rows=rows)


def _latency(runs: Sequence[RunEntry]) -> Table:
    columns = (
        Column(title="run"),
        Column(title="TTFT p50", is_number=True),
        Column(title="TTFT p99", is_number=True),
        Column(title="E2E p50", is_number=True),
        Column(title="E2E p99", is_number=True),
        Column(title="n", is_number=True),
        Column(title="tokens/s", is_number=True),
    )
    return Table(columns=columns, rows=tuple(_latency_row(run) for run in runs))


def _latency_row(run: RunEntry) -> tuple[str, ...]:
    ttft, whole = (mapping(run.summary.get(key)) for key in ("ttft_ms", "e2e_latency_ms"))
    throughput = number(run.summary.get("output_throughput"))
    return (
        run.name,
        *(milliseconds(number(ttft.get(point))) for point in ("p50", "p99")),
        *(milliseconds(number(whole.get(point))) for point in ("p50", "p99")),
        count(whole.get("n")),
        NO_VALUE if throughput is None else f"{throughput:,.1f}",
    )
