"""From a log's lines to judged records: what one worker of `scan` does."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsv4doctor.artifacts.logchunks import ChunkAssembler, is_chunk
from dsv4doctor.artifacts.logfiles import Line
from dsv4doctor.artifacts.logformats import records_in
from dsv4doctor.artifacts.serverlogs import (
    is_event,
    is_too_long,
    looks_like_log,
    record_of_event,
    record_of_line,
)
from dsv4doctor.detect import judge_all
from dsv4doctor.dsml.strict import DsmlError, read_strict
from dsv4doctor.exchange import exchange_from_record
from dsv4doctor.label import FAILURES, Judgement, Label

_SSE_FIELD = re.compile(rb"^(?:data|event|id|retry)?:")
# The first events of a stream of Anthropic's messages and of OpenAI's responses, which are not
# read.
_OTHER_STREAM = re.compile(rb"event: ?(?:message_start|response\.created)\b")
# Without either, an object is no piece of a stream; looked for before anything is decoded.
_CHUNK_MARKS = (b'"delta"', b'"chat.completion.chunk"')
_MAX_ID = 200
_TOO_DEEP = "nested too deeply"
# Objects made between two looks for garbage cycles.
_COLLECT_EVERY = 20_000
_THINK_START, _THINK_END = "<think>", "</think>"
_DSML_MARK = "｜DSML｜"
# What is judged at a time: enough for each detector's code to stay in the processor's caches,
# little enough for the texts to stay there too.
BATCH_BYTES = 1 << 18
BATCH_LINES = 64


@dataclass(slots=True, kw_only=True)
class Judged:
    """One record of a log and what it is; `groups` are the values asked for by `--group-by`. Not
    frozen, since that triples what making one costs."""

    id: str
    source: str
    line: int
    judgement: Judgement
    groups: tuple[str, ...] = ()
    time: Any = None
    aborted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A line that is no record and should be one."""

    source: str
    line: int
    problem: str


Outcome = Judged | Unreadable


# A record that was read and the line that it ended on, to be judged together with its neighbours.
_Read = tuple[Mapping[str, Any], int]


