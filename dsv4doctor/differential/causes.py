"""The causes that a client can tell apart, and the symptoms that they explain."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Symptom(StrEnum):
    """What can be wrong as a user sees it."""

    CORRUPT_UNDER_LOAD = "corrupt under load"
    CORRUPT_WHEN_SHARED = "corrupt where requests share a prefix at the same time"
    CORRUPT_VALUES = "corrupt on unusual values"
    WEDGED_UNDER_LOAD = "wedged under load without aborts"
    WEDGED_WITH_ABORTS = "wedged when requests are aborted"
    LATE_CLIENT = "failures while this client itself was late"


class CauseName(StrEnum):
    INDEX_K_STALE_READ = "index_k_stale_read"
    DECODE_STORE = "decode_store"
    WEDGE_AFTER_ABORT = "wedge_after_abort"
    WEDGE_OVERLAP = "wedge_overlap"
    FOREIGN_PAGE = "foreign_page"
    EARLY_SEND = "early_send"
    PARSER = "parser"
    MODEL_BASELINE = "model_baseline"
    CLIENT_BOTTLENECK = "client_bottleneck"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """`claim` says in a sentence what is wrong, `next_step` the command that settles it where a
    client cannot see; `{base_url}` in it stands for the server. The lab is gone when its diagnosis
    has ended, so `lab_step` starts one of its own, as the flags that stand for `{lab}` say."""

    name: CauseName
    claim: str
    explains: frozenset[Symptom]
    next_step: str
    lab_step: str


_CORRUPT = frozenset({Symptom.CORRUPT_UNDER_LOAD, Symptom.CORRUPT_WHEN_SHARED})
_ANY_CORRUPT = _CORRUPT | {Symptom.CORRUPT_VALUES}

# In the order in which equals are told.
CAUSES = (
    Cause(
        name=CauseName.INDEX_K_STALE_READ,
        claim="index-K of a restored prefix is read before, or without, its right bytes",
        explains=_CORRUPT,
        next_step="dsv4doctor ab --deployment FILE.toml --arm on:hicache=on --arm off:hicache=off",
        lab_step="dsv4doctor ab {lab} --arm on:hicache=on --arm off:hicache=off",
    ),
    Cause(
        name=CauseName.DECODE_STORE,
        claim="index-K entries are stored late or wrongly while requests run, without any restore",
        explains=_CORRUPT,
        next_step="dsv4doctor checksum live --base-url {base_url} --during repro",
        lab_step="dsv4doctor checksum live {lab}",
    ),
    Cause(
        name=CauseName.FOREIGN_PAGE,
        claim="a request is shown another request's cache pages",
        explains=_ANY_CORRUPT,
        next_step="dsv4doctor checksum live --base-url {base_url} --during repro",
        lab_step="dsv4doctor checksum live {lab}",
    ),
    Cause(
        name=CauseName.EARLY_SEND,
        claim="prefill sends a shared prefix to decode before its bytes have been restored",
        explains=_CORRUPT,
        next_step="dsv4doctor ab --deployment FILE.toml --arm on:early_send=on "
        "--arm off:early_send=off",
        lab_step="dsv4doctor ab {lab} --scenario best-of-n "
        "--arm on:early_send=on --arm off:early_send=off",
    ),
    Cause(
        name=CauseName.WEDGE_AFTER_ABORT,
        claim="an aborted request stops the server: later requests get no token",
        explains=frozenset({Symptom.WEDGED_WITH_ABORTS}),
        next_step="dsv4doctor watch --once --base-url {base_url} --ssh-host HOST --stack-dump",
        lab_step="dsv4doctor ab {lab} --arm on:aborts=on --arm off:aborts=off",
    ),
    Cause(
        name=CauseName.WEDGE_OVERLAP,
        claim="load alone stops the server, as ranks of the overlap schedule that disagree do",
        explains=frozenset({Symptom.WEDGED_UNDER_LOAD, Symptom.WEDGED_WITH_ABORTS}),
        next_step="dsv4doctor ab --deployment FILE.toml --arm on:overlap=on --arm off:overlap=off",
        lab_step="dsv4doctor ab {lab} --arm on:overlap=on --arm off:overlap=off",
    ),
    Cause(
        name=CauseName.PARSER,
        claim="the model's text is right; the server's parser makes a wrong reply of it",
        explains=_ANY_CORRUPT,
        next_step="dsv4doctor audit --base-url {base_url}",
        lab_step="dsv4doctor ab {lab} --scenario parser-probe "
        "--arm on:stream=on --arm off:stream=off",
    ),
    Cause(
        name=CauseName.MODEL_BASELINE,
        claim="the same requests fail alone and computed afresh: no matter of load or cache",
        explains=_ANY_CORRUPT,
        next_step="dsv4doctor audit --base-url {base_url}",
        lab_step="dsv4doctor repro {lab} --sessions 1",
    ),
    Cause(
        name=CauseName.CLIENT_BOTTLENECK,
        claim="this client was too slow: its failures say nothing of the server; use free cores or "
        "fewer sessions",
        explains=frozenset({Symptom.LATE_CLIENT}),
        next_step="dsv4doctor diagnose --base-url {base_url} --sessions 20",
        lab_step="dsv4doctor diagnose {lab} --sessions 20",
    ),
)
