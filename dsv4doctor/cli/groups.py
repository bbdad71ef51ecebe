"""Flags that belong together, declared once: a command takes a dataclass, `--help` its fields."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints


def with_groups(action: Callable[..., None]) -> Callable[..., None]:
    """`action` as a command: where a parameter is a dataclass, its fields are the flags.

    The fields stand in `--help` where the parameter stood; fields without a default are required.
    """
    own = inspect.signature(action, eval_str=True).parameters
    groups = {name: each.annotation for name, each in own.items() if _is_group(each.annotation)}

    @functools.wraps(action)
    def command(**given: Any) -> None:
        taken = {
            name: group(
                **{field.name: given.pop(field.name) for field in dataclasses.fields(group)}
            )
            for name, group in groups.items()
        }
        action(**given, **taken)

    parameters = [
        flag.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, each in own.items()
        for flag in (_flags_of(groups[name]) if name in groups else [each])
    ]
    del command.__wrapped__  # its signature is not the command's
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _is_group(annotation: Any) -> bool:
    return isinstance(annotation, type) and dataclasses.is_dataclass(annotation)


def _flags_of(group: Any) -> list[inspect.Parameter]:
    kinds = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty
            if field.default is dataclasses.MISSING
            else field.default,
            annotation=kinds[field.name],
        )
        for field in dataclasses.fields(group)
    ]
