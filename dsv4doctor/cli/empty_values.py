"""Values that hold nothing, as an unset shell variable gives them: a usage error, everywhere.

To a command most of them would be the same as no flag at all: `--base-url "$SERVER"` would start
the lab, `--output-dir ""` would write here. Refused where a command is made, whatever its flags.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from dsv4doctor.errors import UsageError

# Where nothing is what the flag then asks for: no key, no prefix.
_MAY_BE_EMPTY = frozenset({"--api-key", "--remote-prefix"})


def refusing_empty_values(command: Any) -> Any:
    """`command`, which with its actions now takes no flag and no argument without a value."""
    for parameter in command.params:
        if _MAY_BE_EMPTY.isdisjoint(parameter.opts):
            # Before the value is converted: an empty path would become the current directory.
            parameter.consume_value = functools.partial(
                _consume, parameter, parameter.consume_value
            )
    for action in getattr(command, "commands", {}).values():
        refusing_empty_values(action)
    return command


def _consume(
    parameter: Any,
    consume: Callable[[Any, Mapping[str, Any]], tuple[Any, Any]],
    context: Any,
    typed: Mapping[str, Any],
) -> tuple[Any, Any]:
    given = typed.get(parameter.name)
    for each in given if isinstance(given, list | tuple) else (given,):
        if isinstance(each, str) and not each.strip() and not context.resilient_parsing:
            raise UsageError(f"{_name(parameter)} is empty", "give it a value, or leave it out")
    return consume(context, typed)


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "option":
        return str(parameter.opts[0])
    return str(parameter.metavar or parameter.name.upper()).rstrip(".")
