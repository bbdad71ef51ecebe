"""The accounting versions: ordered, complete, each release in one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsv4doctor.errors import UsageError
from dsv4doctor.sizing import versions
from dsv4doctor.sizing.versions import NEWEST, VERSIONS, accounting_of


def test_every_file_is_in_the_tuple() -> None:
    folder = Path(versions.__file__).parent
    files = sorted(path.stem for path in folder.glob("sglang_*.py"))
    named = sorted(f"sglang_{version.releases[0].replace('.', '_')}" for version in VERSIONS)
    assert named == files


def test_releases_are_ordered_and_without_gaps() -> None:
    releases = [release for version in VERSIONS for release in version.releases]
    assert releases == [f"0.5.{n}" for n in range(12, 24)]
    assert NEWEST == "0.5.23"


@pytest.mark.parametrize(
    ("release", "newest", "executed"),
    [
        ("0.5.17", "0.5.17", True),
        ("0.5.16", "0.5.17", True),
        ("0.5.15.post1", "0.5.15", True),
        ("v0.5.12", "0.5.12", True),
        ("0.5.24", "0.5.23", False),
        ("0.6.0", "0.5.23", False),
        ("1.0", "0.5.23", False),
    ],
)
def test_release_to_accounting(release: str, newest: str, executed: bool) -> None:
    accounting, checked = accounting_of(release)
    assert (accounting.newest, checked) == (newest, executed)


@pytest.mark.parametrize("release", ["0.5.11", "0.4.9", "abc", ""])
def test_no_accounting(release: str) -> None:
    with pytest.raises(UsageError):
        accounting_of(release)
