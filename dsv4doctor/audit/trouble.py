"""Trouble lines of SGLang's log: what each says happened, how bad, and the next step.

Source: the messages of SGLang 0.5.12-0.5.23, matched by their fixed heads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dsv4doctor.audit.rule import SEVERITY_OF, AuditFinding, Grade, Support
from dsv4doctor.finding import Certainty, Evidence, Finding
from dsv4doctor.units import many

SHOWN = 3  # lines quoted per kind
_LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One kind of line."""

    id: str
    pattern: str
    title: str
    grade: Grade
    remedy: str


TROUBLES = (
    Trouble(id="LOG_HICACHE_EVENT_REUSED", grade=Grade.CRITICAL,
            pattern=r"Producer finish event should be ready before being reused",
            title="a HiCache load was still copying when its event was reused: the scheduler died",
            remedy="HiCache off, or fewer loads in flight"),
    Trouble(id="LOG_HICACHE_LOAD_FAILED", grade=Grade.HIGH,
            pattern=r"HiCache load_back failed for rid=",
            title="a HiCache load back failed", remedy="HiCache off for the A/B"),
    Trouble(id="LOG_HICACHE_POOL_NOT_ASSEMBLED", grade=Grade.HIGH,
            pattern=r"declares host pools .* did not assemble",
            title="HiCache does not cover a pool that is in use: its restore is unsupported",
            remedy="HiCache off, or upgrade"),
    Trouble(id="LOG_L3_PREFETCH_FAILED", grade=Grade.MEDIUM,
            pattern=r"Prefetch operation .* failed to retrieve page|Failed to stop HiCache storage "
                    r"threads cleanly",
            title="HiCache's storage tier did not give a page, or did not stop",
            remedy="--hicache-storage-backend off for the A/B; clear L3 between its arms"),
    Trouble(id="LOG_CACHE_NOT_FLUSHED", grade=Grade.LOW,
            pattern=r"Cache not flushed because there are pending requests",
            title="a flush was refused: what followed ran on a warm cache",
            remedy="flush again when the server is idle, or restart between arms"),
    Trouble(id="LOG_TEST_RETRACTION", grade=Grade.HIGH,
            pattern=r"Testing retraction\.",
            title="the server retracts requests on purpose: SGLANG_TEST_RETRACT is on",
            remedy="unset SGLANG_TEST_RETRACT and restart"),
    Trouble(id="LOG_KV_POOL_FULL", grade=Grade.MEDIUM,
            pattern=r"KV cache pool is full\. Retract requests",
            title="the KV pool ran full and requests were retracted",
            remedy="dsv4doctor size; fewer running requests"),
    Trouble(id="LOG_POOL_LEAK", grade=Grade.HIGH,
            pattern=r"memory leak detected", title="a pool leaks", remedy="upgrade; restart"),
    Trouble(id="LOG_PD_BOOTSTRAP_FAILED", grade=Grade.HIGH,
            pattern=r"Prefill bootstrap failed for request|Decode handshake failed for request",
            title="prefill and decode did not find each other for a request",
            remedy="see the transfer backend's own errors; restart the pair"),
    Trouble(id="LOG_PD_TRANSFER_FAILED", grade=Grade.HIGH,
            pattern=r"(?:Prefill|Decode) transfer failed for request|Failed to send kv chunk of|"
                    r"KVTransferError(?!.*Aborted by AbortReq)",
            title="a KV transfer failed", remedy="see the transfer backend's own errors"),
    Trouble(id="LOG_PD_ABORTED", grade=Grade.LOW,
            pattern=r"Aborted by AbortReq|Abort (?:bootstrap|transfer) queue request",
            title="clients aborted requests between prefill and decode",
            remedy="see CASE-04: an abort can kill a bootstrap thread of older builds"),
    Trouble(id="LOG_DEFERRED_RELEASE_TIMEOUT", grade=Grade.MEDIUM,
            pattern=r"Deferred KV release for room .* timed out",
            title="pages were given back before late writes to them were surely over",
            remedy="a longer SGLANG_DISAGGREGATION_DEFERRED_DECODE_KV_RELEASE_TIMEOUT"),
    Trouble(id="LOG_PD_TIMEOUT", grade=Grade.HIGH,
            pattern=r"timed out after [\d.]+s in KVPoll\.(?:Bootstrapping|WaitingForInput)",
            title="requests hung between prefill and decode until their time-out",
            remedy="is a bootstrap thread dead? restart the pair; probe with a real generation"),
    Trouble(id="LOG_PD_PEER_LOST", grade=Grade.HIGH,
            pattern=r"(?:Losing|Lost) connection with prefill instance|Decode instance could be "
                    r"dead|NIXL transport error for room",
            title="a peer of the disaggregated pair was lost", remedy="restart the pair"),
    Trouble(id="LOG_BOOTSTRAP_THREAD_DIED", grade=Grade.HIGH,
            pattern=r"bootstrap_thread died on engine_rank|Exception in thread .*"
                    r"\(bootstrap_thread\)",
            title="a bootstrap thread died: every request to that rank will time out",
            remedy="restart the prefill server; NIXL 0.5.21 or newer says so itself"),
    Trouble(id="LOG_CONTEXT_CORRUPTION", grade=Grade.CRITICAL,
            pattern=r"Context corruption detected",
            title="decode got another request's metadata", remedy="restart; upgrade"),
    Trouble(id="LOG_METADATA_NOT_READY", grade=Grade.HIGH,
            pattern=r"Metadata unexpectedly not ready after readiness gate",
            title="decode went on before a request's metadata had come",
            remedy="upgrade; keep the log of both ends"),
    Trouble(id="LOG_KV_CHECKSUM_SKIPPED", grade=Grade.MEDIUM,
            pattern=r"KV checksum skipped",
            title="the transfer's checksum is on and was skipped: it proves nothing here",
            remedy="the same layout on prefill and decode"),
    Trouble(id="LOG_KV_CHECKSUM_MISMATCH", grade=Grade.CRITICAL,
            pattern=r"KV checksum mismatch req=",
            title="transferred KV differs from what was sent",
            remedy="dsv4doctor checksum compare on both hosts"),
    Trouble(id="LOG_KV_CANARY_VIOLATION", grade=Grade.CRITICAL,
            pattern=r"kv_canary violation:|KV cache canary violation detected",
            title="the KV canary found bytes that are not the request's own",
            remedy="HiCache off for the A/B; keep the log"),
    Trouble(id="LOG_KV_CANARY_BLIND", grade=Grade.MEDIUM,
            pattern=r"kv-canary: per-forward verify skipped|kernel_run_counter did not increase",
            title="the KV canary is on and did not look: its silence proves nothing",
            remedy="fewer requests at once while it watches; --kv-canary-real-data partial"),
    Trouble(id="LOG_WATCHDOG", grade=Grade.HIGH,
            pattern=r"watchdog timeout \(self\.watchdog_timeout=|watchdog thread crashed|"
                    r"Received sigquit from a child process|Pyspy dump for PID",
            title="the watchdog fired: a scheduler stood still",
            remedy="keep the stack dumps; dsv4doctor watch"),
    Trouble(id="LOG_SCHEDULER_CRASH", grade=Grade.HIGH,
            pattern=r"Scheduler hit an exception", title="a scheduler crashed",
            remedy="read the traceback under the line"),
    Trouble(id="LOG_HEALTH_FAILED", grade=Grade.HIGH,
            pattern=r"Health check failed\. Server couldn't get a response from detokenizer",
            title="the server's own health check failed", remedy="dsv4doctor watch --once"),
    Trouble(id="LOG_PARSER_DROPPED", grade=Grade.MEDIUM,
            pattern=r"Tool call marker present but no complete call parsed|Dropping (?:malformed|"
                    r"unclosed) DeepSeek invoke",
            title="the tool parser met calls that it could not read",
            remedy="dsv4doctor repro: is the model's text or the parser at fault?"),
)  # fmt: skip

_COMPILED = tuple((trouble, re.compile(trouble.pattern)) for trouble in TROUBLES)


def find_troubles(lines: Iterable[str], source: str) -> tuple[AuditFinding, ...]:
    """One finding a kind of trouble line, with the first lines quoted and all counted."""
    seen: dict[str, list[Evidence]] = {}
    counts: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        for trouble, pattern in _COMPILED:
            if pattern.search(line) is None:
                continue
            counts[trouble.id] = counts.get(trouble.id, 0) + 1
            quoted = seen.setdefault(trouble.id, [])
            if len(quoted) < SHOWN:
                text = line.strip()[:_LONGEST]
                quoted.append(Evidence(where=f"{source}:{number}", what=text))
    return tuple(
        AuditFinding(
            finding=Finding(
                rule=trouble.id,
                severity=SEVERITY_OF[trouble.grade],
                title=f"{trouble.title} ({many(counts[trouble.id], 'line')})",
                evidence=tuple(seen[trouble.id]),
                certainty=Certainty.MEASURED,
                remedy=trouble.remedy,
            ),
            grade=trouble.grade,
            support=Support.CONFIRMED,
            subject=source,
        )
        for trouble in TROUBLES
        if trouble.id in seen
    )
