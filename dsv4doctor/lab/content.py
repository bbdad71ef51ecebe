"""From tokens to the right bytes of their pages: what a prefill computes and a store remembers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from dsv4doctor.lab.keys import entry_keys, layer_signs
from dsv4doctor.lab.latents import encode_main_page, main_slots
from dsv4doctor.lab.layouts import (
    HEAD_DIM,
    PAGE_SLOTS,
    PAGE_TOKENS,
    TOKENS_PER_ENTRY,
    Bytes,
    IndexFormat,
)
from dsv4doctor.lab.pools import PageContent, PageOwner, SlotWrite
from dsv4doctor.lab.tokens import TokenIds

_DIGEST_BYTES = 16


def page_count(tokens: TokenIds) -> int:
    """Pages that a sequence occupies, the partly filled last one included."""
    return -(-len(tokens) // PAGE_TOKENS)


def chain_digest(parent: bytes, tokens: TokenIds) -> bytes:
    """The digest of all tokens up to the end of a page, `parent` being the page before's."""
    return blake2b(parent + tokens.tobytes(), digest_size=_DIGEST_BYTES).digest()


def chain_digests(tokens: TokenIds) -> list[bytes]:
    """For every page the digest of all tokens up to its end: equal digests, equal bytes."""
    digests, parent = [], b""
    for start in range(0, len(tokens), PAGE_TOKENS):
        parent = chain_digest(parent, tokens[start : start + PAGE_TOKENS])
        digests.append(parent)
    return digests


class ContentStore:
    """Computes pages and keeps the youngest `limit`: an encoding costs more than its bytes."""

    def __init__(self, form: IndexFormat, layers: int, limit: int) -> None:
        self._form = form
        self._signs = [layer_signs(layer) for layer in range(layers)]
        self._limit = limit
        self._index_k: OrderedDict[bytes, tuple[Bytes, ...]] = OrderedDict()

    def slot_write(self, page: int, content: PageContent, first: int, last: int) -> SlotWrite:
        """The store of slots `first` up to `last` (not included) of a device page."""
        return SlotWrite(
            page=page,
            content=content,
            index=self._form.slots(first, last),
            main=main_slots(first, last),
        )

    def _encode(self, tokens: TokenIds, pages: Sequence[int]) -> list[tuple[Bytes, ...]]:
        """Index-K of some pages, all layers; slots without a complete entry are zero keys."""
        entries = np.concatenate([np.arange(PAGE_SLOTS) + page * PAGE_SLOTS for page in pages])
        complete = entries < len(tokens) // TOKENS_PER_ENTRY
        keys = np.zeros((len(entries), HEAD_DIM), dtype=np.float32)
        keys[complete] = entry_keys(tokens, entries[complete])
        paged = keys.reshape(len(pages), PAGE_SLOTS, HEAD_DIM)
        layers = [self._form.encode(paged * signs) for signs in self._signs]
        return [tuple(layer[i] for layer in layers) for i in range(len(pages))]

    def pages(
        self, tokens: TokenIds, wanted: Sequence[int], digests: Sequence[bytes], rid: str
    ) -> list[PageContent]:
        """The right content of the wanted logical pages of a sequence."""
        missing = [page for page in wanted if digests[page] not in self._index_k]
        made = dict(zip(missing, self._encode(tokens, missing), strict=True)) if missing else {}
        contents = []
        for page in wanted:
            digest = digests[page]
            index_k = made.get(page) or self._index_k[digest]
            self._index_k[digest] = index_k
            self._index_k.move_to_end(digest)
            start = page * PAGE_TOKENS
            contents.append(
                PageContent(
                    owner=PageOwner(digest=digest, logical_page=page, rid=rid),
                    index_k=index_k,
                    main=encode_main_page(tokens[start : start + PAGE_TOKENS], page),
                )
            )
        while len(self._index_k) > self._limit:
            self._index_k.popitem(last=False)
        return contents
