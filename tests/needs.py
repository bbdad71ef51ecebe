"""Programs that a test needs: skipped with a reason where they are missing, an error in CI."""

from __future__ import annotations

import os
import shutil

import pytest


def program(name: str, *, package: str) -> str:
    """The path of `name`; without Debian's `package` the test is skipped (under CI it fails)."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if found:
        return found
    reason = f"{name} is missing: install Debian's package {package}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
