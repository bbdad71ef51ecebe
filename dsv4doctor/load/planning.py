"""What each turn of a session asks for, and in which earlier turns that was planted.

Decided backwards: first the asks, then the plants, spread over all turns before them, so that an
answer needs many old pages of the KV cache.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dsv4doctor.canary import MAX_SLOTS, Canary, CanaryOwner, encode_canary
from dsv4doctor.load import prose
from dsv4doctor.load.dice import Dice
from dsv4doctor.load.lengths import PROSE_CHARS_PER_TOKEN
from dsv4doctor.load.values import TOOL_NAMES, ValueKind, argument_names, make_value, value_kinds
from dsv4doctor.scenario import Scenario, TurnKind

# A passage holds a code about once in this many tokens, so that a foreign one names its owner.
_PASSAGE_TOKENS_PER_CODE = 60
_MAX_PASSAGE_CODES = 8
# Codes that nobody asks for: a reply with one was read from the right turn but the wrong place.
_DECOYS_PER_TURN = 1


@dataclass(slots=True, kw_only=True)
class TurnPlan:
    """What one turn plants and asks for, while a session is being planned."""

    kind: TurnKind
    plants: list[str] = field(default_factory=list)
    asks: list[str] = field(default_factory=list)
    calls: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    text: str | None = None
    canaries: list[Canary] = field(default_factory=list)
    slots: int = 0


class Planner:
    """Decides what each turn of one session asks for, and where that was planted."""

    def __init__(self, scenario: Scenario, *, key: int, session: int, dice: Dice) -> None:
        self._scenario = scenario
        self._key = key
        self._session = session
        self._dice = dice
        self._labels: set[str] = set()
        self._plans: list[TurnPlan] = []

    def plan(self, turns: int) -> list[TurnPlan]:
        """The plans of all turns; the cycle of kinds begins elsewhere in every session."""
        kinds = self._scenario.turn_kinds
        self._plans = [
            TurnPlan(kind=kinds[(self._session + turn) % len(kinds)]) for turn in range(turns)
        ]
        for turn, plan in enumerate(self._plans):
            # What we hang up on is text: some parsers hold a call back until it is whole, and
            # there would be nothing to interrupt.
            if plan.kind in {TurnKind.LONG_TEXT, TurnKind.ABORTED}:
                self._ask_passage(turn, plan)
            else:
                self._ask_calls(turn, plan)
        for turn, plan in enumerate(self._plans):
            for _ in range(_DECOYS_PER_TURN if plan.slots < MAX_SLOTS else 0):
                code = encode_canary(self._key, self._take_slot(turn))
                plan.plants.append(f"The code for `{self._new_label()}` is `{code}`.")
        return self._plans

    def _ask_calls(self, turn: int, plan: TurnPlan) -> None:
        scenario = self._scenario
        calls = scenario.calls_per_turn if plan.kind is TurnKind.PARALLEL_CALLS else 1
        needs = calls * scenario.canaries_per_call
        sources = self._spread(turn, needs)
        for index in range(calls):
            tool = self._dice.pick(TOOL_NAMES)
            names = argument_names(tool, scenario.canaries_per_call)
            arguments: dict[str, object] = {}
            settings = []
            for name, kind in zip(
                names, value_kinds(scenario.values, tool, len(names)), strict=True
            ):
                canary = self._plant(sources.pop(), kind, tool=tool, index=index, argument=name)
                plan.canaries.append(canary)
                arguments[name] = canary.value
                settings.append(f"set `{name}` to the {kind.noun} for `{canary.label}`")
            plan.calls.append((tool, arguments))
            plan.asks.append(f"Call the tool `{tool}` now: {', '.join(settings)}.")

    def _plant(
        self, source: int, kind: ValueKind, *, tool: str, index: int, argument: str
    ) -> Canary:
        """Plant one value in turn `source` or the next that has room for it."""
        owner = self._take_slot(source)
        label = self._new_label()
        value = make_value(kind, key=self._key, owner=owner, dice=self._dice)
        self._plans[owner.turn].plants.append(
            f"The {kind.noun} for `{label}` is `{kind.spelling(value)}`."
        )
        return Canary(
            label=label,
            value=value,
            planted_turn=owner.turn,
            tool=tool,
            call_index=index,
            argument=argument,
        )

    def _ask_passage(self, turn: int, plan: TurnPlan) -> None:
        source = self._dice.below(turn) if turn else 0
        label = self._new_label()
        tokens = self._scenario.long_text_tokens
        pieces = prose.sentences(self._dice, int(tokens * PROSE_CHARS_PER_TOKEN))
        codes = min(max(1, tokens // _PASSAGE_TOKENS_PER_CODE), _MAX_PASSAGE_CODES)
        for part in range(codes):
            owner = self._take_slot(source)
            code = encode_canary(self._key, owner)
            # Each code replaces about as much prose as it takes, in the middle of its part.
            pieces[(2 * part + 1) * len(pieces) // (2 * codes)] = (
                f"The {self._dice.pick(('entry', 'note', 'record'))} is filed under {code}."
            )
            plan.canaries.append(Canary(label=label, value=code, planted_turn=owner.turn))
        plan.text = " ".join(pieces)
        plan.canaries.insert(0, Canary(label=label, value=plan.text, planted_turn=source))
        self._plans[source].plants.append(
            f"Passage `{label}`: {plan.text} End of passage `{label}`."
        )
        plan.asks.append(f"Write out word for word the passage called `{label}`, and nothing else.")

    def _spread(self, turn: int, count: int) -> list[int]:
        """`count` turns before `turn`, evenly spread, in any order; turn 0 has only itself."""
        if turn == 0:
            return [0] * count
        sources = [int((place + self._dice.share()) * turn / count) for place in range(count)]
        for place in range(count - 1, 0, -1):
            other = self._dice.below(place + 1)
            sources[place], sources[other] = sources[other], sources[place]
        return sources

    def _take_slot(self, turn: int) -> CanaryOwner:
        while self._plans[turn].slots == MAX_SLOTS:
            turn += 1
        slot = self._plans[turn].slots
        self._plans[turn].slots += 1
        return CanaryOwner(session=self._session, turn=turn, slot=slot)

    def _new_label(self) -> str:
        while (label := prose.label(self._dice)) in self._labels:
            pass
        self._labels.add(label)
        return label
