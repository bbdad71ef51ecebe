"""The event reader gives the standard's events at every chunk boundary."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsv4doctor.client import sse
from dsv4doctor.client.sse import Event, EventTooLong, SseReader

CASES = {
    "plain": (b'data: {"a":1}\n\ndata: [DONE]\n\n', [(b'{"a":1}', b""), (b"[DONE]", b"")]),
    "crlf": (b"data: a\r\n\r\ndata: b\r\n\r\n", [(b"a", b""), (b"b", b"")]),
    "cr": (b"data: a\r\rdata: b\r\r", [(b"a", b""), (b"b", b"")]),
    "mixed line ends": (b"data: a\r\ndata: b\n\rdata: c\r\r\n", [(b"a\nb", b""), (b"c", b"")]),
    "no space after colon": (b"data:a\n\ndata:  b\n\n", [(b"a", b""), (b" b", b"")]),
    "multi-line data": (b"data: a\ndata\ndata: b\n\n", [(b"a\n\nb", b"")]),
    "comments": (b": ping\n\n:\n\ndata: a\n: in between\n\n", [(b"a", b"")]),
    "byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [(b"a", b"")]),
    "mark only at the start": (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [(b"a", b"")]),
    "event name": (b"event: error\ndata: x\n\ndata: y\n\n", [(b"x", b"error"), (b"y", b"")]),
    "name without data": (b"event: error\n\ndata: y\n\n", [(b"y", b"")]),
    "id, retry, unknown": (b"id: 7\nretry: 9\nfoo: bar\ndata: y\n\n", [(b"y", b"")]),
    "empty data": (b"data:\n\ndata\n\n", [(b"", b""), (b"", b"")]),
    "many blank lines": (b"\n\n\ndata: a\n\n\n\n\ndata: b\n\n", [(b"a", b""), (b"b", b"")]),
    "unfinished event": (b"data: a\n\ndata: b\n", [(b"a", b"")]),
    "utf-8": ("data: ｜DSML｜ 😀\n\n".encode(), [("｜DSML｜ 😀".encode(), b"")]),
    "empty": (b"", []),
}


def read(pieces: list[bytes]) -> list[tuple[bytes, bytes]]:
    reader = SseReader()
    return [tuple(event) for piece in pieces for event in reader.feed(piece)]


@pytest.mark.parametrize(("stream", "expected"), CASES.values(), ids=CASES.keys())
def test_every_split_in_two_gives_the_standards_events(stream, expected) -> None:
    for cut in range(len(stream) + 1):
        assert read([stream[:cut], stream[cut:]]) == expected
    assert read([bytes([byte]) for byte in stream]) == expected


def standard_events(stream: bytes) -> list[tuple[bytes, bytes]]:
    """The standard's algorithm, literally and on the whole text."""
    text = stream.decode("latin-1").removeprefix("ï»¿")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]
    events, data, name = [], "", ""
    for line in lines:
        if line == "":
            if data:
                events.append((data[:-1].encode("latin-1"), name.encode("latin-1")))
            data = name = ""
            continue
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "data":
            data += value + "\n"
        elif field == "event":
            name = value
    return events


PIECES = st.sampled_from(
    [b"data: ", b"data:", b"data", b"event: ", b": ", b"\n", b"\r", b"\r\n", b"\n\n", b"x", b" ",
     "é".encode(), b"\xef\xbb\xbf", b'{"a":1}', b"[DONE]", b"id: 3"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40), st.data())
def test_any_stream_at_any_boundaries_equals_the_standard(pieces, data) -> None:
    stream = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    bounds = [0, *cuts, len(stream)]
    chunks = [stream[a:b] for a, b in itertools.pairwise(bounds)]
    assert read(chunks) == standard_events(stream)


def test_finish_gives_the_event_that_lacks_its_blank_line() -> None:
    for ending in (b"data: [DONE]", b"data: [DONE]\n", b"data: [DONE]\r"):
        reader = SseReader()
        assert reader.feed(ending) == []
        assert reader.finish() == [Event(b"[DONE]")]
    assert SseReader().finish() == []


def test_an_endless_event_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1 << 20)
    reader = SseReader()
    for _ in range(16):
        reader.feed(b"x" * 65536)
    with pytest.raises(EventTooLong):
        reader.feed(b"x")
