"""What an arm brought -> a reading: counts in words, and evidence as e-values."""

from __future__ import annotations

import math

from dsv4doctor.differential.causes import Symptom
from dsv4doctor.differential.readings import Mark, Reading, Wedged
from dsv4doctor.differential.standing import DECISIVE
from dsv4doctor.flows.diagnose_arms import ArmRun
from dsv4doctor.flows.tally import Tally
from dsv4doctor.stats.rates import upper_bound_clean
from dsv4doctor.stats.sequential import LARGEST_LOG_WEALTH, log_wealth
from dsv4doctor.stats.shares import e_above, e_below

# Wrong sessions in a hundred that a load without the cause may still show.
NOISE = 0.01
# What fails by itself fails again at least so often when the same request is sent again...
MOSTLY = 0.5
# ...and what only load brings fails again no more often than this.
HARDLY = 0.1
# Of what a foreign page spoils, so much at least names its owner: a code of another session.
NAMED_SHARE = 0.15
# A foreign code decodes by chance once in 2^22; a run holds some thousand.
FOREIGN_E = 1000.0
# An arm is broken off when it has this much to say: means over several arms stay decisive.
PLENTY = 8 * DECISIVE
# So many wrong sessions of the load are enough to compare with.
ENOUGH_WRONG = 16
# So many wrong requests are sent again.
REPLAYS = 12


def is_enough(tally: Tally, sessions: int) -> bool:
    """True when so many sessions went wrong that another load can be compared with this one."""
    return tally.corrupted_sessions >= min(ENOUGH_WRONG, max(1, sessions * 2 // 3))


def is_plenty(tally: Tally, sessions: int) -> bool:
    """True when an arm has shown more than enough that the symptom is still there."""
    return e_above(tally.corrupted_sessions, sessions, NOISE) >= PLENTY


def screen(run: ArmRun, corrupt: Symptom | None, wedge: Symptom) -> Reading:
    """What a screen met. It wants no comparison: one wrong reply is a fact."""
    seen = []
    if corrupt is not None and run.tally.corrupted_responses:
        seen.append(corrupt)
    if run.wedge is not None:
        seen.append(wedge)
    return Reading(
        arm=run.name,
        said=_counted(run),
        seen=tuple(seen),
        flow=_flow(run),
        not_proved=_not_proved(run, seen),
    )


def _not_proved(run: ArmRun, seen: list[Symptom]) -> str:
    """A screen that met something is no less true for it; a clean one must have been what it is."""
    if seen:
        return ""
    judged = run.tally.complete_sessions(1)
    failed = len(run.tally.failed_sessions)
    if run.interrupted:
        return "interrupted before its end"
    if run.not_proved:
        return run.not_proved
    if failed > judged * upper_bound_clean(judged):
        return f"{run.tally.failures} requests failed"
    return "" if judged else "nothing was answered"


def _flow(run: ArmRun) -> str:
    return (
        f"{run.requests} requests came to their end, {run.tally.failures} failed, this client was "
        f"{run.lag_ms:.0f} ms late at most"
    )


def _counted(run: ArmRun) -> str:
    tally = run.tally
    said = (
        f"{tally.corrupted_responses} of {tally.responses} responses corrupted, in "
        f"{tally.corrupted_sessions} of {run.begun} sessions"
    )
    if not tally.corrupted_responses and len(tally.by_session):
        said += f" (fewer than {100 * upper_bound_clean(len(tally.by_session)):.1f} %)"
    if tally.failures:
        said += f"; {tally.failures} requests failed"
    if tally.aborted_by_us:
        said += f"; {tally.aborted_by_us} aborted by us"
    if run.wedge is not None:
        said += f"; then no token for {run.wedge.silent_s:.0f} s ({run.wedge.detail})"
    return said


def reached(load: ArmRun) -> int:
    """The turns that the load went wrong in: an arm that is compared with it needs no more."""
    return max(turn for _, turn in load.wrong) + 1


def compared(load: ArmRun, run: ArmRun) -> Reading:
    """An arm of the same sessions against the load, over the turns that the load reached."""
    turns = reached(load)
    sick = {session for session, turn in load.first_wrong().items() if turn < turns}
    wrong = {session for session, turn in run.first_wrong().items() if turn < turns}
    clean = {
        session
        for session in run.tally.by_session
        if session not in wrong
        and run.tally.ended_turns[session] >= turns
        and session not in run.tally.failed_sessions
    }
    only_load, only_arm = len(sick & clean), len(wrong - sick)
    judged = len(wrong | clean)
    said = (
        f"{len(wrong)} of {judged} sessions wrong where {len(sick & (wrong | clean))} of the same "
        "were wrong under the load"
    )
    return Reading(
        arm=run.name,
        said=said,
        stays=e_above(len(wrong), max(judged, run.begun), NOISE),
        goes=_pairs(only_load, only_arm),
        not_proved=run.not_proved or ("the server stopped in it" if run.wedge else ""),
    )


def _pairs(only_load: int, only_arm: int) -> float:
    if only_load <= only_arm:
        return 1.0
    return math.exp(min(LARGEST_LOG_WEALTH, float(log_wealth(only_load, only_arm))))


def sent_again(run: ArmRun, asked: int, right_texts: int = 0) -> Reading:
    """Requests that had failed, sent again: how many failed again, where the text of `right_texts`
    of them was right for all that."""
    again, judged = run.tally.corrupted_responses - right_texts, run.tally.responses
    return Reading(
        arm=run.name,
        said=f"{again} of {judged} requests went wrong again"
        + (f" ({asked - judged} brought no reply)" if asked > judged else ""),
        stays=e_above(again, judged, HARDLY),
        goes=e_below(again, judged, MOSTLY),
        not_proved=run.not_proved or ("" if judged else "none was answered"),
    )


def foreign_mark(run: ArmRun, symptom: Symptom) -> Mark:
    """Codes of other sessions in what went wrong."""
    count, wrong = len(run.foreign), len(run.wrong)
    if count:
        said = f"{count} of {wrong} wrong replies hold a code that was planted in another session"
        return Mark(symptom=symptom, said=said, present=FOREIGN_E * count)
    said = f"none of {wrong} wrong replies holds another session's code"
    return Mark(symptom=symptom, said=said, absent=e_below(0, wrong, NAMED_SHARE))


def wedge_reading(load: Tally | None, aborts: ArmRun) -> Wedged:
    """The wedge of the arm with aborts, against what the load without had survived."""
    before = load.responses if load is not None else 0
    return Wedged(
        requests=aborts.requests,
        before=before,
        said=f"the server stopped after {aborts.requests} requests, {aborts.tally.aborted_by_us} "
        f"of them aborted; {before} requests without aborts had passed before",
    )
