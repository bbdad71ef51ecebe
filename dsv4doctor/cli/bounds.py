"""How large a flag's number may be. Every numeric flag has a least and a most; a test holds it.

Without a most, `inf` and numbers of thirty digits reach arithmetic that was not made for them.
"""

from __future__ import annotations

from dsv4doctor import canary

MAX_SESSIONS = canary.MAX_SESSIONS  # a canary names its session and its turn
MAX_TURNS = canary.MAX_TURNS
MAX_SEED = 2**63 - 1  # what a signed 64-bit integer holds, here and in every language
MAX_REQUESTS = MAX_SESSIONS  # each has a canary of its own
MAX_BLOCKS = 10_000
MAX_SECONDS = 365 * 86400.0  # nobody waits longer; clocks and sockets still take it
MAX_MINUTES = MAX_SECONDS / 60
MAX_MS = MAX_SECONDS * 1000
MAX_REQUESTS_PER_S = 1e6
MAX_TOKENS = 2**53  # past it a count is no longer exact as a float
MAX_RANKS = 2**20  # GPUs of one deployment
MAX_DEPTH = 1024  # requests whose pages are restored at once
MAX_PROCESSES = 1024
MAX_PULL_REQUEST = 10**7
MAX_BYTES_PER_MS = 1e15  # a million times what any memory does
