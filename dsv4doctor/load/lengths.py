"""How many tokens a text will be, near enough to plan a prompt's length.

Counts pieces about as long as those of byte-pair tokenizers: five letters or digits with the space
before them, or a punctuation mark. That is what the lab's tokenizer does, so lengths there are
right to a few tokens; a real tokenizer keeps common words whole and gives somewhat fewer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dsv4doctor.session import Message

_PIECES = re.compile(r" ?[^\W_]{1,5}| ?[^\w\s]|[\s\S]")
# Filler prose holds about this many characters a token, by the count above.
PROSE_CHARS_PER_TOKEN = 3.75
# What DeepSeek-V4's template says about how to call tools, once a prompt.
TEMPLATE_TOKENS = 172
# Role markers around a message; markup around a block of calls, a call and one of its arguments.
_MESSAGE_TOKENS = 3
_BLOCK_TOKENS = 12
_CALL_TOKENS = 15
_ARGUMENT_TOKENS = 24


def text_tokens(text: str) -> int:
    """Estimated tokens of a text by itself."""
    return len(_PIECES.findall(text))


def message_tokens(message: Message) -> int:
    """Estimated tokens of one message in the prompt, its markup included."""
    tokens = _MESSAGE_TOKENS + text_tokens(message.get("content") or "")
    calls = message.get("tool_calls") or ()
    tokens += _BLOCK_TOKENS if calls else 0
    for call in calls:
        tokens += _CALL_TOKENS + text_tokens(call["function"]["name"])
        for name, value in json.loads(call["function"]["arguments"]).items():
            spelt = value if isinstance(value, str) else json.dumps(value)
            tokens += _ARGUMENT_TOKENS + text_tokens(name) + text_tokens(spelt)
    return tokens


def tools_tokens(tools: Sequence[Mapping[str, Any]]) -> int:
    """Estimated tokens of the tools in the prompt: the instructions and the schemas."""
    return TEMPLATE_TOKENS + sum(
        text_tokens(json.dumps(tool["function"], ensure_ascii=False)) for tool in tools
    )
