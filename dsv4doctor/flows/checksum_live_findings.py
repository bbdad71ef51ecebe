"""The findings of an observation: one a hop, one for a second cause, one for what is not proved."""

from __future__ import annotations

from dsv4doctor.finding import Certainty, Evidence, Finding, Severity
from dsv4doctor.flows.checksum_live_verdict import Seen
from dsv4doctor.probe_protocol import HOPS, READ
from dsv4doctor.tracing.change import HOP_WORDS, Change
from dsv4doctor.tracing.odds import Odds

_PLACES_IN_EVIDENCE = 8


def findings_of(seen: Seen, verdict: str) -> tuple[Finding, ...]:
    """One finding a hop, one for a second cause, one for what was not proved or not seen."""
    if verdict == "unreachable":
        return (_unreachable(seen),)
    found = [_hop_finding(seen, hop, count) for hop, count in _first_hops(seen)]
    odds = seen.odds
    if odds is not None and odds.corrupted_without:
        found.append(_second_cause(odds, is_other=verdict == "changed"))
    elif verdict == "corrupted_elsewhere":
        found.append(_not_index_k(seen))
    if seen.watch.trace.unordered_right:
        found.append(_near_miss(seen))
    if verdict in ("changed", "undecided"):
        found += _unproved(seen, verdict)
    return tuple(found)


def _unreachable(seen: Seen) -> Finding:
    problems = (*seen.watch.unreachable, *seen.watch.problems)
    return Finding(
        rule="UNREACHABLE",
        severity=Severity.WARNING,
        title="no rank could be observed",
        evidence=tuple(Evidence(where="ranks", what=problem) for problem in problems),
        remedy="check --base-url and --ssh-host, and that the probe is in every scheduler "
        "(`dsv4doctor probe status --ssh-host HOST`)",
    )


def _first_hops(seen: Seen) -> list[tuple[str, int]]:
    counts = seen.watch.trace.by_hop
    return sorted(counts.items(), key=lambda item: (-item[1], HOPS.index(item[0])))


def _hop_finding(seen: Seen, hop: str, count: int) -> Finding:
    firsts = [
        change
        for change in seen.watch.trace.changes
        if change.origin is None and change.seen.hop == hop
    ]
    evidence = tuple(
        Evidence(where=_place(change), what=_how(change)) for change in firsts[:_PLACES_IN_EVIDENCE]
    ) or (Evidence(where=hop, what=f"{count} changes, of which none was kept"),)
    rule = "STALE_READ" if hop == READ else "PAGE_CHANGED"
    what = "index-K reads saw other bytes than their page's" if hop == READ else "pages changed"
    return Finding(
        rule=rule,
        severity=Severity.ERROR,
        title=f"{count} {what}: {HOP_WORDS[hop]}",
        evidence=evidence,
        remedy=_REMEDY.get(hop, "see docs/checksum-live.md for what moves pages at this hop"),
    )


_REMEDY = {
    "read": "switch HiCache off, or take a release (or patch) whose index-K read waits for its "
    "layer's load; `dsv4doctor audit` and `dsv4doctor patch` know both",
    "send": "set SGLANG_DISAGG_PREFILL_EARLY_SEND_CACHED_PREFIX=0 on the prefill side and run this "
    "again; releases from 0.5.23 hold such sends back",
    "arrive": "what the decode side reads is not what was sent: compare the transfer backends, "
    "and run this again with one decode request at a time",
    "backup": "the page was written while it was backed up: a backup that does not wait for the "
    "forward (releases before 0.5.23), or a page given away too early",
}


def _place(change: Change) -> str:
    seen = change.seen
    page = f"page {seen.page}" if seen.page is not None else f"host page {seen.host_page}"
    asked = f" {seen.request}" if seen.request else ""
    return f"{change.rank}{asked} layer {seen.layer} {page}"


