"""Every accounting version of SGLang, oldest first. Adding one: write its file, add it here."""

from __future__ import annotations

import re

from dsv4doctor.errors import UsageError
from dsv4doctor.sizing.accounting import Accounting
from dsv4doctor.sizing.versions import (
    sglang_0_5_12,
    sglang_0_5_13,
    sglang_0_5_14,
    sglang_0_5_15,
    sglang_0_5_16,
    sglang_0_5_18,
    sglang_0_5_20,
    sglang_0_5_21,
    sglang_0_5_22,
    sglang_0_5_23,
)

VERSIONS: tuple[Accounting, ...] = (
    sglang_0_5_12.VERSION,
    sglang_0_5_13.VERSION,
    sglang_0_5_14.VERSION,
    sglang_0_5_15.VERSION,
    sglang_0_5_16.VERSION,
    sglang_0_5_18.VERSION,
    sglang_0_5_20.VERSION,
    sglang_0_5_21.VERSION,
    sglang_0_5_22.VERSION,
    sglang_0_5_23.VERSION,
)
NEWEST = VERSIONS[-1].newest

_BY_RELEASE = {release: version for version in VERSIONS for release in version.releases}
_NUMBERS = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")


def _key(release: str) -> tuple[int, int, int]:
    match = _NUMBERS.match(release.strip())
    if match is None:
        raise UsageError(f"{release!r} is no SGLang version", f"write it as {NEWEST}")
    return int(match[1]), int(match[2]), int(match[3] or 0)


def accounting_of(release: str) -> tuple[Accounting, bool]:
    """The accounting of `release` and whether that release itself was executed and checked.

    A newer release than the newest known one gets the newest accounting (False); post-releases
    (`0.5.15.post1`) count as their release.

    Raises:
        UsageError: no version, or one from before DSV4 had a configurator.
    """
    known = _BY_RELEASE.get(release)
    if known is not None:
        return known, True
    key = _key(release)
    known = _BY_RELEASE.get(".".join(map(str, key)))
    if known is not None:
        return known, True
    if key < _key(VERSIONS[0].releases[0]):
        raise UsageError(
            f"SGLang {release} has no DeepSeek-V4 pool configurator",
            f"a version from {VERSIONS[0].releases[0]} on",
        )
    return VERSIONS[-1], False
