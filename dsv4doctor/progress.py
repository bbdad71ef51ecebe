"""How a flow tells what it is doing; the default says nothing, the command line shows it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """`note` is a line for a person; `update` replaces the state of the running work."""

    def note(self, text: str) -> None: ...

    def update(self, state: object) -> None: ...


class Silent:
    """Says nothing."""

    def note(self, text: str) -> None:
        """Drop the line."""

    def update(self, state: object) -> None:
        """Drop the state."""