def _how(change: Change) -> str:
    seen = change.seen
    words = f"{seen.digest} instead of {change.expected}"
    if seen.ordered is False:
        words += ", not ordered behind its load"
    elif seen.ordered:
        words += ", ordered behind its load: something else wrote the page"
    elif seen.hop == READ:
        words += ", brought by no load: written over, or another request's page"
    if seen.distance_ms is not None:
        side = "before" if seen.distance_ms < 0 else "after"
        words += f", {abs(seen.distance_ms):.3g} ms {side} the load's end"
    return words


def _second_cause(odds: Odds, *, is_other: bool) -> Finding:
    title = f"{odds.corrupted_without} corrupted responses read no stale page"
    return Finding(
        rule="CORRUPTED_WITHOUT_STALE_READ",
        severity=Severity.WARNING,
        certainty=Certainty.INFERRED,
        title=f"{title}: a possible second cause" if is_other else title,
        evidence=tuple(
            Evidence(where=f"records.jsonl {name}", what="corrupted, no stale read was seen")
            for name in odds.named_without[:_PLACES_IN_EVIDENCE]
        ),
        remedy="look at these alone (`dsv4doctor report RUN_DIR`): a fault of the parser, another "
        "pool or a foreign page leaves index-K's bytes as they are",
    )


def _not_index_k(seen: Seen) -> Finding:
    return Finding(
        rule="CORRUPTED_WITHOUT_STALE_READ",
        severity=Severity.WARNING,
        certainty=Certainty.INFERRED,
        title=f"{seen.corrupted_responses} responses are corrupted, and no index-K page changed",
        evidence=(Evidence(where="records.jsonl", what="no reply could be joined by its id"),),
        remedy="the cause lies elsewhere: `dsv4doctor diagnose` goes through the others",
    )


def _near_miss(seen: Seen) -> Finding:
    trace = seen.watch.trace
    margin = trace.least_margin_ms
    said = "" if margin is None else f"; the closest ran {margin:.3g} ms after its load's end"
    return Finding(
        rule="READ_NOT_ORDERED",
        severity=Severity.INFO,
        title=f"{trace.unordered_right} reads were not ordered behind their load and were right",
        evidence=(Evidence(where="read", what=f"gate missed, bytes as loaded{said}"),),
        remedy="nothing but speed kept them right: a larger load or a slower copy may not",
    )


def _unproved(seen: Seen, verdict: str) -> list[Finding]:
    """Why it is not called clean, or what the verdict does not cover."""
    found = []
    blind = [each for each in seen.unseen if each.blinds]
    if blind:
        found.append(
            Finding(
                rule="NOT_SEEN",
                severity=Severity.INFO if verdict == "changed" else Severity.WARNING,
                certainty=Certainty.NOT_DETERMINED,
                title="part of it was not seen",
                evidence=tuple(Evidence(where=each.where, what=each.what) for each in blind),
                remedy="run it again once that is mended; what was seen stands",
            )
        )
    tests = seen.watch.tests
    if verdict == "undecided" and (tests is None or not tests.passed):
        found.append(_untested(seen))
    return found


def _untested(seen: Seen) -> Finding:
    tests = seen.watch.tests
    if tests is None:
        return Finding(
            rule="NOT_SELF_TESTED",
            severity=Severity.WARNING,
            certainty=Certainty.NOT_DETERMINED,
            title="nothing changed that was seen, but the detector was not tried",
            evidence=(Evidence(where="self_test", what="no byte was flipped"),),
            remedy="add --perturb: it flips one byte in one page, digests it and flips it back",
        )
    evidence = tuple(
        Evidence(where=f"{test.rank} {test.hop}", what=test.outcome) for test in tests.tests
    ) or (Evidence(where="self_test", what="no hop of any rank can be tested"),)
    return Finding(
        rule="SELF_TEST_FAILED",
        severity=Severity.WARNING,
        certainty=Certainty.NOT_DETERMINED,
        title="a flipped byte went by unnoticed"
        if tests.failed
        else "no flipped byte was met by a page that was known",
        evidence=evidence,
        remedy="report it: the detector is at fault"
        if tests.failed
        else "observe longer, or drive a load with --during repro",
    )
