"""The prefix cache: a tree with one node a page, each on the device, on the host, or on both.

Eviction is leaf-first and oldest-first, by (last use, serial number): an order that does not depend
on hashes, so that equal runs stay equal. Locked nodes stay. Device-resident nodes of a path come
before host-only ones, since a page leaves the device only after its children have.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dsv4doctor.lab.pools import PagePool


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    """One page of some conversation's prefix."""

    digest: bytes
    serial: int
    parent: Node | None
    children: dict[bytes, Node] = field(default_factory=dict)
    device_page: int | None = None
    host_page: int | None = None
    locks: int = 0
    last_used: int = 0

    @property
    def age(self) -> tuple[int, int]:
        return (self.last_used, self.serial)


class RadixCache:
    """Which pages are cached where; hands out device pages and evicts for them."""

    def __init__(self, device: PagePool, host: PagePool | None) -> None:
        self._device = device
        self._host = host
        self._nodes: dict[bytes, Node] = {}
        self._serial = 0
        self._tick = 0
        self.evicted_pages = 0
        self.dropped_backups = 0

    @property
    def nodes(self) -> Iterable[Node]:
        return self._nodes.values()

    @property
    def evictable_pages(self) -> int:
        return sum(n.device_page is not None and n.locks == 0 for n in self._nodes.values())

    @property
    def host_pages(self) -> int:
        return sum(node.host_page is not None for node in self._nodes.values())

    def match(self, digests: Sequence[bytes]) -> list[Node]:
        """The cached nodes of a path from its first page on, now the youngest of the tree."""
        self._tick += 1
        path: list[Node] = []
        for digest in digests:
            node = self._nodes.get(digest)
            if node is None:
                break
            node.last_used = self._tick
            path.append(node)
        return path

    def lock(self, path: Iterable[Node]) -> None:
        for node in path:
            node.locks += 1

    def unlock(self, path: Iterable[Node]) -> None:
        for node in path:
            node.locks -= 1

    def allocate(self, count: int) -> list[int] | None:
        """`count` device pages, evicting if need be; None (and nothing changed) if impossible."""
        if self._device.free_pages < count:
            self._evict_device(count - self._device.free_pages)
        if self._device.free_pages < count:
            return None
        return [self._device.allocate() for _ in range(count)]

    def insert(self, path: Sequence[Node], digests: Sequence[bytes], pages: Sequence[int]) -> None:
        """Give the pages behind `path` to the tree; a page that it has already is freed."""
        parent = path[-1] if path else None
        for digest, page in zip(digests, pages, strict=True):
            node = self._nodes.get(digest)
            if node is None:
                node = self._add(digest, parent, page)
            elif node.device_page is None:
                # Another request's copy went to the host meanwhile; ours is the device's now.
                node.device_page = page
            else:
                self._device.release(page)
            node.last_used = self._tick
            parent = node

    def _add(self, digest: bytes, parent: Node | None, page: int) -> Node:
        self._serial += 1
        node = Node(digest=digest, serial=self._serial, parent=parent, device_page=page)
        self._nodes[digest] = node
        if parent is not None:
            parent.children[digest] = node
        return node

    def get(self, digest: bytes) -> Node | None:
        return self._nodes.get(digest)

    def back_up(self, node: Node) -> int | None:
        """A host page for a node that has none yet; None when the host pool has no room."""
        if self._host is None or node.host_page is not None:
            return None
        if self._host.free_pages == 0:
            self._evict_host()
        if self._host.free_pages == 0:
            self.dropped_backups += 1
            return None
        node.host_page = self._host.allocate()
        return node.host_page

    def _is_device_leaf(self, node: Node) -> bool:
        return (
            node.device_page is not None
            and node.locks == 0
            and not any(child.device_page is not None for child in node.children.values())
        )

    def _evict_device(self, count: int) -> None:
        heap = [(node.age, node) for node in self._nodes.values() if self._is_device_leaf(node)]
        heapq.heapify(heap)
        while count > 0 and heap:
            _, node = heapq.heappop(heap)
            assert node.device_page is not None
            self._device.release(node.device_page)
            node.device_page = None
            self.evicted_pages += 1
            count -= 1
            parent = node.parent
            if node.host_page is None:
                self._remove(node)
            if parent is not None and self._is_device_leaf(parent):
                heapq.heappush(heap, (parent.age, parent))

    def _evict_host(self) -> None:
        """Forget the oldest host-only leaf."""
        leaves = [
            node
            for node in self._nodes.values()
            if node.device_page is None and node.locks == 0 and not node.children
        ]
        if leaves:
            self._remove(min(leaves, key=lambda node: node.age))

    def _remove(self, node: Node) -> None:
        """Take a node, and the host-only rest of its branch, out of the tree."""
        for child in list(node.children.values()):
            self._remove(child)
        if node.host_page is not None and self._host is not None:
            self._host.release(node.host_page)
        if node.parent is not None:
            del node.parent.children[node.digest]
        del self._nodes[node.digest]

    def clear(self) -> None:
        """Forget everything; only with no locks held."""
        for node in self._nodes.values():
            if node.device_page is not None:
                self._device.release(node.device_page)
            if node.host_page is not None and self._host is not None:
                self._host.release(node.host_page)
        self._nodes.clear()
