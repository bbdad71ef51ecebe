"""The border between dataclasses and JSON types; the only module that knows msgspec."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


class ShapeError(ValueError):
    """Data that is not of the wanted shape; the message carries the path (`$.turns`)."""


def to_builtins(value: Any) -> Any:
    """`value` (dataclasses, enums, tuples) as plain JSON types."""
    import msgspec

    return msgspec.to_builtins(value)


def from_builtins(kind: type[T], value: Any) -> T:
    """`value` (plain JSON or TOML types) as a `kind`.

    Raises:
        ShapeError: with the path of the first thing that does not fit.
    """
    import msgspec

    try:
        return msgspec.convert(value, type=kind)
    except msgspec.ValidationError as error:
        raise ShapeError(str(error)) from error
