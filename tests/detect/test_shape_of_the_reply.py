"""Missing calls, misplaced reasoning, truncation, emptiness and foreign content."""

# Long lines: tables of cases, a row each.
# ruff: noqa: E501

from __future__ import annotations

import time

import pytest
from builders_detect import TOOLS, call, labels, reply

from dsv4doctor.detect import judge
from dsv4doctor.exchange import Exchange

NAMED = {"type": "function", "function": {"name": "get_weather"}}

MISSING = {
    "required, text only": reply("It is sunny.", tools=TOOLS, tool_choice="required"),
    "named, text only": reply("It is sunny.", tools=TOOLS, tool_choice=NAMED),
    "any": reply("It is sunny.", tools=TOOLS, tool_choice="any"),
    "finish says calls, none there": reply(None, finish="tool_calls", tools=TOOLS),
    "name and json": reply('get_weather{"city": "Oslo"}', tools=TOOLS),
    "name and json after a line": reply('Let me see.\nget_weather {"city": "Oslo"}', tools=TOOLS),
    "python syntax": reply('get_weather(city="Oslo")', tools=TOOLS),
    "fenced json": reply('```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```', tools=TOOLS),
    "bare json": reply('{"name": "get_weather", "parameters": {"city": "Oslo"}}', tools=TOOLS),
    "openai json": reply('{"function": {"name": "get_weather", "arguments": "{}"}}', tools=TOOLS),
    "hermes xml": reply('<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>', tools=TOOLS),
    "qwen xml": reply("<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>", tools=TOOLS),
    "glm xml": reply("<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>", tools=TOOLS),
    "announced with a colon": reply("The handler is fine. Let me check the router next:", tools=TOOLS),
    "announced with a full stop": reply("I'll look at the log file first.", tools=TOOLS),
    "announced in chinese": reply("我先看一下配置文件：", tools=TOOLS),
    "announced in japanese": reply("設定ファイルを確認します。", tools=TOOLS),
    "announced in german": reply("Ich prüfe jetzt die Konfiguration:", tools=TOOLS),
    "announced in spanish": reply("Voy a revisar el archivo de configuración:", tools=TOOLS),
    "announced in french": reply("Je vais vérifier le fichier de configuration :", tools=TOOLS),
    "announced in russian": reply("Сейчас посмотрю файл настроек:", tools=TOOLS),
    "only a thinking block": reply("<think>Next I must read the file.</think>", tools=TOOLS),
    "announced in the reasoning, invented in the text": reply(
        "The file has 12 lines.", reasoning="I will call read_file on a.py now.", tools=TOOLS
    ),
    "announced in the reasoning, nothing in the text": reply(
        None, reasoning="I should run the search tool.", tools=TOOLS
    ),
}  # fmt: skip
PRESENT = {
    "required, there": reply(None, call("get_weather", {"city": "a"}), tool_choice="required"),
    "auto, answered": reply("A mutex protects state.", tools=TOOLS),
    "auto, asks back": reply("Which one do you mean?", tools=TOOLS),
    "no tools, announced": reply("Let me check the router next:"),
    "offers to act": reply("I can check the router if you want me to.", tools=TOOLS),
    "waits for the person": reply("I'll create the ticket once you confirm.", tools=TOOLS),
    "tells the person to act": reply("Run the tests, then look at the log.", tools=TOOLS),
    "closing phrase": reply("All done. Let me know if it fails again!", tools=TOOLS),
    "promise": reply("Understood. I will keep that in mind.", tools=TOOLS),
    "colon and a list": reply("The causes are:\n- a full disk\n- a stale lock", tools=TOOLS),
    "names a tool": reply("The tool get_weather gives the weather of a city.", tools=TOOLS),
    "names a call in a sentence": reply("You could call `get_weather(city)` for it.", tools=TOOLS),
    "past tense": reply("I checked the router and it is fine.", tools=TOOLS),
    "call under none": reply("get_weather is not needed.", tools=TOOLS, tool_choice="none"),
    "json answer": reply('{"name": "Oslo", "population": 700000}', tools=TOOLS),
    "reasoning decides against it": reply(
        "Oslo.", reasoning="No need to call get_weather, I know the capital.", tools=TOOLS
    ),
}