class LineReader:
    """Turns the lines of one source into outcomes; holds what streams have open, nothing else."""

    def __init__(self, source: str, group_by: Sequence[str] = ()) -> None:
        self._source = source
        self._group_by = tuple(group_by)
        self._assembler = ChunkAssembler()
        self._is_log = False
        self._found: list[_Read | Unreadable] = []

    def judge(self, lines: Iterable[Line]) -> list[Outcome]:
        """What the next lines yield: usually a record each, for a stream's line none until its
        end."""
        for line in lines:
            self._feed(line)
        return self._outcomes()

    def finish(self, number: int) -> list[Outcome]:
        """The streams that were still open when the source ended."""
        self._close_streams(number)
        return self._outcomes()

    def is_changed_by(self, line: Line) -> bool:
        """True if later lines are read otherwise for this line of a fresh source."""
        self._feed(line)
        return self._is_log or not self._assembler.is_empty

    def _feed(self, line: Line) -> None:
        if line.problem is not None:
            self._unreadable(line.number, line.problem)
            return
        raw = line.raw
        first = raw[:1]
        if first.isspace():
            first = raw.lstrip()[:1]
        if not first:
            return
        if first in (b"{", b"["):
            self._json(line)
        elif _SSE_FIELD.match(raw):
            self._is_log = True
            if _OTHER_STREAM.match(raw):
                self._unreadable(
                    line.number, "begins an event stream of another form than OpenAI's"
                )
            if self._assembler.feed_line(raw.decode("utf-8", "replace")):
                self._close_streams(line.number)
        else:
            self._log_line(line)

    def _close_streams(self, number: int) -> None:
        self._found.extend((record, number) for record in self._assembler.finish())

    def _json(self, line: Line) -> None:
        try:
            value = _decoded(line.raw)
        except UnicodeDecodeError as error:
            self._unreadable(line.number, f"no UTF-8 at byte {error.start}")
            return
        except (ValueError, RecursionError) as error:
            if line.raw.lstrip()[:1] == b"[" and (self._is_log or looks_like_log(_text(line.raw))):
                self._log_line(line)
            else:
                self._unreadable(line.number, f"no JSON ({str(error)[:80]})")
            return
        if is_chunk(value):
            self._assembler.feed(value)
            return
        if is_event(value):
            record = record_of_event(value)
            if record is not None:
                self._found.append((record, line.number))
            return
        try:
            records = list(records_in(value))
        except RecursionError:
            self._unreadable(line.number, _TOO_DEEP)
            return
        self._found.extend((record, line.number) for record in records)
        if not records:
            self._unreadable(line.number, "holds no response of a known form")

    def _log_line(self, line: Line) -> None:
        text = _text(line.raw)
        record = record_of_line(text)
        if record is not None:
            self._is_log = True
            self._found.append((record, line.number))
        elif is_too_long(text):
            self._is_log = True
            self._unreadable(line.number, "a server's line whose reply is too long to be read")
        elif looks_like_log(text):
            self._is_log = True
        elif not self._is_log and not _is_http_head(text):
            self._unreadable(line.number, "neither JSON nor a log line of a known form")

    def _unreadable(self, number: int, problem: str) -> None:
        self._found.append(Unreadable(source=self._source, line=number, problem=problem))

    def _outcomes(self) -> list[Outcome]:
        """Everything found since, judged."""
        found, self._found = self._found, []
        judged = iter(self._judge([item for item in found if not isinstance(item, Unreadable)]))
        return [item if isinstance(item, Unreadable) else next(judged) for item in found]

    def _judge(self, reads: Sequence[_Read]) -> list[Outcome]:
        """An outcome for each record. One that a detector fails on must not cost the others: it
        is found by judging each alone, and named with what went wrong."""
        try:
            whole = [(with_response(record), number) for record, number in reads]
            judgements = judgements_of([record for record, _ in whole])
            return list(map(self._judged, whole, judgements))
        except Exception as error:
            if len(reads) > 1:
                return [outcome for read in reads for outcome in self._judge([read])]
            reason = f"{type(error).__name__}: {str(error)[:80]}"
            problem = f"could not be judged, a bug in dsv4doctor ({reason})"
            if isinstance(error, RecursionError):
                problem = _TOO_DEEP
            return [Unreadable(source=self._source, line=reads[0][1], problem=problem)]

    def _judged(self, read: _Read, judgement: Judgement) -> Judged:
        record, number = read
        name = record.get("id")
        known = isinstance(name, str | int) and not isinstance(name, bool) and name != ""
        return Judged(
            id=str(name)[:_MAX_ID] if known else f"{self._source}:{number}",
            source=self._source,
            line=number,
            judgement=judgement,
            groups=tuple([group_value(record, key) for key in self._group_by]),
            time=time_of(record),
            aborted=record.get("aborted") is True,
        )


def judgement_of(record: Mapping[str, Any]) -> Judgement:
    """The judgement of one record; what never became a response keeps its failure's name."""
    return judgements_of((record,))[0]


def judgements_of(records: Sequence[Mapping[str, Any]]) -> list[Judgement]:
    """The judgement of each record, in order."""
    failures = [_failure_of(record) for record in records]
    replies = zip(records, failures, strict=True)
    judged = iter(judge_all([exchange_from_record(r) for r, failure in replies if failure is None]))
    return [next(judged) if failure is None else failure for failure in failures]


def _failure_of(record: Mapping[str, Any]) -> Judgement | None:
    failure = record.get("failure")
    if failure is None or not isinstance(failure, Mapping):
        return None
    kind = failure.get("kind")
    if isinstance(kind, str) and kind in set(FAILURES):
        return Judgement(primary=Label(kind))
    return Judgement(primary=Label.PROTOCOL_ERROR)


