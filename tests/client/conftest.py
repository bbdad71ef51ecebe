"""Fixtures of the client's tests."""

from __future__ import annotations

from servers.running import canned

__all__ = ["canned"]
