"""What the canaries of a scenario look like, and the tools whose arguments have to repeat them.

A scenario names one kind: `codes` are strings that say who owns them; `numbers` are JSON numbers,
half of them negative; `probes` are what healthy parsers stumble on: negative and broken numbers,
strings in many scripts, with quotes and brackets, strings that look like JSON or like a number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dsv4doctor.canary import CanaryOwner, encode_canary
from dsv4doctor.load.dice import Dice

# Arguments of one call; the tools below declare this many names.
MAX_ARGUMENTS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueKind:
    """How one value is called in a prompt ("the code for ..."), its JSON schema type, its maker.

    The maker gets dice and the value's own code and answers with a JSON value that no other
    canary of the run has, but by an unlikely chance.
    """

    noun: str
    schema_type: str
    make: Callable[[Dice, str], object]

    def spelling(self, value: object) -> str:
        """The value as the prompt writes it between backticks."""
        return value if isinstance(value, str) else json.dumps(value)


def _code(_dice: Dice, code: str) -> object:
    return code


def _negative_integer(dice: Dice, _code: str) -> object:
    return -1 - dice.below(9_999_999)


def _positive_integer(dice: Dice, _code: str) -> object:
    return 1 + dice.below(9_999_999)


def _negative_float(dice: Dice, _code: str) -> object:
    return -(1 + dice.below(9_999_999)) / 100


def _small_float(dice: Dice, _code: str) -> object:
    return (1 + dice.below(99_999)) / 100_000


_SCRIPTS = (
    "Ærøskøbing crème brûlée",
    "Жёлтый берег",
    "北の港 三番",
    "καλημέρα κόσμε",
    "नमस्ते दुनिया",
    "שלום עולם",
    "🌊 wave 🦩 flamingo",
    "naïve façade “quoted” – dash",
)
_BRACKETED = (
    "say \"north\" & 'south' {CODE}",
    "if a < b && c > d then <b>CODE</b>",
    'path C:\\temp\\new "CODE".txt',
    "{{template}} [CODE] (draft; 50 %)",
    "<result>CODE</result> is only text",
    "first, second; third: CODE | fourth",
)
_JSON_LIKE = (
    '{"mode": "fast", "limits": [1, -2.5, null], "id": "CODE"}',
    '[{"name": "CODE", "on": true}, {"name": "", "on": false}]',
    '{"a": {"b": {"c": ["CODE", {"d": -1}]}}}',
    '"CODE"',
)
_NUMBER_LIKE = ("-{}.50", "00{}", "{}e-3", "+{}", "0x{}", "{}.")


def _with_code(patterns: tuple[str, ...]) -> Callable[[Dice, str], object]:
    def make(dice: Dice, code: str) -> object:
        return dice.pick(patterns).replace("CODE", code)

    return make


def _number_like(dice: Dice, _code: str) -> object:
    return dice.pick(_NUMBER_LIKE).format(1 + dice.below(9_999_999))


def _in_scripts(dice: Dice, code: str) -> object:
    return f"{dice.pick(_SCRIPTS)} {code}"


_CODES = ValueKind(noun="code", schema_type="string", make=_code)
_KINDS: Mapping[str, tuple[ValueKind, ...]] = {
    "codes": (_CODES,) * MAX_ARGUMENTS,
    "numbers": (
        ValueKind(noun="number", schema_type="integer", make=_negative_integer),
        ValueKind(noun="number", schema_type="number", make=_negative_float),
        _CODES,
        ValueKind(noun="number", schema_type="integer", make=_positive_integer),
        ValueKind(noun="number", schema_type="number", make=_small_float),
        _CODES,
    ),
    "probes": (
        ValueKind(noun="number", schema_type="integer", make=_negative_integer),
        ValueKind(noun="number", schema_type="number", make=_negative_float),
        ValueKind(noun="phrase", schema_type="string", make=_in_scripts),
        ValueKind(noun="phrase", schema_type="string", make=_with_code(_BRACKETED)),
        ValueKind(noun="phrase", schema_type="string", make=_with_code(_JSON_LIKE)),
        ValueKind(noun="phrase", schema_type="string", make=_number_like),
    ),
}

# Name, purpose, argument names. Short, since every request carries them.
_TOOLS = (
    ("file_report", "File a report.", ("ticket", "site", "batch", "owner", "route", "seal")),
    ("move_stock", "Move stock.", ("source", "target", "crate", "truck", "permit", "dock")),
)
TOOL_NAMES = tuple(name for name, _, _ in _TOOLS)


def value_kinds(values: str, tool: str, count: int) -> tuple[ValueKind, ...]:
    """The kinds of a call's `count` arguments, in order, under a scenario's `values`.

    Each tool begins elsewhere in the kinds, so that calls with few arguments still meet them all.
    """
    kinds = _KINDS[values]
    start = TOOL_NAMES.index(tool) * len(kinds) // len(TOOL_NAMES)
    return (kinds[start:] + kinds[:start])[:count]


def argument_names(tool: str, count: int) -> tuple[str, ...]:
    """The arguments of `tool` that a scenario with `count` canaries a call uses."""
    return _TOOLS[TOOL_NAMES.index(tool)][2][:count]


def tool_schemas(values: str, count: int) -> tuple[Mapping[str, Any], ...]:
    """The tools in OpenAI form: every argument required, no others allowed."""
    return tuple(
        {
            "type": "function",
            "function": {
                "name": name,
                "description": purpose,
                "parameters": {
                    "type": "object",
                    "properties": {
                        argument: {"type": kind.schema_type}
                        for argument, kind in zip(
                            names, value_kinds(values, name, count), strict=False
                        )
                    },
                    "required": list(names[:count]),
                    "additionalProperties": False,
                },
            },
        }
        for name, purpose, names in _TOOLS
    )


def make_value(kind: ValueKind, *, key: int, owner: CanaryOwner, dice: Dice) -> object:
    """The canary value of `owner`."""
    return kind.make(dice, encode_canary(key, owner))
