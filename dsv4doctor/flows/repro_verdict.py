"""What a run's counts mean: its verdict, its findings, and the contract's `repro` object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsv4doctor.errors import EXIT_COULD_NOT, EXIT_DONE, EXIT_FINDINGS, EXIT_UNDECIDED
from dsv4doctor.finding import Evidence, Finding, Severity
from dsv4doctor.flows.conclusion import mild_is_done
from dsv4doctor.flows.tally import Share, Tally, commonest
from dsv4doctor.stats.percentiles import quantiles
from dsv4doctor.stats.rates import clean_bound, response_rate, session_rate, upper_bound_clean
from dsv4doctor.units import many

EXIT_OF_VERDICT = {
    "wedged": EXIT_FINDINGS,
    "corrupted": EXIT_FINDINGS,
    "clean": EXIT_DONE,
    "undecided": EXIT_UNDECIDED,
    "unreachable": EXIT_COULD_NOT,
}

_NOT_SERVED = frozenset({"connection_error", "http_error"})

REMEDY = {
    "dsml_leak": "compare with --sessions 1 and with HiCache off before blaming the parser",
    "canary_mismatch": "values from elsewhere point at what the model attended to: compare with "
    "--sessions 1 and with HiCache off",
    "foreign_content": "another session's content was served: treat it as a data leak and stop "
    "sharing this deployment between tenants until it is found",
}
DEFAULT_REMEDY = "run again with --sessions 1 and with one suspect switched off (docs/repro.md)"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What is known of a run beside its counts."""

    run_dir: str
    target: Mapping[str, Any]
    scenario: str
    seed: int
    sessions: int
    turns: int
    context_tokens: tuple[int, int] | None = None
    wedge: Mapping[str, Any] | None = None
    client_lag_ms: Mapping[str, float | None] | None = None
    timings_valid: bool | None = None
    interrupted: bool = False
    unreachable: str | None = None
    segments: int = 1
    torn_lines: int = 0
    notes: tuple[str, ...] = field(default_factory=tuple)


def verdict_of(tally: Tally, facts: RunFacts) -> str:
    """One of the contract's verdicts.

    A run without corruption is `undecided` when it was interrupted, and when failed sessions are a
    larger share than the bound that the clean ones prove: had they all been corrupt, that bound
    would be false.
    """
    if facts.wedge is not None:
        return "wedged"
    if tally.corrupted_responses:
        return "corrupted"
    if not tally.responses:
        return "unreachable" if _was_never_served(tally, facts) else "undecided"
    if facts.interrupted:
        return "undecided"
    judged = tally.complete_sessions(facts.turns)
    started = len(tally.failed_sessions | tally.by_session.keys())
    failed_share = len(tally.failed_sessions) / started
    return "undecided" if failed_share > upper_bound_clean(judged) else "clean"


def _was_never_served(tally: Tally, facts: RunFacts) -> bool:
    """No connection, or every request refused: there was no deployment to judge."""
    refused = bool(tally.by_failure) and set(tally.by_failure) <= _NOT_SERVED
    return facts.unreachable is not None or refused


def exit_code_of(verdict: str, findings: tuple[Finding, ...], fail_on: Severity) -> int:
    """The exit code: 1 only if a finding reaches `fail_on`."""
    return mild_is_done(EXIT_OF_VERDICT[verdict], findings, fail_on)


def summarise(tally: Tally, facts: RunFacts) -> dict[str, Any]:
    """The contract's `repro` object, as JSON types and vocabulary dataclasses."""
    complete = tally.complete_sessions(facts.turns)
    is_clean = complete and not tally.corrupted_responses
    bound = clean_bound(complete) if is_clean else None
    per_session = [(share.corrupted, share.responses) for share in tally.by_session.values()]
    return {
        "run_dir": facts.run_dir,
        "target": facts.target,
        "scenario": facts.scenario,
        "seed": facts.seed,
        "sessions": facts.sessions,
        "complete_sessions": complete,
        "turns": facts.turns,
        "context_tokens": facts.context_tokens and list(facts.context_tokens),
        "responses": tally.responses,
        "corrupted_responses": tally.corrupted_responses,
        "corrupted_sessions": tally.corrupted_sessions,
        "failures": tally.failures,
        "by_failure": dict(commonest(tally.by_failure)),
        "aborted_by_us": tally.aborted_by_us,
        "response_rate": response_rate(per_session),
        "session_rate": session_rate(tally.corrupted_sessions, len(tally.by_session)),
        "clean_bound": bound,
        "by_label": dict(commonest(tally.by_label)),
        "also_label": dict(commonest(tally.also_label)),
        "by_turn": _table(tally.by_turn, "turn"),
        "by_context": _table(tally.by_context, "context_tokens"),
        "by_kind": _table(tally.by_kind, "kind"),
        **_pace(tally),
        "wedge": facts.wedge,
        "client_lag_ms": facts.client_lag_ms,
        "timings_valid": facts.timings_valid,
        "interrupted": facts.interrupted,
        "segments": facts.segments,
        "torn_lines": facts.torn_lines,
        "notes": [*facts.notes, *([facts.unreachable] if facts.unreachable else [])],
    }


