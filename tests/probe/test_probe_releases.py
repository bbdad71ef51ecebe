"""The probe in released SGLang code on a CPU: the right digests, and the right hop is named.

Wheels are taken by pip into a temporary folder. CI runs the newest release, `make soak` all.
`release_rig.py` says what of SGLang is real there and what is stubbed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from released import fetch_wheel, unpack

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.kernels.layouts import index_layout
from dsv4doctor.kernels.reference import digest_pages
from dsv4doctor.probe.package import write
from dsv4doctor.probe_protocol import Observation, parse_record, parse_status

DRIVER = Path(__file__).with_name("release_driver.py")
SOURCES = (".py", ".cuh", ".cu", ".cpp", ".h", ".hpp")
OLDER = [
    pytest.param(f"0.5.{n}/layer_first", marks=pytest.mark.soak, id=f"0.5.{n}")
    for n in range(12, 23)
]
OTHER = pytest.param("0.5.23/page_first_direct", marks=pytest.mark.soak, id="0.5.23-page-first")
NEWEST = pytest.param("0.5.23/layer_first", id="0.5.23")
pytestmark = pytest.mark.upstream
LAYERS = (1, 3, 4)


@pytest.fixture(scope="module", params=[*OLDER, OTHER, NEWEST])
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def seen(case: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the driver saw of the release."""
    release, layout = case.split("/")
    folder = tmp_path_factory.mktemp(f"probe-{release}")
    wheel = fetch_wheel(release, folder)
    plugin = folder / "plugin"
    tree = unpack(
        wheel, folder / "tree", lambda name: name.endswith(SOURCES) or ".dist-info/" in name
    )
    write(plugin, "0.1.0")
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(tree), str(plugin), str(folder / "run"), layout],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def observations(scenario: dict[str, Any], pool: str = "index_k") -> list[Observation]:
    assert "error" not in scenario, scenario
    parsed = [each for record in scenario["records"] for each in parse_record(record)]
    for each in parsed:
        # Nothing was missed; what host pages held is void once they are given to others.
        assert isinstance(each, Observation) or each.reason == protocol.REUSED
    return [each for each in parsed if isinstance(each, Observation) and each.pool == pool]


def first_bad(seen: list[Observation]) -> Observation | None:
    """The first observation that differs from what the one before it left there, by the rules of
    docs/probe.md, written down once more."""
    device: dict[tuple[int, int | None], str] = {}
    host: dict[tuple[int, int | None], str] = {}
    moved: dict[tuple[str, int | None, int, int | None], str] = {}
    sent: dict[tuple[int | None, int | None, int], str] = {}
    for one in seen:
        passage = (one.room, one.index, one.layer)
        at, mirror = (one.layer, one.page), (one.layer, one.host_page)
        expected: str | None = None
        if one.hop in (protocol.BACKUP, protocol.READ, protocol.HELD, protocol.SEND):
            expected = device.get(at, one.digest)
        elif one.hop == protocol.HOST:
            expected = moved[protocol.BACKUP, one.transfer, *mirror]
        elif one.hop == protocol.HOST_LOAD:
            expected = host.get(mirror, one.digest)
        elif one.hop == protocol.LOAD:
            expected = moved[protocol.HOST_LOAD, one.transfer, *mirror]
        elif one.hop == protocol.ARRIVE:
            expected = sent[passage]
        if expected is not None and expected != one.digest:
            return one
        if one.hop in (protocol.STORE, protocol.LOAD, protocol.ARRIVE):
            device[at] = one.digest
        if one.hop == protocol.SEND:
            sent[passage] = one.digest
        if one.hop == protocol.HOST:
            host[mirror] = one.digest
        moved[one.hop, one.transfer, *mirror] = one.digest
    return None


def digest_of(page: str) -> str:
    values = np.frombuffer(bytes.fromhex(page), dtype=np.uint8).reshape(1, -1)
    return f"{int(digest_pages(index_layout('fp8'), values)[0]):016x}"


