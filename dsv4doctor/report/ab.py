"""An experiment's JSON object → a `Report`: forest of rates, verdicts, effects, drift, proofs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsv4doctor.codec import to_builtins
from dsv4doctor.finding import Finding
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
from dsv4doctor.report.forest import forest_line, forest_scale
from dsv4doctor.report.wording import NO_VALUE, count, moment, percent
from dsv4doctor.units import many

_TONES = {"differ": Tone.BAD, "equivalent": Tone.GOOD, "undecided": Tone.CAUTION}
_VERDICT_TONES = {"differ": Tone.BAD, "equivalent": Tone.GOOD, "undecided": Tone.PLAIN}
# A comparison of many arms: past this the table alone tells them.
_MOST_SENTENCES = 15
# Of a moment the time of day, and the width of a bar: a block's row has many cells.
_TIME_OF_DAY = slice(11, 19)
_BLOCK_WIDTH = 20


def build_ab_report(
    verdict: str,
    body: Mapping[str, Any],
    *,
    findings: Sequence[Finding | Mapping[str, Any]] = (),
    exit_code: int | None = None,
) -> Report:
    """The report of one experiment; `body` is the contract's `ab` object, fresh or from disk."""
    data: dict[str, Any] = to_builtins(dict(body))
    sections = [
        _rates(data),
        _comparisons(data),
        _effects(data),
        _drift(data),
        _proofs(data),
        _restored(data),
        _run(data),
    ]
    return Report(
        command="ab",
        title=f"dsv4doctor ab: {verdict}",
        verdict=verdict,
        verdict_sentence=verdict_sentence(verdict, data),
        tone=_TONES.get(verdict, Tone.PLAIN),
        sections=tuple(section for section in sections if section is not None),
        data=data,
        findings=tuple(to_builtins(finding) for finding in findings),
        exit_code=exit_code,
    )


def verdict_sentence(verdict: str, data: Mapping[str, Any]) -> str:
    """The verdict in words that can stand alone."""
    pairs = data["comparisons"]
    differing = [f"{pair['a']} from {pair['b']}" for pair in pairs if pair["verdict"] == "differ"]
    unproved = [arm["name"] for arm in data["arms"] if not arm["verified"]]
    said = {
        "differ": f"Arms differ: {', '.join(differing)}.",
        "equivalent": f"All arms are equal to within {100 * data['margin']:g} percentage points.",
        "undecided": "No difference was shown, and no equality: what was seen can be noise.",
    }[verdict]
    if unproved:
        said += f" Not proved to be what they say, and not compared: {', '.join(unproved)}."
    if data.get("interrupted"):
        said += " Interrupted before its end."
    if data.get("restored") is False:
        said += " THE DEPLOYMENT IS NOT KNOWN TO BE AT ITS BASELINE."
    return said


def _rates(data: Mapping[str, Any]) -> Section:
    """The forest: each arm's share of corrupted sessions with its interval, on one scale."""
    rates = [arm["session_rate"] for arm in data["arms"]]
    scale = forest_scale(rates)
    columns = (
        Column(title="arm"),
        Column(title="sessions", is_number=True),
        Column(title="corrupted", is_number=True),
        Column(title="rate", is_number=True),
        Column(title="95 % interval", is_number=True),
        Column(title=f"0 to {100 * scale:g} %", is_verbatim=True),
    )
    rows = tuple(
        (
            arm["name"],
            count(arm["sessions"]),
            count(arm["corrupted_sessions"]),
            percent(rate["estimate"]),
            f"{percent(rate['low']).removesuffix(' %')} to {percent(rate['high'])}",
            forest_line(rate, scale),
        )
        for arm, rate in zip(data["arms"], rates, strict=True)
    )
    blocks: list[Block] = [Table(columns=columns, rows=rows)]
    failed = [arm for arm in data["arms"] if arm["failures"]]
    blocks += [
        Note(
            text=f"{arm['name']}: {many(arm['failures'], 'request')} failed "
            f"({_counts(arm['by_failure'])}), {many(arm['wedges'], 'wedge')}; sessions that failed "
            "count neither as clean nor as corrupted."
        )
        for arm in failed
    ]
    return Section(title="Corrupted sessions by arm", blocks=tuple(blocks), key="ab-rates")


def _comparisons(data: Mapping[str, Any]) -> Section:
    pairs = data["comparisons"]
    sentences = [
        Note(text=pair["reason"] + ".", tone=_VERDICT_TONES[pair["verdict"]])
        for pair in pairs[:_MOST_SENTENCES]
    ]
    columns = (
        Column(title="pair"),
        Column(title="verdict"),
        Column(title="difference", is_number=True),
        Column(title="interval", is_number=True),
        Column(title="e", is_number=True),
        Column(title="p, adjusted", is_number=True),
        Column(title="sessions needed", is_number=True),
    )
    rows = tuple(
        (
            f"{pair['a']} – {pair['b']}",
            pair["verdict"],
            _points(pair["difference"]["estimate"]),
            f"{_points(pair['difference']['low'])} to {_points(pair['difference']['high'])}",
            NO_VALUE if pair["e_value"] is None else f"{pair['e_value']:.3g}",
            f"{pair['p_value_adjusted']:.2g}",
            count(pair["sessions_needed"]),
        )
        for pair in pairs
    )
    level = f"{100 * (1 - data['alpha']):g} %"
    note = Note(
        text=f"Differences in percentage points with {level} intervals; p-values hold at every "
        "look and are adjusted for the number of pairs."
    )
    table = Table(columns=columns, rows=rows)
    return Section(title="Comparisons", blocks=(*sentences, table, note), key="ab-comparisons")


