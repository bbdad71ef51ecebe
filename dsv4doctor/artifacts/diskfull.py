"""What a person reads when something cannot be written: the path, why, and what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dsv4doctor.errors import DoctorError

_HINTS = {
    errno.ENOSPC: "free some space, or give another --output-dir; what was written stays, and "
    "--resume finishes the run",
    errno.EDQUOT: "free some of your quota, or give another --output-dir",
    errno.EROFS: "give an --output-dir on a file system that can be written",
    errno.EACCES: "give an --output-dir that you may write",
    errno.EPERM: "give an --output-dir that you may write",
    errno.ENOTDIR: "give an --output-dir that is a directory",
    errno.EEXIST: "give an --output-dir that is a directory",
    errno.ENAMETOOLONG: "give a shorter --output-dir",
}


@contextmanager
def told_plainly(path: Path) -> Iterator[None]:
    """Turns an `OSError` of writing `path` into a `DoctorError` that names path and next step."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        hint = _HINTS.get(error.errno or 0, "give another --output-dir")
        raise DoctorError(f"cannot write {path}: {reason}", hint) from error
