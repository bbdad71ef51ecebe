"""What a run has to say in the end, written into its directory before it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dsv4doctor.artifacts.store import REPORT_MARKDOWN, RunDirectory
from dsv4doctor.codec import to_builtins
from dsv4doctor.errors import EXIT_DONE, EXIT_FINDINGS
from dsv4doctor.finding import Finding, Severity

if TYPE_CHECKING:
    from dsv4doctor.report.document import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """`body` is the contract's object of the command; `resume_hint` the command that goes on with
    an interrupted run, empty for one that is whole."""

    verdict: str
    exit_code: int
    findings: tuple[Finding, ...]
    body: Mapping[str, Any]
    report: Report
    resume_hint: str = ""


def mild_is_done(code: int, findings: Iterable[Finding], fail_on: Severity) -> int:
    """`code`, but where it says that there are findings and none reaches `fail_on`: done."""
    is_grave = any(finding.severity.rank >= fail_on.rank for finding in findings)
    return EXIT_DONE if code == EXIT_FINDINGS and not is_grave else code


def write_conclusion(
    run: RunDirectory, conclusion: Conclusion, target: Mapping[str, Any], *, has_page: bool
) -> None:
    """Write findings, summary and report, with `has_page` the HTML page of the records too, and
    end the run. `target` is what came to be known of the server.

    Raises:
        DoctorError: if they cannot be written.
    """
    # Reports are made when there is something to tell, and imported then.
    from dsv4doctor.flows.report_page import REPORT_HTML, html_page
    from dsv4doctor.report.formats import markdown

    run.amend(target=target)
    run.write_findings(to_builtins(conclusion.findings))
    run.write_summary(
        {
            "verdict": conclusion.verdict,
            "exit_code": conclusion.exit_code,
            run.manifest["command"]: to_builtins(conclusion.body),
        }
    )
    run.write_text(REPORT_MARKDOWN, markdown.render(conclusion.report))
    if has_page:
        run.write_text(REPORT_HTML, html_page(conclusion.report, run.records()))
    run.finish()
