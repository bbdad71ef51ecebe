"""A run's JSON object and its worst records → a `Report` that any format can render."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dsv4doctor.codec import to_builtins
from dsv4doctor.finding import Finding
from dsv4doctor.report import repro
from dsv4doctor.report.document import Block, Note, Report, Section, Tone
from dsv4doctor.report.examples import example_section, worst_examples
from dsv4doctor.report.members import integer, mapping
from dsv4doctor.report.next_steps import next_steps
from dsv4doctor.report.server import server_section
from dsv4doctor.report.wedge import wedge_section
from dsv4doctor.report.wording import moment, percent, rate_sentence
from dsv4doctor.units import many

_EXAMPLES_SHOWN = 3
_TONES = {
    "corrupted": Tone.BAD,
    "wedged": Tone.BAD,
    "clean": Tone.GOOD,
    "undecided": Tone.CAUTION,
    "unreachable": Tone.CAUTION,
}


def build_repro_report(
    verdict: str,
    summary: Mapping[str, Any],
    *,
    findings: Sequence[Finding | Mapping[str, Any]] = (),
    examples: Iterable[Mapping[str, Any]] = (),
    exit_code: int | None = None,
) -> Report:
    """The report of one `repro` run.

    `summary` is the contract's `repro` object, fresh (with dataclasses in it) or read from disk;
    `examples` are records, any number of them: the worst are shown.
    """
    data: dict[str, Any] = to_builtins(dict(summary))
    sections = [
        repro.run_section(data),
        wedge_section(data),
        repro.kinds_section(data),
        *repro.groups_sections(data),
        *_example_sections(examples),
        repro.latency_section(data),
        repro.failures_section(data),
        server_section(data),
        Section(title="What to try next", blocks=next_steps(verdict, data)),
        repro.evidence_section(data),
    ]
    return Report(
        command="repro",
        title=f"dsv4doctor repro: {verdict}",
        verdict=verdict,
        verdict_sentence=verdict_sentence(verdict, data),
        tone=_TONES.get(verdict, Tone.PLAIN),
        sections=tuple(section for section in sections if section is not None),
        data=data,
        findings=tuple(to_builtins(finding) for finding in findings),
        exit_code=exit_code,
    )


def verdict_sentence(verdict: str, data: Mapping[str, Any]) -> str:
    """The verdict with its numbers, in words that can stand alone."""
    if verdict == "corrupted":
        return _corruption(data)
    if verdict == "clean":
        return _clean(data)
    if verdict == "wedged":
        seen = f" {_corruption(data)}" if data.get("corrupted_responses") else ""
        return _wedge(data) + seen
    if verdict == "unreachable":
        return _unreachable(data)
    seen = f"nothing corrupted was seen in {many(integer(data, 'responses'), 'response')}"
    if data.get("interrupted"):
        return f"Interrupted: {seen}, which proves nothing until the run is finished."
    return (
        f"{seen.capitalize()}, but "
        f"{many(integer(data, 'failures'), 'request')} failed: too many to call the deployment "
        "clean."
    )


def _unreachable(data: Mapping[str, Any]) -> str:
    server = mapping(data.get("target")).get("base_url") or "the server"
    failures = integer(data, "failures")
    if mapping(data.get("by_failure")).get("http_error"):
        return f"{server} answers, but served not one of {many(failures, 'request')}."
    asked = f"Not one of {many(failures, 'request')} was answered: " if failures else ""
    return f"{asked}{server} cannot be reached."


def _corruption(data: Mapping[str, Any]) -> str:
    responses = rate_sentence(mapping(data.get("response_rate")), "response")
    sessions = rate_sentence(mapping(data.get("session_rate")), "session")
    return f"{responses} came back corrupted, in {sessions}."


def _clean(data: Mapping[str, Any]) -> str:
    bound = mapping(data.get("clean_bound"))
    said = f"None of {many(integer(data, 'responses'), 'response')} was corrupted"
    if not bound:
        return f"{said}."
    needed = " and ".join(
        f"{count:,} would prove {100 * rate:g} %"
        for rate, count in bound.get("to_prove") or ()
        if count > bound["n"]
    )
    said = (
        f"{said}. {many(bound['n'], 'clean session')} prove that fewer than "
        f"{percent(bound['upper'])} of sessions are hit ({100 * bound['level']:g} % sure)"
    )
    return f"{said}; {needed}." if needed else f"{said}."


def _wedge(data: Mapping[str, Any]) -> str:
    wedge = mapping(data.get("wedge"))
    silent = wedge.get("silent_s")
    for_long = f" for {silent:.0f} s" if isinstance(silent, int | float) else ""
    since = wedge.get("since_unix")
    when = f", since {moment(since)}" if isinstance(since, int | float) else ""
    after = str(wedge.get("detail") or wedge.get("after") or "nothing that we did")
    return f"Requests are in flight and no session gets a token{for_long}{when}, after: {after}."


def _example_sections(examples: Iterable[Mapping[str, Any]]) -> list[Section]:
    worst = worst_examples(examples, _EXAMPLES_SHOWN)
    if not worst:
        return []
    said: tuple[Block, ...] = (
        Note(text="Text from the server is shown as text; hidden characters are spelt out."),
    )
    return [
        Section(title="Worst examples", blocks=said),
        *(example_section(record) for record in worst),
    ]