def _effects(data: Mapping[str, Any]) -> Section | None:
    found = data.get("interaction")
    if found is None:
        return None
    first, second = found["factors"]
    said = (
        f"Interaction of {first} and {second}: {_points(found['estimate'])} percentage points "
        f"({_points(found['low'])} to {_points(found['high'])}): "
    )
    said += (
        "what one does depends on the other."
        if found["found"]
        else "not shown: the interval holds zero."
    )
    rows = tuple(
        (
            f"{effect['factor']}: {effect['high']} against {effect['low']}",
            f"{effect['other_factor']} = {effect['other_level']}",
            _points(effect["difference"]["estimate"]),
            f"{_points(effect['difference']['low'])} to {_points(effect['difference']['high'])}",
        )
        for effect in found["effects"]
    )
    columns = (
        Column(title="effect"),
        Column(title="where"),
        Column(title="points", is_number=True),
        Column(title="interval", is_number=True),
    )
    tone = Tone.BAD if found["found"] else Tone.PLAIN
    blocks = (Note(text=said, tone=tone), Table(columns=columns, rows=rows))
    return Section(title="Simple effects and interaction", blocks=blocks, key="ab-effects")


def _drift(data: Mapping[str, Any]) -> Section | None:
    """Every block in the order in which it ran."""
    blocks = data["blocks"]
    if not blocks:
        return None
    scale = forest_scale([block["session_rate"] for block in blocks])
    columns = (
        Column(title="block", is_number=True),
        Column(title="round", is_number=True),
        Column(title="arm"),
        Column(title="began (UTC)"),
        Column(title="seconds", is_number=True),
        Column(title="corrupted", is_number=True),
        Column(title="failed", is_number=True),
        Column(title=f"0 to {100 * scale:g} %", is_verbatim=True),
    )
    rows = tuple(
        (
            count(block["number"] + 1),
            count(block["round"] + 1),
            block["arm"],
            moment(block["began_unix"])[_TIME_OF_DAY],
            f"{block['seconds']:.0f}",
            f"{block['corrupted_sessions']} of {block['sessions']}",
            f"{block['failed_sessions']}{', wedged' if block['wedge'] else ''}",
            forest_line(block["session_rate"], scale, _BLOCK_WIDTH),
        )
        for block in blocks
    )
    return Section(
        title="Blocks, in the order in which they ran",
        blocks=(Table(columns=columns, rows=rows),),
        key="ab-blocks",
    )


def _proofs(data: Mapping[str, Any]) -> Section:
    """What was read to prove that each arm is what its name says; equal proofs once."""
    proofs: dict[tuple[str, str, str, str], list[int]] = {}
    for arm in data["arms"]:
        for check in arm["verification"]["checks"]:
            key = (arm["name"], check["setting"], check["standing"], check["read"])
            proofs.setdefault(key, []).append(check["block"] + 1)
    if not proofs:
        said = "The arms claim no setting: they are what stands behind their names."
        if not data["blocks"]:
            said = "No block was finished, so nothing is proved of any arm."
        return Section(title="What proves the arms", blocks=(Note(text=said),), key="ab-proofs")
    rows = tuple((*key, ", ".join(map(str, blocks))) for key, blocks in proofs.items())
    columns = tuple(Column(title=t) for t in ("arm", "setting", "standing", "read", "blocks"))
    return Section(
        title="What proves the arms", blocks=(Table(columns=columns, rows=rows),), key="ab-proofs"
    )


def _restored(data: Mapping[str, Any]) -> Section | None:
    if data.get("restored") is None:
        return None
    done = bool(data["restored"])
    said = "The deployment was read back and is at its baseline." if done else (
        "The deployment is not known to be at its baseline. Put it back now."
    )  # fmt: skip
    blocks: list[Block] = [Note(text=said, tone=Tone.GOOD if done else Tone.BAD)]
    blocks += [Note(text=line) for line in data["restored_evidence"]]
    if not done:
        blocks.append(
            Command(
                line=f"dsv4doctor ab restore {data['run_dir']}",
                why="runs the restore script on every host and reads the result back",
            )
        )
    return Section(title="Putting back", blocks=tuple(blocks), key="ab-restored")


def _run(data: Mapping[str, Any]) -> Section:
    rows = [
        ("run directory", data["run_dir"]),
        ("scenario", data["scenario"]),
        ("seed", str(data["seed"])),
        (
            "design",
            f"{many(data['rounds'], 'round')} of "
            f"{many(data['sessions_per_block'], 'session')} an arm",
        ),
        ("alpha over all pairs", f"{data['alpha']:g}"),
        ("margin of equality", f"{100 * data['margin']:g} percentage points"),
    ]
    rows += [(name, str(value)) for name, value in data["target"].items()]
    if data["segments"] > 1:
        rows.append(("segments", f"{data['segments']}: the run was resumed"))
    blocks: list[Block] = [Facts(rows=tuple(rows))]
    blocks += [Note(text=note) for note in data["notes"]]
    return Section(title="The run", blocks=tuple(blocks))


def _points(value: float | None) -> str:
    return NO_VALUE if value is None else f"{100 * value:+.1f}"


def _counts(table: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in table.items())
