"""Control tokens of every common chat template, leaked or talked about."""

# Long lines: tables of cases, a row each.
# ruff: noqa: E501

from __future__ import annotations

import pytest
from builders_detect import call, labels, reply

from dsv4doctor.exchange import Exchange

TOKENS = (
    "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<｜System｜>",
    "<｜latest_reminder｜>", "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜action｜>", "<｜deepseek_image｜>",
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|begin_of_text|>",
    "<|start_header_id|>", "<|end_header_id|>", "<|python_tag|>", "<|eom_id|>", "<|user|>",
    "<|assistant|>", "<|system|>", "<|end|>", "<|channel|>", "<|message|>", "<|return|>",
    "<|start|>", "<|endofprompt|>", "<|fim_middle|>", "<|tool_calls_section_begin|>",
    "<|im_middle|>", "<|START_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>", "<|observation|>",
    "<|vision_start|>", "<|end_of_turn_output|>", "<start_of_turn>", "<end_of_turn>", "[INST]",
    "[/INST]", "<<SYS>>", "[gMASK]", "<sop>", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]",
    "<fim_prefix>", "<fim_middle>", "<extra_id_0>", "<reserved_106>", "<0x0A>", "<bos>", "<eos>",
    "<[begin▁of▁sentence]>", "]~b]",
)  # fmt: skip

FIRES = {
    **{f"after a sentence {t}": reply(f"That is all.{t}") for t in TOKENS},
    **{f"in the middle {t}": reply(f"That is{t} all of it.") for t in TOKENS},
    "cut at the end": reply("Alles gut.<｜end▁of▁sen"),
    "ascii cut at the end": reply("All good.<|im_en"),
    "sentence end of sentencepiece": reply("Bonjour le monde.</s>"),
    "row of padding": reply("Bien.<pad><pad><pad>"),
    "in an argument": reply(None, call("run_shell", {"command": "ls<|im_end|>"})),
    "in the reasoning": reply("8443", reasoning="Port?<｜begin▁of▁sentence｜> 8443"),
}

STAYS_QUIET = {
    **{f"inline code {t}": reply(f"The token `{t}` ends a turn.") for t in TOKENS},
    **{f"fenced {t}": reply(f"Example:\n```\nuser{t}hi\n```") for t in TOKENS[:12]},
    "asked about": reply("ChatML uses <|im_start|>.", prompt="What does ChatML look like?"),
    "in quotation marks": reply('It prints "<|endoftext|>" between documents.'),
    "a name in a chat": reply(
        "<[ddeus_work]> how do I speed up a disk?\n<[ddeus_work]> beside DMA"
    ),
    "source of a chat template": reply(
        "{% for m in messages %}{% if m.role == 'user' %}<|im_start|>user\n{{ m.content }}<|im_end|>\n"
        "{% endif %}{% endfor %}"
    ),
    "html strike": reply("<s>old</s>"),
    "html strike, cut": reply("A price: <s>12</s>"),
    "placeholders": reply("cp <source> <target>; ssh <user>@<host> [OPTIONS] [FILE]..."),
    "filename placeholder": reply("man -l <filename>"),
    "usage text": reply("usage: git [--version] [-C <path>] <command> [<args>]"),
    "generics": reply("Map<String, List<T>> and Option<|T|>"),
    "haskell operators": reply("f <$> a <|> b <|> c"),
    "elixir": reply("list |> Enum.map(f) |> IO.inspect()"),
    "links": reply("See [INSTALL](x.md) and [1] and [EOS](https://x)."),
    "array syntax": reply("a[/x/] and ~[a]"),
    "numbers of a device tree": reply(
        'codec@19 {\n  compatible = "everest,es8326";\n  reg = <0x19>;\n  interrupts = <0x10>, <0x11>;\n  clock = <0x48>\n};'
    ),
    "strings of code": reply(
        None,
        call(
            "write_file",
            {
                "path": "a.py",
                "content": 'text += f"<|im_start|>user\\nAudio {n + 1}: <|audio_bos|>"\n',
            },
        ),
        prompt="Write the file.",
    ),
    "stops in a list": reply(
        "generation_kwargs:\n  until:\n  - </s>\n  - <|im_end|>\n  - '<eos>'\nvalidation_split: x"
    ),
}


@pytest.mark.parametrize("exchange", FIRES.values(), ids=FIRES)
def test_fires(exchange: Exchange) -> None:
    assert "special_token_leak" in labels(exchange)


@pytest.mark.parametrize("exchange", STAYS_QUIET.values(), ids=STAYS_QUIET)
def test_stays_quiet(exchange: Exchange) -> None:
    assert "special_token_leak" not in labels(exchange)
