"""`report`: runs that are on disk, told again in any format, alone or side by side.

Nothing is judged again: a finished run keeps its verdict, and a killed one is summed up from the
labels in its records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from dsv4doctor.codec import from_builtins, to_builtins
from dsv4doctor.errors import EXIT_DONE, DoctorError, UsageError
from dsv4doctor.flows.report_compare import compared
from dsv4doctor.flows.report_load import AB, BENCH, DIAGNOSE, REPRO, LoadedRun, load_run
from dsv4doctor.flows.report_page import html_page
from dsv4doctor.report.ab import build_ab_report
from dsv4doctor.report.bench import build_bench_report
from dsv4doctor.report.build import build_repro_report
from dsv4doctor.report.checksum_live import build_live_report
from dsv4doctor.report.comparison import build_comparison_report
from dsv4doctor.report.diagnose import build_diagnose_report
from dsv4doctor.report.document import Note, Report, Section
from dsv4doctor.report.formats import console, csv, html, json, markdown
from dsv4doctor.report.generic import build_generic_report
from dsv4doctor.report.members import mapping
from dsv4doctor.report.publish import Publisher


class ReportFormat(StrEnum):
    CONSOLE = "console"
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


_OF_RECORDS = frozenset({ReportFormat.CSV, ReportFormat.PARQUET})
_RENDER = {
    ReportFormat.CONSOLE: console.render,
    ReportFormat.MARKDOWN: markdown.render,
    ReportFormat.JSON: json.render,
    ReportFormat.HTML: html.render,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOutcome:
    """What `report` made. `report` is None for a table of records; `content` is text or bytes.

    `removed` is what `--redact` took out, in words, or empty.
    """

    verdict: str
    content: str | bytes
    body: Mapping[str, Any]
    report: Report | None = None
    removed: str = ""
    notes: tuple[str, ...] = ()
    exit_code: int = EXIT_DONE


def run_report(
    paths: Sequence[Path], format_: ReportFormat, *, redact: bool = False
) -> ReportOutcome:
    """The runs at `paths` in one format.

    Raises:
        UsageError: if a path is no run directory, or the format cannot hold what is asked for.
        DoctorError: if a run cannot be told at all, or a library is missing.
    """
    if format_ is ReportFormat.PARQUET:
        csv.require_parquet("--format csv")  # before anything is read
    runs = [load_run(path) for path in paths]
    publisher = _publisher(runs) if redact else None
    if redact:
        # Where the runs lie tells of a machine and its user; what they are called does not.
        for run in runs:
            run.summary["run_dir"] = run.directory.path.name
    if format_ in _OF_RECORDS:
        return _table(runs, format_, publisher)
    if len(runs) > 1:
        report = build_comparison_report(compared(runs), exit_code=EXIT_DONE)
    else:
        report = _report_of(runs[0], publisher)
    if publisher is not None:
        report = _published(report, publisher)
    content = _rendered(report, runs, format_, publisher)
    return ReportOutcome(
        verdict=report.verdict,
        content=content,
        report=report,
        body=_body(runs, report, format_, publisher),
        removed=str(publisher.removed) if publisher else "",
        notes=tuple(note for run in runs for note in run.notes),
    )


def _publisher(runs: Sequence[LoadedRun]) -> Publisher:
    publisher = Publisher()
    for run in runs:
        plan = mapping(run.directory.manifest.get("plan"))
        publisher.know_target({"base_url": plan.get("base_url")})
        publisher.know_target(mapping(run.summary.get("target")))
        publisher.know_place(str(run.directory.path), run.directory.path.name)
    return publisher


def _records(run: LoadedRun, publisher: Publisher | None) -> Iterator[Mapping[str, Any]]:
    for record in run.records():
        yield record if publisher is None else publisher.record(record)


def _report_of(run: LoadedRun, publisher: Publisher | None) -> Report:
    if run.command == AB:
        return build_ab_report(
            run.verdict, run.summary, findings=run.findings, exit_code=run.exit_code
        )
    if run.command == BENCH:
        return build_bench_report(
            run.verdict,
            run.summary,
            findings=run.findings,
            examples=(record for record in _records(run, publisher) if record.get("corrupted")),
            exit_code=run.exit_code,
        )
    if mapping(run.summary.get("live")):
        return build_live_report(
            run.verdict, run.summary["live"], findings=run.findings, exit_code=run.exit_code
        )
    if run.command == DIAGNOSE and "considered" in run.summary:
        return build_diagnose_report(
            run.verdict, run.summary, findings=run.findings, exit_code=run.exit_code
        )
    if run.command != REPRO:
        return build_generic_report(
            run.command, run.verdict, run.summary, findings=run.findings, exit_code=run.exit_code
        )
    return build_repro_report(
        run.verdict,
        run.summary,
        findings=run.findings,
        examples=(record for record in _records(run, publisher) if record.get("corrupted")),
        exit_code=run.exit_code,
    )


def _published(report: Report, publisher: Publisher) -> Report:
    """The report with everything in it redacted, and a section that says what went."""
    data = publisher.value(dict(report.data))
    sections = tuple(_published_section(section, publisher) for section in report.sections)
    findings = tuple(publisher.finding(finding) for finding in report.findings)
    sentence = publisher.text(report.verdict_sentence)
    told = Section(
        title="Removed for publication",
        blocks=(
            Note(
                text=f"{publisher.removed}. What replies hold beside the prompt is the evidence "
                "and is still there: read it before you publish."
            ),
        ),
    )
    return replace(
        report,
        title=publisher.text(report.title),
        verdict_sentence=sentence,
        sections=(*sections, told),
        data={**data, "removed": publisher.removed.as_json()},
        findings=findings,
    )


def _published_section(section: Section, publisher: Publisher) -> Section:
    shown = publisher.value(to_builtins([to_builtins(each) for each in section.blocks]))
    blocks = tuple(
        from_builtins(type(each), made) for each, made in zip(section.blocks, shown, strict=True)
    )
    return replace(section, title=publisher.text(section.title), blocks=blocks)


def _rendered(
    report: Report, runs: Sequence[LoadedRun], format_: ReportFormat, publisher: Publisher | None
) -> str:
    if format_ is ReportFormat.HTML and len(runs) == 1:
        # What is removed has been counted with the examples; the list shows the same records.
        lister = publisher.again() if publisher else None
        return html_page(report, _records(runs[0], lister))
    return _RENDER[format_](report)


def _table(
    runs: Sequence[LoadedRun], format_: ReportFormat, publisher: Publisher | None
) -> ReportOutcome:
    if len(runs) > 1:
        raise UsageError(
            f"--format {format_} holds the records of one run, not of {len(runs)}",
            "give one RUN_DIR, or another format to compare runs",
        )
    if not (runs[0].directory.path / "records.jsonl").exists():
        raise DoctorError(f"{runs[0].directory.path} has no records", "choose another --format")
    records = _records(runs[0], publisher)
    is_csv = format_ is ReportFormat.CSV
    content = csv.render_csv(records) if is_csv else csv.render_parquet(records)
    return ReportOutcome(
        verdict=runs[0].verdict,
        content=content,
        body=_body(runs, None, format_, publisher),
        removed=str(publisher.removed) if publisher else "",
        notes=tuple(runs[0].notes),
    )


def _body(
    runs: Sequence[LoadedRun],
    report: Report | None,
    format_: ReportFormat,
    publisher: Publisher | None,
) -> dict[str, Any]:
    """The `report` object of the JSON document."""
    comparison = dict(report.data) if report is not None and len(runs) > 1 else {}
    return {
        "format": format_.value,
        "runs": [_run_body(run, publisher) for run in runs],
        "comparisons": comparison.get("comparisons", []),
        "undecidable": comparison.get("undecidable") or None,
        "removed": publisher.removed.as_json() if publisher else None,
    }


def _run_body(run: LoadedRun, publisher: Publisher | None) -> dict[str, Any]:
    summary = dict(run.summary) if publisher is None else publisher.value(dict(run.summary))
    path = run.directory.path
    return {
        "run_dir": str(path) if publisher is None else path.name,
        "command": run.command,
        "verdict": run.verdict,
        "recomputed": run.is_recomputed,
        "notes": [note if publisher is None else publisher.text(note) for note in run.notes],
        "summary": summary,
    }