MISPLACED = {
    "closer in the answer": reply("The map is shared.</think>Use a mutex."),
    "opener at the start": reply("<think>\nI need the number first.\n\nWhat is your number?"),
    "whole block": reply("<think>Two options; the second is cheaper.</think>Take the second."),
    "thinking": reply("<thinking>short</thinking>\nYes."),
    "reasoning tag": reply("<reasoning>short</reasoning>\nYes."),
    "kimi": reply("◁think▷short◁/think▷Yes."),
    "magistral": reply("[THINK]short[/THINK]Yes."),
    "answer in the reasoning": reply(None, reasoning="Use `git restore --staged file` to unstage it."),
    "answer in the reasoning, chinese": reply(None, reasoning="使用 git restore --staged 可以取消暂存该文件，工作区保持不变。这样就可以了，不会丢失修改。"),
    "closer inside the reasoning": reply("", reasoning="7 is prime.</think>Yes."),
    "monologue": reply("Okay, the user wants a haiku. I need 5-7-5. Let me count the syllables."),
    "monologue without okay": reply("The user is asking about mutexes. I should explain them briefly."),
    "monologue in chinese": reply("好的，用户想要一首诗。我需要先想一下韵脚，然后再写。"),
}  # fmt: skip
IN_PLACE = {
    "inline code": reply("The prompt ends with `<think>`, the model writes `</think>`."),
    "asked about": reply("The model writes </think> at the end.", prompt="What closes <think>?"),
    "fence": reply("```\n<think>x</think>\n```"),
    "think in prose": reply("I think <b>that</b> works, with some thought and reasoning."),
    "user story": reply("The user wants to log in. The form checks the password."),
    "rule for interfaces": reply(
        "In a good interface the user wants to see at once what is possible. I will give three rules."
    ),
    "source of a template": reply(
        "{% for m in messages %}{% if '<think>' in m %}{# If <think> was opened, drop it #}{% endif %}{% endfor %}"
    ),
    "a report about a user": reply(
        "In this ticket the user says the page is blank. It is a cache fault."
    ),
    "reasoning and answer": reply(
        "B.", reasoning="The user asks for one option. I should answer B."
    ),
    "reasoning and call": reply(
        None, call("get_weather", {"city": "a"}), reasoning="I need the weather, so I call it."
    ),
    "xml the person asked for": reply(
        "<reasoning>short</reasoning><answer>7</answer>",
        prompt="Answer as <reasoning>…</reasoning><answer>…</answer>",
    ),
}

TRUNCATED = {
    "length": reply("Okay, so", finish="length"),
    "no finish reason": reply("It copies the binary and regis", finish=None),
    "cut arguments": reply(None, call("get_weather", '{"city": "Os'), finish="length"),
    "cut arguments, no reason": reply(None, call("get_weather", "{"), finish=None),
    "reasoning only": reply(None, reasoning="The clock needs", finish="length"),
    "error line": reply("It writes every te\nupstream error: read ECONNRESET"),
    "gateway line": reply("It writes every te\n502 Bad Gateway"),
    "mid-sentence, marked stop": reply("The capital of France is a city that"),
    "mid-sentence on an article": reply("You have to restart the service and then open the"),
}
WHOLE = {
    "piece of a manual, inside its code": reply(
        '### Mode 1\n\n```python\nfrom pydantic_ai import Agent\n\nagent = Agent(\n    "openai:gpt-4o-mini",'
    ),
    "ellipsis": reply("And the door opened by itself…"),
    "code": reply("SELECT id FROM users WHERE active = 1"),
    "one word": reply("Yes"),
    "no full stop": reply("Restart the service and check the log"),
    "ends in that": reply("Nobody told me that"),
    "verse": reply("O captain, my\ncaptain, and"),
    "title": reply("what the cat dragged in"),
}

EMPTY = {
    "null": reply(None),
    "nothing": reply(""),
    "blank": reply(" \n\t "),
    "zero-width": reply("\u200b\ufeff\u2060"),
    "braille blank": reply("\u2800\u2800"),
    "no calls": reply("", finish="stop"),
    "a short thought": reply("", reasoning="Done."),
}
NOT_EMPTY = {
    "a call": reply(None, call("get_time", {})),
    "a dot": reply("."),
    "an emoji": reply("👍"),
    "a joined emoji": reply("👩\u200d💻"),
    "parts": reply([{"type": "text", "text": "Hi"}]),
}

