"""What goes wrong in the probe stays in it, and is said: SGLang's functions run as ever."""

from __future__ import annotations

import json
import select
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from builders_probe import Stepping, armed, make_batch, make_probe, records, step

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.probe import channel as channel_module
from dsv4doctor.probe import hooks, plugin
from dsv4doctor.probe.channel import Inbox
from dsv4doctor.probe.guard import Guard
from dsv4doctor.probe.journal import Journal
from dsv4doctor.probe_protocol import Forgotten, Observation, parse_answer, parse_status


class Client:
    """One connection to a rank's socket."""

    def __init__(self, probe: Any) -> None:
        assert probe.channel is not None
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(20)
        with channel_module._short(probe.channel.path) as address:
            self._socket.connect(address)
        self._lines = self._socket.makefile()

    def send(self, request: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(request).encode() + b"\n")

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self.send(request)
        return dict(json.loads(self._lines.readline()))

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSV4DOCTOR_PROBE_DIR", str(tmp_path / "run"))


def test_a_hook_that_raises_is_its_last() -> None:
    probe, _ = make_probe()
    armed(probe)
    calls: list[str] = []

    def broken(*_: Any, **__: Any) -> Any:
        calls.append("hook")
        raise RuntimeError("no such attribute")

    guard = Guard(probe.observer, "a.function", (protocol.LOAD,))
    hook = guard.around(broken, broken)
    assert [hook(lambda value: value * 2, 21) for _ in range(3)] == [42] * 3
    assert calls == ["hook"]
    status = parse_status(probe.status() | {"rank": {}})
    assert status.observes[protocol.LOAD] == (
        "disabled: a.function: RuntimeError: no such attribute"
    )
    # A load that nobody sees must not be taken for a wrong change of the page that is read.
    assert status.observes[protocol.READ] == (
        "disabled: bytes may rightly change where load is not observed"
    )
    assert status.observes[protocol.ARRIVE] == protocol.YES
    (gap,) = records(probe)
    assert isinstance(gap, Forgotten)
    assert "a hook failed: a.function" in gap.reason


def test_an_error_of_sglangs_own_passes_through_unchanged() -> None:
    probe, _ = make_probe()
    armed(probe)
    left: list[Any] = []
    hook = Guard(probe.observer, "f", ()).around(lambda *_: 7, lambda *given: left.append(given))

    def fails() -> None:
        raise KeyError("sglang's")

    with pytest.raises(KeyError, match="sglang's"):
        hook(fails)
    assert left == [(7, None)]
    assert probe.observer.failures == []


def test_a_full_ring_drops_pages_and_says_so() -> None:
    waiting: list[Any] = []
    probe, _ = make_probe(ring_words=64, submit=waiting.append)
    steps = armed(probe)
    for number in range(6):
        step(steps, make_batch(5 * 256, name=f"r{number}"))
    assert probe.observer.skipped["ring"] == 3 * 5
    for work in waiting:
        work()
    found = records(probe)
    gaps = [one for one in found if isinstance(one, Forgotten)]
    # Said once: what is void already need not be forgotten again.
    assert [(gap.reason, gap.missed) for gap in gaps] == [("the ring was full", 5)]
    kept = {one.request for one in found if isinstance(one, Observation)}
    assert kept == {"r0", "r1", "r2"}
    # Once drained, there is room again.
    waiting.clear()
    step(steps, make_batch(5 * 256, name="later"))
    assert probe.observer.skipped["ring"] == 3 * 5


def test_a_cut_off_copy_is_a_gap_and_holds_up_nothing() -> None:
    probe, _ = make_probe()
    steps = armed(probe)
    step(steps, make_batch(256))
    probe.observer.queue[0].done = None  # type: ignore[union-attr]
    probe.observer.abandon_open()
    step(steps, make_batch(512, name="next"))
    first, *rest = records(probe)
    assert isinstance(first, Forgotten)
    assert (first.reason, first.missed) == ("an observation was cut off", 1)
    assert {one.page for one in rest if isinstance(one, Observation)} == {1, 2}


def test_a_client_that_reads_nothing_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "PATIENCE_S", 0.5)
    probe, _ = make_probe()
    with Stepping(probe) as scheduler:
        probe.observer.journal.add([{"n": n, "pad": "x" * 1000} for n in range(1, 5001)])
        deaf = Client(probe)
        for _ in range(4):  # far more than a socket's buffer holds
            deaf.send(protocol.drain(0))
        before = scheduler.steps
        other = Client(probe)
        for _ in range(20):
            assert parse_answer(other.ask(protocol.status()))["ok"] is True
        assert scheduler.steps > before
        hung_up = select.poll()
        hung_up.register(deaf._socket, select.POLLRDHUP)
        assert hung_up.poll(20_000), "a client that does not read is dropped in the end"
        other.close()
        deaf.close()


