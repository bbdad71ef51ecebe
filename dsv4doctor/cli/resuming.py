"""Flags beside `--resume`: a resumed run keeps its plan, and says which flags it does not heed."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dsv4doctor.cli.console import say

# What may change between two parts of a run: the credentials used, and what is shown of it.
HEEDED = frozenset({
    "--resume", "--base-url", "--host", "--port", "--api-key", "--header", "-H", "--insecure",
    "--extra-request-body", "--extra-body", "--fail-on", "--json", "--no-progress",
    "--disable-tqdm", "--no-color",
})  # fmt: skip


def unheeded(words: Sequence[str], *, heeded: Collection[str] = HEEDED) -> list[str]:
    """The flags among `words` that a resumed run takes from its plan instead."""
    flags = [word.split("=", 1)[0] for word in words if word.startswith("-") and len(word) > 1]
    return [flag for flag in dict.fromkeys(flags) if flag not in heeded and not _is_number(flag)]


def say_unheeded(words: Sequence[str], *, also_heeded: Collection[str] = ()) -> None:
    """Name them on stderr, if there are any."""
    if ignored := unheeded(words, heeded=HEEDED | set(also_heeded)):
        are = "is" if len(ignored) == 1 else "are"
        say(f"{', '.join(ignored)} {are} ignored: a resumed run keeps the plan it was started with")


def _is_number(word: str) -> bool:
    return word[1:2].isdigit()
