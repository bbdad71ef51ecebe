"""Arguments, schemas, names, ids and tool choice: what breaks them and what only looks odd."""

from __future__ import annotations

from typing import Any

import pytest
from builders_detect import CLOCK, TOOLS, WEATHER, call, labels, reply, tool

from dsv4doctor.exchange import Exchange


def _weather(arguments: Any, **more: Any) -> Exchange:
    return reply(None, call("get_weather", arguments), **more)


MALFORMED = {
    "unclosed": _weather('{"city": "Oslo"'),
    "key unquoted": _weather('{city: "Oslo"}'),
    "key's quote lost": _weather('{"city: "Oslo"}'),
    "opened twice": _weather('{{"city": "Oslo"}'),
    "two objects": _weather('{"city": "Oslo"}{"city": "Bergen"}'),
    "trailing comma": _weather('{"city": "Oslo",}'),
    "python": _weather("{'city': 'Oslo', 'x': None}"),
    "python true": _weather('{"city": "Oslo", "x": True}'),
    "nan": _weather('{"city": "Oslo", "days": NaN}'),
    "infinity": _weather('{"city": "Oslo", "days": -Infinity}'),
    "key twice": _weather('{"city": "Oslo", "city": "Bergen"}'),
    "nested key twice": _weather('{"city": "Oslo", "o": {"a": 1, "a": 2}}'),
    "lone surrogate": _weather('{"city": "Oslo \\ud83d"}'),
    "lone low surrogate": _weather('{"city": "\\ude80 Oslo"}'),
    "encoded twice": _weather('"{\\"city\\": \\"Oslo\\"}"'),
    "string": _weather('"Oslo"'),
    "array": _weather('["Oslo"]'),
    "number": _weather("7"),
    "true": _weather("true"),
    "null": _weather("null"),
    "empty though required": _weather(""),
    "blank though required": _weather("  "),
    "not JSON at all": _weather("Oslo"),
    "prose before": _weather('Sure: {"city": "Oslo"}'),
    "fenced": _weather('```json\n{"city": "Oslo"}\n```'),
    "bare text value": _weather('{"days": hello world}'),
    "value cut": _weather('{"city": '),
    "line break in a string": _weather('{"city": "Os\nlo"}'),
    "bad escape": _weather('{"city": "\\x41"}'),
    "hex number": _weather('{"city": "Oslo", "days": 0x10}'),
    "leading zero": _weather('{"city": "Oslo", "days": 007}'),
    "comment": _weather('{"city": "Oslo" /* capital */}'),
    "a list of arguments": _weather([1, 2]),
    "not a string": reply(None, {"id": "a", "function": {"name": "get_weather", "arguments": 5}}),
}
WELL_FORMED = {
    "plain": _weather({"city": "Oslo"}),
    "surrogate pair": _weather('{"city": "\\ud83d\\ude80"}'),
    "escapes": _weather('{"city": "a\\"b\\\\c\\n\\u00e9"}'),
    "blanks around": _weather(' \n{"city": "Oslo"}\n '),
    "huge integer": _weather('{"city": "Oslo", "days": ' + "9" * 5000 + "}"),
    "json in a string": _weather({"city": '{"a": [1, {"b": null}]}'}),
    "empty object, no parameters": reply(None, call("get_time", "{}")),
    "nothing, no parameters": reply(None, call("get_time", "")),
    "an object, decoded by the log": reply(
        None, {"id": "a", "function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}
    ),
    "same key at two levels": _weather({"city": "Oslo", "o": {"city": "x"}}),
}

_ENUM = tool("set_mode", ["mode"], mode={"type": "string", "enum": ["on", "off"]})
_PATTERN = tool("tag", ["name"], name={"type": "string", "pattern": "^[a-z]+$"})
_CLOSED = tool("ping", ["host"], host="string")
_CLOSED["function"]["parameters"]["additionalProperties"] = False
_REF = {
    "type": "function",
    "function": {
        "name": "draw",
        "parameters": {
            "type": "object",
            "$defs": {"point": {"type": "object", "required": ["x"]}},
            "properties": {"at": {"$ref": "#/$defs/point"}},
        },
    },
}
_ELSEWHERE = tool("far", ["a"], a={"$ref": "https://example.invalid/schema.json"})
_BROKEN = tool("odd", ["a"], a={"type": "no-such-type"})
VIOLATES = {
    "required missing": _weather({}),
    "number as a string": _weather({"city": "Oslo", "days": "3"}),
    "float for an integer": _weather({"city": "Oslo", "days": 1.5}),
    "boolean for an integer": _weather({"city": "Oslo", "days": True}),
    "null": _weather({"city": None}),
    "array for a string": _weather({"city": ["Oslo"]}),
    "outside the enum": reply(None, call("set_mode", {"mode": "On"}), tools=[_ENUM]),
    "against the pattern": reply(None, call("tag", {"name": "A1"}), tools=[_PATTERN]),
    "undeclared key of a closed schema": reply(
        None, call("ping", {"host": "a", "port": 1}), tools=[_CLOSED]
    ),
    "referenced definition": reply(None, call("draw", {"at": {"y": 1}}), tools=[_REF]),
    "wrapped in arguments": _weather({"arguments": {"city": "Oslo"}}),
    "wrapped in input, as a string": _weather({"input": '{"city": "Oslo"}'}),
    "wrapped, nothing required": reply(
        None, call("list", {"arguments": {"path": "."}}), tools=[tool("list", path="string")]
    ),
    "one id twice": reply(
        None, call("get_weather", {"city": "a"}), call("get_weather", {"city": "b"})
    ),
    "one index twice": reply(
        None,
        call("get_weather", {"city": "a"}, 1, index=0),
        call("get_weather", {"city": "b"}, 2, index=0),
    ),
    "negative index": reply(None, call("get_weather", {"city": "a"}, index=-1)),
    "call under none": _weather({"city": "Oslo"}, tool_choice="none"),
    "another tool than the named": reply(
        None,
        call("get_time", {}),
        tool_choice={"type": "function", "function": {"name": "get_weather"}},
    ),
    "parallel although forbidden": reply(
        None,
        call("get_weather", {"city": "a"}, 1),
        call("get_weather", {"city": "b"}, 2),
        parallel_tool_calls=False,
    ),
}
CONFORMS = {
    "optional left out": _weather({"city": "Oslo"}),
    "integral float": _weather({"city": "Oslo", "days": 3.0}),
    "undeclared key of an open schema": _weather({"city": "Oslo", "note": "x"}),
    "declared parameter named arguments": reply(
        None,
        call("run", {"arguments": "{}"}),
        tools=[tool("run", ["arguments"], arguments="string")],
    ),
    "nullable": reply(
        None,
        call("due", {"date": None}),
        tools=[tool("due", ["date"], date={"type": ["string", "null"]})],
    ),
    "any of": reply(
        None,
        call("due", {"date": 3}),
        tools=[tool("due", ["date"], date={"anyOf": [{"type": "string"}, {"type": "integer"}]})],
    ),
    "schema refers elsewhere": reply(None, call("far", {"a": 1}), tools=[_ELSEWHERE]),
    "schema is broken": reply(None, call("odd", {"a": 1}), tools=[_BROKEN]),
    "own ids and indices": reply(
        None,
        call("get_weather", {"city": "a"}, 1, index=0),
        call("get_weather", {"city": "b"}, 2, index=1),
    ),
    "anthropic schema": reply(
        None,
        call("f", {"a": 1}),
        tools=[{"name": "f", "input_schema": {"type": "object", "required": ["a"]}}],
    ),
    "named tool called": _weather(
        {"city": "Oslo"}, tool_choice={"type": "function", "function": {"name": "get_weather"}}
    ),
}
UNKNOWN = {
    "synonym": reply(None, call("weather", {"city": "Oslo"})),
    "cut": reply(None, call("get_", {"city": "Oslo"})),
    "stray token before": reply(None, call("的get_weather", {"city": "Oslo"})),
    "blank after": reply(None, call("get_weather ", {"city": "Oslo"})),
    "other case": reply(None, call("Get_Weather", {"city": "Oslo"})),
    "the word function": reply(None, call("function", {"city": "Oslo"})),
    "empty": reply(None, call("", {"city": "Oslo"})),
    "null": reply(None, call(None, {"city": "Oslo"})),
    "a number": reply(None, call(7, {"city": "Oslo"})),
    "no tools offered": reply(None, call("get_weather", {"city": "Oslo"}), tools=[]),
}


@pytest.mark.parametrize("exchange", MALFORMED.values(), ids=MALFORMED)
def test_malformed_fires(exchange: Exchange) -> None:
    assert labels(exchange)[0] == "malformed_arguments"


@pytest.mark.parametrize("exchange", WELL_FORMED.values(), ids=WELL_FORMED)
def test_malformed_stays_quiet(exchange: Exchange) -> None:
    assert "malformed_arguments" not in labels(exchange)


@pytest.mark.parametrize("exchange", VIOLATES.values(), ids=VIOLATES)
def test_schema_fires(exchange: Exchange) -> None:
    assert labels(exchange)[0] == "schema_violation"


@pytest.mark.parametrize("exchange", CONFORMS.values(), ids=CONFORMS)
def test_schema_stays_quiet(exchange: Exchange) -> None:
    assert labels(exchange) == ["clean"]


@pytest.mark.parametrize("exchange", UNKNOWN.values(), ids=UNKNOWN)
def test_unknown_tool_fires(exchange: Exchange) -> None:
    assert labels(exchange)[0] == "unknown_tool"


def test_unknown_tool_stays_quiet_where_the_log_keeps_no_tools() -> None:
    exchange = reply(None, call("anything", {"a": 1}), tools=None)
    assert labels(exchange) == ["clean"]


def test_offered_tools_stay_quiet() -> None:
    assert labels(reply(None, call("get_time", {}), tools=[CLOCK, WEATHER])) == ["clean"]
    assert labels(reply(None, call("read_file", {"path": "a"}), tools=TOOLS)) == ["clean"]