def test_a_scheduler_that_takes_no_step_gets_no_stale_command() -> None:
    inbox = Inbox(wait_s=0.05)
    answer = inbox.ask(protocol.arm("late"))
    assert answer["ok"] is False
    assert "took no step within" in answer["error"]
    inbox.serve(lambda request: pytest.fail(f"withdrawn, yet carried out: {request}"))


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"v": 2, "command": "status"}, "speaks protocol 1"),
        ({"v": 1, "command": "explode"}, "no command 'explode'"),
        ({"v": 1, "command": "drain", "after": "x"}, "ValueError"),
        ([], "speaks protocol 1"),
        ({"v": 1, "command": "arm", "pools": ["swa"]}, "pool 'swa' cannot be observed"),
        ({"v": 1, "command": "arm", "max_share": 7}, "max_share from 0 to 1"),
        ({"v": 1, "command": "perturb", "hop": "read"}, "arm first"),
        ({"v": 1, "command": "perturb", "hop": "store"}, "no byte can be flipped at 'store'"),
    ],
)
def test_a_bad_request_is_refused_in_a_sentence(request_: Any, said: str) -> None:
    probe, _ = make_probe()
    with Stepping(probe):
        client = Client(probe)
        answer = client.ask(request_)
        assert answer["ok"] is False
        assert said in answer["error"]
        assert client.ask(protocol.status())["ok"] is True
        client.close()


def test_garbage_on_the_socket_is_answered() -> None:
    probe, _ = make_probe()
    with Stepping(probe):
        client = Client(probe)
        client._socket.sendall(b"\xff\xfe{]\n")
        assert json.loads(client._lines.readline())["ok"] is False
        client.close()


def test_records_that_nobody_fetches_are_lost_from_the_oldest_on() -> None:
    journal = Journal(most=10)
    journal.add([{"n": number} for number in range(1, 26)])
    taken = journal.take(0, 100)
    assert ([record["n"] for record in taken["records"]], taken["lost"]) == (
        list(range(16, 26)),
        15,
    )
    assert journal.take(20, 2) == {
        "records": [{"n": 21}, {"n": 22}], "next": 22, "left": 3, "lost": 15,
    }  # fmt: skip


def test_a_release_without_a_name_says_what_it_cannot_show(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Targets in a stand-in for a future release, which has renamed one of its functions."""
    probe, _ = make_probe()
    gone = f"{hooks._HOST_POOL}.load_to_device_per_layer"
    monkeypatch.setattr(
        plugin, "missing", lambda target: "HostPool has no load" if target == gone else None
    )
    registered: list[str] = []
    registry = SimpleNamespace(register=lambda target, hook, kind: registered.append(target))
    plugin.install(probe, registry, SimpleNamespace(BEFORE=1, AFTER=2, AROUND=3))
    assert gone not in registered
    assert len(registered) == len(hooks.HOOKS) - 1
    said = {hop: text for hop, text in probe.observer.observes.items() if text != protocol.YES}
    why = "not observable on this version: HostPool has no load"
    blind = "not observable on this version: bytes may rightly change where load is not observed"
    assert said == {protocol.HOST_LOAD: why, protocol.LOAD: why} | dict.fromkeys(
        (protocol.BACKUP, protocol.READ, protocol.HELD, protocol.SEND), blind
    )


def test_outside_of_schedulers_nothing_is_hooked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(plugin.HERE_VARIABLE, raising=False)
    plugin.register()
    assert plugin.PROBE is None


def test_retired_for_good_leaves_no_file(tmp_path: Path) -> None:
    probe, _ = make_probe()
    with Stepping(probe):
        client = Client(probe)
        assert client.ask(protocol.arm("s", to_file=True))["ok"] is True
        assert {path.suffix for path in (tmp_path / "run").iterdir()} == {".sock", ".jsonl"}
        assert client.ask(protocol.retire())["ok"] is True
        client.close()
        assert list((tmp_path / "run").iterdir()) == []


@pytest.mark.soak
def test_what_torch_compiles_is_sglangs_function_alone() -> None:
    """A prefill graph is compiled in one piece: a hook that is traced would break it."""
    probe, _ = make_probe()
    armed(probe)
    calls: list[str] = []
    guard = Guard(probe.observer, "getter", (protocol.READ,))
    around = guard.around(lambda *_: calls.append("enter"), lambda *_: calls.append("leave"))
    after = guard.after(lambda *_: calls.append("after"))

    def forward(value: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = around(torch.neg, value)
        after(found)
        return found + 1

    compiled = torch.compile(forward, backend="eager", fullgraph=True)
    value = torch.arange(4)
    assert compiled(value).tolist() == [1, 0, -1, -2]
    assert calls == []
    assert forward(value).tolist() == [1, 0, -1, -2]
    assert calls == ["enter", "leave", "after"]
