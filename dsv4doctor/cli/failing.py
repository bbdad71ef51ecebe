"""How a command that failed says so: two lines on stderr and, with `--json`, a document on stdout.

The document is the contract's envelope with nothing found; its `command` member holds `error` and
`hint`, the two lines of stderr, and nothing else. `size --batch` answers in lines and prints none.
"""

from __future__ import annotations

import errno
import sys
import traceback
from collections.abc import Collection, Sequence

from dsv4doctor.cli.streams import discard
from dsv4doctor.errors import (
    COULD_NOT_RUN,
    EXIT_BUG,
    EXIT_COULD_NOT,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
)

# What writing to a full or failing device or pipe raises; it is no bug and no finding. (A standard
# stream whose reader has gone raises nothing: `streams`.)
OUTPUT_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF, errno.EPIPE})
PROGRAM = "dsv4doctor"
VERDICTS = {
    EXIT_USAGE: "usage",
    EXIT_COULD_NOT: COULD_NOT_RUN,
    EXIT_BUG: "bug",
    EXIT_INTERRUPTED: "interrupted",
}


class Failing:
    """Tells what went wrong with the command line `words`, whose first command is its name."""

    def __init__(self, words: Sequence[str], commands: Collection[str]) -> None:
        flags = list(words)[: words.index("--")] if "--" in words else list(words)
        named = [word for word in flags if word in commands]
        self._command = named[0] if named else PROGRAM
        is_batch = any(flag == "--batch" or flag.startswith("--batch=") for flag in flags)
        self._is_json = "--json" in flags and not (is_batch and self._command == "size")

    def tell(self, problem: str, hint: str = "", *, exit_code: int) -> int:
        """Say so in both places; the exit code."""
        from dsv4doctor.cli.console import SAID_CHARS
        from dsv4doctor.safetext import one_line  # what a server or a file said may be in it

        problem = one_line(" ".join(problem.split()), SAID_CHARS)
        hint = one_line(hint, SAID_CHARS)
        self._tell_people([f"{PROGRAM}: {problem}"] + ([f"  try: {hint}"] if hint else []))
        if self._is_json:
            self._tell_programs(problem, hint, exit_code)
        return exit_code

    def tell_interrupted(self) -> int:
        """Ctrl-C or SIGTERM that no command answered."""
        return self.tell("interrupted", exit_code=EXIT_INTERRUPTED)

    def tell_os_error(self, error: OSError) -> int:
        """An output that takes no more; any other is a bug."""
        if error.errno not in OUTPUT_ERRORS:
            return self.tell_bug()
        discard(sys.stdout.fileno())
        return self.tell(
            f"the output cannot be written: {error.strerror}",
            "free space, or name another output",
            exit_code=EXIT_COULD_NOT,
        )

    def tell_bug(self) -> int:
        """The exception that is being handled, with its traceback."""
        traceback.print_exc()
        return self.tell(
            "a bug in dsv4doctor, not in your deployment",
            "report it with the traceback above",
            exit_code=EXIT_BUG,
        )

    @staticmethod
    def _tell_people(lines: list[str]) -> None:
        text = "\n".join(lines)
        try:
            print(text, file=sys.stderr, flush=True)
        except UnicodeEncodeError:
            print(text.encode("ascii", "backslashreplace").decode(), file=sys.stderr)
        except OSError:  # closed or full: there is nobody left to tell
            return

    def _tell_programs(self, problem: str, hint: str, exit_code: int) -> None:
        from dsv4doctor.cli import output

        if output.is_printed():  # interrupted just behind it: there is one document, not two
            return
        body = {"error": problem, "hint": hint or None}
        try:
            output.emit_json(self._command, VERDICTS.get(exit_code, "failed"), exit_code, (), body)
        except OSError:  # stdout is what failed
            discard(sys.stdout.fileno())