def with_response(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The record with its raw text, if it has one, split into reasoning, content and calls."""
    raw = record.get("raw_text")
    if not isinstance(raw, str) or "response" in record:
        return record
    reasoning, separator, rest = raw.partition(_THINK_END)
    if not separator:
        # Opened and never closed, with no call: the reply ended while it was thinking.
        still_thinking = raw.startswith(_THINK_START) and _DSML_MARK not in raw
        reasoning, rest = (raw, "") if still_thinking else ("", raw)
    reply: dict[str, Any] = {
        "reasoning_content": reasoning.removeprefix(_THINK_START) or None,
        "content": rest,
        "tool_calls": None,
        "finish_reason": record.get("finish_reason"),
    }
    try:
        read = read_strict(rest)
    except DsmlError:
        # A block that the strict reader refuses is shown as it is: that is the finding.
        return {**record, "response": reply}
    if read.calls:
        reply["content"] = read.content or None
        reply["tool_calls"] = [
            {
                "id": f"call_{number}",
                "type": "function",
                "index": number,
                "function": {
                    "name": call.name,
                    "arguments": json.dumps(dict(call.arguments), ensure_ascii=False),
                },
            }
            for number, call in enumerate(read.calls)
        ]
    return {**record, "response": reply}


_TIME_KEYS = (
    "time", "timestamp", "ts", "@timestamp", "created", "created_at", "start_time", "startTime",
    "sent_unix",
)  # fmt: skip
_TIMES = (str, int, float)
_HOST_KEYS = ("host", "hostname", "server", "backend", "node", "base_url", "system_fingerprint")
_ALIASES = {"time": _TIME_KEYS, "host": _HOST_KEYS, "model": ("model", "served_model_name")}


def time_of(record: Mapping[str, Any]) -> Any:
    """When the record says it happened, as the number or text it is; None if it does not."""
    for key in _TIME_KEYS:
        if isinstance(value := record.get(key), _TIMES):
            return value
    return None


def group_value(record: Mapping[str, Any], key: str) -> str:
    """The value to group by: `model`, `host`, `time` (the hour), or any dotted path; `-` if
    absent."""
    if key == "time":
        from dsv4doctor.flows.scan_trend import hour_of

        return hour_of(time_of(record)) or "-"
    for alias in _ALIASES.get(key, (key,)):
        value: Any = record
        for part in alias.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None and not isinstance(value, Mapping | list):
            return str(value)[:_MAX_ID]
    return "-"


def _decoded(raw: bytes) -> Any:
    import orjson

    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        # Lone surrogates, NaN and huge numbers: Python's reader takes them, as clients do.
        return json.loads(raw.decode("utf-8"))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _is_http_head(text: str) -> bool:
    """A header line of a capture with headers (`curl -i`), or a chunk's length."""
    return bool(re.match(r"(?:HTTP/\d|[A-Za-z][\w-]{1,40}: |[<>*] |[0-9a-fA-F]{1,8}$)", text))


def few_collections() -> None:
    """Let Python look for garbage cycles rarely: a record makes many objects and no cycle, and
    without this a sixth of a scan goes into looking."""
    gc.freeze()
    gc.set_threshold(_COLLECT_EVERY, 50, 1000)


def no_idle_threads() -> None:
    """Keep numpy, which is not loaded yet, from starting threads for algebra: they wait busily."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def hangs_together(line: Line) -> bool:
    """True for a line that others hang on: a piece of a stream, or a logger's line, after which
    other lines are read otherwise."""
    raw = line.raw
    if raw[:1] == b"{" and not any(mark in raw for mark in _CHUNK_MARKS):
        return False
    reader = LineReader("")
    return reader.is_changed_by(line)


def begin_worker() -> None:
    """What a process of the pool does first. Ctrl-C reaches the whole group; the parent decides."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    few_collections()


def batches(lines: Iterable[Line], size: int, count: int) -> Iterator[list[Line]]:
    """The lines in batches of about `size` bytes, of no more than `count` lines."""
    batch: list[Line] = []
    held = 0
    for line in lines:
        batch.append(line)
        held += len(line.raw)
        if held >= size or len(batch) >= count:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def judge_lines(source: str, lines: Sequence[Line], group_by: Sequence[str]) -> list[Outcome]:
    """Judge a batch of lines that each stand alone; what a process pool runs."""
    reader = LineReader(source, group_by)
    outcomes: list[Outcome] = []
    for batch in batches(lines, BATCH_BYTES, BATCH_LINES):
        outcomes.extend(reader.judge(batch))
    outcomes.extend(reader.finish(lines[-1].number if lines else 0))
    return outcomes
