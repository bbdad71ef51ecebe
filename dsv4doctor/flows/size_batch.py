"""`size --batch`: one spec a line in, one sizing a line out, in the same order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from dsv4doctor.errors import EXIT_DONE, EXIT_FINDINGS, EXIT_USAGE, DoctorError
from dsv4doctor.sizing.plan import make_plan, plan_figures
from dsv4doctor.sizing.refusal import Refusal
from dsv4doctor.sizing.spec import ENGINES, read_spec
from dsv4doctor.sizing.verdict import FITS, judge, judged_figures
from dsv4doctor.sizing.versions import accounting_of
from dsv4doctor.sizing.vllm import plan_vllm, read_vllm_spec, vllm_figures


@dataclass(slots=True, kw_only=True)
class BatchTally:
    """What the lines came to; the exit code follows from it."""

    rows: int = 0
    unusable: int = 0
    not_fitting: int = 0

    @property
    def exit_code(self) -> int:
        if self.unusable:
            return EXIT_USAGE
        return EXIT_FINDINGS if self.not_fitting else EXIT_DONE


def size_lines(lines: Iterable[str], tally: BatchTally) -> Iterator[str]:
    """One JSON document a non-blank line: the `size` object, or `{"error": …}`."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        tally.rows += 1
        answer = _answer(line, number, tally)
        yield _dump(answer)


def _dump(answer: Mapping[str, Any]) -> str:
    try:
        return orjson.dumps(answer).decode()
    except TypeError:
        # Absurd inputs reach past 64 bits, which JSON allows and orjson does not.
        return json.dumps(answer, allow_nan=False, separators=(",", ":"))


def _answer(line: str, number: int, tally: BatchTally) -> dict[str, Any]:
    try:
        data = orjson.loads(line)
        if not isinstance(data, dict):
            raise ValueError("no JSON object")
    except ValueError as problem:
        tally.unusable += 1
        return {"error": f"line {number} is no spec: {problem}"}
    try:
        answer = size_row(data)
    except DoctorError as problem:
        tally.unusable += 1
        return {"error": f"line {number}: {problem}"}
    tally.not_fitting += answer.get("verdict") != FITS
    return answer


def size_row(data: Mapping[str, Any]) -> dict[str, Any]:
    """The `size` object of one spec; an engine's refusal is `error` beside what was computed.

    Raises:
        UsageError: the spec cannot be used.
    """
    engine = data.get("engine", "sglang")
    if engine not in ENGINES:
        raise _unknown_engine(engine)
    if engine == "vllm":
        plan = plan_vllm(read_vllm_spec(data))
        verdict = FITS if plan.fits else "does_not_fit"
        return {"engine": "vllm", "model": plan.inputs.model.name, "verdict": verdict} | (
            vllm_figures(plan)
        )
    spec = read_spec({key: value for key, value in data.items() if key != "engine"})
    accounting, executed = accounting_of(spec.version)
    try:
        sized = make_plan(spec.inputs, accounting)
    except Refusal as refusal:
        return {"error": str(refusal), "verdict": "does_not_fit", "version": spec.version}
    if sized.refusal is not None:
        return {
            "error": str(sized.refusal),
            "engine": "sglang",
            "version": spec.version,
            "verdict": "does_not_fit",
        } | plan_figures(sized)
    return judged_figures(judge(sized, spec.version, executed=executed))


def _unknown_engine(engine: Any) -> DoctorError:
    from dsv4doctor.errors import UsageError

    return UsageError(f"engine {engine!r} is unknown", f"one of {', '.join(ENGINES)}")
