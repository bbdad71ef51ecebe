"""Generated text, delta by delta, into content and pieces of tool calls (`stream: true`).

Both parsers hold back any text that could begin a marker. The open one (A, B) announces a call
when its invoke opens and then sends what the arguments grew by; the closed one (C) waits for the
invoke's end and sends all of it, or nothing.
"""

from __future__ import annotations

from typing import Protocol

from dsv4doctor.lab.output.arguments import (
    LeakingValue,
    MalformedInvoke,
    read_arguments,
    read_arguments_strictly,
    read_unfinished_arguments,
)
from dsv4doctor.lab.output.behaviour import Behaviour
from dsv4doctor.lab.output.markup import (
    BLANK_LINE,
    MARKER,
    NOTHING,
    CallPiece,
    Invoke,
    Parsed,
    find_invoke,
    may_hold_markup,
    prose_before,
)


class StreamParser(Protocol):
    """One response's parser."""

    def feed(self, delta: str) -> Parsed:
        """What `delta` releases."""
        ...

    def finish(self) -> Parsed:
        """What is released because nothing follows; not called for an aborted response."""
        ...

    def unsent_arguments(self) -> CallPiece | None:
        """What the last call's arguments still lack when the response ends."""
        ...


def stream_parser(behaviour: Behaviour) -> StreamParser:
    """A fresh parser of that behaviour."""
    return ClosedParser() if behaviour.fails_closed else OpenParser(behaviour)


class OpenParser:
    """Groups A and B: calls grow while they arrive; what is damaged shows."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._buffer = ""
        self._index = 0  # of the call that is open, or of the next one
        self._started = False  # whether any invoke was seen
        self._announced = False  # whether the open call's name was sent
        self._seen: str | None = None  # the open call's arguments at the delta before
        self._sent = ""  # what was sent of them
        self._last: tuple[int, str, str] | None = None  # index, arguments known, arguments sent

    def feed(self, delta: str) -> Parsed:
        self._buffer += delta
        if not may_hold_markup(self._buffer):
            text, self._buffer = self._buffer, ""
            return Parsed(text)
        prose = ""
        pieces: list[CallPiece] = []
        try:
            while (invoke := find_invoke(self._buffer)) is not None:
                if not self._started:
                    self._started = True
                    if self._behaviour.keeps_prose_of_call_delta:
                        prose = prose_before(self._buffer, invoke)
                self._advance(invoke, pieces)
                if not invoke.closed:
                    break
                self._buffer = self._buffer[invoke.end :]
        except LeakingValue:
            # The release catches this far outside: the whole buffer becomes content, stays
            # buffered, and the pieces of this delta are lost.
            return Parsed(self._buffer)
        return Parsed(prose, tuple(pieces))

    def finish(self) -> Parsed:
        return NOTHING

    def unsent_arguments(self) -> CallPiece | None:
        if self._last is None:
            return None
        index, known, sent = self._last
        rest = known[len(sent) :] if known.startswith(sent) else ""
        return CallPiece(index, None, rest) if rest else None

    def _advance(self, invoke: Invoke, pieces: list[CallPiece]) -> None:
        """Send the open call's name once, then what is certain of its arguments by now."""
        if self._last is None or self._last[0] != self._index:
            self._last = (self._index, "{}", "")
        if not self._announced:
            pieces.append(CallPiece(self._index, invoke.name, ""))
            self._announced = True
        if invoke.closed:
            known = read_arguments(invoke.body)
            growth = known[len(self._sent) :]
        else:
            known = read_unfinished_arguments(
                invoke.body, leaks_partial_values=self._behaviour.leaks_partial_values
            )
            growth = self._stable_growth(known)
        if growth:
            pieces.append(CallPiece(self._index, None, growth))
            self._sent += growth
        self._seen = known
        self._last = (self._index, known, self._sent)
        if invoke.closed:
            self._index += 1
            self._announced = False
            self._seen = None
            self._sent = ""

    def _stable_growth(self, known: str) -> str:
        """What two deltas running agree on and was not sent: the rest may still change."""
        if self._seen is None or known == self._seen:
            return ""
        agreed = 0
        for ours, theirs in zip(known, self._seen, strict=False):
            if ours != theirs:
                break
            agreed += 1
        return known[len(self._sent) : agreed]


class ClosedParser:
    """Group C: a call is handed on whole when its invoke closes; damaged ones are dropped."""

    def __init__(self) -> None:
        self._buffer = ""
        self._index = 0
        self._started = False

    def feed(self, delta: str) -> Parsed:
        self._buffer += delta
        if not may_hold_markup(self._buffer):
            return self._release_prose()
        prose = ""
        pieces: list[CallPiece] = []
        while (invoke := find_invoke(self._buffer)) is not None and invoke.closed:
            if not self._started:
                self._started = True
                prose = prose_before(self._buffer, invoke)
            self._buffer = self._buffer[invoke.end :]
            try:
                arguments = read_arguments_strictly(invoke.body)
            except MalformedInvoke:
                continue
            pieces.append(CallPiece(self._index, invoke.name, arguments))
            self._index += 1
        return Parsed(prose, tuple(pieces))

    def finish(self) -> Parsed:
        text, self._buffer = self._buffer, ""
        return NOTHING if self._started else Parsed(before_markup(text))

    def unsent_arguments(self) -> CallPiece | None:
        return None

    def _release_prose(self) -> Parsed:
        """All but trailing blanks, which may be the blank line ahead of a block."""
        text = self._buffer.rstrip()
        self._buffer = self._buffer[len(text) :] if text else self._buffer
        return Parsed(text)


def before_markup(text: str) -> str:
    """The prose ahead of the first marker; all of `text` when there is none."""
    at = text.find(MARKER)
    if at == -1:
        return text
    for bracket in ("</", "<"):
        if text[:at].endswith(bracket):
            at -= len(bracket)
            break
    return text[:at].removesuffix(BLANK_LINE)
