"""What a scenario sends: fixed by the seed, answerable from the prompt, of the promised length."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import time
from itertools import pairwise

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsv4doctor.artifacts.catalog import load_scenario, scenario_names
from dsv4doctor.canary import decode_canary, find_canaries
from dsv4doctor.errors import UsageError
from dsv4doctor.load.dice import Dice
from dsv4doctor.load.lengths import message_tokens, tools_tokens
from dsv4doctor.load.schedule import build_session
from dsv4doctor.scenario import Scenario, TurnKind
from dsv4doctor.session import SessionScript, Turn

PLANT = re.compile(r"The (?:code|number|phrase) for `([^`]+)` is `([^`]*)`\.")
PASSAGE = re.compile(r"Passage `([^`]+)`: (.*?) End of passage `\1`\.")
CALL = re.compile(r"Call the tool `([^`]+)` now: (.*?`)\.")
SETTING = re.compile(r"set `([^`]+)` to the (code|number|phrase) for `([^`]+)`")
WRITE = re.compile(r"Write out word for word the passage called `([^`]+)`, and nothing else\.")


def digest(script: SessionScript) -> str:
    fields = dataclasses.asdict(script)
    for name in ("salts_prompts", "salts_sessions"):
        assert not fields.pop(name), "a salt is no byte that a seed fixes"
    assert fields.pop("conversation") is None, "a conversation of its own"
    return hashlib.sha256(json.dumps(fields).encode()).hexdigest()


def obey(
    script: SessionScript, turn: Turn
) -> tuple[list[tuple[str, dict[str, object]]], str | None]:
    """What a reader who only sees the prompt answers: calls, or a passage's text."""
    text = "\n".join(str(m.get("content") or "") for m in script.messages(turn.turn))
    ask = script.messages(turn.turn)[-1]["content"].rpartition("\n\n")[2]
    plants = dict(PLANT.findall(text))
    assert len(plants) == len(PLANT.findall(text)), "a label was planted twice"
    wanted = WRITE.search(ask)
    if wanted:
        return [], dict(PASSAGE.findall(text))[wanted[1]]
    calls = []
    for tool, listed in CALL.findall(ask):
        arguments = {
            name: json.loads(plants[label]) if noun == "number" else plants[label]
            for name, noun, label in SETTING.findall(listed)
        }
        calls.append((tool, arguments))
    return calls, None


def estimate_prompt_tokens(script: SessionScript, turn: int) -> int:
    """Estimated length of the prompt of `turn`, tools and chat template included."""
    return tools_tokens(script.tools) + sum(map(message_tokens, script.messages(turn)))


@pytest.mark.parametrize("name", scenario_names())
def test_the_prompt_alone_determines_the_expected_reply(name: str) -> None:
    scenario = load_scenario(name)
    for session in range(12):
        script = build_session(scenario, seed=5, session=session)
        for turn in script.turns:
            calls, text = obey(script, turn)
            reply = turn.expected_reply
            said = [
                (c["function"]["name"], json.loads(c["function"]["arguments"]))
                for c in reply.get("tool_calls", ())
            ]
            assert (said, reply["content"]) == (calls, text)
            assert [list(arguments) for _, arguments in said] == [list(a) for _, a in calls]


@pytest.mark.parametrize("name", scenario_names())
def test_expected_replies_hold_the_canaries_and_fit_the_schemas(name: str) -> None:
    script = build_session(load_scenario(name), seed=1, session=3)
    schemas = {t["function"]["name"]: t["function"]["parameters"] for t in script.tools}
    for turn in script.turns:
        calls = turn.expected_reply.get("tool_calls", ())
        for call in calls:
            arguments = json.loads(call["function"]["arguments"])
            jsonschema.validate(arguments, schemas[call["function"]["name"]])
        for canary in turn.canaries:
            assert canary.planted_turn <= turn.turn
            if canary.tool is None:
                assert canary.value in turn.expected_reply["content"]
            else:
                call = calls[canary.call_index]["function"]
                assert call["name"] == canary.tool
                assert json.loads(call["arguments"])[canary.argument] == canary.value


@pytest.mark.parametrize("name", scenario_names())
def test_tool_messages_answer_the_calls_before_them(name: str) -> None:
    script = build_session(load_scenario(name), seed=1, session=9)
    conversation = script.messages(len(script.turns) - 1)
    open_calls: list[str] = []
    for before, message in pairwise(conversation):
        if before["role"] == "assistant":
            open_calls = [call["id"] for call in before.get("tool_calls", ())]
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_calls.pop(0)
            assert message["content"]
        if message["role"] == "user":
            assert open_calls == []
    assert conversation[-1]["role"] == "user"
    assert conversation[-1]["content"] == script.turns[-1].prompt


def test_what_late_turns_ask_for_lies_in_several_earlier_turns() -> None:
    scenario = load_scenario("tool-calls")
    for session in range(60):
        for turn in build_session(scenario, seed=2, session=session).turns:
            planted = {canary.planted_turn for canary in turn.canaries if canary.tool}
            if planted and turn.turn >= 2:
                assert max(planted) < turn.turn
                assert len(planted) >= 2


def test_every_code_in_a_prompt_belongs_to_its_session_and_turn() -> None:
    scenario = load_scenario("long-text")
    script = build_session(scenario, seed=3, session=41)
    for turn in script.turns:
        planted = " ".join(message["content"] for message in turn.new_messages)
        owners = [decode_canary(script.canary_key, s.code) for s in find_canaries(planted)]
        assert owners
        assert {(owner.session, owner.turn) for owner in owners if owner} == {(41, turn.turn)}
        assert None not in owners


