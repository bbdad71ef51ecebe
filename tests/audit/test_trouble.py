"""Trouble lines of the log: each is found, counted and quoted; ordinary lines are not."""

from __future__ import annotations

import pytest

from dsv4doctor.audit.trouble import TROUBLES, find_troubles

LINES = {
    "LOG_HICACHE_EVENT_REUSED": "AssertionError: Producer finish event should be ready before "
    "being reused.",
    "LOG_HICACHE_LOAD_FAILED": "HiCache load_back failed for rid=7: device_indices=[], "
    "new_indices=[1], expected decode_prefix_len=4 (l1=0, l2=4, l3=0)",
    "LOG_HICACHE_POOL_NOT_ASSEMBLED": "DSV4 declares host pools ['x'] that Y did not assemble; "
    "host restore of these pools is unsupported",
    "LOG_L3_PREFETCH_FAILED": "Prefetch operation 7 failed to retrieve page 3",
    "LOG_CACHE_NOT_FLUSHED": "Cache not flushed because there are pending requests. #queue-req: 0, "
    "#running-req: 2",
    "LOG_TEST_RETRACTION": "Testing retraction. #retracted_reqs: 1, #new_token_ratio: 0.4 -> 0.7",
    "LOG_PD_ABORTED": "KVTransferError(bootstrap_room=7): Aborted by AbortReq.",
    "LOG_DEFERRED_RELEASE_TIMEOUT": "Deferred KV release for room 7 timed out",
    "LOG_METADATA_NOT_READY": "Metadata unexpectedly not ready after readiness gate: room 7",
    "LOG_KV_CHECKSUM_SKIPPED": "KV checksum skipped: prefill layout signature a, ours b",
    "LOG_KV_CANARY_BLIND": "kv-canary: per-forward verify skipped this step due to overflow",
    "LOG_KV_POOL_FULL": "KV cache pool is full. Retract requests. #retracted_reqs: 3, "
    "#new_tokens_gained: 900, #new_token_ratio: 0.4 -> 0.7",
    "LOG_POOL_LEAK": "swa POOL memory leak detected! available_size=1",
    "LOG_PD_BOOTSTRAP_FAILED": "Prefill bootstrap failed for request rank=1 req.rid='a' "
    "req.bootstrap_room=7",
    "LOG_PD_TRANSFER_FAILED": "Decode transfer failed for request rank=1 decode_req.req.rid='a'",
    "LOG_PD_TIMEOUT": "Request 77 timed out after 300.1s in KVPoll.WaitingForInput",
    "LOG_PD_PEER_LOST": "Lost connection with prefill instance (bootstrap_addr: a:8998), 3 "
    "requests affected",
    "LOG_BOOTSTRAP_THREAD_DIED": "Exception in thread Thread-7 (bootstrap_thread):",
    "LOG_CONTEXT_CORRUPTION": "Context corruption detected: Request a received metadata from "
    "bootstrap_room=9",
    "LOG_KV_CHECKSUM_MISMATCH": "KV checksum mismatch req=a bootstrap_room=9 expected=1 got=2",
    "LOG_KV_CANARY_VIOLATION": "kv_canary violation: launch_tag=3 fail_reason=A slot_idx=1",
    "LOG_WATCHDOG": "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
    "LOG_SCHEDULER_CRASH": "Scheduler hit an exception: Traceback",
    "LOG_HEALTH_FAILED": "Health check failed. Server couldn't get a response from detokenizer for "
    "last 20 seconds.",
    "LOG_PARSER_DROPPED": "Dropping unclosed DeepSeek invoke at end of stream",
}


def test_every_kind_has_a_line() -> None:
    assert set(LINES) == {trouble.id for trouble in TROUBLES}


@pytest.mark.parametrize("kind", sorted(LINES))
def test_is_found(kind: str) -> None:
    line = f"[2026-05-15 10:11:12 TP0] {LINES[kind]}\n"
    (found,) = find_troubles(["noise\n", line, line], "boot.log")
    assert found.finding.rule == kind
    assert "(2 lines)" in found.finding.title
    assert found.finding.evidence[0].where == "boot.log:2"


def test_ordinary_lines_are_quiet() -> None:
    lines = [
        "[2026-05-15 10:11:12 TP0] Prefill batch, #new-seq: 1, #new-token: 512, #cached-token: 0\n",
        "[2026-05-15 10:11:12 TP0] Decode batch, #running-req: 3, #full token: 90\n",
        "[2026-05-15 10:11:12] The server is fired up and ready to roll!\n",
        "[2026-05-15 10:11:12] CommonKVBootstrapServer started successfully on 10.0.0.1:8998\n",
    ]
    assert find_troubles(lines, "x") == ()
