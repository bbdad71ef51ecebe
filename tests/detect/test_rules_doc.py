"""docs/rules.md is what the generator makes of the detectors' docstrings."""

from __future__ import annotations

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_rules_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("generate_rules", DOCS / "generate_rules.py")
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    text = generator.rendered()
    assert (DOCS / "rules.md").read_text(encoding="utf-8") == text
    for part in ("**Seen.**", "**Why.**", "**Confirm.**", "**Source.**"):
        assert text.count(part) == 13
