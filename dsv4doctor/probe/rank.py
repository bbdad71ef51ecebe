"""One rank's probe as a whole: who it is, where its socket lies, and what it answers."""

from __future__ import annotations

import atexit
import contextlib
import os
import platform
import stat
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.probe.channel import Channel, Inbox, accepted, refusal
from dsv4doctor.probe.drainer import Drainer
from dsv4doctor.probe.movers import give_up_unseen
from dsv4doctor.probe.observer import Observer

FOLDER_VARIABLE = "DSV4DOCTOR_PROBE_DIR"
PROBE_VERSION = "1"


def run_folder() -> Path:
    """Where sockets and files lie: beside the plugin, unless the environment says otherwise."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else Path(__file__).resolve().parents[1] / "run"


def own_folder(folder: Path) -> Path:
    """`folder`, made if it is missing; nobody else may write there, or the socket of another would
    be taken for ours.

    Raises:
        PermissionError: if it belongs to somebody else.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid not in (os.geteuid(), 0):
        raise PermissionError(f"{folder} belongs to somebody else")
    if about.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        folder.chmod(0o700)
    return folder


def engine_version() -> str | None:
    from importlib import metadata

    try:
        return metadata.version("sglang")
    except metadata.PackageNotFoundError:
        return None


def describe_rank(scheduler: Any) -> dict[str, Any]:
    """Role and parallel ranks of a scheduler; SGLang has kept them in three places."""
    places: list[Any] = [scheduler, getattr(scheduler, "ps", None)]
    # Older than that, or not set up: what the scheduler has is all there is.
    with contextlib.suppress(Exception):
        places.append(import_module("sglang.srt.runtime_context").get_parallel())

    def number(name: str) -> int:
        for place in places:
            with contextlib.suppress(Exception):
                found = getattr(place, name)
                if isinstance(found, int):
                    return found
        return 0

    mode = getattr(scheduler, "disaggregation_mode", None)
    role = getattr(mode, "value", mode)
    return {
        "role": role if role in ("prefill", "decode") else "aggregated",
        "dp": number("dp_rank"),
        "tp": number("tp_rank"),
        "pp": number("pp_rank"),
        "pid": os.getpid(),
        "host": platform.node(),
    }


class RankProbe:
    """Observer, drainer and socket of this process."""

    def __init__(self, observer: Observer, *, engine: str = "sglang") -> None:
        self.observer = observer
        self.drainer = Drainer(observer)
        self.inbox = Inbox()
        self.channel: Channel | None = None
        self.rank: dict[str, Any] | None = None
        self.engine = engine
        self.version = engine_version()

    def begin(self, scheduler: Any) -> None:
        """Open the socket; at the scheduler's first step, when its ranks are known.

        Raises:
            OSError: if there is no place for it that is ours alone.
        """
        self.rank = describe_rank(scheduler)
        give_up_unseen(self.observer, scheduler)
        self.channel = Channel(own_folder(run_folder()), self._name(), self.answer, self._spent)
        self.drainer.start()
        atexit.register(self.close)

    def _spent(self, ms: float) -> None:
        self.observer.budget.drain_ms += ms

    def adopt(self, _result: Any, pool: Any, *_: Any, **__: Any) -> None:
        """After the pool was made."""
        self.observer.adopt(pool)

    def _name(self) -> str:
        rank = self.rank or {}
        return "{role}-dp{dp}-tp{tp}-pp{pp}-{pid}".format(**rank)

    def pump(self, scheduler: Any, *_: Any, **__: Any) -> None:
        """Between two steps: take commands."""
        if self.observer.retired:
            return
        if self.rank is None:
            self.begin(scheduler)
        if not self.inbox.is_empty:  # the tree may be another one since
            give_up_unseen(self.observer, scheduler)
            self.inbox.serve(self.carry_out)

    # -- answers ----------------------------------------------------------------------------------

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request; on the socket's thread."""
        command = request.get("command")
        if command == "status":
            return accepted(status=self.status())
        if command == "drain":
            after = int(request.get("after", 0))
            limit = int(request.get("limit", protocol.MOST_RECORDS_A_DRAIN))
            return accepted(**self.observer.journal.take(after, limit))
        if command in protocol.COMMANDS:
            answer = self.inbox.ask(request)
            if command == "retire" and answer.get("ok"):
                self.close()
            return answer
        return refusal(f"no command {command!r}: {', '.join(protocol.COMMANDS)}")

    def carry_out(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """A command that changes the probe; on the scheduler's thread."""
        command, observer = request["command"], self.observer
        if command == "arm":
            observer.arm(request, self._file() if request.get("to_file") else None)
        elif command == "disarm":
            observer.disarm()
        elif command == "perturb":
            observer.perturb(request)
        elif command == "retire":
            observer.disarm()
            observer.retired = True
        return accepted(status=self.status())

    def _file(self) -> Path:
        assert self.channel is not None
        return self.channel.path.with_suffix(".jsonl")

    def close(self) -> None:
        """Leave nothing behind but idle hooks; also when the interpreter ends. A child that was
        forked off has nothing of its own to take away."""
        if self.rank is not None and self.rank["pid"] != os.getpid():
            return
        self.observer.armed = False
        self.drainer.stop()
        with contextlib.suppress(OSError):
            if self.channel is not None:
                self.channel.close()
                self._file().unlink(missing_ok=True)

    def status(self) -> dict[str, Any]:
        """The status of `docs/probe.md`."""
        observer = self.observer
        path = observer.journal.path
        return {
            "protocol": protocol.PROTOCOL,
            "probe": PROBE_VERSION,
            "engine": self.engine,
            "version": self.version,
            "rank": self.rank or {},
            "armed": observer.armed,
            "session": observer.session,
            "observes": dict(observer.observes),
            "pools": [_watched(bank) for bank in list(observer.banks.values())],
            "settings": dict(observer.settings),
            "counts": dict(observer.counts),
            "skipped": dict(observer.skipped),
            "cost": observer.budget.as_values(),
            "perturbed": [dict(each) for each in list(observer.perturbed)],
            "failures": list(observer.failures),
            "kept": len(observer.journal),
            "lost": observer.journal.lost,
            "socket": None if self.channel is None else str(self.channel.path),
            "file": None if path is None else str(path),
        }

    def add_status(self, result: Any, *_: Any, **__: Any) -> None:
        """After `get_internal_state`: our status beside SGLang's own."""
        state = getattr(result, "internal_state", None)
        if isinstance(state, dict) and not self.observer.retired:
            state[protocol.STATE_KEY] = self.status()


def _watched(bank: Any) -> dict[str, Any]:
    return {
        "pool": bank.pool,
        "layout": bank.layout.name,
        "layers": list(bank.layers),
        "pages": bank.pages,
        "page_bytes": bank.layout.page_bytes,
        "page_tokens": bank.page_tokens,
    }
