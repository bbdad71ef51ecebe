"""What has to go before a report is published: hosts, prompts, keys; and an account of what went.

Keys never reach a run directory by the ways this program knows; here whatever still looks like one
is hidden. Hosts become `[host-1]`, `[host-2]`, the same name for the same host throughout. Prompts
go whole, and so does each longer piece of one that a reply or an expected value repeats. What is
left of replies is the evidence and stays.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from dsv4doctor.redact import REDACTED, redact_value
from dsv4doctor.report.members import mapping, sequence
from dsv4doctor.units import many

# Pieces of a prompt at least so long are its text; shorter ones are words that any reply may use,
# and the planted codes (14 characters), without which nothing could be shown.
PIECE_CHARS = 24
# A stretch of PIECE_CHARS holds a whole block of half as many, wherever it begins.
_BLOCK_CHARS = PIECE_CHARS // 2
_LEAST_HOST_CHARS = 3
_PROMPT_KEYS = frozenset({"prompt", "messages", "tools", "description"})
_HOST_KEY = re.compile(
    r"(?:^|_)(?:host|hostname|addr|address|ip|node|nodename|endpoint|url|urls)$", re.IGNORECASE
)
_URL_HOST = re.compile(
    r"(?P<before>\b[a-z][a-z0-9+.-]*://(?:[^\s/@]*@)?)(?P<host>\[[^\]\s]+\]|[^\s/:?#\"'\\)>]+)",
    re.IGNORECASE,
)
_IPV4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
_IPV6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:.])")
_PRIVATE_NAME = re.compile(
    r"\b[\w-]+(?:\.[\w-]+)*\.(?:local|localdomain|internal|intranet|lan|corp|private|svc)\b",
    re.IGNORECASE,
)
_HOME = re.compile(r"(?P<before>/(?:home|Users)/)(?P<user>[^/\s\"']+)")
_SESSION = re.compile(r"\bs(\d+)-t\d+\b")
# Pages of the projects that reports are about; naming them tells nobody's address.
_PUBLIC = frozenset({"github.com", "huggingface.co"})


@dataclass(slots=True)
class Removed:
    """How much went: distinct hosts, prompts, pieces of prompts, keys, user names in paths."""

    hosts: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, int]:
        """The counts, under stable names."""
        return {
            "hosts": len(self.hosts),
            **{key: self.counts[key] for key in ("prompts", "prompt_pieces", "keys", "user_names")},
        }

    def __str__(self) -> str:
        counts = self.as_json()
        parts = [
            many(counts["hosts"], "host"),
            many(counts["prompts"], "prompt"),
            many(counts["prompt_pieces"], "repeated prompt piece"),
            many(counts["keys"], "key"),
            many(counts["user_names"], "user name"),
        ]
        return ", ".join(parts)


class Publisher:
    """Redacts one report's worth of data; the same host has the same name in all of it."""

    def __init__(self) -> None:
        self.removed = Removed()
        self._known: re.Pattern[str] | None = None
        self._prompts: dict[Any, str] = {}
        self._places: dict[str, str] = {}

    def again(self) -> Publisher:
        """A publisher for another pass over the same records: the same names, its own counts."""
        other = Publisher()
        other.removed.hosts = self.removed.hosts
        other._places = self._places
        other._learn()
        return other

    def know_target(self, target: Mapping[str, Any]) -> None:
        """Learn a run's hosts, which may stand bare in any text."""
        for url in _strings(target):
            found = urlsplit(url).hostname if "://" in url else None
            if found and found not in _PUBLIC:
                self._name(found)
        for key, value in _members(target):
            if _HOST_KEY.search(key) and isinstance(value, str) and value and "://" not in value:
                self._learn_bare(value)
        self._learn()

    def know_place(self, path: str, name: str) -> None:
        """Learn where a run lies, which tells of a machine and its user; `name` stands for it."""
        self._places[path] = name

    def text(self, text: str) -> str:
        """`text` without hosts, keys, user names and the places of runs."""
        for path, name in self._places.items():
            text = text.replace(path, name)
        shown = redact_value(text)
        self.removed.counts["keys"] += shown.count(REDACTED) - text.count(REDACTED)
        shown = _URL_HOST.sub(self._hide_url, shown)
        if self._known is not None:
            shown = self._known.sub(lambda found: self._name(found[0]), shown)
        shown = _IPV4.sub(lambda found: self._hide_address(found[0]), shown)
        shown = _IPV6.sub(lambda found: self._hide_address(found[0]), shown)
        shown = _PRIVATE_NAME.sub(lambda found: self._name(found[0]), shown)
        return _HOME.sub(self._hide_user, shown)

    def value(self, value: Any) -> Any:
        """JSON types without hosts, keys, prompts and user names."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                self.text(str(key)): self._member(str(key), inner) for key, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(inner) for inner in value]
        return value

    def record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """One record; its prompt goes, and what it repeats of its session's prompts until then.

        Records of a session come in the order of their turns, as a run writes them.
        """
        session = record.get("session", record.get("id"))
        prompts = self._prompts.get(session, "") + _as_text(record.get("prompt"))
        self._prompts[session] = prompts
        kept = {key: value for key, value in record.items() if key not in _PROMPT_KEYS}
        if record.get("prompt"):
            self.removed.counts["prompts"] += 1
        wrong = record.get("corrupted") or record.get("failure")
        if not wrong and isinstance(kept.get("response"), Mapping):
            # What came as it should is no evidence, and mostly the prompt over again.
            kept["response"] = {"finish_reason": kept["response"].get("finish_reason")}
            return {key: self.value(value) for key, value in kept.items()}
        blocks = _blocks(prompts)
        return {
            key: self.value(self._without_pieces(value, prompts, blocks))
            for key, value in kept.items()
        }

    def finding(self, finding: Mapping[str, Any]) -> dict[str, Any]:
        """One finding; its evidence names the record whose session's prompts it may repeat."""
        evidence = []
        for item in map(mapping, sequence(finding.get("evidence"))):
            found = _SESSION.search(str(item.get("where")))
            prompts = self._prompts.get(int(found[1]), "") if found else ""
            evidence.append(self._without_pieces(dict(item), prompts, _blocks(prompts)))
        shown: dict[str, Any] = self.value({**finding, "evidence": evidence})
        return shown

    def _member(self, key: str, value: Any) -> Any:
        if key in _PROMPT_KEYS:
            return REDACTED
        if isinstance(value, str):
            shown = redact_value({key: value})[key]
            if shown == REDACTED != value:
                self.removed.counts["keys"] += 1
                return shown
            if _HOST_KEY.search(key) and value and "://" not in value:
                return self._learn_bare(value) or self.value(value)
        return self.value(value)

    def _without_pieces(self, value: Any, prompts: str, blocks: set[str]) -> Any:
        if isinstance(value, str):
            return self._cut(value, prompts, blocks)
        if isinstance(value, Mapping):
            return {k: self._without_pieces(v, prompts, blocks) for k, v in value.items()}
        if isinstance(value, list):
            return [self._without_pieces(inner, prompts, blocks) for inner in value]
        return value

    def _cut(self, text: str, prompts: str, blocks: set[str]) -> str:
        """`text` with each longer stretch that stands in `prompts` replaced by its length."""
        shown: list[str] = []
        start = place = 0
        while place + _BLOCK_CHARS <= len(text):
            first, end = place, place + _BLOCK_CHARS
            place += 1
            if text[first:end] not in blocks:
                continue
            while end < len(text) and text[first : end + 1] in prompts:
                end += 1
            while first > start and text[first - 1 : end] in prompts:
                first -= 1
            if end - first < PIECE_CHARS:
                continue
            shown += [text[start:first], f"[{end - first} characters of the prompt]"]
            self.removed.counts["prompt_pieces"] += 1
            start = place = end
        return "".join([*shown, text[start:]])

    def _learn_bare(self, address: str) -> str:
        """The name for a bare `host` or `host:port`; empty if that can be no host."""
        host = address if address.count(":") > 1 else address.partition(":")[0]
        if len(host) < _LEAST_HOST_CHARS or host.isdigit():
            return ""
        return self._name(host)

    def _name(self, host: str) -> str:
        return self.removed.hosts.setdefault(host.lower(), f"[host-{len(self.removed.hosts) + 1}]")

    def _learn(self) -> None:
        names = sorted(self.removed.hosts, key=len, reverse=True)
        if names:
            either = "|".join(re.escape(name) for name in names)
            self._known = re.compile(rf"(?<![\w.-])(?:{either})(?![\w-])", re.IGNORECASE)

    def _hide_url(self, found: re.Match[str]) -> str:
        host = found["host"]
        if host.lower() in _PUBLIC or host.startswith("[host-"):
            return found[0]
        return f"{found['before']}{self._name(host)}"

    def _hide_address(self, text: str) -> str:
        try:
            ipaddress.ip_address(text)
        except ValueError:
            return text
        return self._name(text)

    def _hide_user(self, found: re.Match[str]) -> str:
        self.removed.counts["user_names"] += 1
        return f"{found['before']}[user]"


def _blocks(prompts: str) -> set[str]:
    """The prompts' text in blocks laid end to end."""
    last = len(prompts) - _BLOCK_CHARS
    return {prompts[start : start + _BLOCK_CHARS] for start in range(0, last + 1, _BLOCK_CHARS)}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _members(value: Any) -> list[tuple[str, Any]]:
    """(key, value) of every member of every object in `value`."""
    found: list[tuple[str, Any]] = []
    for key, inner in mapping(value).items():
        found.append((str(key), inner))
        found += _members(inner)
    for inner in sequence(value):
        found += _members(inner)
    return found


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = list(mapping(value).values()) or list(sequence(value))
    return [text for each in inner for text in _strings(each)]
