"""Scenario + seed + session number → every byte that the session sends. Pure and replayable.

A conversation is planned backwards: what each turn will ask for is decided first, then planted in
turns before it, spread over all of them, so that an answer needs many old pages of the KV cache.
Filler prose brings each prompt to its length. Sessions differ in length and in where things stand,
so that no two have the same page layout; they share the system message and the tools.

Lengths are estimates in tokens, tools and chat template included (`load.lengths`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from dsv4doctor.canary import MAX_SESSIONS, MAX_TURNS
from dsv4doctor.errors import UsageError
from dsv4doctor.load import prose
from dsv4doctor.load.dice import Dice, derive
from dsv4doctor.load.lengths import (
    PROSE_CHARS_PER_TOKEN,
    message_tokens,
    text_tokens,
    tools_tokens,
)
from dsv4doctor.load.planning import Planner, TurnPlan
from dsv4doctor.load.values import (
    tool_schemas,
)
from dsv4doctor.scenario import Sampling, Scenario, TurnKind
from dsv4doctor.session import Message, SessionScript, Turn

# JavaScript readers of our JSON keep integers exact up to 53 bits.
_KEY_BITS = 52

_RULES = (
    "You are the assistant of a records office. People tell you about their day and give you "
    "codes, numbers, phrases and passages, each under a label. When you are told to call a tool, "
    "call it at once, with exactly the values that the labels stand for, and say nothing else. "
    "When you are told to write out a passage, copy it word for word. What follows is the "
    "office's own chronicle."
)


def build_session(
    scenario: Scenario,
    *,
    seed: int,
    session: int,
    turns: int | None = None,
    context_tokens: tuple[int, int] | None = None,
) -> SessionScript:
    """What session number `session` sends; `turns` and `context_tokens` override the scenario's.

    Raises:
        UsageError: if the lengths leave no room for what has to be said.
    """
    count = scenario.turns if turns is None else turns
    lengths = scenario.context_tokens if context_tokens is None else context_tokens
    _check(scenario, session=session, turns=count, lengths=lengths)
    key = canary_key(scenario, seed)
    conversation = session - session % scenario.samples
    planner = Planner(
        scenario,
        key=key,
        session=conversation,
        dice=Dice("plan", scenario.name, seed, conversation),
    )
    plans = planner.plan(count)
    tools = tool_schemas(scenario.values, scenario.canaries_per_call)
    writer = _Writer(scenario, seed=seed, session=conversation, tools=tools)
    written = [
        writer.write(
            turn, plan, _target_tokens(scenario, lengths, turn, count, writer.length_factor)
        )
        for turn, plan in enumerate(plans)
    ]
    return SessionScript(
        session=session,
        turns=tuple(written),
        tools=tools,
        history=scenario.history,
        stream=scenario.stream,
        sampling=_sampling(scenario.sampling),
        canary_key=key,
        salts_prompts=scenario.salts_prompts,
        salts_sessions=scenario.salts_sessions,
        conversation=None if conversation == session else conversation,
    )


def canary_key(scenario: Scenario, seed: int) -> int:
    """The key that the canary codes of a run are made with."""
    return int.from_bytes(derive("canary", scenario.name, seed)[:8], "big") >> 64 - _KEY_BITS


def _check(scenario: Scenario, *, session: int, turns: int, lengths: tuple[int, int]) -> None:
    if not 1 <= turns <= MAX_TURNS:
        raise UsageError(f"a session of {turns} turns", f"give 1 to {MAX_TURNS}")
    if not 0 <= session < MAX_SESSIONS:
        raise UsageError(f"session number {session}", f"run at most {MAX_SESSIONS} sessions")
    if scenario.samples < 1:
        raise UsageError(f"samples is {scenario.samples}", "1 gives every session its own talk")
    first, last = lengths
    if not scenario.shared_prompt_tokens < first <= last:
        raise UsageError(
            f"context lengths {first}:{last} with a shared prompt of "
            f"{scenario.shared_prompt_tokens} tokens",
            "give FIRST:LAST with FIRST above the shared prompt and LAST not below FIRST",
        )


def _target_tokens(
    scenario: Scenario, lengths: tuple[int, int], turn: int, turns: int, factor: float
) -> int:
    first, last = lengths
    share = turn / (turns - 1) if turns > 1 else 1.0
    return int((first + (last - first) * share) * factor)


def _sampling(sampling: Sampling) -> Mapping[str, Any]:
    asked = {"temperature": sampling.temperature, "top_p": sampling.top_p}
    return {name: value for name, value in asked.items() if value is not None}


class _Writer:
    """Turns the plans of one session into messages of the right length, in order."""

    def __init__(
        self, scenario: Scenario, *, seed: int, session: int, tools: tuple[Mapping[str, Any], ...]
    ) -> None:
        self._scenario = scenario
        self._dice = Dice("prose", scenario.name, seed, session)
        self._session = session
        jitter = scenario.context_jitter
        self.length_factor = 1.0 - jitter + 2 * jitter * self._dice.share()
        self._tokens = tools_tokens(tools)
        self._system = _system_message(scenario, seed, self._tokens)
        self._open_calls: list[str] = []

    def write(self, turn: int, plan: TurnPlan, target_tokens: int) -> Turn:
        """The turn whose prompt is about `target_tokens` long; longer if its plants need more."""
        messages: list[Message] = [] if turn else [self._system]
        ask = " ".join(plan.asks)
        fixed = message_tokens({"content": ask}) + sum(map(text_tokens, plan.plants))
        fixed += len(self._open_calls) * message_tokens({}) + sum(map(message_tokens, messages))
        parts = self._parts(plan, target_tokens - self._tokens - fixed)
        for call_id, part in zip(self._open_calls, parts, strict=False):
            messages.append({"role": "tool", "tool_call_id": call_id, "content": part})
        prompt = f"{parts[-1]}\n\n{ask}"
        messages.append({"role": "user", "content": prompt})
        reply = self._reply(turn, plan)
        self._tokens += sum(map(message_tokens, messages)) + message_tokens(reply)
        is_aborted = plan.kind is TurnKind.ABORTED
        return Turn(
            turn=turn,
            kind=plan.kind,
            new_messages=tuple(messages),
            expected_reply=reply,
            canaries=tuple(plan.canaries),
            prompt=prompt,
            max_tokens=self._scenario.sampling.max_tokens,
            tool_choice="auto" if plan.text is not None else self._scenario.tool_choice,
            abort_after_tokens=self._scenario.abort_after_tokens if is_aborted else None,
        )

    def _parts(self, plan: TurnPlan, filler_tokens: int) -> list[str]:
        """The turn's text, cut at sentences: a part for each open call and one for the user."""
        lines = prose.sentences(self._dice, int(filler_tokens * PROSE_CHARS_PER_TOKEN))
        for plant in plan.plants:
            lines.insert(self._dice.below(len(lines) + 1), plant)
        count = len(self._open_calls) + 1
        while len(lines) < count:
            lines.insert(0, prose.sentence(self._dice))
        # Cut at random, so that messages differ in length between sessions; no part is empty.
        cuts = sorted(self._dice.below(len(lines) - count + 1) for _ in range(count - 1))
        edges = [0, *(cut + place + 1 for place, cut in enumerate(cuts)), len(lines)]
        return [" ".join(lines[start:end]) for start, end in pairwise(edges)]

    def _reply(self, turn: int, plan: TurnPlan) -> Message:
        if plan.text is not None:
            self._open_calls = []
            return {"role": "assistant", "content": plan.text}
        self._open_calls = [
            f"call_{derive('call', self._session, turn, index)[:6].hex()}"
            for index in range(len(plan.calls))
        ]
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": call_id,
                    "type": "function",
                    "function": {
                        "name": tool,
                        "arguments": json.dumps(arguments, ensure_ascii=False),
                    },
                }
                for call_id, (tool, arguments) in zip(self._open_calls, plan.calls, strict=True)
            ],
        }


def _system_message(scenario: Scenario, seed: int, tools: int) -> Message:
    """The system message, the same in every session; `tools` are the tokens of the tools."""
    room = scenario.shared_prompt_tokens - tools - message_tokens({"content": _RULES})
    dice = Dice("system", scenario.name, seed)
    chronicle = prose.sentences(dice, int(room * PROSE_CHARS_PER_TOKEN))
    return {"role": "system", "content": " ".join([_RULES, *chronicle])}
