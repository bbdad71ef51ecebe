"""What every flow that drives load does alike: a model, an orderly end, a record for each reply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.codec import to_builtins
from dsv4doctor.errors import DoctorError
from dsv4doctor.flows.live_target import first_model, scrub_bytes
from dsv4doctor.label import Judgement
from dsv4doctor.load.runner import ClientLag, TurnDone, Wedge
from dsv4doctor.progress import Progress
from dsv4doctor.record import record_id, record_of
from dsv4doctor.redact import scrub_value
from dsv4doctor.session import Turn
from dsv4doctor.target import Endpoint

# Parts of a turn that judging depends on and that an extra body may replace.
_JUDGED_BY = ("max_tokens", "tool_choice")


class Interruptible(Protocol):
    """Work that Ctrl-C ends in order."""

    interrupted: bool


class Driving(Interruptible, Protocol):
    """Work that sends load: where its records go, and why it ends early."""

    run: RunDirectory
    progress: Progress
    secrets: tuple[str, ...]
    wedge: Wedge | None
    unreachable: str | None


@contextmanager
def interruptible(work: Interruptible) -> Iterator[None]:
    """Ctrl-C before or after the load: what was seen is summed up all the same."""
    try:
        yield
    except KeyboardInterrupt:
        work.interrupted = True


def default_model(work: Driving, endpoint: Endpoint) -> str | None:
    """The first model that the server serves; None, with the reason noted, if it does not say."""
    try:
        model = first_model(endpoint, work.secrets)
    except DoctorError as problem:
        work.unreachable = str(problem)
        work.progress.note(work.unreachable)
        return None
    work.progress.note(f"model {model} (the first of /v1/models)")
    return model


def note_wedge(work: Driving, wedge: Wedge) -> None:
    """The server serves nothing any more: keep why, and say it at once."""
    work.wedge = wedge
    work.progress.note(f"the server is wedged: {wedge.detail}")


def segment_of(run: RunDirectory) -> int:
    """The number of the segment under way, from 1: a run that is resumed has several."""
    return len(run.manifest["segments"])


def as_sent(turn: Turn, extra_body: Mapping[str, Any]) -> Turn:
    """The turn with what an extra body replaces of it."""
    overridden = {name: extra_body[name] for name in _JUDGED_BY if name in extra_body}
    return replace(turn, **overridden) if overridden else turn


def write_record(
    work: Driving, event: TurnDone, judgement: Judgement | None, **extra: Any
) -> dict[str, Any]:
    """Put a reply on disk, its bytes too where it is corrupted or failed; the record as it lies
    there, without the secrets that the server sent back. `extra` are the flow's own keys."""
    script, turn, reply = event.script, event.turn, event.reply
    raw = None
    if reply.failure is not None or (judgement is not None and judgement.corrupted):
        name = record_id(script.session, turn.turn)
        raw = work.run.save_raw(name, scrub_bytes(reply.raw, work.secrets))
    record = record_of(
        script,
        turn,
        reply,
        judgement,
        request_id=event.request_id,
        segment=segment_of(work.run),
        **extra,
        raw=raw,
        raw_truncated=reply.raw_truncated,
        prompt_bytes=event.body_bytes,
        earlier_failures=to_builtins(event.earlier_failures),
        resends=event.resends,
    )
    scrubbed: dict[str, Any] = scrub_value(record, work.secrets)
    work.run.append_record(scrubbed)
    return scrubbed


def lag_figures(lag: ClientLag) -> dict[str, float | None]:
    """The client's own lateness in ms, as documents have it."""
    return {"p50": lag.p50_ms, "p99": lag.p99_ms, "max": lag.max_ms, "n": lag.n}
