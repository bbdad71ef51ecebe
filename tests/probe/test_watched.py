"""`checksum live` and the probe that SGLang runs, on one socket: what one asks the other does."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from builders_probe import make_batch, make_probe

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.artifacts.catalog import load_scenario
from dsv4doctor.artifacts.manifest import NewRun
from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.checksum.probe_sites import Site
from dsv4doctor.flows.checksum import Targets
from dsv4doctor.flows.checksum_live_body import body_of
from dsv4doctor.flows.checksum_live_find import begin_watch
from dsv4doctor.flows.checksum_live_plan import LivePlan
from dsv4doctor.flows.checksum_live_verdict import Seen, verdict_of
from dsv4doctor.flows.repro_drive import Work
from dsv4doctor.flows.repro_plan import ReproPlan
from dsv4doctor.probe.hicache import HicacheHops
from dsv4doctor.probe.steps import StepHops
from dsv4doctor.progress import Silent

PAGES = (1, 2)
TOKENS = 256
ENOUGH_S = 240.0  # for a machine that is busy with other things
REST_S = 0.05  # between two lives: what observing may cost is bounded by the time that passes


class Server:
    """A scheduler's thread that fills two pages, backs them up, brings them back, reads them and
    decodes, over and over. `is_torn`: one byte of what is brought back is not what was there."""

    tp_rank = dp_rank = pp_rank = 0
    enable_overlap = False
    forward_ct = 0

    def __init__(self) -> None:
        self.probe, self.pool = make_probe()
        observer = self.probe.observer
        self._steps, self._hicache = StepHops(observer), HicacheHops(observer)
        self._buffers = self.pool.c4_indexer_kv_pool.index_k_with_scale_buffer
        self._host = SimpleNamespace(
            device_buffers=self._buffers, slot_page_size=TOKENS, page_size=TOKENS,
            kv_buffer=[torch.zeros(8, 8448, dtype=torch.uint8) for _ in self._buffers],
        )  # fmt: skip
        self._rows = torch.arange(TOKENS * len(PAGES)) + TOKENS
        self.is_torn = False
        self._end = threading.Event()
        self.probe.pump(self)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()
        self.probe.close()

    def _run(self) -> None:
        while not self._end.is_set():
            self.probe.pump(self)
            if self.probe.observer.armed:
                self._life()
            time.sleep(REST_S)

    def _life(self) -> None:
        for buffer in self._buffers:
            buffer[list(PAGES)] = torch.randint(0, 256, (len(PAGES), 8448), dtype=torch.uint8)
        self._step(make_batch(2 * TOKENS))
        self._hicache.leave_host_alloc(self._rows, self._host, len(self._rows))
        controller = SimpleNamespace(write_queue=[], load_queue=[])
        given = (None, self._rows, self._rows)
        entered = self._hicache.enter_writing(controller)
        token = self._hicache.enter_backup(self._host, *given, "direct")
        for host, buffer in zip(self._host.kv_buffer, self._buffers, strict=True):
            host[list(PAGES)] = buffer[list(PAGES)]
        self._hicache.leave_backup(token, None, self._host, *given, "direct")
        self._hicache.leave_writing(entered, None, controller)
        entered = self._hicache.enter_loading(controller)
        for layer, (host, buffer) in enumerate(
            zip(self._host.kv_buffer, self._buffers, strict=True)
        ):
            token = self._hicache.enter_load(self._host, *given, layer, "direct")
            buffer[list(PAGES)] = host[list(PAGES)]
            buffer[PAGES[1], 700] ^= self.is_torn
            self._hicache.leave_load(token, None, self._host, *given, layer, "direct")
        self._hicache.leave_loading(entered, 0, controller)
        self._step(make_batch(2 * TOKENS + 8, prefix=2 * TOKENS))
        decoding = make_batch(2 * TOKENS + 9)
        decoding.forward_mode.is_extend = lambda: False
        self._step(decoding)

    def _step(self, batch: Any) -> None:
        token = self._steps.enter_step(self, batch)
        for layer in (1, 3):
            entered = self._steps.enter_getter(self.pool, layer)
            self._steps.leave_index_read(entered, None, self.pool, layer)
        self._steps.leave_step(token, None, self, batch)


def watched(server: Server, folder: Path) -> tuple[str, dict[str, Any]]:
    """The verdict, once every hop of this rank that can come has been tried."""
    load = ReproPlan(scenario=load_scenario("tool-calls"), sessions=2, seed=1, output_dir=folder)
    plan = LivePlan(load=load, targets=Targets(), perturbs=True, max_share=1.0)
    watch = begin_watch(plan, [Site("here", [str(folder / "run")])], folder / "observations")
    assert watch.tests is not None
    coming = [test for test in watch.tests.tests if test.hop not in ("send", "arrive")]
    deadline = time.monotonic() + ENOUGH_S
    while not all(test.is_over for test in coming) and time.monotonic() < deadline:
        watch.poll()
        time.sleep(REST_S)
    watch.end()
    run = RunDirectory.create(folder, NewRun(command="checksum", label="live", argv=()))
    seen = Seen.of(plan, Work(load, run, Silent()), watch, [])
    return verdict_of(seen), body_of(seen)


@pytest.mark.parametrize("is_torn", [False, True])
def test_a_watch_tries_every_hop_and_judges_what_it_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_torn: bool
) -> None:
    monkeypatch.setenv("DSV4DOCTOR_PROBE_DIR", str(tmp_path / "run"))
    server = Server()
    server.is_torn = is_torn
    try:
        verdict, body = watched(server, tmp_path)
    finally:
        server.stop()
    hops = [hop for hop in protocol.PERTURBABLE if hop not in ("send", "arrive")]
    assert [test["hop"] for test in body["self_test"]["tests"] if test["outcome"] == "caught"] == (
        hops
    )
    assert body["self_test"]["passed"] is True
    assert verdict == ("changed" if is_torn else "clean"), body["not_seen"]
    first = body["first_bad_hop"]
    if is_torn:
        assert (first["hop"], first["page"]) == ("load", PAGES[1])
        assert set(body["changes_by_hop"]) == {"load"}
    else:
        assert first is None
