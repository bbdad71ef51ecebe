"""What stands between SGLang and us: no hook's failure gets through, and each is its last.

While the probe is not armed a hook costs two comparisons. Where `torch.compile` traces a hooked
function, it sees SGLang's alone: nothing of ours becomes part of what it makes.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any

from torch.compiler import is_compiling

from dsv4doctor.probe.observer import Observer

logger = logging.getLogger("dsv4doctor.probe")


class Guard:
    """One hooked function of SGLang."""

    def __init__(self, observer: Observer, name: str, hops: Sequence[str]) -> None:
        self._observer, self.name, self.hops = observer, name, tuple(hops)
        self.failed: str | None = None

    def call(self, work: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """What `work` returns; None if it fails, and from then on."""
        if self.failed is not None:
            return None
        try:
            with self._observer.budget.timed():
                return work(*arguments, **keywords)
        except Exception as error:
            self._give_up(error)
            return None

    def _give_up(self, error: Exception) -> None:
        self.failed = type(error).__name__
        with contextlib.suppress(Exception):  # even its own text may fail
            self.failed = f"{self.failed}: {error}"
        with contextlib.suppress(Exception):
            logger.warning("dsv4doctor: %s is not observed any more: %s", self.name, self.failed)
        with contextlib.suppress(Exception):
            self._observer.fail(self.name, self.hops, self.failed)

    def around(
        self, enter: Callable[..., Any] | None, leave: Callable[..., Any] | None
    ) -> Callable[..., Any]:
        """An AROUND hook: `enter(*args)` gives a token, `leave(token, result, *args)` ends it."""
        observer = self._observer

        def hook(original: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
            if is_compiling() or not observer.armed or self.failed is not None:
                return original(*arguments, **keywords)
            token = None if enter is None else self.call(enter, *arguments, **keywords)
            result = None
            try:
                result = original(*arguments, **keywords)
            finally:
                if leave is not None and observer.armed:
                    self.call(leave, token, result, *arguments, **keywords)
            return result

        return hook

    def always(self, work: Callable[..., Any]) -> Callable[..., None]:
        """A BEFORE or AFTER hook that also runs while the probe is not armed."""

        def hook(*arguments: Any, **keywords: Any) -> None:
            self.call(work, *arguments, **keywords)

        return hook

    def before(self, work: Callable[..., Any]) -> Callable[..., None]:
        """A BEFORE hook that changes no argument."""
        observer = self._observer

        def hook(*arguments: Any, **keywords: Any) -> None:
            if not is_compiling() and observer.armed:
                self.call(work, *arguments, **keywords)

        return hook

    def after(self, work: Callable[..., Any]) -> Callable[..., None]:
        """An AFTER hook that leaves the result as it is."""
        observer = self._observer

        def hook(result: Any, *arguments: Any, **keywords: Any) -> None:
            if not is_compiling() and observer.armed:
                self.call(work, result, *arguments, **keywords)

        return hook
