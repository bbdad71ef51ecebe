"""Options and markers of the whole suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# The lab's arithmetic is many small products: threads only get in each other's way. Read by numpy
# when it is first imported, so this stands before any test module.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# What a shell, a CI job or a test runner's worker may have set, and commands heed.
for _name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
    os.environ.pop(_name, None)

# Heavier suites run only when asked for by their marker.
OPT_IN = ("soak", "upstream", "realserver", "gpu")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files from what is rendered"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("-m") or ""
    for item in items:
        for marker in OPT_IN:
            if item.get_closest_marker(marker) and marker not in wanted:
                item.add_marker(pytest.mark.skip(reason=f"runs with -m {marker}"))


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The handed-over corpus and golden rows, where the checkout has them beside it."""
    default = Path(__file__).parents[2] / "shared"
    folder = Path(os.environ.get("DSV4DOCTOR_SHARED", default))
    if not (folder / "corpus").is_dir():
        pytest.skip(f"no shared data at {folder}")
    return folder
