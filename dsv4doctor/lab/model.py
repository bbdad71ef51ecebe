"""The model: it scores what was gathered, selects 512 entries, and copies from what it selected.

For every token of its reply it needs one earlier token. In each layer the entry that holds it is
looked for by score(k) = sum over heads of ReLU(q_h . k), on the index keys as they were gathered;
the 512 best entries are selected. Attention then copies from the entry that every layer selected
and whose latent is nearest to what is needed: that is the needed entry itself, unless its key was
not what it should have been. An entry that is lost is made up for by the nearest other one, and
what follows it in the reply by what follows it there. When one stretch of the reply (a tag, a
value, a passage) has lost several entries, the reply goes on from where it copied last for good: to
a wrong argument, into the markup of another call, into prose, or round in circles.

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
    PAGE_SLOTS,
    READ_FORMATS,
    TOKENS_PER_ENTRY,
    Bytes,
    Floats,
)
from dsv4doctor.lab.plan import BY_HEART, Plan
from dsv4doctor.lab.tokens import EOS_ID, TokenIds, piece_of

TOP_K = 512
# Sliding-window attention: the youngest tokens are seen whatever was selected.
SLIDING_WINDOW = 128
# So many entries lost within one stretch, and the reply follows what it copied instead of its plan.
LOSSES_TO_DERAIL = 4
# Cosines are compared to five places: equal latents stay equal whatever summed them.
_COSINE_PLACES = 5
# Rotary positions: of two latents that say alike, attention prefers the one that stands nearer to
# where the needed one should. Worth so much cosine, fading over a page.
_NEARBY = 0.2
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
        decode = READ_FORMATS[gathered.index_format].decode
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
        products: Floats = np.matmul(queries * self._signs[layer], self._keys[layer].T)
        scores: Floats = np.zeros_like(products)
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
            threshold = np.partition(scores, -TOP_K)[-TOP_K]
            mask = scores > threshold
            # Of those on the threshold the first ones are taken, as many as there is room for.
            mask[np.flatnonzero(scores == threshold)[: TOP_K - mask.sum()]] = True
            kept &= mask
            chosen = np.flatnonzero(mask)
        common = np.flatnonzero(kept)
        return common if len(common) else chosen


class _Reply:
    """One reply in the making."""

    def __init__(self, prompt: TokenIds, gathered: Gathered, shape: ModelShape) -> None:
        self._prompt = prompt
        self.length = len(prompt)
        self._entries = len(prompt) // TOKENS_PER_ENTRY
        self._latents = decode_tokens(gathered.latents)
        self._indexer = _Indexer(gathered, self._entries, shape)
        self._window = min(len(prompt) - SLIDING_WINDOW, self._entries * TOKENS_PER_ENTRY)
        self._contents: Floats | None = None
        self._attended: dict[tuple[bool, int], tuple[int, bool]] = {}

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

    def attend(self, entry: int, *, of_prompt: bool) -> tuple[int, bool]:
        """The entry that is copied from when `entry` is needed, and whether it says the same.

        What is needed is known from the prompt while the reply keeps to its plan, and from the
        latents that it reads once it follows them.
        """
        known = self._attended.get((of_prompt, entry))
        if known is None:
            known = self._nearest(entry, self._prompt if of_prompt else self._latents)
            self._attended[of_prompt, entry] = known
        return known

    def _nearest(self, entry: int, source: TokenIds) -> tuple[int, bool]:
        if self._contents is None:
            self._contents = entry_keys(self._latents, np.arange(self._entries))
        window = slice(max(entry - 1, 0) * TOKENS_PER_ENTRY, (entry + 1) * TOKENS_PER_ENTRY)
        if (self._latents[window] == source[window]).all():
            query = self._contents[entry]
        else:
            query = entry_keys(source, np.array([entry]))[0]
        selected = self._indexer.selected(query)
        own = slice(entry * TOKENS_PER_ENTRY, (entry + 1) * TOKENS_PER_ENTRY)
        # The compressor overlaps: an entry also speaks for the four tokens before its own.
        is_seen = entry in selected or entry + 1 in selected
        if is_seen and (self._latents[own] == source[own]).all():
            return entry, True
        cosines = np.round(self._contents[selected] @ query, _COSINE_PLACES)
        cosines += _NEARBY * np.exp(-np.abs(selected - entry) / PAGE_SLOTS)
        nearest = int(selected[np.argmax(cosines)])
        there = slice(nearest * TOKENS_PER_ENTRY, (nearest + 1) * TOKENS_PER_ENTRY)
        return nearest, bool((self._latents[there] == source[own]).all())

    def token(self, place: int) -> int:
        """The token at a place, from the latents; in the window from the prompt."""
        source = self._prompt if self.in_window(place) else self._latents
        return int(source[place])


class _Walk:
    """The steps of one reply from its first lost entry on."""

    def __init__(self, reply: _Reply, plan: Plan, losses_to_derail: int) -> None:
        self._reply = reply
        self._plan = plan
        self._stretches = frozenset(plan.stretches)
        self._losses_to_derail = losses_to_derail
        self._lost: set[int] = set()
        self._step = 0
        # Where the next token stands if the reply goes on from where it copied last.
        self._next_place = 0
        self._is_following = False
        # The last token of this stretch was not the needed one.
        self._is_astray = False

    def run(self, step: int, room: int) -> list[int]:
        """Tokens from `step` of the plan on: up to an end token, or as many as there is room."""
        self._step = step
        tokens: list[int] = []
        while len(tokens) < room and EOS_ID not in tokens[-1:]:
            # A plan whose end token was lost is over, but the reply is not.
            self._is_following |= self._step >= len(self._plan.places)
            tokens.append(self._followed() if self._is_following else self._planned())
        return tokens

    def _planned(self) -> int:
        if self._step in self._stretches:
            self._lost.clear()
            self._is_astray = False
        place = int(self._plan.places[self._step])
        self._step += 1
        if place == BY_HEART:
            return int(self._plan.tokens[self._step - 1])
        if self._reply.in_window(place):
            return self._copied(place)
        entry, offset = divmod(place, TOKENS_PER_ENTRY)
        nearest, is_right = self._reply.attend(entry, of_prompt=True)
        if is_right:
            self._is_astray = False
            return self._copied(nearest * TOKENS_PER_ENTRY + offset)
        self._lost.add(entry)
        self._is_following = len(self._lost) >= self._losses_to_derail
        if self._is_astray:
            return self._followed()
        self._is_astray = True
        return self._copied(nearest * TOKENS_PER_ENTRY + offset)

    def _followed(self) -> int:
        place = self._next_place
        if place >= self._reply.length:
            return EOS_ID
        if self._reply.in_window(place):
            return self._copied(place)
        entry, offset = divmod(place, TOKENS_PER_ENTRY)
        nearest, _ = self._reply.attend(entry, of_prompt=False)
        return self._copied(nearest * TOKENS_PER_ENTRY + offset)

    def _copied(self, place: int) -> int:
        self._next_place = place + 1
        return self._reply.token(place)


def generate(
    prompt: TokenIds, plan: Plan, gathered: Gathered, shape: ModelShape, max_tokens: int
) -> tuple[tuple[str, ...], str]:
    """The reply's pieces and its finish reason (`stop` or `length`); a pure function."""
    reply = _Reply(prompt, gathered, shape)
    healthy = reply.healthy_steps(plan.places[:max_tokens])
    tokens = [int(token) for token in plan.tokens[:healthy]]
    if healthy < min(len(plan.places), max_tokens):
        tokens += _Walk(reply, plan, shape.losses_to_derail).run(healthy, max_tokens - healthy)
    stopped = bool(tokens) and tokens[-1] == EOS_ID
    kept = tokens[:-1] if stopped else tokens
    return tuple(piece_of(token) for token in kept), "stop" if stopped else "length"
