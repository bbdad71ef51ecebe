"""A bench's JSON object → a `Report`: speed, its intervals, and what was right of what came."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dsv4doctor import __version__
from dsv4doctor.codec import to_builtins
from dsv4doctor.finding import Finding
from dsv4doctor.report import repro
from dsv4doctor.report.document import Block, Column, Facts, Note, Report, Section, Table, Tone
from dsv4doctor.report.examples import example_section, worst_examples
from dsv4doctor.report.members import integer, mapping, number, sequence
from dsv4doctor.report.server import server_section
from dsv4doctor.report.wording import NO_VALUE, count, milliseconds, share_of
from dsv4doctor.units import many

_TONES = {
    "corrupted": Tone.BAD,
    "errors": Tone.BAD,
    "wedged": Tone.BAD,
    "worse": Tone.BAD,
    "better": Tone.GOOD,
    "same": Tone.GOOD,
    "undecided": Tone.CAUTION,
    "unreachable": Tone.CAUTION,
}
_LATENCIES = (
    ("ttft", "TTFT"),
    ("itl", "ITL"),
    ("tpot", "TPOT"),
    ("e2e_latency", "E2E"),
)
_COLUMNS = ("mean", "median", "p90", "p99", "max")
_EXAMPLES_SHOWN = 3
# Below this many samples the 99th percentile is the largest one by another name.
_SAMPLES_FOR_P99 = 100
# Past this many tokens a chunk, a gap between chunks is no time per token.
_ONE_TOKEN_A_CHUNK = 1.05


def build_bench_report(
    verdict: str,
    summary: Mapping[str, Any],
    *,
    findings: Sequence[Finding | Mapping[str, Any]] = (),
    examples: Iterable[Mapping[str, Any]] = (),
    exit_code: int | None = None,
) -> Report:
    """The report of one `bench`; `summary` is its JSON object, fresh or read from disk."""
    data: dict[str, Any] = to_builtins(dict(summary))
    levels = [mapping(level) for level in sequence(data.get("levels"))]
    found = [to_builtins(finding) for finding in findings]
    sections = [
        _run_section(data),
        _comparison_section(data, levels),
        _throughput_section(levels),
        _rightness_section(levels),
        *(_latency_section(level) for level in levels if level.get("completed")),
        _trust_section(data),
        repro.kinds_section(data) if data.get("corrupted_responses") else None,
        *_example_sections(examples),
        repro.failures_section(data),
        server_section(data),
        repro.evidence_section(data),
    ]
    return Report(
        command="bench",
        title=f"dsv4doctor bench: {verdict}",
        verdict=verdict,
        verdict_sentence=verdict_sentence(verdict, data, found),
        tone=_TONES.get(verdict, Tone.PLAIN),
        sections=tuple(section for section in sections if section is not None),
        data=data,
        findings=tuple(found),
        exit_code=exit_code,
    )


def verdict_sentence(
    verdict: str, data: Mapping[str, Any], findings: Sequence[Mapping[str, Any]] = ()
) -> str:
    """The verdict with its numbers, in words that can stand alone."""
    levels = [mapping(level) for level in sequence(data.get("levels"))]
    if verdict == "unreachable":
        server = mapping(data.get("target")).get("base_url") or "the server"
        reasons = [str(note) for note in sequence(data.get("notes"))]
        return f"{server} served nothing: {reasons[-1] if reasons else 'no request was answered'}"
    speed = "; ".join(_speed(level) for level in levels if level.get("completed"))
    said = f"{speed or 'No block came to its end'}. {_rightness(data)}"
    heads = {
        "wedged": "The server stopped answering. ",
        "worse": "Slower than the baseline. ",
        "better": "Faster than the baseline. ",
        "same": "As fast as the baseline, within the margin. ",
        "undecided": _undecided(data),
        "corrupted": "Not all that came was right. ",
        "errors": "Not every request was served. ",
    }
    worse = [str(each.get("title")) for each in findings if each.get("rule") == "SLOWER"]
    tail = f" It is {'; '.join(worse)}." if worse and verdict != "worse" else ""
    return f"{heads.get(verdict, '')}{said}{tail}"


def _undecided(data: Mapping[str, Any]) -> str:
    if data.get("interrupted"):
        return "Interrupted. "
    return "Too few blocks to say whether the speed changed. "


def _speed(level: Mapping[str, Any]) -> str:
    found = _interval(level, "output_throughput", ",.1f")
    bounds = f" (95 % interval {found})" if found else ""
    return f"{_flying(level)}: {_plain(level.get('output_throughput'), ',.1f')} tokens/s{bounds}"


def _rightness(data: Mapping[str, Any]) -> str:
    responses = integer(data, "responses")
    corrupted = data.get("corrupted_responses")
    right = (
        "replies were not judged (they were made to go on past their end)"
        if corrupted is None
        else f"{share_of(int(corrupted), responses, 'response')} corrupted"
    )
    return f"{many(integer(data, 'errors'), 'error')}, {right}."


def _flying(level: Mapping[str, Any]) -> str:
    limit = level.get("max_concurrency")
    return "No limit in flight" if limit is None else f"{limit} in flight"


def _interval(level: Mapping[str, Any], name: str, form: str) -> str:
    """`521.0 to 538.2`; empty where one block shows no spread."""
    found = mapping(mapping(level.get("intervals")).get(name))
    low, high = number(found.get("low")), number(found.get("high"))
    return "" if low is None or high is None else f"{low:{form}} to {high:{form}}"


def _run_section(data: Mapping[str, Any]) -> Section:
    target, workload = mapping(data.get("target")), mapping(data.get("workload"))
    engine = " ".join(str(target[key]) for key in ("engine", "version") if target.get(key))
    rows = [
        ("dsv4doctor", str(data.get("dsv4doctor_version") or __version__)),
        ("server", str(target.get("base_url") or NO_VALUE)),
        ("engine", engine or "not said"),
        ("model", str(target.get("model") or "not said")),
        ("prompts", _prompts(workload)),
        ("arrivals", _arrivals(workload)),
        ("warm-up", f"{many(integer(data, 'warmup_requests'), 'request')} a level, not measured"),
    ]
    if target.get("lab"):
        rows.insert(2, ("this is", "the built-in lab, a miniature deployment on a virtual clock"))
    segments = data.get("segments")
    if isinstance(segments, int) and segments > 1:
        rows.append(("segments", f"{segments}: the run was resumed; whole blocks were kept"))
    blocks: list[Block] = [Facts(rows=tuple(rows))]
    if data.get("interrupted"):
        text = "The run was interrupted: only blocks that came to their end are measured."
        blocks.append(Note(text=text, tone=Tone.CAUTION))
    blocks += [Note(text=str(note)) for note in sequence(data.get("notes"))]
    return Section(title="The run", blocks=tuple(blocks))


def _prompts(workload: Mapping[str, Any]) -> str:
    salted = "each new to the server's cache" if workload.get("salted") else "sent as they are"
    if workload.get("dataset") != "synthetic":
        return f"from {workload.get('dataset')}, {salted}"
    jitter = number(workload.get("length_jitter")) or 0.0
    spread = f", ± {100 * jitter:g} %" if jitter else ""
    return (
        f"synthetic, about {workload.get('input_len')} tokens in and "
        f"{workload.get('output_len')} out{spread}, {salted}, seed {workload.get('seed')}"
    )


def _arrivals(workload: Mapping[str, Any]) -> str:
    rate = number(workload.get("request_rate"))
    if rate is not None:
        return f"{rate:g} a second, {workload.get('arrival')}"
    ramp = number(workload.get("ramp_up_s")) or 0.0
    return "closed loop" + (f", started over {ramp:g} s" if ramp else "")


def _throughput_section(levels: Sequence[Mapping[str, Any]]) -> Section:
    titles = ("in flight", "output tok/s", "95 % interval", "tok/s a stream", "req/s")
    rows = [
        (
            _limit(level),
            _plain(level.get("output_throughput"), ",.1f"),
            _interval(level, "output_throughput", ",.1f") or NO_VALUE,
            _plain(level.get("median_request_tokens_per_s"), ".1f"),
            _plain(level.get("request_throughput"), ".2f"),
        )
        for level in levels
    ]
    blocks: list[Block] = [
        _table(titles, rows),
        Note(
            text="The interval is of the mean over blocks. A stream's pace is 1 / TPOT, the median "
            "of all."
        ),
    ]
    if any(level.get("output_tokens_counted") is False for level in levels):
        text = "The server reports no token counts: chunks stand for tokens, so speed is a guess."
        blocks.append(Note(text=text, tone=Tone.CAUTION))
    return Section(title="Throughput", blocks=tuple(blocks), key="throughput")


def _rightness_section(levels: Sequence[Mapping[str, Any]]) -> Section:
    titles = ("in flight", "blocks", "responses", "errors", "corrupted", "tok/s not corrupted")
    rows = [
        (
            _limit(level),
            f"{len(sequence(level.get('blocks')))}/{level.get('blocks_asked')}",
            count(level.get("responses")),
            count(level.get("errors")),
            "not judged"
            if level.get("corrupted_responses") is None
            else count(level.get("corrupted_responses")),
            _plain(level.get("uncorrupted_output_throughput"), ",.1f"),
        )
        for level in levels
    ]
    return Section(title="What came", blocks=(_table(titles, rows),), key="rightness")


def _table(titles: Sequence[str], rows: Iterable[tuple[str, ...]]) -> Table:
    columns = tuple(Column(title=title, is_number=True) for title in titles)
    return Table(columns=columns, rows=tuple(rows))


def _limit(level: Mapping[str, Any]) -> str:
    return str(level.get("max_concurrency") or "no limit")


def _plain(value: Any, form: str) -> str:
    said = number(value)
    return NO_VALUE if said is None else f"{said:{form}}"


def _latency_section(level: Mapping[str, Any]) -> Section:
    rows, few = [], []
    for key, name in _LATENCIES:
        samples = integer(level, f"n_{key}")
        if not samples:
            continue
        if samples < _SAMPLES_FOR_P99:
            few.append(name)
        values = (milliseconds(number(level.get(f"{kind}_{key}_ms"))) for kind in _COLUMNS)
        rows.append((name, *values, count(samples)))
    columns = (
        Column(title=""),
        *(Column(title=title, is_number=True) for title in (*_COLUMNS, "n")),
    )
    blocks: list[Block] = [Table(columns=columns, rows=tuple(rows))]
    if few:
        text = f"Under {_SAMPLES_FOR_P99} samples p99 is the maximum: {', '.join(few)}."
        blocks.append(Note(text=text))
    carried = number(level.get("tokens_per_chunk"))
    if carried is not None and carried > _ONE_TOKEN_A_CHUNK:
        text = f"One chunk carries {carried:.2f} tokens, so ITL is a gap between chunks; see TPOT."
        blocks.append(Note(text=text))
    return Section(title=f"Latency, {_flying(level).lower()}", blocks=tuple(blocks))


def _trust_section(data: Mapping[str, Any]) -> Section | None:
    notes = tuple(repro.trust_notes(data))
    return Section(title="Can these times be believed?", blocks=notes) if notes else None


def _comparison_section(
    data: Mapping[str, Any], levels: Sequence[Mapping[str, Any]]
) -> Section | None:
    baseline = mapping(data.get("baseline"))
    if not baseline:
        return None
    titles = ("in flight", "metric", "before", "now", "change", "interval", "")
    rows = [
        _comparison_row(level, name, mapping(change))
        for level in levels
        for name, change in mapping(level.get("comparison")).items()
    ]
    margin = 100 * (number(baseline.get("margin")) or 0.0)
    reasons = {
        str(mapping(change).get("reason"))
        for level in levels
        for change in mapping(level.get("comparison")).values()
        if mapping(change).get("reason")
    }
    blocks: list[Block] = [
        Table(
            columns=tuple(Column(title=title, is_number=title in titles[2:6]) for title in titles),
            rows=tuple(rows),
        ),
        Note(
            text=f"Against {baseline.get('run_dir')}. “same” means within {margin:g} % either way; "
            "the intervals hold together at 95 %, over blocks. How one launch of a server differs "
            "from the next is not in them."
        ),
        *(Note(text=f"Undecided: {reason}.", tone=Tone.CAUTION) for reason in sorted(reasons)),
    ]
    return Section(title="Compared with the baseline", blocks=tuple(blocks), key="comparison")


def _comparison_row(
    level: Mapping[str, Any], name: str, change: Mapping[str, Any]
) -> tuple[str, ...]:
    low, high = number(change.get("low")), number(change.get("high"))
    said = str(change.get("verdict"))
    needed = change.get("blocks_needed")
    return (
        _limit(level),
        name,
        _plain(change.get("before"), ".4g"),
        _plain(change.get("now"), ".4g"),
        _relative(number(change.get("change"))),
        NO_VALUE if low is None or high is None else f"{_relative(low)} to {_relative(high)}",
        f"{said} ({needed} blocks would do)" if needed else said,
    )


def _relative(change: float | None) -> str:
    return NO_VALUE if change is None else f"{100 * change:+.1f} %"


def _example_sections(examples: Iterable[Mapping[str, Any]]) -> list[Section]:
    worst = worst_examples(examples, _EXAMPLES_SHOWN)
    head = Note(text="Text from the server is shown as text; hidden characters are spelt out.")
    if not worst:
        return []
    return [
        Section(title="Worst examples", blocks=(head,)),
        *(example_section(record) for record in worst),
    ]
