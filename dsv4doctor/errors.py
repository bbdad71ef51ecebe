"""What a person can act on, as exceptions: one line names the thing, one the next step."""

from __future__ import annotations

EXIT_DONE = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_COULD_NOT = 3
EXIT_UNDECIDED = 4
EXIT_BUG = 70
EXIT_INTERRUPTED = 130

COULD_NOT_RUN = "could not run"  # the verdict of a result with EXIT_COULD_NOT


class DoctorError(Exception):
    """The work could not be done, for a reason outside this program (exit code 3)."""

    exit_code = EXIT_COULD_NOT

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.hint = hint

    @property
    def told(self) -> str:
        """The problem and the next step in one line."""
        return f"{self}; try: {self.hint}" if self.hint else str(self)


class UsageError(DoctorError):
    """A flag, a value or a file that cannot be used as given (exit code 2)."""

    exit_code = EXIT_USAGE


class Interrupted(DoctorError):
    """Ctrl-C or SIGTERM: what was seen is saved, the hint is the line that resumes (code 130)."""

    exit_code = EXIT_INTERRUPTED
