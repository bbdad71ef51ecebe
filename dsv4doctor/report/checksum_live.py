"""A `checksum live` run's JSON object → a `Report`: where bytes changed, and what that explains."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from dsv4doctor import __version__
from dsv4doctor.codec import to_builtins
from dsv4doctor.report.document import (
    Block,
    Column,
    Command,
    Facts,
    Note,
    Report,
    Section,
    Table,
    Tone,
)
from dsv4doctor.report.members import integer, mapping, number, sequence
from dsv4doctor.report.wording import NO_VALUE, count, milliseconds, percent
from dsv4doctor.units import many

_TONES = {
    "changed": Tone.BAD,
    "corrupted_elsewhere": Tone.BAD,
    "clean": Tone.GOOD,
    "undecided": Tone.CAUTION,
    "unreachable": Tone.CAUTION,
}
_CHANGES_SHOWN = 20
# The order of a page's way; what stands between the steps, for people.
_WAY = (
    ("store", "stored by the forward"),
    ("backup", "read for the backup to the host"),
    ("host", "on the host, after that copy"),
    ("host_load", "on the host, before the load"),
    ("load", "on the device, after the load"),
    ("read", "read by the indexer"),
    ("held", "held between decode steps"),
    ("send", "handed to the transfer (prefill)"),
    ("arrive", "arrived (decode)"),
)


def build_live_report(
    verdict: str,
    live: Mapping[str, Any],
    *,
    findings: Sequence[Mapping[str, Any]] = (),
    exit_code: int | None = None,
) -> Report:
    """The report of one observation; `live` is the contract's `checksum.live`."""
    data: dict[str, Any] = to_builtins(dict(live))
    sections = [
        _run_section(data),
        _way_section(data),
        _changes_section(data),
        _load_section(data),
        _odds_section(data),
        _self_test_section(data),
        _unseen_section(data),
        _cost_section(data),
        _next_section(verdict, data),
    ]
    return Report(
        command="checksum",
        title=f"dsv4doctor checksum live: {verdict}",
        verdict=verdict,
        verdict_sentence=verdict_sentence(verdict, data),
        tone=_TONES.get(verdict, Tone.PLAIN),
        sections=tuple(section for section in sections if section is not None),
        data=data,
        findings=tuple(findings),
        exit_code=exit_code,
    )


def verdict_sentence(verdict: str, data: Mapping[str, Any]) -> str:
    """The verdict with its numbers, in words that can stand alone."""
    compared = sum(n for n in mapping(data.get("compared")).values() if isinstance(n, int))
    seen = f"{compared:,} observations of {many(integer(data, 'pages_seen'), 'page')}"
    if verdict == "changed":
        return _changed_sentence(data)
    if verdict == "clean":
        hops = ", ".join(str(hop) for hop in sequence(mapping(data.get("self_test")).get("hops")))
        return f"No index-K page changed in {seen}; a byte flipped on purpose was caught at {hops}."
    if verdict == "unreachable":
        return "No rank could be observed; why stands below."
    if verdict == "corrupted_elsewhere":
        corrupted = many(integer(data, "corrupted_responses"), "response")
        return f"No index-K page changed in {seen}, yet {corrupted} came out corrupted."
    return f"Nothing is proved: no change was seen in {seen}, but not all was seen or tried."


def _changed_sentence(data: Mapping[str, Any]) -> str:
    bad = mapping(data.get("first_bad_hop"))
    where = f"layer {bad.get('layer')} of page {bad.get('page')}"
    asked = f" of request {bad['request']}" if bad.get("request") else ""
    sentence = f"Index-K bytes changed first at the hop `{bad.get('hop')}`: {where}{asked}"
    distance = number(bad.get("distance_ms"))
    if distance is not None:
        side = "before" if distance < 0 else "after"
        sentence += f", {milliseconds(abs(distance))} {side} its load had ended"
    reads = integer(data, "stale_reads")
    total = mapping(data.get("compared")).get("read")
    of_all = f" of {total:,}" if isinstance(total, int) else ""
    return f"{sentence}. {reads:,}{of_all} reads saw other bytes than their page's."


