"""The sections of a `repro` report, each from the contract's `repro` object alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dsv4doctor import __version__
from dsv4doctor.report.document import Block, Column, Facts, Note, Section, Table, Tone
from dsv4doctor.report.members import integer, mapping, number, sequence
from dsv4doctor.report.next_steps import same_again
from dsv4doctor.report.wording import (
    LABEL_MEANINGS,
    NO_VALUE,
    count,
    milliseconds,
    percent,
)
from dsv4doctor.units import many

# Below this many samples the 99th percentile is the largest one by another name.
_SAMPLES_FOR_P99 = 100
_LATENCIES = (
    ("ttft_ms", "time to first token"),
    ("itl_ms", "between chunks"),
    ("e2e_latency_ms", "whole response"),
)


def run_section(summary: Mapping[str, Any]) -> Section:
    """What was sent to whom."""
    target = mapping(summary.get("target"))
    engine = " ".join(str(target[key]) for key in ("engine", "version") if target.get(key))
    sessions = integer(summary, "sessions")
    rows = [
        ("dsv4doctor", str(summary.get("dsv4doctor_version") or __version__)),
        ("server", str(target.get("base_url") or NO_VALUE)),
        ("engine", engine or "not said"),
        ("model", str(target.get("model") or "not said")),
        ("scenario", f"{summary.get('scenario')}, seed {summary.get('seed')}"),
        ("sent", f"{many(sessions, 'session')} of {many(integer(summary, 'turns'), 'turn')}"),
        (
            "outcome",
            f"{many(integer(summary, 'responses'), 'response')} judged, "
            f"{many(integer(summary, 'failures'), 'failure')}, "
            f"{integer(summary, 'aborted_by_us'):,} aborted by us on purpose",
        ),
    ]
    if target.get("lab"):
        rows.insert(2, ("this is", "the built-in lab, a miniature deployment"))
    segments = summary.get("segments")
    if isinstance(segments, int) and segments > 1:
        rows.append(("segments", f"{segments}: the run was resumed"))
    if summary.get("torn_lines"):
        rows.append(("dropped", f"{many(integer(summary, 'torn_lines'), 'torn line')} of records"))
    blocks: list[Block] = [Facts(rows=tuple(rows))]
    if summary.get("interrupted"):
        blocks.append(
            Note(text="The run was interrupted: what follows is what was seen.", tone=Tone.CAUTION)
        )
    blocks.extend(Note(text=str(note)) for note in sequence(summary.get("notes")))
    blocks.append(same_again(summary))
    return Section(title="The run", blocks=tuple(blocks))


def kinds_section(summary: Mapping[str, Any]) -> Section | None:
    """How many responses carried which label; None when there were no responses."""
    by_label = mapping(summary.get("by_label"))
    also = mapping(summary.get("also_label"))
    responses = integer(summary, "responses")
    if not by_label:
        return None
    rows = [
        (
            label,
            count(number),
            percent(number / responses if responses else None),
            count(also[label]) if also.get(label) else "",
            LABEL_MEANINGS.get(label, ""),
        )
        for label, number in by_label.items()
    ]
    rows += [
        (label, "0", percent(0.0), count(number), LABEL_MEANINGS.get(label, ""))
        for label, number in also.items()
        if label not in by_label
    ]
    columns = (
        Column(title="label"),
        Column(title="responses", is_number=True),
        Column(title="share", is_number=True),
        Column(title="also", is_number=True),
        Column(title="meaning"),
    )
    return Section(title="Kinds", blocks=(Table(columns=columns, rows=tuple(rows)),), key="kinds")


def groups_sections(summary: Mapping[str, Any]) -> tuple[Section, ...]:
    """Corruption by turn, by length of the prompt and by what was asked for."""
    sections = []
    for key, name, title in (
        ("by_turn", "turn", "By turn"),
        ("by_context", "context_tokens", "By prompt length"),
        ("by_kind", "kind", "By what was asked for"),
    ):
        groups = [group for group in sequence(summary.get(key)) if isinstance(group, Mapping)]
        if len(groups) > 1:
            sections.append(Section(title=title, blocks=(_group_table(groups, name),), key=key))
    return tuple(sections)


def _group_table(groups: Sequence[Mapping[str, Any]], name: str) -> Table:
    title = {"context_tokens": "prompt tokens from", "kind": "asked for"}.get(name, name)
    rows = [
        (
            count(group[name]) if isinstance(group.get(name), int) else str(group.get(name)),
            count(group.get("responses")),
            count(group.get("corrupted")),
            percent(_share(group)),
        )
        for group in groups
    ]
    columns = (
        Column(title=title, is_number=name != "kind"),
        Column(title="responses", is_number=True),
        Column(title="corrupted", is_number=True),
        Column(title="share", is_number=True),
    )
    return Table(columns=columns, rows=tuple(rows))


def latency_section(summary: Mapping[str, Any]) -> Section | None:
    """Latency with its sample counts, and whether it can be believed; None without samples."""
    rows, few = [], []
    for key, name in _LATENCIES:
        sample = mapping(summary.get(key))
        n = sample.get("n")
        if not isinstance(n, int) or n == 0:
            continue
        if n < _SAMPLES_FOR_P99:
            few.append(name)
        quantiles = (milliseconds(sample.get(point)) for point in ("p50", "p90", "p99"))
        rows.append((name, *quantiles, count(n)))
    if not rows:
        return None
    titles = ("p50", "p90", "p99", "n")
    columns = (Column(title=""), *(Column(title=title, is_number=True) for title in titles))
    blocks: list[Block] = [Table(columns=columns, rows=tuple(rows))]
    throughput = summary.get("output_throughput")
    if isinstance(throughput, int | float):
        blocks.append(Note(text=f"Output: {throughput:,.1f} tokens a second over all sessions."))
    if few:
        blocks.append(
            Note(text=f"Under {_SAMPLES_FOR_P99} samples p99 is the maximum: {', '.join(few)}.")
        )
    blocks.extend(trust_notes(summary))
    return Section(title="Latency", blocks=tuple(blocks), key="latency")


def trust_notes(summary: Mapping[str, Any]) -> Iterable[Note]:
    """Whether this client was late itself, by `client_lag_ms` and `timings_valid`."""
    lag = ", ".join(
        f"{name.removesuffix('_ms')} {value if name == 'n' else milliseconds(number(value))}"
        for name, value in mapping(summary.get("client_lag_ms")).items()
        if value is not None
    )
    said = f" Its own lag: {lag}." if lag else ""
    if summary.get("timings_valid") is False:
        yield Note(
            text="Do not believe these times: this client was the bottleneck." + said,
            tone=Tone.CAUTION,
        )
    elif summary.get("timings_valid") is None:
        yield Note(text="It was not measured whether this client was the bottleneck." + said)
    elif lag:
        yield Note(text="This client kept up." + said)


def failures_section(summary: Mapping[str, Any]) -> Section | None:
    """Requests that never became a response; None when there were none."""
    by_failure = mapping(summary.get("by_failure"))
    if not by_failure:
        return None
    columns = (
        Column(title="failure"),
        Column(title="requests", is_number=True),
        Column(title="meaning"),
    )
    rows = tuple(
        (kind, count(number), LABEL_MEANINGS.get(kind, "")) for kind, number in by_failure.items()
    )
    note = Note(text="Failures are counted beside corruption, never in its rate.")
    return Section(title="Failures", blocks=(Table(columns=columns, rows=rows), note))


def evidence_section(summary: Mapping[str, Any]) -> Section:
    """Where the run lies on disk."""
    rows = (
        ("run directory", str(summary.get("run_dir"))),
        ("every response", "records.jsonl"),
        ("bytes as received", "raw/, of each corrupted or failed response"),
        ("this report", "report.md, and report.html to look around in"),
    )
    return Section(title="Evidence", blocks=(Facts(rows=rows),))


def _share(group: Mapping[str, Any]) -> float | None:
    responses = group.get("responses")
    return group["corrupted"] / responses if isinstance(responses, int) and responses else None
