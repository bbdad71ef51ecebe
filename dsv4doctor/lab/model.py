"""The model: it scores what was gathered, selects 512 entries, and copies from what it selected.

For every token of its reply it needs one earlier token. In each layer the entry that holds it is
looked for by score(k) = sum over heads of ReLU(q_h . k), on the index keys as they were gathered;
the 512 best entries are selected. Attention then copies from the entry that every layer selected
and whose latent is nearest to what is needed: the needed entry itself, unless its key was not what
it should have been. After the second lost entry the reply goes on from where it copied.

`generate` is handed bytes and their format. Whatever goes wrong in a reply went wrong in the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dsv4doctor.lab.keys import entry_keys, head_noise, layer_signs
from dsv4doctor.lab.latents import decode_tokens
from dsv4doctor.lab.layouts import (
    HEAD_DIM,
    INDEX_FORMATS,
    TOKENS_PER_ENTRY,
    Bytes,
    Floats,
)
from dsv4doctor.lab.plan import BY_HEART, Plan
from dsv4doctor.lab.tokens import EOS_ID, TokenIds, piece_of

TOP_K = 512
# Sliding-window attention: the youngest tokens are seen whatever was selected.
SLIDING_WINDOW = 128
# From this lost entry on the reply follows what it copied instead of what it was asked.
LOSSES_TO_DERAIL = 2
# Products are made in slices, so that a long context needs no long scratch memory.
_SLICE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """Heads, and the length of the noise that each adds to a query of length 1."""

    heads: int = 8
    query_noise: float = 1.5
    losses_to_derail: int = LOSSES_TO_DERAIL


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What a request's prefill read, bytes as they were: one row a page of 256 tokens.

    `index_k` has one array [pages, page_bytes] a layer; `latents` are the last layer's main pages.
    """

    index_format: str
    index_k: tuple[Bytes, ...]
    latents: Bytes


class _Indexer:
    """Top-k selection over the gathered keys of every layer."""

    def __init__(self, gathered: Gathered, entries: int, shape: ModelShape) -> None:
        decode = INDEX_FORMATS[gathered.index_format].decode
        self._all = entries <= TOP_K
        self._entries = entries
        self._keys: list[Floats] = []
        self._noise: list[Floats] = []
        self._signs: list[Floats] = []
        for layer, pages in enumerate(gathered.index_k if not self._all else ()):
            keys = decode(pages).reshape(-1, HEAD_DIM)[:entries]
            self._keys.append(keys)
            self._noise.append(head_noise(layer, shape.heads, shape.query_noise) @ keys.T)
            self._signs.append(layer_signs(layer))

    def _scores(self, layer: int, queries: Floats) -> Floats:
        products = (queries * self._signs[layer]) @ self._keys[layer].T
        scores = np.zeros_like(products)
        for noise in self._noise[layer]:
            scores += np.maximum(products + noise, 0)
        return scores

    def finds(self, entries: npt.NDArray[np.intp], queries: Floats) -> npt.NDArray[np.bool_]:
        """Whether every layer selects entry i for query i."""
        found = np.ones(len(entries), dtype=np.bool_)
        for layer in range(len(self._keys)):
            for start in range(0, len(entries), _SLICE):
                part = slice(start, start + _SLICE)
                scores = self._scores(layer, queries[part])
                own = np.take_along_axis(scores, entries[part, None], axis=1)
                before = np.arange(self._entries)[None, :] < entries[part, None]
                rank = ((scores > own) | ((scores == own) & before)).sum(axis=1)
                found[part] &= rank < TOP_K
        return found

    def selected(self, query: Floats) -> npt.NDArray[np.intp]:
        """The entries that every layer selects; the last layer's where no entry is in all."""
        kept = np.ones(self._entries, dtype=np.bool_)
        chosen = np.arange(self._entries)
        for layer in range(len(self._keys)):
            scores = self._scores(layer, query[None, :])[0]
            chosen = np.argsort(-scores, kind="stable")[:TOP_K]
            mask = np.zeros(self._entries, dtype=np.bool_)
            mask[chosen] = True
            kept &= mask
        common = np.flatnonzero(kept)
        return common if len(common) else np.sort(chosen)