def _run_section(data: Mapping[str, Any]) -> Section:
    target = mapping(data.get("target"))
    rows = [("dsv4doctor", str(data.get("dsv4doctor_version") or __version__))]
    if target.get("base_url"):
        rows.append(("server", str(target["base_url"])))
    if target.get("lab"):
        rows.append(("this is", "the built-in lab, a miniature deployment"))
    for rank in sequence(data.get("versions_observable")):
        engine = f"{rank.get('engine')} {rank.get('version') or ''}".strip()
        rows.append((str(rank.get("rank")), f"{engine}, index-K {rank.get('layout') or NO_VALUE}"))
    if data.get("sessions") is not None:
        load = f"{data.get('scenario')}: {data['sessions']} sessions of {data.get('turns')} turns"
        rows.append(("load", f"{load}, seed {data.get('seed')}"))
        answered = many(integer(data, "responses"), "response")
        rows.append(
            ("replies", f"{answered}, {integer(data, 'corrupted_responses'):,} of them corrupted")
        )
    rows.append(("run directory", str(data.get("run_dir"))))
    blocks: list[Block] = [Facts(rows=tuple(rows))]
    if data.get("interrupted"):
        blocks.append(Note(text="It was interrupted: this is what was seen.", tone=Tone.CAUTION))
    blocks.extend(Note(text=str(note)) for note in sequence(data.get("notes")))
    return Section(title="The run", blocks=tuple(blocks))


def _way_section(data: Mapping[str, Any]) -> Section:
    """Every hop: how much was compared there, and what changed there first."""
    compared, changed = mapping(data.get("compared")), mapping(data.get("changes_by_hop"))
    unknown = mapping(data.get("not_compared"))
    rows = [
        (
            hop,
            words,
            count(compared.get(hop, 0)) if hop != "store" else "sets what is right",
            count(unknown.get(hop, 0)),
            count(changed.get(hop, 0)),
        )
        for hop, words in _WAY
    ]
    columns = (
        Column(title="hop"),
        Column(title="the page as it is"),
        Column(title="compared", is_number=True),
        Column(title="not known", is_number=True),
        Column(title="changed here first", is_number=True),
    )
    blocks: list[Block] = [Table(columns=columns, rows=tuple(rows))]
    consequences = integer(data, "consequences")
    if consequences:
        text = f"{consequences:,} further observations saw bytes that had changed earlier."
        blocks.append(Note(text=text))
    return Section(title="A page's way", blocks=tuple(blocks))


def _changes_section(data: Mapping[str, Any]) -> Section | None:
    changes = [each for each in sequence(data.get("changes")) if isinstance(each, Mapping)]
    if not changes:
        return None
    rows = tuple(
        (
            str(each.get("hop")),
            str(each.get("seen_at")),
            str(each.get("request") or NO_VALUE),
            str(each.get("layer")),
            str(each["page"] if each.get("page") is not None else each.get("host_page")),
            str(each["index"] if each.get("index") is not None else NO_VALUE),
            _distance(each),
            str(each.get("gate") or NO_VALUE),
        )
        for each in changes[:_CHANGES_SHOWN]
    )
    titles = (
        "changed at",
        "seen at",
        "request",
        "layer",
        "page",
        "in request",
        "from load",
        "gate",
    )
    columns = tuple(Column(title=title) for title in titles)
    return Section(
        title="First changes",
        blocks=(
            Table(columns=columns, rows=rows),
            Note(text="All of them are in changes.jsonl, all that was observed in observations/."),
        ),
    )


def _distance(change: Mapping[str, Any]) -> str:
    distance = number(change.get("distance_ms"))
    return NO_VALUE if distance is None else f"{distance:+.3g} ms"


def _load_section(data: Mapping[str, Any]) -> Section | None:
    """Under which load reads went stale."""
    bins = [each for each in sequence(data.get("by_load_pages")) if isinstance(each, Mapping)]
    if not bins:
        return None
    rows = tuple(
        (
            count(each.get("pages_from")),
            count(each.get("reads")),
            count(each.get("stale")),
            percent(each["stale"] / each["reads"] if each.get("reads") else None),
        )
        for each in bins
    )
    columns = tuple(
        Column(title=title, is_number=True)
        for title in ("pages loaded together, from", "reads of loaded pages", "stale", "share")
    )
    margin = number(data.get("least_margin_ms"))
    blocks: list[Block] = [Table(columns=columns, rows=rows)]
    unordered = integer(data, "unordered_right_reads")
    if unordered:
        said = "" if margin is None else f", the closest {margin:.3g} ms after its load's end"
        blocks.append(
            Note(
                text=f"{unordered:,} reads were not ordered behind their load and yet right{said}.",
                tone=Tone.CAUTION,
            )
        )
    return Section(title="By the size of the load", blocks=tuple(blocks))


