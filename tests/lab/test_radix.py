"""The prefix cache under arbitrary traffic: nothing is lost, doubled, or evicted under a lock."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dsv4doctor.lab.pools import PagePool
from dsv4doctor.lab.radix import Node, RadixCache

DEVICE, HOST = 12, 20


def chain(letters: str) -> list[bytes]:
    """Digests of a path: each stands for all letters up to its own."""
    return [letters[: end + 1].encode() for end in range(len(letters))]


class Traffic:
    """A cache with requests running on it, and the checks that hold after every step."""

    def __init__(self, *, hicache: bool) -> None:
        self.device = PagePool(DEVICE + 1, 1, 4, 4)
        self.host = PagePool(HOST + 1, 1, 4, 4) if hicache else None
        self.radix = RadixCache(self.device, self.host)
        self.running: list[tuple[list[Node], list[bytes], list[int]]] = []

    def start(self, letters: str) -> None:
        digests = chain(letters)
        path = self.radix.match(digests[:-1])
        self.radix.lock(path)
        to_load = [node for node in path if node.device_page is None]
        pages = self.radix.allocate(len(to_load) + len(digests) - len(path))
        if pages is None:
            self.radix.unlock(path)
            return
        for node, page in zip(to_load, pages, strict=False):
            node.device_page = page
        self.running.append((path, digests[len(path) :], pages[len(to_load) :]))

    def finish(self) -> None:
        if not self.running:
            return
        path, digests, pages = self.running.pop(0)
        self.radix.insert(path, digests, pages)
        self.radix.unlock(path)
        for digest in digests:
            node = self.radix.get(digest)
            assert node is not None
            self.radix.back_up(node)

    def check(self) -> None:
        nodes = list(self.radix.nodes)
        held = [node.device_page for node in nodes if node.device_page is not None]
        held += [page for _, _, pages in self.running for page in pages]
        assert len(held) == len(set(held)), "no page has two owners"
        assert 0 not in held, "page 0 is padding"
        assert len(held) + self.device.free_pages == DEVICE, "no page is lost"
        on_host = [node.host_page for node in nodes if node.host_page is not None]
        if self.host is not None:
            assert len(on_host) == len(set(on_host))
            assert len(on_host) + self.host.free_pages == HOST
        for node in nodes:
            assert node.device_page is not None or node.host_page is not None
            assert node.parent is None or node.parent.children[node.digest] is node
            if node.parent is not None and node.device_page is not None:
                assert node.parent.device_page is not None, "leaf first"
        for path, _, _ in self.running:
            assert all(node.device_page is not None for node in path), "locked pages stay"


_STEPS = st.lists(
    st.one_of(st.text("ab", min_size=1, max_size=6), st.just(None)), min_size=1, max_size=40
)


@settings(max_examples=200, deadline=None)
@given(steps=_STEPS, hicache=st.booleans())
def test_invariants_hold_after_every_step(steps: list[str | None], hicache: bool) -> None:
    traffic = Traffic(hicache=hicache)
    for step in steps:
        if step is None:
            traffic.finish()
        else:
            traffic.start(step)
        traffic.check()
    while traffic.running:
        traffic.finish()
        traffic.check()
    traffic.radix.clear()
    assert traffic.device.free_pages == DEVICE


def test_the_oldest_leaf_goes_first_and_comes_back_from_the_host() -> None:
    traffic = Traffic(hicache=True)
    for letters in ("aaaaaa", "bbbbb"):
        traffic.start(letters)
        traffic.finish()
    traffic.start("cccc")
    path = traffic.radix.match(chain("aaaaaa"))
    assert [node.device_page is not None for node in path] == [True] * 3 + [False] * 3
    assert all(node.host_page is not None for node in path)
    assert all(node.device_page is not None for node in traffic.radix.match(chain("bbbbb")))


def test_without_a_host_what_is_evicted_is_forgotten() -> None:
    traffic = Traffic(hicache=False)
    for letters in ("aaaaaa", "bbbbb", "cccc"):
        traffic.start(letters)
        traffic.finish()
    assert len(traffic.radix.match(chain("aaaaaa"))) == 3
