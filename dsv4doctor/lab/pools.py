"""Pools of pages: real bytes for every layer, and who owns the bytes that lie there now.

One page id addresses an index-K page and a main page in every layer. Freeing a page does not touch
its bytes: the next owner finds the previous one's until it writes or loads its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsv4doctor.lab.layouts import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOwner:
    """Whose content a page holds: the chain digest of all tokens up to the page's end, the page's
    place in its conversation, and the request that first computed it."""

    digest: bytes
    logical_page: int
    rid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContent:
    """The right bytes of one page: index-K for each layer, main page for all of them alike."""

    owner: PageOwner
    index_k: tuple[Bytes, ...]
    main: Bytes


class PagePool:
    """`pages` pages of every layer, with a free list (last freed, first used)."""

    def __init__(self, pages: int, layers: int, index_bytes: int, main_bytes: int) -> None:
        # Zero pages are committed lazily, so that a large host pool costs what it holds.
        self.index_k = [np.zeros((pages, index_bytes), dtype=np.uint8) for _ in range(layers)]
        self.main = [np.zeros((pages, main_bytes), dtype=np.uint8) for _ in range(layers)]
        self.index_owner: list[list[PageOwner | None]] = [[None] * pages for _ in range(layers)]
        self.main_owner: list[list[PageOwner | None]] = [[None] * pages for _ in range(layers)]
        # Page 0 is the allocator's padding page, as upstream.
        self._free = list(range(pages - 1, 0, -1))
        self.capacity = pages - 1

    @property
    def free_pages(self) -> int:
        return len(self._free)

    def allocate(self) -> int:
        """A free page id; the caller has made sure that there is one."""
        return self._free.pop()

    def release(self, page: int) -> None:
        self._free.append(page)

    def write(self, page: int, layer: int, content: PageContent) -> None:
        """The compute stream's own store of a page that it has just made."""
        self.index_k[layer][page] = content.index_k[layer]
        self.index_owner[layer][page] = content.owner
        self.main[layer][page] = content.main
        self.main_owner[layer][page] = content.owner


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotWrite:
    """Some slots of one page about to be stored: `index` and `main` say which bytes they are."""

    page: int
    content: PageContent
    index: tuple[slice, ...]
    main: tuple[slice, ...]


def write_slots(pool: PagePool, layer: int, write: SlotWrite) -> None:
    """The compute stream's store of some slots; whoever owns the rest, the page is theirs no more.

    `write.content` has the bytes of the whole page, and the owner that the page has from now on.
    """
    for part in write.index:
        pool.index_k[layer][write.page, part] = write.content.index_k[layer][part]
    for part in write.main:
        pool.main[layer][write.page, part] = write.content.main[part]
    pool.index_owner[layer][write.page] = write.content.owner
    pool.main_owner[layer][write.page] = write.content.owner


def copy_index_page(source: PagePool, host: int, target: PagePool, page: int, layer: int) -> None:
    """One layer's index-K page, host to device."""
    target.index_k[layer][page] = source.index_k[layer][host]
    target.index_owner[layer][page] = source.index_owner[layer][host]


def copy_main_page(source: PagePool, host: int, target: PagePool, page: int, layer: int) -> None:
    """One layer's main page, host to device."""
    target.main[layer][page] = source.main[layer][host]
    target.main_owner[layer][page] = source.main_owner[layer][host]
