"""`checksum compare`: two dumps or manifests, and the manifest of one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dsv4doctor.errors import EXIT_DONE, EXIT_FINDINGS, UsageError
from dsv4doctor.finding import Evidence, Finding
from dsv4doctor.flows.checksum import Outcome
from dsv4doctor.flows.checksum_findings import PLACES_IN_EVIDENCE, error_finding
from dsv4doctor.units import many

if TYPE_CHECKING:
    from dsv4doctor.checksum.compare import Comparison

DIFFERENCES_SHOWN = 1000


def compare_files(left: Path, right: Path, layout_name: str | None) -> Outcome:
    """The outcome of comparing two dumps or manifests.

    Raises:
        UsageError: if a file cannot be used.
    """
    from dsv4doctor.checksum.compare import compare
    from dsv4doctor.checksum.dumps import parse_layout
    from dsv4doctor.checksum.manifest import read_side

    layout = parse_layout(layout_name) if layout_name else None
    result = compare(read_side(left, layout), read_side(right, layout))
    findings = _comparison_findings(result, right)
    differs = bool(findings)
    return Outcome(
        verdict="differ" if differs else "equal",
        exit_code=EXIT_FINDINGS if differs else EXIT_DONE,
        findings=findings,
        body={
            "hosts": [],
            "checks": [],
            "compare": {
                "left": str(left),
                "right": str(right),
                "tensors": result.tensors,
                "pages": result.pages,
                "differing_pages": len(result.differences),
                "missing": result.missing,
                "differences": result.differences[:DIFFERENCES_SHOWN],
            },
        },
    )


def _comparison_findings(result: Comparison, right: Path) -> tuple[Finding, ...]:
    found = []
    if result.differences:
        evidence = tuple(
            Evidence(
                where=f"{right}: {d.tensor} page {d.page}, {_span(d.tokens)}",
                what=f"{d.kind}: {d.instead}",
            )
            for d in result.differences[:PLACES_IN_EVIDENCE]
        )
        title = f"{len(result.differences)} of {many(result.pages, 'page')} differ"
        found.append(error_finding("PAGES_DIFFER", title, evidence))
    if result.missing:
        evidence = tuple(
            Evidence(where=name, what="only on one side")
            for name in result.missing[:PLACES_IN_EVIDENCE]
        )
        title = f"{len(result.missing)} tensors are on one side only"
        found.append(error_finding("TENSORS_MISSING", title, evidence))
    return tuple(found)


def _span(tokens: Sequence[int]) -> str:
    if len(tokens) == 1:
        return f"token {tokens[0]}"
    return f"{len(tokens)} tokens from {tokens[0]} to {tokens[-1]}"


def make_manifest(source: Path, target: Path, layout_name: str | None) -> Outcome:
    """Digest a dump into a manifest file.

    Raises:
        UsageError: if the dump cannot be read or the manifest not be written.
    """
    from dsv4doctor.checksum.dumps import parse_layout
    from dsv4doctor.checksum.manifest import manifest_text, read_side

    layout = parse_layout(layout_name) if layout_name else None
    tensors = read_side(source, layout)
    try:
        target.write_text(manifest_text(tensors), encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{target}: {error.strerror}", "name a file that can be written"
        ) from error
    pages = sum(len(tensor.sums) for tensor in tensors)
    compared = {
        "left": str(source),
        "manifest": str(target),
        "tensors": len(tensors),
        "pages": pages,
    }
    return Outcome(
        verdict="written",
        exit_code=EXIT_DONE,
        findings=(),
        body={"hosts": [], "checks": [], "compare": compared},
    )