def test_every_hop_is_observed(seen: dict[str, Any]) -> None:
    assert seen["observes"] == dict.fromkeys(protocol.HOPS, protocol.YES)
    pools = {pool["pool"]: pool for pool in seen["pools"]}
    assert set(pools) == set(protocol.POOLS)
    assert pools["index_k"]["layout"] == "fp8"
    assert pools["index_k"]["layers"] == list(LAYERS)


def test_digests_are_those_of_the_bytes(seen: dict[str, Any]) -> None:
    clean = seen["clean"]
    found = observations(clean)
    stored = [one for one in found if one.hop == protocol.STORE and one.request == "clean-a"]
    # Two full pages; the third lacks 100 tokens and is left out.
    assert {one.page for one in stored} == set(clean["pages"][:2])
    for one in stored:
        page = clean["stored"][str(one.layer)][clean["pages"].index(one.page)]
        assert one.digest == digest_of(page)
        assert one.index == clean["pages"].index(one.page)


def test_a_clean_life_is_seen_whole_and_clean(case: str, seen: dict[str, Any]) -> None:
    found = observations(seen["clean"])
    assert first_bad(found) is None
    for layer in LAYERS:
        hops = [one.hop for one in found if one.layer == layer and one.index != 2]
        for hop in (protocol.STORE, protocol.BACKUP, protocol.HOST, protocol.HOST_LOAD,
                    protocol.LOAD, protocol.READ):  # fmt: skip
            assert hops.count(hop) == (4 if hop == protocol.STORE else 2), hop
    reads = [one for one in found if one.hop == protocol.READ]
    assert all((one.ordered, one.gate) == (True, protocol.WAITED) for one in reads), case
    assert all(one.distance_ms is not None and one.distance_ms >= 0 for one in reads)
    assert {one.page for one in reads} == set(seen["clean"]["loaded"])


def test_latent_pools_are_followed_too(seen: dict[str, Any]) -> None:
    for pool in ("c4", "c128"):
        found = observations(seen["clean"], pool)
        assert first_bad(found) is None
        hops = {one.hop for one in found}
        assert {protocol.STORE, protocol.READ} <= hops
    moved = {one.hop for one in observations(seen["clean"], "c4")}
    assert {protocol.BACKUP, protocol.HOST, protocol.LOAD} <= moved


def test_without_the_gate_the_read_is_named(seen: dict[str, Any]) -> None:
    scenario = seen["ungated"]
    found = observations(scenario)
    bad = first_bad(found)
    assert bad is not None
    assert (bad.hop, bad.ordered, bad.gate) == (protocol.READ, False, protocol.MISSED)
    assert bad.page in scenario["loaded"]
    assert bad.distance_ms is not None
    assert bad.distance_ms < 0
    # What it read is what lay there before: the other request's bytes.
    stale = scenario["stale"][str(bad.layer)][scenario["pages"].index(bad.page)]
    assert bad.digest == digest_of(stale)
    reads = [one for one in found if one.hop == protocol.READ]
    assert {one.layer for one in reads if one.ordered is False} == set(LAYERS)


@pytest.mark.parametrize(
    ("scenario", "hop", "layer"),
    [
        ("device", protocol.BACKUP, 3),
        ("host", protocol.HOST_LOAD, 4),
        ("loaded", protocol.READ, 1),
    ],
)
def test_a_flipped_byte_is_named_where_it_was_flipped(
    seen: dict[str, Any], scenario: str, hop: str, layer: int
) -> None:
    bad = first_bad(observations(seen[scenario]))
    assert bad is not None
    assert (bad.hop, bad.layer) == (hop, layer)


@pytest.mark.parametrize("hop", protocol.PERTURBABLE)
def test_the_self_tests_byte_is_caught_at_its_hop(seen: dict[str, Any], hop: str) -> None:
    scenario = seen[f"perturb-{hop}"]
    found = observations(scenario)
    (flip,) = parse_status(scenario["status"]).perturbed
    bad = first_bad(found)
    assert bad is not None
    assert (bad.hop, bad.seq, bad.layer) == (hop, flip.seq, flip.layer)
    # Flipped back: nobody after it reads another byte than before.
    later = [one for one in found if one.seq > flip.seq and one.hop == protocol.READ]
    for one in later:
        page = scenario["stored"][str(one.layer)][scenario["loaded"].index(one.page)]
        assert one.digest == digest_of(page)
    assert bad.digest not in {one.digest for one in found if one.seq != flip.seq}


