"""A reply that is well formed and does not hold the value that was planted for it.

Seen: a call's argument, or the text, differs from the canary that the prompt asked to repeat; or a
call that nobody asked for comes with it. The evidence says whose value came instead: the session's
own of an earlier turn (a stale read) or nobody's (damage). Another session's value is
`foreign_content`.
Why: this is the corruption that no other check sees, since the call is valid and merely wrong.
Confirm: send the same history once more alone on an idle server; a right value then means that the
cache and not the model was wrong.
Source: https://github.com/sgl-project/sglang/pull/31348,
https://github.com/sgl-project/sglang/issues/33397.
"""

from __future__ import annotations

from collections.abc import Iterator

from dsv4doctor.canary import Canary, decode_canary, find_canaries
from dsv4doctor.detect.detector import Detector, Seen
from dsv4doctor.detect.hints import PLANTED
from dsv4doctor.detect.subject import Call, Subject, strings_in
from dsv4doctor.label import Label

_SHOWN = 60
# A planted passage may come back inside a sentence of the model's own, no more than that.
_PASSAGE_SLACK = 160


def detect(subject: Subject) -> Iterator[Seen]:
    canaries = subject.exchange.canaries
    if not canaries:
        return
    passage = max((str(c.value) for c in canaries if c.tool is None), key=len, default="")
    is_cut_copy = _is_cut_copy(subject, passage)
    for canary in canaries:
        if canary.tool is not None:
            yield from _in_call(subject, canary)
        elif not is_cut_copy:
            yield from _in_text(subject, canary)
    yield from _around_text(subject, passage)
    expected = [c.call_index for c in canaries if c.tool is not None]
    if expected and len(subject.calls) > max(expected) + 1:
        extra = subject.calls[max(expected) + 1]
        yield _seen(f"{extra.where}.name", f"a call of {extra.name!r} that nobody asked for")


def _in_text(subject: Subject, canary: Canary) -> Iterator[Seen]:
    wanted = str(canary.value)
    content = subject.content.text
    if not subject.has_visible_content:
        return
    at = content.find(wanted)
    if at < 0:
        same = _shared_length(wanted, content.lstrip("\"'` \n"))
        what = f"{canary.label}: the text leaves the planted passage after {same} characters"
        if same < len(wanted):
            what += (
                f": {content.lstrip()[same : same + _SHOWN]!r} for {wanted[same : same + _SHOWN]!r}"
            )
        yield _seen("content", what + _whose(subject, content, canary))


def _is_cut_copy(subject: Subject, passage: str) -> bool:
    """True for a right beginning that a limit cut: what did not come cannot be wrong."""
    copied = subject.content.text.lstrip("\"'` \n")
    return subject.finish == "length" and bool(copied) and passage.startswith(copied)


def _around_text(subject: Subject, passage: str) -> Iterator[Seen]:
    """Text beside the whole passage; shorter canaries are parts of it."""
    content = subject.content.text
    at = content.find(passage)
    if passage and at >= 0 and len(content) - len(passage) > _PASSAGE_SLACK + len(passage) // 4:
        rest = (content[:at].strip() or content[at + len(passage) :].strip())[:_SHOWN]
        yield _seen("content", f"text that nobody asked for: {rest!r}")


def _shared_length(one: str, other: str) -> int:
    """How many characters two texts share from their start."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _in_call(subject: Subject, canary: Canary) -> Iterator[Seen]:
    call = _call_of(subject, canary)
    if call is None:
        if subject.calls:
            yield _seen("tool_calls", f"no call of {canary.tool} for {canary.label}")
        return
    value = call.arguments.value
    if not isinstance(value, dict):
        return
    where = f"{call.where}.arguments.{canary.argument}"
    if canary.argument not in value:
        yield _seen(where, f"{canary.label}: the argument is missing")
        return
    got = value[canary.argument]
    if not _same(got, canary.value):
        text = got if isinstance(got, str) else repr(got)
        what = f"{canary.label}: {_short(got)} for {_short(canary.value)}"
        yield _seen(where, what + _whose(subject, text, canary))


def _call_of(subject: Subject, canary: Canary) -> Call | None:
    if canary.call_index >= len(subject.calls):
        return None
    call = subject.calls[canary.call_index]
    return call if call.name == canary.tool else None


def _same(got: object, wanted: object) -> bool:
    """JSON equality: 1 and 1.0 are one number, true is no number."""
    if isinstance(got, bool) != isinstance(wanted, bool):
        return False
    return got == wanted


def _whose(subject: Subject, text: str, canary: Canary) -> str:
    """What the codes in a wrong value say of their owner, as the end of a sentence."""
    exchange = subject.exchange
    if exchange.canary_key is None or exchange.session is None:
        return ""
    for found in find_canaries(text):
        owner = decode_canary(exchange.canary_key, found.code)
        if owner is None:
            continue
        if owner.session != exchange.session:
            return f" (session {owner.session}'s value of its turn {owner.turn})"
        if found.code != canary.value:
            return f" (this session's own value of turn {owner.turn}: a stale read)"
    return " (nobody's value)"


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"


def _seen(where: str, what: str) -> Seen:
    return Seen(label=Label.CANARY_MISMATCH, where=where, what=what)


def foreign_codes(subject: Subject) -> Iterator[tuple[str, str, int, int]]:
    """Codes of other sessions anywhere in the reply: (where, code, session, turn)."""
    exchange = subject.exchange
    key, own = exchange.canary_key, exchange.session
    if key is None or own is None:
        return
    places = [(text.where, text.text) for text in (subject.content, subject.reasoning)]
    for call in subject.calls:
        places.extend(strings_in(call.arguments.value, f"{call.where}.arguments"))
        if call.arguments.value is None and isinstance(call.call.arguments, str):
            places.append((f"{call.where}.arguments", call.call.arguments))
        if call.name:
            places.append((f"{call.where}.name", call.name))
    for where, text in places:
        for found in find_canaries(text):
            owner = decode_canary(key, found.code)
            if owner is not None and owner.session != own:
                yield where, found.code, owner.session, owner.turn


DETECTOR = Detector(
    label=Label.CANARY_MISMATCH,
    summary="a well-formed reply without the value that was planted for it",
    detect=detect,
    hints=PLANTED,
)