class _Reply:
    """One reply in the making."""

    def __init__(self, prompt: TokenIds, gathered: Gathered, shape: ModelShape) -> None:
        self._prompt = prompt
        self._entries = len(prompt) // TOKENS_PER_ENTRY
        self._latents = decode_tokens(gathered.latents)
        self._indexer = _Indexer(gathered, self._entries, shape)
        self._window = min(len(prompt) - SLIDING_WINDOW, self._entries * TOKENS_PER_ENTRY)
        self._contents: Floats | None = None
        self._attended: dict[tuple[bool, int], int] = {}

    def in_window(self, place: int) -> bool:
        return place >= self._window

    def healthy_steps(self, places: npt.NDArray[np.intp]) -> int:
        """How many steps of a plan copy from exactly where they should."""
        searched = (places != BY_HEART) & (places < self._window)
        entries = np.unique(places[searched] // TOKENS_PER_ENTRY)
        if len(entries) == 0:
            return len(places)
        found = self._indexer.finds(entries, entry_keys(self._prompt, entries))
        found &= self._latents_are_right(entries)
        lost = set(entries[~found].tolist())
        for step, place in enumerate(places.tolist()):
            if searched[step] and place // TOKENS_PER_ENTRY in lost:
                return step
        return len(places)

    def _latents_are_right(self, entries: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        offsets = np.arange(-TOKENS_PER_ENTRY, TOKENS_PER_ENTRY)
        windows = np.maximum(entries[:, None] * TOKENS_PER_ENTRY + offsets, 0)
        same: npt.NDArray[np.bool_] = (self._latents[windows] == self._prompt[windows]).all(axis=1)
        return same

    def attend(self, entry: int, *, of_prompt: bool) -> int:
        """The entry that is copied from when `entry` is needed.

        What is needed is known from the prompt while the reply keeps to its plan, and from the
        latents that it reads once it follows them.
        """
        known = self._attended.get((of_prompt, entry))
        if known is not None:
            return known
        source = self._prompt if of_prompt else self._latents
        query = entry_keys(source, np.array([entry]))[0]
        if self._contents is None:
            self._contents = entry_keys(self._latents, np.arange(self._entries))
        selected = self._indexer.selected(query)
        nearest = int(selected[np.argmax(self._contents[selected] @ query)])
        self._attended[of_prompt, entry] = nearest
        return nearest

    def token(self, place: int) -> int:
        """The token at a place, from the latents; in the window from the prompt."""
        source = self._prompt if self.in_window(place) else self._latents
        return int(source[place])


def _derailed(reply: _Reply, cursor: int, length: int, room: int) -> list[int]:
    """Copy on from `cursor` until an end token is copied, the prompt ends, or room does."""
    tokens: list[int] = []
    while len(tokens) < room:
        if cursor >= length:
            return [*tokens, EOS_ID]
        place = cursor
        if not reply.in_window(cursor):
            entry = reply.attend(cursor // TOKENS_PER_ENTRY, of_prompt=False)
            place = entry * TOKENS_PER_ENTRY + cursor % TOKENS_PER_ENTRY
        tokens.append(reply.token(place))
        if tokens[-1] == EOS_ID:
            break
        cursor = place + 1
    return tokens


def generate(
    prompt: TokenIds, plan: Plan, gathered: Gathered, shape: ModelShape, max_tokens: int
) -> tuple[tuple[str, ...], str]:
    """The reply's pieces and its finish reason (`stop` or `length`); a pure function."""
    reply = _Reply(prompt, gathered, shape)
    places = plan.places[:max_tokens]
    healthy = reply.healthy_steps(places)
    tokens = [int(token) for token in plan.tokens[:healthy]]
    lost: set[int] = set()
    for step in range(healthy, len(places)):
        place = int(places[step])
        if place == BY_HEART:
            tokens.append(int(plan.tokens[step]))
        elif reply.in_window(place):
            tokens.append(reply.token(place))
        else:
            entry = place // TOKENS_PER_ENTRY
            copied = reply.attend(entry, of_prompt=True)
            place = copied * TOKENS_PER_ENTRY + place % TOKENS_PER_ENTRY
            tokens.append(reply.token(place))
            if copied != entry:
                lost.add(entry)
            if len(lost) >= shape.losses_to_derail and tokens[-1] != EOS_ID:
                room = max_tokens - len(tokens)
                tokens += _derailed(reply, place + 1, len(prompt), room)
                break
        if tokens[-1] == EOS_ID:
            break
    stopped = bool(tokens) and tokens[-1] == EOS_ID
    kept = tokens[:-1] if stopped else tokens
    return tuple(piece_of(token) for token in kept), "stop" if stopped else "length"
