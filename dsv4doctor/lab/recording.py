"""A run of the engine as a file: what came, in the order in which it came, and what was read.

One JSON object a line. `run`: the engine's configuration. `round`: the requests of a round and, for
each, digests of the bytes that its prefill read and of its reply. `abort` and `flush`: what came
between rounds. The engine is deterministic, so the file is enough to have every byte again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from dsv4doctor.errors import UsageError
from dsv4doctor.lab.config import EngineConfig
from dsv4doctor.lab.model import Gathered
from dsv4doctor.lab.requests import EngineRequest, Generation

RUN, ROUND, ABORT, FLUSH = "run", "round", "abort", "flush"
_SCHEMA_VERSION = 1
_DIGEST_BYTES = 16


def _digest(*parts: bytes) -> str:
    state = blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        state.update(part)
    return state.hexdigest()


class Recorder:
    """Keeps what an engine is given, and digests of what it makes of it; `path` None keeps digests
    alone."""

    def __init__(self, path: Path | None, config: EngineConfig) -> None:
        self._file: IO[str] | None = path.open("w", encoding="utf-8") if path else None
        self._read: dict[str, str] = {}
        self.rounds: list[list[dict[str, Any]]] = []
        self._write({"kind": RUN, "schema_version": _SCHEMA_VERSION, "config": asdict(config)})

    def _write(self, record: Mapping[str, Any]) -> None:
        if self._file is not None:
            # ASCII only: prompts and replies may hold lone surrogates, which UTF-8 cannot.
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()

    def read(self, rid: str, gathered: Gathered) -> None:
        """A request's prefill is done: these are the bytes that its reply is made from."""
        layers = [layer.tobytes() for layer in gathered.index_k]
        self._read[rid] = _digest(*layers, gathered.latents.tobytes())

    def round(self, requests: Sequence[EngineRequest], answers: Sequence[Generation]) -> None:
        """A round is over."""
        made = [
            {
                "rid": answer.rid,
                "read": self._read.pop(answer.rid, None),
                "reply": _digest(answer.text.encode("utf-8", "surrogatepass")),
                "hung": answer.hung,
            }
            for answer in answers
        ]
        if self._file is None:
            self.rounds.append(made)
        fields = [
            {
                "rid": request.rid,
                "messages": list(request.messages),
                "tools": list(request.tools),
                "tool_choice": request.tool_choice,
                "max_tokens": request.max_tokens,
            }
            for request in requests
        ]
        self._write({"kind": ROUND, "requests": fields, "made": made})

    def abort(self, rid: str) -> None:
        self._write({"kind": ABORT, "rid": rid})

    def flush(self) -> None:
        self._write({"kind": FLUSH})

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One line of a recording but the first."""

    kind: str
    requests: tuple[EngineRequest, ...] = ()
    made: tuple[Mapping[str, Any], ...] = ()
    rid: str = ""


def read_recording(path: Path) -> tuple[EngineConfig, Iterator[Recorded]]:
    """The configuration of a recording, and what happened; a torn last line is left out.

    Raises:
        UsageError: if the file is no recording.
    """
    lines = iter(path.read_text(encoding="utf-8").splitlines())
    try:
        head = json.loads(next(lines))
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in head["config"].items()
        }
        config = EngineConfig(**fields)
    except (StopIteration, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} is no recording of this version's lab", "`lab serve --record FILE` makes one"
        ) from error
    return config, _events(lines, path)


def _events(lines: Iterator[str], path: Path) -> Iterator[Recorded]:
    for number, line in enumerate(lines, start=2):
        try:
            yield _event(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            if next(lines, None) is None:
                return
            raise UsageError(
                f"{path}, line {number} cannot be read", "record the run again"
            ) from error


def _event(record: Mapping[str, Any]) -> Recorded:
    if record["kind"] == ABORT:
        return Recorded(kind=ABORT, rid=record["rid"])
    if record["kind"] == FLUSH:
        return Recorded(kind=FLUSH)
    requests = tuple(EngineRequest(**fields) for fields in record["requests"])
    return Recorded(kind=ROUND, requests=requests, made=tuple(record["made"]))
