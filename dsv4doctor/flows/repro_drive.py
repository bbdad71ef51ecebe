"""The middle of `repro`: send what is not yet done, judge every reply, put it on disk, show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.exchange import exchange_from_record
from dsv4doctor.flows.countable import is_countable
from dsv4doctor.flows.driving import as_sent, default_model, note_wedge, write_record
from dsv4doctor.flows.live_target import Inspection
from dsv4doctor.flows.repro_plan import ReproPlan
from dsv4doctor.flows.repro_state import RunState
from dsv4doctor.flows.tally import Tally
from dsv4doctor.label import Label
from dsv4doctor.load.history import assistant_message
from dsv4doctor.load.runner import (
    LoadRun,
    RunEnded,
    RunOptions,
    Tick,
    TurnDone,
    Wedge,
    run_sessions,
)
from dsv4doctor.load.schedule import build_session
from dsv4doctor.progress import Progress
from dsv4doctor.record import exchange_of
from dsv4doctor.redact import scrub_value
from dsv4doctor.scenario import History
from dsv4doctor.session import Message, SessionScript
from dsv4doctor.target import Endpoint

# After so many requests that were all refused, and none answered, the rest need not be sent.
REFUSALS_TO_STOP = 20
# A server that answered before and then, this often in a row, no longer takes connections is gone.
LOST_TO_STOP = 200
_REFUSED_STATUS = frozenset({400, 401, 403, 404, 405, 422})


@dataclass(slots=True)
class Work:
    """One run under way: what it was told to do, and what it has come to know.

    `enough` is asked after each reply why nothing further need be sent (None: go on); what is in
    flight then is heard to its end, since hanging up is an event of its own to a server.
    `sends_rid` has the server know each request by the id that its record has.
    """

    plan: ReproPlan
    run: RunDirectory
    progress: Progress
    tally: Tally = field(default_factory=Tally)
    done: set[tuple[int, int]] = field(default_factory=set)
    earlier: dict[tuple[int, int], Message] = field(default_factory=dict)
    target: dict[str, Any] = field(default_factory=dict)
    wedge: Wedge | None = None
    ended: RunEnded | None = None
    interrupted: bool = False
    unreachable: str | None = None
    notes: list[str] = field(default_factory=list)
    refusals: int = 0
    lost_in_a_row: int = 0
    secrets: tuple[str, ...] = ()
    enough: Callable[[Tally], str | None] = lambda _: None
    drained: str = ""
    sends_rid: bool = False


def replay(work: Work) -> None:
    """Take in the records that earlier segments left on disk; each (session, turn) counts once."""
    for record in work.run.records():
        if not is_countable(record):
            continue
        session, turn = record["session"], record["turn"]
        if (session, turn) in work.done:
            continue
        work.done.add((session, turn))
        work.tally.add(record)
        if work.plan.scenario.history is History.LIVE and record.get("response"):
            response = exchange_from_record(record).response
            work.earlier[session, turn] = assistant_message(response, turn)


def drive(work: Work, endpoint: Endpoint) -> None:
    """Send what is not yet done. Ctrl-C ends it in order, with `work.interrupted` set."""
    plan = work.plan
    model = plan.model or default_model(work, endpoint)
    if model is None:
        return
    inspection = Inspection(endpoint)
    options = RunOptions(
        model=model,
        max_concurrency=plan.max_concurrency,
        expected_sessions=plan.sessions,
        stall_timeout_s=plan.stall_timeout_s,
        request_timeout_s=plan.request_timeout_s,
        extra_body=plan.extra_body,
        names_requests=work.sends_rid,
        run_prefix=work.run.path.name.split("-", 1)[0].lower(),
    )
    state = RunState(plan.sessions, plan.turn_count, work.tally, len(work.done))
    done = frozenset(work.done)
    with run_sessions(endpoint, _scripts(plan), options, done=done, earlier=work.earlier) as load:
        try:
            _follow(work, load, state)
        except KeyboardInterrupt:
            work.interrupted = True
            load.stop()
            _follow(work, load, state)
    work.target.update(scrub_value(inspection.result(model), work.secrets))


def _scripts(plan: ReproPlan) -> Iterator[SessionScript]:
    """The sessions, each built when it begins."""
    for session in range(plan.sessions):
        yield build_session(
            plan.scenario,
            seed=plan.seed,
            session=session,
            turns=plan.turns,
            context_tokens=plan.context_tokens,
        )


def _follow(work: Work, load: LoadRun, state: RunState) -> None:
    for event in load:
        if isinstance(event, TurnDone):
            _keep(work, event)
            reason = _reason_to_stop(work)
            if reason and reason not in work.notes:
                work.notes.append(reason)
                load.stop()
            if not work.drained and (why := work.enough(work.tally)):
                work.drained = why
                load.drain(why)
        elif isinstance(event, Tick):
            work.progress.update(state.after(event))
        elif isinstance(event, Wedge):
            note_wedge(work, event)
        elif isinstance(event, RunEnded):
            work.ended = event


def _reason_to_stop(work: Work) -> str | None:
    """Why the rest need not be sent; None while there is a server that answers."""
    if work.refusals >= REFUSALS_TO_STOP and not work.tally.responses:
        return f"Stopped after {REFUSALS_TO_STOP} refusals: the server takes no such request."
    if work.lost_in_a_row >= REFUSALS_TO_STOP and not work.tally.responses:
        return f"Stopped after {REFUSALS_TO_STOP} failed connections: nobody answers there."
    if work.lost_in_a_row >= LOST_TO_STOP:
        return f"Stopped after {LOST_TO_STOP} failed connections in a row: the server is gone."
    return None


def _keep(work: Work, event: TurnDone) -> None:
    """Judge one reply and put it on disk; only then does it count."""
    # Imported when the first reply is there: the first request leaves a tenth of a second sooner.
    from dsv4doctor.detect import judge

    event = replace(event, turn=as_sent(event.turn, work.plan.extra_body))
    script, turn, reply = event.script, event.turn, event.reply
    is_judged = reply.failure is None and not reply.aborted
    judgement = judge(exchange_of(script, turn, reply)) if is_judged else None
    record = write_record(work, event, judgement)
    work.done.add((script.session, turn.turn))
    work.tally.add(record)
    is_lost = reply.failure is not None and reply.failure.kind is Label.CONNECTION_ERROR
    work.lost_in_a_row = work.lost_in_a_row + 1 if is_lost else 0
    if reply.failure is not None and reply.failure.http_status in _REFUSED_STATUS:
        work.refusals += 1
