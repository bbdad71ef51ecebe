"""Leaked tool-call markup: every generation, halves, orphans and remnants; never a quotation."""

from __future__ import annotations

import pytest
from builders_detect import TOOLS, call, labels, reply

from dsv4doctor.exchange import Exchange

BLOCK = (
    '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n'
    '<｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>\n'
    "</｜DSML｜invoke>\n</｜DSML｜tool_calls>"
)
V41 = BLOCK.replace("｜tool_calls", "｜ calls").replace("｜invoke", "｜ invoke")
V41 = V41.replace("｜parameter", "｜ parameter")
V32 = BLOCK.replace("tool_calls", "function_calls")

FIRES = {
    "between unrelated quotes": reply('alpha" beta gamma｜DSML｜ delta" epsilon'),
    "v4 block": reply(BLOCK, tools=TOOLS),
    "v4 block after prose": reply("Ich sehe nach.\n\n" + BLOCK, tools=TOOLS),
    "v4.1 block": reply(V41, tools=TOOLS),
    "v3.2 block": reply(V32, tools=TOOLS),
    "ascii bars": reply(BLOCK.replace("｜", "|"), tools=TOOLS),
    "doubled bars": reply(BLOCK.replace("｜", "｜｜"), tools=TOOLS),
    "html-escaped": reply(BLOCK.replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")),
    "html-escaped bars": reply('<&#65372;DSML&#65372;invoke name="x">'),
    "lower case": reply(BLOCK.replace("DSML", "dsml"), tools=TOOLS),
    "half opener at the end": reply("Einen Moment.\n\n<｜DSML｜tool_ca"),
    "two characters of an opener": reply("Looking.\n<｜"),
    "three characters of a closer": reply("Looking.\n</｜"),
    "half with one bar": reply("Looking.\n<｜DSM"),
    "orphan closer": reply("Alles grün.\n</｜DSML｜tool_calls>"),
    "orphan closer glued to a word": reply("Das war es</｜DSML｜parameter>"),
    "first bar lost": reply("Gut.\n<DSML｜tool_calls>"),
    "marker torn": reply('Gut. <｜DS und dann ML｜invoke name="read_file"> weiter.'),
    "element without marker name": reply('Gut. <｜invoke name="read_file">'),
    "v4.1 wrapper left over": reply(
        "Sure.\n<｜DSML｜ calls>\n", call("get_weather", {"city": "Oslo"})
    ),
    "bare marker in prose": reply("Then the ｜DSML｜ next step is to wait."),
    "v3 tokens": reply("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>x"),
    "v3 tokens with ascii bars": reply("<|tool▁calls▁begin|>"),
    "v3 tokens with underscores": reply("Done. <｜tool_calls_end｜>"),
    "v3 token cut": reply("All is well.<｜tool▁calls▁e"),
    "v3 result tokens": reply("<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>3 rows"),
    "plain invoke of an offered tool": reply(
        '<invoke name="get_weather"><parameter name="city">Oslo</parameter></invoke>', tools=TOOLS
    ),
    "plain block": reply(
        '<function_calls>\n<invoke name="get_wether">\n'
        '<parameter name="city" string="true">Oslo</parameter>\n</invoke>\n</function_calls>',
        tools=TOOLS,
    ),
    "in the reasoning": reply("42", reasoning="I call it: " + BLOCK),
    "value runs into its closer": reply(
        None, call("get_weather", {"city": "Oslo</｜DSML｜parameter>"})
    ),
    "value ends with half a closer": reply(None, call("get_weather", {"city": "Oslo</｜DS"})),
    "value ends with two characters": reply(None, call("get_weather", {"city": "Oslo</｜"})),
    "value ends with a plain closer": reply(
        None, call("get_weather", {"city": "Oslo</parameter>\n</invoke>"})
    ),
    "value swallowed the next parameter": reply(
        None,
        call(
            "get_weather",
            {"city": 'Oslo</｜DSML｜parameter>\n<｜DSML｜parameter name="days" string="false">3'},
        ),
    ),
    "value begins with its attribute": reply(
        None, call("get_weather", {"city": 'string="true">Oslo'})
    ),
    "value begins with a marker": reply(
        None, call("get_weather", {"city": "｜DSML｜>Oslo</｜DSML｜"})
    ),
    "raw arguments are markup": reply(
        None, call("get_weather", '<｜DSML｜parameter name="city" string="true">Oslo')
    ),
    "call name holds markup": reply(
        None, call('get_weather"><｜DSML｜parameter', {"city": "Oslo"})
    ),
    "required, echoed in the text": reply(
        "I would call:\n" + BLOCK,
        tools=TOOLS,
        tool_choice="required",
        prompt="Use the DSML markup to get the weather",
    ),
    "nested value keeps its closer": reply(
        None,
        call("write_file", {"path": "a", "content": "x", "meta": {"t": ["y</｜DSML｜parameter"]}}),
    ),
}

STAYS_QUIET = {
    "in straight quotes": reply('The marker "｜DSML｜" is one token of the vocabulary.'),
    "in straight quotes, Chinese": reply('它叫"｜DSML｜"标记。'),
    "fenced block": reply("So sieht es aus:\n\n```xml\n" + BLOCK + "\n```\nMehr nicht."),
    "tilde fence": reply("~~~\n" + BLOCK + "\n~~~"),
    "fence in a list": reply("1. Example:\n\n   ```\n   " + BLOCK + "\n   ```\n"),
    "inline code": reply("The parser waits for `</｜DSML｜invoke>` first."),
    "double-tick inline code": reply('Write ``<｜DSML｜invoke name="f">`` there.'),
    "asked about, unquoted": reply(
        "The opener is <｜DSML｜tool_calls> and the closer </｜DSML｜tool_calls>.",
        prompt="How does DeepSeek's DSML open a block?",
    ),
    "named in quotation marks": reply("The token “｜DSML｜” is one vocabulary entry."),
    "written to a file": reply(
        None, call("write_file", {"path": "x.txt", "content": BLOCK}), prompt="Write the fixture"
    ),
    "searched for on request": reply(
        None,
        call("run_shell", {"command": "grep -r '<｜DSML｜invoke' logs"}),
        prompt="Look for leaked DSML in the logs",
    ),
    "code about markup in an argument": reply(
        None,
        call(
            "write_file",
            {
                "path": "t.py",
                "content": 'OPEN = "<invoke name=\\"x\\">"\nCLOSE = "</invoke>"\n',
            },
        ),
    ),
    "xml of another kind": reply('<invoke name="deploy" target="prod"/>'),
    "ant file": reply('<target><parameter name="env">prod</parameter></target>'),
    "jsx": reply("Use <Parameter name={id}>x</Parameter> and <Invoke/>."),
    "full-width bar as punctuation": reply("目录：安装｜配置｜运行｜常见问题"),
    "full-width bars in a table": reply("｜名前｜値｜\n｜速度｜１０｜"),
    "f sharp pipes": reply("let f = x |> g <| h"),
    "f sharp pipe at the end": reply("g <|"),
    "shell pipes": reply("cat a | sort |uniq; ls || true"),
    "less-than in prose": reply("It holds for x < y, and 2>&1 joins."),
    "prose on parameters": reply("The parameter name is free; invoke it with name=x."),
    "html form in an argument": reply(
        None, call("write_file", {"path": "a.html", "content": "<b>x</b></p>"})
    ),
    "xml document with parameters in an argument": reply(
        None,
        call(
            "write_file",
            {"path": "a", "content": '<call>\n<parameter name="x">1</parameter>\n</call>'},
        ),
    ),
    "tool call in words": reply("I would use tool_calls with an invoke."),
}


@pytest.mark.parametrize("exchange", FIRES.values(), ids=FIRES)
def test_fires(exchange: Exchange) -> None:
    assert "dsml_leak" in labels(exchange)


@pytest.mark.parametrize("exchange", STAYS_QUIET.values(), ids=STAYS_QUIET)
def test_stays_quiet(exchange: Exchange) -> None:
    assert "dsml_leak" not in labels(exchange)


def test_a_bare_marker_in_an_argument_is_a_leak_unless_it_is_quoted() -> None:
    leaked = {"path": "a", "content": ">>｜DSML｜｜DSML｜/｜DSML｜//"}
    quoted = {"path": "a.py", "content": 'MARK = "｜DSML｜"\nprint(MARK in line)\n'}
    assert "dsml_leak" in labels(reply(None, call("write_file", leaked)))
    assert "dsml_leak" not in labels(reply(None, call("write_file", quoted)))
