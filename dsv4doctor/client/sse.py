"""Bytes of an event stream -> server-sent events, whatever the chunk boundaries.

Follows the parsing rules of the WHATWG HTML standard, section 9.2.6 (event stream interpretation):
lines end with CR, LF or CRLF; a leading byte order mark, comments and unknown fields are ignored;
`data` lines of one event are joined with LF; an event without data is not dispatched. It works on
bytes: line ends are ASCII and never part of a longer UTF-8 sequence, so splitting before decoding
gives the same events, and decoding is left to whoever reads the data.
"""

from __future__ import annotations

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"

# Above this, unfinished input is parsed line by line, so that a huge event costs linear time.
_WHOLE_EVENTS_LIMIT = 64 * 1024

# One event of a chat stream is some hundred bytes; the largest sane one holds a whole reply.
MAX_EVENT_BYTES = 16 * 1024 * 1024


class EventTooLong(ValueError):
    """One event grew past `MAX_EVENT_BYTES`: this is no chat stream."""


class Event(NamedTuple):
    """One dispatched event; `name` is empty for an ordinary `message` event."""

    data: bytes
    name: bytes = b""


class SseReader:
    """Feed it chunks; it returns the events that each chunk completed, in order."""

    __slots__ = ("_after_cr", "_data", "_line", "_name", "_pending_bytes", "_started", "_tail")

    def __init__(self) -> None:
        self._tail = b""  # unparsed input without CR and without an event's end
        self._started = False
        self._line: list[bytes] = []  # pieces of an unfinished line
        self._data: list[bytes] | None = None
        self._name = b""
        self._after_cr = False
        self._pending_bytes = 0

    def feed(self, chunk: bytes) -> list[Event]:
        """The events completed by `chunk`.

        Raises:
            EventTooLong: if an unfinished event exceeds `MAX_EVENT_BYTES`.
        """
        if not self._started:
            chunk = self._strip_bom(chunk)
        buffer = self._tail + chunk if self._tail else chunk
        if self._is_between_lines() or b"\r" in chunk or len(buffer) > _WHOLE_EVENTS_LIMIT:
            self._tail = b""
            return self._feed_lines(buffer)
        end = buffer.rfind(b"\n\n")
        if end < 0:
            self._tail = buffer
            return []
        head = buffer[:end]
        self._tail = buffer[end + 2 :]
        parts = head.split(b"\n\n")
        # No line end inside any part, and every part is one `data: ` line: the shape that every
        # inference server sends. Anything else takes the general path.
        if head.count(b"\n") == 2 * (len(parts) - 1):
            events = [Event(part[6:]) for part in parts if part.startswith(b"data: ")]
            if len(events) == len(parts):
                return events
        return self._feed_lines(buffer[: end + 2])

    def finish(self) -> list[Event]:
        """The event that the stream's end left without its blank line, if it has data.

        The standard discards it. A reader of chat streams wants to look at it, since some servers
        leave out the last line end after `data: [DONE]`.
        """
        events = self._feed_lines(self._tail + b"\n\n")
        self._tail = b""
        return events

    def _strip_bom(self, chunk: bytes) -> bytes:
        chunk = self._tail + chunk
        self._tail = b""
        if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
            self._tail = chunk
            return b""
        self._started = True
        return chunk.removeprefix(_BOM)

    def _is_between_lines(self) -> bool:
        return bool(self._line or self._data is not None or self._name or self._after_cr)

    def _feed_lines(self, chunk: bytes) -> list[Event]:
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if chunk.endswith(b"\r"):
            self._after_cr = True
        lines = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._pending_bytes += len(chunk)
        if len(lines) > 1 and self._line:
            lines[0] = b"".join((*self._line, lines[0]))
            self._line.clear()
        if rest := lines.pop():
            self._line.append(rest)
        events: list[Event] = []
        for line in lines:
            if line:
                self._take_field(line)
            elif self._data is not None or self._name:
                self._dispatch(events)
        if not self._is_between_lines() or events:
            self._pending_bytes = 0
        if self._pending_bytes > MAX_EVENT_BYTES:
            raise EventTooLong(f"one event of the stream exceeds {MAX_EVENT_BYTES >> 20} MiB")
        return events

    def _dispatch(self, events: list[Event]) -> None:
        if self._data is not None:
            events.append(Event(b"\n".join(self._data), self._name))
        self._data = None
        self._name = b""

    def _take_field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            if self._data is None:
                self._data = []
            self._data.append(value)
        elif field == b"event":
            self._name = value
