"""A report as the command's JSON document: the same envelope that `--json` prints."""

from __future__ import annotations

import json
from typing import Any

from dsv4doctor import SCHEMA_VERSION, __version__
from dsv4doctor.report.document import Report

NAME = "json"
SUFFIX = ".json"


def render(report: Report) -> str:
    """One JSON document; ASCII only, so that a lone surrogate is an escape any reader takes."""
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "dsv4doctor_version": __version__,
        "command": report.command,
        "verdict": report.verdict,
        "exit_code": report.exit_code,
        "findings": list(report.findings),
        report.command: report.data,
    }
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