def _odds_section(data: Mapping[str, Any]) -> Section | None:
    """Corrupted responses against stale reads."""
    joined = mapping(data.get("joined"))
    if not joined:
        return None
    rows = tuple(
        (name, count(joined.get(f"{key}_with_stale")), count(joined.get(f"{key}_without")))
        for key, name in (("corrupted", "corrupted"), ("clean", "clean"))
    )
    columns = (
        Column(title="responses"),
        Column(title="read a stale page", is_number=True),
        Column(title="read none", is_number=True),
    )
    blocks: list[Block] = [Table(columns=columns, rows=rows)]
    ratio, p_value = number(joined.get("odds_ratio")), number(joined.get("p_value"))
    if ratio is not None and p_value is not None:
        blocks.append(Note(text=f"Odds ratio {ratio:,.3g}; by chance alone p = {p_value:.2g}."))
    without = integer(joined, "corrupted_without")
    if without:
        names = ", ".join(str(name) for name in sequence(joined.get("named_without")))
        blocks.append(
            Note(
                text=f"{many(without, 'corrupted response')} read nothing stale: a possible second "
                f"cause ({names}).",
                tone=Tone.BAD,
            )
        )
    return Section(title="Corrupted responses and stale reads", blocks=tuple(blocks), key="odds")


def _self_test_section(data: Mapping[str, Any]) -> Section:
    tests = [
        each
        for each in sequence(mapping(data.get("self_test")).get("tests"))
        if isinstance(each, Mapping)
    ]
    if not tests:
        text = "No byte was flipped: this detector was not tried. Add --perturb."
        return Section(title="Self-test", blocks=(Note(text=text, tone=Tone.CAUTION),))
    rows = tuple(
        (
            str(each.get("rank")),
            str(each.get("hop")),
            str(each.get("outcome")),
            NO_VALUE if each.get("page") is None else str(each["page"]),
            NO_VALUE if each.get("layer") is None else str(each["layer"]),
        )
        for each in tests
    )
    titles = ("rank", "flipped at", "outcome", "page", "layer")
    columns = tuple(Column(title=title) for title in titles)
    return Section(title="Self-test", blocks=(Table(columns=columns, rows=rows),))


def _unseen_section(data: Mapping[str, Any]) -> Section | None:
    unseen = [each for each in sequence(data.get("not_seen")) if isinstance(each, Mapping)]
    if not unseen:
        return None
    rows = tuple((str(each.get("where")), str(each.get("what"))) for each in unseen)
    blocks: list[Block] = [Facts(rows=rows)]
    if any(each.get("blinds") for each in unseen):
        text = "Nothing may be called clean while this is so."
        blocks.append(Note(text=text, tone=Tone.CAUTION))
    return Section(title="Not seen", blocks=tuple(blocks))


def _cost_section(data: Mapping[str, Any]) -> Section | None:
    rows = []
    for each in sequence(data.get("cost")):
        step_ms, hook_ms = number(each.get("step_ms")), number(each.get("hook_ms"))
        if not step_ms or hook_ms is None:
            continue
        device_ms = number(each.get("device_ms")) or 0.0
        rows.append(
            (
                str(each.get("rank")),
                f"{integer(each, 'bytes') / 2**20:,.1f} MiB",
                milliseconds(hook_ms),
                milliseconds(device_ms),
                percent(hook_ms / step_ms),
            )
        )
    if not rows:
        return None
    titles = ("rank", "digested", "scheduler's time", "device's time", "share of its steps")
    columns = tuple(Column(title=title, is_number=title != "rank") for title in titles)
    return Section(title="Cost", blocks=(Table(columns=columns, rows=tuple(rows)),))


def _next_section(verdict: str, data: Mapping[str, Any]) -> Section | None:
    run = shlex.quote(str(data.get("run_dir")))
    if verdict == "undecided":
        line = "dsv4doctor checksum live --perturb --during repro"
        why = "drives a load and tries the detector: only that can end in clean"
        return Section(title="What to try next", blocks=(Command(line=line, why=why),))
    if verdict == "unreachable":
        line = "dsv4doctor probe status --ssh-host HOST"
        why = "says whether a host's schedulers have the probe in them, and whether it answers"
        return Section(title="What to try next", blocks=(Command(line=line, why=why),))
    if verdict == "changed":
        blocks = (
            Command(line="dsv4doctor audit", why="names releases and switches that leave it open"),
            Command(line=f"dsv4doctor report {run}", why="shows this again, in any format"),
        )
        return Section(title="What to try next", blocks=blocks)
    return None