FOREIGN = {
    "another mark": reply("For session VIOLET-22: your flight leaves at 7.", session_marker="AMBER-07", prompt="[session AMBER-07] 10 miles in km?"),
    "another mark, after half an answer": reply("You asked about goroutines. Also, code HERON-88: three ovens.", session_marker="KITE-12", prompt="[session KITE-12] goroutines?"),
    "another mark in the reasoning": reply("16 km.", reasoning="The user with code MAPLE-41 wants seats.", session_marker="AMBER-07", prompt="[session AMBER-07] 10 miles?"),
    "another mark in a call": reply(None, call("run_shell", {"command": "echo session OTTER-3"}), session_marker="AMBER-07", prompt="hi"),
    "another form of mark": reply("Hello user u4821, your order is here.", session_marker="u0007", prompt="user u0007: hello"),
    "another tenant's path": reply(None, call("read_file", {"path": "/data/customers/umbra/bill.csv"}), prompt="Read /data/customers/acme/readme.md"),
    "a system prompt": reply("You are PizzaBot. Always ask for the size and never mention prices.", prompt="Hello"),
    "another sum": reply("The tent costs 70 and the stove 26, so together they cost 96.", prompt="Ducks lay 16 eggs a day; 3 are eaten, 4 baked, the rest sold at $2. Daily income?"),
    "another agreement": reply("As we agreed, the greenhouse gets the drip line and the order goes to the co-op on Monday.", prompt="In our chat about the Go scheduler, what did I ask first?"),
    "web furniture": reply("Skip to main content. Subscribe to our newsletter. All rights reserved. Related posts: corn.", prompt="Write a Rust function that reverses a slice"),
}  # fmt: skip
OWN = {
    "own mark": reply("Your code is AMBER-07.", session_marker="AMBER-07", prompt="my code?"),
    "a mark from the prompt": reply("VIOLET-22 is not your session (AMBER-07).", session_marker="AMBER-07", prompt="Is VIOLET-22 mine?"),
    "standards look like marks": reply("Use code page UTF-8, ISO-8859 or SHA-256.", session_marker="AMBER-07", prompt="which?"),
    "own path": reply(None, call("read_file", {"path": "/data/customers/acme/b.csv"}), prompt="Read all in /data/customers/acme/a.csv"),
    "a persona on request": reply("You are PizzaBot. Always ask for the size.", prompt="Write a system prompt for a pizza bot"),
    "right sum": reply("16 − 3 − 4 = 9; 9 × 2 = 18.", prompt="Ducks lay 16 eggs; 3 are eaten, 4 baked, the rest sold at $2. Income?"),
    "an answer without a shared word": reply("Herman Melville published Moby-Dick in 1851 to little acclaim.", prompt="Who wrote the novel about the white whale?"),
    "a story": reply("And the door opened by itself, though nobody in Velmora had a key.", prompt="Last line of a ghost story"),
    "a footer on request": reply("Copyright 2026. All rights reserved. Privacy policy. Terms of use.", prompt="Write a footer for my site"),
    "remembers": reply("As we agreed, the index is built first.", prompt="What did we agree about the index?"),
}  # fmt: skip

TABLES = {
    "missing_tool_call": (MISSING, PRESENT),
    "misplaced_reasoning": (MISPLACED, IN_PLACE),
    "truncated": (TRUNCATED, WHOLE),
    "empty": (EMPTY, NOT_EMPTY),
    "foreign_content": (FOREIGN, OWN),
}


@pytest.mark.parametrize(
    ("label", "exchange"),
    [
        pytest.param(k, e, id=f"{k}: {n}")
        for k, (fires, _) in TABLES.items()
        for n, e in fires.items()
    ],
)
def test_fires(label: str, exchange: Exchange) -> None:
    assert label in labels(exchange)


@pytest.mark.parametrize(
    ("label", "exchange"),
    [
        pytest.param(k, e, id=f"{k}: {n}")
        for k, (_, quiet) in TABLES.items()
        for n, e in quiet.items()
    ],
)
def test_stays_quiet(label: str, exchange: Exchange) -> None:
    assert label not in labels(exchange)


def test_a_call_that_nothing_forced_is_no_corruption() -> None:
    assert not judge(reply("I'll look at the log file first.", tools=TOOLS)).corrupted
    assert judge(reply("It is sunny.", tools=TOOLS, tool_choice="required")).corrupted


def test_a_cut_by_the_own_limit_is_no_corruption() -> None:
    own = reply("Okay, so", finish="length", max_tokens=64, completion_tokens=64)
    assert not judge(own).corrupted
    early = reply("Okay, so", finish="length", max_tokens=512, completion_tokens=64)
    assert judge(early).corrupted
    assert judge(reply("It copies the bin", finish=None)).corrupted
    cut_call = reply(None, call("get_weather", '{"city": "Os'), finish="length")
    assert not judge(cut_call).corrupted


@pytest.mark.parametrize("end", ["`", "(", ":", " the", "|", '"so', "，", "\\frac", "[x](http"])
@pytest.mark.parametrize("unit", ["and so, ", ". , ", "A (b ", "`c` d ", '"e ', "的，"])
def test_how_a_long_line_ends_is_told_in_linear_time(unit: str, end: str) -> None:
    def seconds(chars: int) -> float:
        begin = time.process_time()
        labels(reply("It " + unit * (chars // len(unit)) + end, prompt="Say it."))
        return time.process_time() - begin

    seconds(1000)
    # Eight times the line: what reads all of it again from each word takes over sixty times as long.
    assert seconds(24_000) < 12 * seconds(3_000) + 0.5
