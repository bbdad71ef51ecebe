"""From finished launches to records, on a thread of its own, in the order of launch."""

from __future__ import annotations

import threading
import time
from typing import Any

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.probe.devices import normal_digests
from dsv4doctor.probe.launches import Launch, LoadRound, Note, Owner, now_ms
from dsv4doctor.probe.observer import MOST_PERTURBED, Observer

POLL_S = 0.02
STOP_S = 2.0  # for the thread to end, when it is told to
# The interpreter is lent to the scheduler this often, for at least so long: a thread that only
# computes would keep it for 5 ms at a time.
BREATH_ROWS = 8
BREATH_S = 1e-4
# A launch that lasts this long was lost by whatever was to complete it (an exception in a copy).
STUCK_S = 30.0
# What was abandoned may still be written to by a device: its words are not reused before that.
QUARANTINE_S = 5.0


class Drainer:
    """Reads the ring's twin behind the device; the scheduler never waits for it."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        # (pool, page) -> the load that last brought it
        self._brought: dict[tuple[str, int], LoadRound] = {}
        self._session = 0
        self._head_since: tuple[int, float] = (0, 0.0)

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="dsv4doctor-probe", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=STOP_S)

    def _run(self) -> None:
        observer = self._observer
        try:
            if observer.device is not None:
                observer.device.begin_thread()
        except Exception as error:
            observer.fail("drainer", (), type(error).__name__ + ": " + str(error))
        while not self._stop.is_set():
            began = time.thread_time()
            try:
                busy = self.drain_some()
            except Exception as error:  # a thread of ours never ends SGLang's process
                observer.fail("drainer", (), type(error).__name__ + ": " + str(error))
                self._drop_head()
                busy = False
            # The interpreter is the scheduler's too: what this thread takes of it counts as cost.
            observer.budget.drain_ms += (time.thread_time() - began) * 1e3
            if not busy:
                self._stop.wait(POLL_S)

    def _drop_head(self) -> None:
        if self._observer.queue:
            head = self._observer.queue.popleft()
            if isinstance(head, Launch):
                self._release()

    def drain_some(self, most: int = 256) -> bool:
        """Turn finished launches at the queue's head into records; whether there were any."""
        observer, any_done = self._observer, False
        if self._session != observer.sessions:
            self._session = observer.sessions
            self._brought.clear()
        for _ in range(most):
            if not observer.queue:
                break
            head = observer.queue[0]
            is_old = head.session != observer.sessions
            if isinstance(head, Note):
                observer.journal.add([] if is_old else [_told(head)])
            elif head.is_abandoned and self._is_in_use(head):
                break
            elif head.is_abandoned or self._is_stuck(head):
                if not is_old:
                    observer.skip(head.count, "cut off")
                    observer.journal.add([_told(_cut_off(head))])
                self._release()
            elif head.done is None or not head.done.reached():
                break
            else:
                if not is_old and (head.digested or head.hop == protocol.UNSEEN):
                    self._finish(head)
                self._release()
            observer.queue.popleft()
            any_done = True
        return any_done

    def _release(self) -> None:
        with self._observer.lock:
            assert self._observer.ring is not None
            self._observer.ring.release()

    def _is_in_use(self, launch: Launch) -> bool:
        device = self._observer.device
        is_apart = device is not None and device.is_apart
        return is_apart and now_ms() - launch.time_ms < QUARANTINE_S * 1e3

    def _is_stuck(self, launch: Launch) -> bool:
        seq, since = self._head_since
        if seq != launch.seq:
            self._head_since = (launch.seq, time.monotonic())
            return False
        return launch.done is None and time.monotonic() - since > STUCK_S

    def _finish(self, launch: Launch) -> None:
        observer = self._observer
        assert observer.ring is not None
        _, fetched = observer.ring.whole(launch.slot)
        words = fetched.tolist()
        if observer.device is not None and observer.device.is_apart:
            for begin, end in launch.spans:
                observer.budget.device_ms += end.ms_since(begin) or 0.0
        digests = {
            layer: normal_digests(words[first : first + launch.count], launch.bank)
            for layer, first in ((each, launch.digests_at(each)) for each in launch.digested)
        }
        records = []
        for row in range(launch.count):
            records.append(self._record(launch, row, words, digests))
            if row % BREATH_ROWS == BREATH_ROWS - 1:
                time.sleep(BREATH_S)
        # Page 0 takes padding; nothing is meant by its bytes.
        kept = [record for record in records if record.get("page") != 0]
        observer.journal.add(kept)
        if launch.hop != protocol.UNSEEN:
            observer.counts[launch.hop] = observer.counts.get(launch.hop, 0) + len(kept)

    def _record(
        self, launch: Launch, row: int, words: list[int], digests: dict[int, list[str]]
    ) -> dict[str, Any]:
        owner = launch.owners[row] if row < len(launch.owners) else Owner()
        page = words[row] if launch.has_pages else None
        host_page = words[launch.count + row] if launch.has_host_pages else None
        record: dict[str, Any] = {
            "n": launch.seq + row,
            "hop": launch.hop,
            "t": round(launch.time_ms, 3),
            "step": launch.step,
            "pool": launch.bank.pool,
            "page": page,
            "host_page": host_page,
            "request": owner.request,
            "room": owner.room,
            "index": owner.index,
            "transfer": launch.transfer,
        }
        self._keep_track(launch, page)
        if launch.hop == protocol.UNSEEN:
            return record | {"reason": launch.reason}
        seen = sorted(launch.digested)
        record["layers"] = [launch.bank.layers[layer] for layer in seen]
        record["digests"] = [digests[layer][row] for layer in seen]
        if launch.hop == protocol.READ and page is not None:
            self._tell_order(record, launch, seen, page)
        if launch.flip is not None and launch.flip.row == row:
            self._tell_flip(launch, record)
        return record

    def _keep_track(self, launch: Launch, page: int | None) -> None:
        if page is None:
            return
        key = (launch.bank.pool, page)
        if launch.hop == protocol.LOAD:
            rounds = self._observer.rounds.get(launch.bank.pool, ())
            found = next((each for each in rounds if each.transfer == launch.transfer), None)
            if found is not None:
                self._brought[key] = found
        elif launch.hop in (protocol.STORE, protocol.ARRIVE, protocol.UNSEEN):
            self._brought.pop(key, None)

    def _tell_order(
        self, record: dict[str, Any], launch: Launch, seen: list[int], page: int
    ) -> None:
        brought = self._brought.get((launch.bank.pool, page))
        if brought is None:
            return
        states = [launch.digested[layer] for layer in seen]
        record["transfer"] = brought.transfer
        record["ordered"] = [brought.transfer not in state.unordered for state in states]
        record["gate"] = [
            protocol.MISSED
            if brought.transfer in state.unordered
            else protocol.WAITED
            if brought.transfer in state.waited
            else protocol.COMPLETE
            for state in states
        ]
        distances = []
        for layer, state in zip(seen, states, strict=True):
            end = brought.ends.get(layer)
            gap = None if end is None or state.mark is None else state.mark.ms_since(end)
            distances.append(None if gap is None else round(gap, 4))
        record["distance_ms"] = distances

    def _tell_flip(self, launch: Launch, record: dict[str, Any]) -> None:
        assert launch.flip is not None
        del self._observer.perturbed[:-MOST_PERTURBED]
        self._observer.perturbed.append(
            {
                "hop": launch.hop,
                "seq": record["n"],
                "pool": launch.bank.pool,
                "layer": launch.bank.layers[launch.flip.layer],
                "page": record["page"],
                "host_page": record["host_page"],
                "offset": launch.flip.offset,
            }
        )


def _cut_off(launch: Launch) -> Note:
    return Note(
        seq=launch.seq,
        session=launch.session,
        reason="an observation was cut off",
        missed=launch.count,
        time_ms=launch.time_ms,
    )


def _told(note: Note) -> dict[str, Any]:
    record: dict[str, Any] = {
        "n": note.seq,
        "hop": protocol.UNSEEN if note.host_pages else protocol.GAP,
        "t": round(note.time_ms, 3),
        "reason": note.reason,
    }
    if note.host_pages:
        return record | {"pool": note.pool, "host_pages": list(note.host_pages)}
    return record | {"missed": note.missed}