# Written down once: a change of these means that runs of one seed no longer compare.
PINNED = {
    "tool-calls": "c3f04ec18b6c4c04",
    "parser-probe": "ca76bd36924fbdf7",
}


@pytest.mark.parametrize("name", PINNED)
def test_a_seed_fixes_every_byte(name: str) -> None:
    scenario = load_scenario(name)
    assert digest(build_session(scenario, seed=42, session=7))[:16] == PINNED[name]


def test_sessions_and_seeds_differ_but_share_the_system_message() -> None:
    scenario = load_scenario("tool-calls")
    scripts = [build_session(scenario, seed=42, session=session) for session in range(20)]
    systems = {script.messages(0)[0]["content"] for script in scripts}
    assert len(systems) == 1
    assert len({script.messages(0)[1]["content"] for script in scripts}) == 20
    other = build_session(scenario, seed=43, session=0)
    assert digest(other) != digest(scripts[0])
    assert other.canary_key != scripts[0].canary_key


@pytest.mark.parametrize("name", scenario_names())
def test_prompts_have_the_length_that_the_scenario_says(name: str) -> None:
    scenario = load_scenario(name)
    first, last = scenario.context_tokens
    scripts = [build_session(scenario, seed=8, session=session) for session in range(40)]
    for turn, target in ((0, first), (scenario.turns - 1, last)):
        lengths = [estimate_prompt_tokens(script, turn) for script in scripts]
        assert sum(lengths) / len(lengths) == pytest.approx(target, rel=0.05)
        assert max(lengths) <= target * (1 + scenario.context_jitter) * 1.03
        different = len(set(lengths)) * scenario.samples
        assert different > 20, "sessions of one length have one page layout"


@pytest.mark.parametrize("name", ["short-context", "parser-probe"])
def test_short_scenarios_stay_below_the_indexers_threshold(name: str) -> None:
    scenario = load_scenario(name)
    for session in range(100):
        script = build_session(scenario, seed=session, session=session)
        assert estimate_prompt_tokens(script, scenario.turns - 1) <= 1750
    assert 1750 + scenario.sampling.max_tokens <= 2048


def test_the_default_scenario_mixes_kinds_over_sessions_and_turns() -> None:
    scenario = load_scenario("tool-calls")
    kinds = [
        [turn.kind for turn in build_session(scenario, seed=1, session=session).turns]
        for session in range(60)
    ]
    for turn in range(scenario.turns):
        column = [row[turn] for row in kinds]
        assert column.count(TurnKind.ABORTED) == 5
        assert column.count(TurnKind.LONG_TEXT) == 10


def test_lengths_and_turns_scale() -> None:
    scenario = load_scenario("tool-calls")
    script = build_session(scenario, seed=1, session=2, turns=8, context_tokens=(2000, 80_000))
    assert len(script.turns) == 8
    assert estimate_prompt_tokens(script, 7) == pytest.approx(80_000, rel=0.13)


@settings(max_examples=25, deadline=None)
@given(
    turns=st.integers(1, 40),
    canaries=st.integers(1, 6),
    calls=st.integers(1, 8),
    values=st.sampled_from(["codes", "numbers", "probes"]),
    kinds=st.lists(st.sampled_from(list(TurnKind)), min_size=1, max_size=4),
    session=st.integers(0, 2**24 - 1),
)
def test_any_scenario_makes_sessions_that_can_be_answered(
    turns: int, canaries: int, calls: int, values: str, kinds: list[TurnKind], session: int
) -> None:
    scenario = Scenario(
        name="any",
        title="",
        description="",
        turns=turns,
        context_tokens=(700, 701),
        turn_kinds=tuple(kinds),
        canaries_per_call=canaries,
        calls_per_turn=calls,
        values=values,
    )
    script = build_session(scenario, seed=0, session=session)
    for turn in script.turns:
        expected, text = obey(script, turn)
        assert text == turn.expected_reply["content"]
        assert len(expected) == len(turn.expected_reply.get("tool_calls", ()))


@pytest.mark.parametrize(
    ("turns", "context"), [(0, None), (257, None), (None, (300, 500)), (None, (4000, 3000))]
)
def test_impossible_sizes_are_usage_errors(
    turns: int | None, context: tuple[int, int] | None
) -> None:
    with pytest.raises(UsageError):
        build_session(
            load_scenario("tool-calls"), seed=1, session=0, turns=turns, context_tokens=context
        )


def test_sixty_sessions_are_built_in_well_under_a_second() -> None:
    scenario = load_scenario("tool-calls")
    before = time.process_time()
    for session in range(60):
        build_session(scenario, seed=1, session=session)
    assert time.process_time() - before < 1.0


def test_dice_use_every_choice_about_equally() -> None:
    dice = Dice("even")
    counts = [0] * 10
    for _ in range(10_000):
        counts[dice.below(10)] += 1
    assert min(counts) > 850
    assert max(counts) < 1150


def test_samples_of_a_conversation_send_the_same_and_own_the_same_canaries() -> None:
    scenario = load_scenario("best-of-n")
    first, second, other = (build_session(scenario, seed=1, session=n) for n in (4, 5, 6))
    assert first.messages(5) == second.messages(5)
    assert other.messages(0) != first.messages(0)
    assert (first.canary_session, second.canary_session, other.canary_session) == (4, 4, 6)
    owners = [decode_canary(second.canary_key, str(c.value)) for c in second.turns[5].canaries]
    assert {owner.session for owner in owners if owner} == {4}