def _pace(tally: Tally) -> dict[str, Any]:
    return {
        "ttft_ms": quantiles(tally.ttft_ms),
        "itl_ms": quantiles(tally.itl_ms),
        "e2e_latency_ms": quantiles(tally.e2e_latency_ms),
        "output_throughput": tally.output_throughput,
        "prompt_tokens": tally.prompt_tokens or None,
        "completion_tokens": tally.completion_tokens or None,
        "cached_tokens": tally.cached_tokens or None,
    }


def _table(groups: Mapping[Any, Share], key: str) -> list[dict[str, Any]]:
    return [
        {key: value, "responses": share.responses, "corrupted": share.corrupted}
        for value, share in sorted(groups.items())
    ]


def findings_of(tally: Tally, facts: RunFacts, verdict: str) -> tuple[Finding, ...]:
    """One finding a corrupt label, one for failures, one for a wedge; none for a clean run."""
    found = [_wedge_finding(facts.wedge)] if facts.wedge is not None else []
    for label, count in commonest(tally.by_label):
        if label in tally.examples:
            found.append(_label_finding(label, count, tally))
    if facts.unreachable is not None:
        found.append(_unreachable_finding(facts.unreachable))
    if tally.failures:
        found.append(_failure_finding(tally, verdict))
    if facts.timings_valid is False:
        found.append(_lag_finding(facts))
    return tuple(found)


def _label_finding(label: str, count: int, tally: Tally) -> Finding:
    evidence = []
    for record in tally.examples[label]:
        details = record["evidence"] or [{"where": "response", "what": "no detail"}]
        evidence.append(
            Evidence(where=f"records.jsonl {record['id']} {details[0]['where']}",
                     what=details[0]["what"])
        )  # fmt: skip
    return Finding(
        rule=label.upper(),
        severity=Severity.ERROR,
        title=f"{count} of {many(tally.responses, 'response')}: {label}",
        evidence=tuple(evidence),
        remedy=REMEDY.get(label, DEFAULT_REMEDY),
    )


def _wedge_finding(wedge: Mapping[str, Any]) -> Finding:
    evidence = [
        Evidence(
            where="wedge",
            what=f"no token from any session for {wedge['silent_s']:.1f} s; {wedge['detail']}",
        )
    ]
    for probe in wedge["probes"]:
        answer = "answered" if probe["answered"] else "no answer"
        evidence.append(
            Evidence(
                where=f"wedge.probes {probe['name']}",
                what=f"{answer}, status {probe['status']}, {probe['seconds']:.2f} s "
                f"{probe['detail']}".rstrip(),
            )
        )
    return Finding(
        rule="WEDGED",
        severity=Severity.ERROR,
        title=f"requests were in flight and no token came; before that: {wedge['detail']}",
        evidence=tuple(evidence),
        remedy="take stack dumps of the schedulers before restarting; POST /abort_request with "
        "abort_all frees many wedges",
    )


def _unreachable_finding(reason: str) -> Finding:
    return Finding(
        rule="UNREACHABLE",
        severity=Severity.WARNING,
        title="the server could not be asked for its models",
        evidence=(Evidence(where="/v1/models", what=reason),),
        remedy="check --base-url, the port and --api-key; give --model to go on without a list",
    )


def _failure_finding(tally: Tally, verdict: str) -> Finding:
    evidence = []
    for kind, count in commonest(tally.by_failure):
        examples = tally.examples.get(kind)
        detail = f": {examples[0]['failure']['message']}" if examples else ""
        evidence.append(
            Evidence(where=f"failures.{kind}", what=f"{many(count, 'request')}{detail}")
        )
    return Finding(
        rule="FAILURES",
        # A few failures do not undo a clean verdict; where they do, the verdict is `undecided`.
        severity=Severity.INFO if verdict == "clean" else Severity.WARNING,
        title=f"{many(tally.failures, 'request')} ended without a response to judge",
        evidence=tuple(evidence),
        remedy="they are counted beside corruption, never in its rate; see failures in report.md",
    )


def _lag_finding(facts: RunFacts) -> Finding:
    return Finding(
        rule="CLIENT_BOTTLENECK",
        severity=Severity.INFO,
        title="this client was late itself: its timings say nothing about the server",
        evidence=(Evidence(where="client_lag_ms", what=str(dict(facts.client_lag_ms or {}))),),
        remedy="lower --max-concurrency or give the client more cores; labels are not affected",
    )