def test_a_page_is_followed_through_the_tree_that_v4_servers_use(seen: dict[str, Any]) -> None:
    life = seen["tree"]
    found = observations(life)
    assert (life["kind"], life["controller"]) == ("UnifiedRadixCache", "HybridCacheController")
    assert life["hit"] == 2 * 256, "the whole prefix came back from the host"
    assert set(life["loaded"]) <= set(life["overwritten"]), "other bytes lay there in between"
    assert first_bad(found) is None
    for hop in (protocol.BACKUP, protocol.HOST, protocol.HOST_LOAD, protocol.LOAD, protocol.READ):
        seen_at = [one for one in found if one.hop == hop]
        assert {(one.layer, one.page) for one in seen_at if one.page is not None} == (
            set()
            if hop == protocol.HOST_LOAD
            else {
                (layer, page)
                for layer in LAYERS
                for page in life["pages" if hop in (protocol.BACKUP, protocol.HOST) else "loaded"]
            }
        ), hop
        assert len(seen_at) == 2 * len(LAYERS), hop
    for one in found:
        if one.hop == protocol.READ:
            assert (one.ordered, one.gate) == (True, protocol.WAITED)
            page = life["stored"][str(one.layer)][life["loaded"].index(one.page)]
            assert one.digest == digest_of(page)
    assert life["status"]["observes"] == dict.fromkeys(protocol.HOPS, protocol.YES)


def test_decoding_is_looked_at_between_steps(seen: dict[str, Any]) -> None:
    scenario = seen["decoding"]
    found = observations(scenario)
    stored = [one for one in found if one.hop == protocol.STORE]
    assert [one.index for one in stored if one.layer == 1] == [0, 1]
    bad = first_bad(found)
    assert bad is not None
    assert (bad.hop, bad.layer, bad.page) == (protocol.HELD, 3, scenario["pages"][0])
    # The forward that asked nobody, as a graph's replay does: counted, not guessed.
    assert scenario["status"]["skipped"] == {"no read ran": 2}


def test_both_sides_of_a_transfer(seen: dict[str, Any]) -> None:
    found = observations(seen["pd"])
    sent = {(one.room, one.index, one.layer): one for one in found if one.hop == protocol.SEND}
    arrived = {(one.room, one.index, one.layer): one for one in found if one.hop == "arrive"}
    assert sent.keys() == arrived.keys()
    assert len(sent) == 2 * len(LAYERS)
    assert {one.page for one in sent.values()} == set(seen["pd"]["source"])
    differing = {key for key, one in sent.items() if arrived[key].digest != one.digest}
    assert {(index, layer) for _, index, layer in differing} == {(1, 4)}


def test_pages_that_a_linker_brings_are_not_compared(case: str, seen: dict[str, Any]) -> None:
    if seen["linker"] is None:
        assert case.startswith(tuple(f"0.5.{n}/" for n in range(12, 19)))
        pytest.skip("this release has no external cache linker")
    for hop in (protocol.LOAD, protocol.BACKUP, protocol.READ, protocol.HELD, protocol.SEND):
        assert seen["linker"][hop].startswith(protocol.NOT_OBSERVABLE), hop


def test_server_info_holds_the_status(seen: dict[str, Any]) -> None:
    info = seen["server_info"]
    assert not isinstance(info, str), info
    assert info["effective_max_running_requests_per_dp"] == 1, "SGLang's own part is there"
    status = parse_status(info[protocol.STATE_KEY])
    assert status.rank.role == "aggregated"
    assert status.socket is not None


def test_nothing_failed_and_nothing_is_left(seen: dict[str, Any]) -> None:
    for scenario in seen.values():
        if isinstance(scenario, dict) and "status" in scenario:
            assert scenario["status"]["failures"] == []
    assert seen["retired"] is True
    assert seen["left"] == []
