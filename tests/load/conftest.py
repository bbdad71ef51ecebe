"""Fixtures of the load driver's tests."""

from __future__ import annotations

from servers.running import canned

__all__ = ["canned"]
