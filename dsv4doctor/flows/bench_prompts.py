"""The requests of a bench: passages to be written out, or prompts from a file.

A synthetic prompt plants a passage of the wanted output length in prose of the wanted prompt length
and asks for it word for word. So a healthy model stops by itself near that length, and every reply
can be judged against what was planted, codes included: a fast wrong answer is no answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dsv4doctor.artifacts.prompts import FilePrompt
from dsv4doctor.errors import UsageError
from dsv4doctor.flows.bench_plan import BenchPlan, BlockPlan
from dsv4doctor.load.dice import Dice
from dsv4doctor.load.lengths import tools_tokens
from dsv4doctor.load.schedule import build_session
from dsv4doctor.load.values import tool_schemas
from dsv4doctor.scenario import History, Sampling, Scenario, TurnKind
from dsv4doctor.session import SessionScript, Turn

_NAME = "bench"
# The rules of the game, the request itself and the passage's frame, in tokens.
_FRAME_TOKENS = 160
# The shortest passage that holds a code.
FEWEST_OUTPUT_TOKENS = 40
# Tokenizers differ by less: a reply cut by this limit is a model that does not stop.
_ROOM_FACTOR, _ROOM_TOKENS = 2, 64
# A warm-up is about compiling and connecting: as long as SGLang's own.
_WARMUP_TOKENS = 32


def check_lengths(plan: BenchPlan) -> None:
    """Refuse lengths that no prompt can have.

    Raises:
        UsageError: if the passage does not fit into the prompt.
    """
    if plan.prompts:
        return
    if plan.output_len < FEWEST_OUTPUT_TOKENS:
        raise UsageError(
            f"--output-len {plan.output_len} is too short to judge",
            f"give at least {FEWEST_OUTPUT_TOKENS} tokens",
        )
    jitter = plan.length_jitter
    shortest, longest = plan.input_len * (1 - jitter), plan.output_len * (1 + jitter)
    if shortest < longest + _FRAME_TOKENS:
        raise UsageError(
            f"--input-len {plan.input_len} beside --output-len {plan.output_len}: the passage to "
            "be written out stands in the prompt",
            f"give --input-len {int((longest + _FRAME_TOKENS) / (1 - jitter)) + 1} or more, a "
            "smaller --output-len, or prompts of your own with --dataset-path",
        )


def scripts_of(plan: BenchPlan, block: BlockPlan) -> Iterator[SessionScript]:
    """The requests of one block, each a session of one turn, built when it begins."""
    level = plan.levels[block.level]
    first = level.first_session + block.number * level.num_prompts
    for session in range(first, first + level.num_prompts):
        yield _script(plan, session)


def warmup_scripts(plan: BenchPlan, level: int) -> Iterator[SessionScript]:
    """The requests that are sent and not measured before a level's first block."""
    first = plan.warmup_session + level * plan.warmup_requests
    for session in range(first, first + plan.warmup_requests):
        script = _script(plan, session)
        (turn,) = script.turns
        short = replace(turn, max_tokens=min(turn.max_tokens, _WARMUP_TOKENS))
        yield replace(script, turns=(short,))


def _script(plan: BenchPlan, session: int) -> SessionScript:
    if plan.prompts:
        return _from_file(plan, session, plan.prompts[session % len(plan.prompts)])
    return _synthetic(plan, session)


def _synthetic(plan: BenchPlan, session: int) -> SessionScript:
    scenario = _scenario(plan, session)
    script = build_session(scenario, seed=plan.seed, session=session)
    (turn,) = script.turns
    limit = _ROOM_FACTOR * plan.output_len + _ROOM_TOKENS if plan.is_judged else plan.output_len
    # Without tools any server can be benchmarked, and a model has nothing to call by mistake.
    return replace(
        script,
        turns=(replace(turn, max_tokens=limit),),
        tools=(),
        stream=plan.stream,
        sampling=_sampling(plan),
        salts_prompts=plan.salts_prompts,
    )


def _scenario(plan: BenchPlan, session: int) -> Scenario:
    jitter = plan.length_jitter
    share = Dice("bench output", plan.seed, session).share()
    output = max(FEWEST_OUTPUT_TOKENS, round(plan.output_len * (1 - jitter + 2 * jitter * share)))
    base = Scenario(name=_NAME, title="", description="", turns=1, context_tokens=(1, 1))
    tools = tools_tokens(tool_schemas(base.values, base.canaries_per_call))
    length = plan.input_len + tools
    return replace(
        base,
        context_tokens=(length, length),
        turn_kinds=(TurnKind.LONG_TEXT,),
        context_jitter=jitter,
        shared_prompt_tokens=tools + 1,
        long_text_tokens=output,
        sampling=Sampling(temperature=0.0),
    )


def _from_file(plan: BenchPlan, session: int, prompt: FilePrompt) -> SessionScript:
    last = prompt.messages[-1].get("content")
    turn = Turn(
        turn=0,
        kind=TurnKind.LONG_TEXT,
        new_messages=prompt.messages,
        expected_reply={"role": "assistant", "content": ""},
        canaries=(),
        prompt=last if isinstance(last, str) else "",
        max_tokens=prompt.max_tokens or plan.output_len,
        tool_choice=prompt.tool_choice or "auto",
    )
    return SessionScript(
        session=session,
        turns=(turn,),
        tools=prompt.tools,
        history=History.SCRIPTED,
        stream=plan.stream,
        sampling=_sampling(plan),
        canary_key=0,
        # A salt goes before a text; parts (images) stay as they are.
        salts_prompts=plan.salts_prompts and isinstance(prompt.messages[0].get("content"), str),
    )


def _sampling(plan: BenchPlan) -> dict[str, Any]:
    return {"temperature": 0.0, **({"ignore_eos": True} if plan.ignore_eos else {})}
