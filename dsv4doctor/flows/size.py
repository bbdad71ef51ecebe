"""`size`: gather a rank's inputs, size it as the release does, judge, answer the questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dsv4doctor.errors import EXIT_DONE, EXIT_FINDINGS, UsageError
from dsv4doctor.finding import Certainty, Evidence, Finding, Severity
from dsv4doctor.flows.size_sources import (
    DEFAULT_AVAILABLE_BYTES,
    Gathered,
    SizeAsk,
    gather,
    read_lines,
)
from dsv4doctor.sizing.accounting import Accounting
from dsv4doctor.sizing.capacity import (
    Fleet,
    available_from_fraction,
    budget_of_tokens,
    fraction_that_fits,
    index_formats,
    sessions_that_fit,
)
from dsv4doctor.sizing.dsa import DsaModel
from dsv4doctor.sizing.inputs import Inputs
from dsv4doctor.sizing.plan import Plan, make_plan
from dsv4doctor.sizing.refusal import Refusal
from dsv4doctor.sizing.spec import Spec, read_spec
from dsv4doctor.sizing.verdict import (
    DOES_NOT_FIT,
    FITS,
    Judged,
    findings_of,
    judge,
    judged_figures,
)
from dsv4doctor.sizing.versions import accounting_of
from dsv4doctor.units import format_bytes, format_tokens

if TYPE_CHECKING:
    from dsv4doctor.flows.size_log import LogSizing
    from dsv4doctor.sizing.vllm import VllmPlan

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeOutcome:
    """What the command says: `judged` is there for SGLang's V4, `vllm` for vLLM."""

    verdict: str
    findings: tuple[Finding, ...]
    body: dict[str, Any]
    judged: Judged | None = None
    vllm: VllmPlan | None = None

    def exit_code(self, fail_on: Severity) -> int:
        """1 when the verdict is bad or a finding is at or above `fail_on`."""
        grave = any(finding.severity.rank >= fail_on.rank for finding in self.findings)
        return EXIT_FINDINGS if grave or self.verdict != FITS else EXIT_DONE


def run_size(ask: SizeAsk, note: Note) -> SizeOutcome:
    """The sizing that `ask` names, its questions answered; `note` gets lines for stderr.

    Raises:
        UsageError: inputs that cannot be used, or a combination that the release refuses.
        DoctorError: a server that does not answer.
    """
    if ask.from_log is not None:
        return _from_log(ask, note)
    gathered = gather(ask)
    for line in gathered.notes:
        note(line)
    if gathered.dsa is not None:
        return _size_dsa(gathered, gathered.dsa, ask)
    if gathered.engine == "vllm":
        return _size_vllm(gathered, ask)
    spec = _with_budget(gathered, ask, note)
    accounting, executed = accounting_of(spec.version)
    if not executed:
        note(f"SGLang {spec.version} is unknown here: sized by {accounting.newest}'s accounting")
    plan = _plan(spec.inputs, accounting)
    judged = judge(plan, spec.version, executed=executed)
    body = judged_figures(judged) | _answers(plan, accounting, ask, gathered)
    return SizeOutcome(
        verdict=judged.verdict, findings=findings_of(judged), body=body, judged=judged
    )


def _plan(inputs: Inputs, accounting: Accounting) -> Plan:
    try:
        return make_plan(inputs, accounting)
    except Refusal as refusal:
        raise UsageError(
            f"SGLang {accounting.newest} refuses this combination: {refusal}",
            "another --version, or without what the message names",
        ) from refusal


def _with_budget(gathered: Gathered, ask: SizeAsk, note: Note) -> Spec:
    """The checked spec with the bytes that the pools get: given, inferred, or the case's."""
    data = {key: value for key, value in gathered.spec.items() if key != "engine"}
    if "available_bytes" in data and ask.available_bytes is None:
        return read_spec(data)
    if ask.available_bytes is not None:
        return read_spec({**data, "available_bytes": ask.available_bytes})
    spec = read_spec({**data, "available_bytes": DEFAULT_AVAILABLE_BYTES})
    accounting, _ = accounting_of(spec.version)

    def planner(inputs: Inputs) -> Plan:
        return _plan(inputs, accounting)

    budget: int | None = None
    if gathered.served_tokens is not None:
        budget = budget_of_tokens(planner, spec.inputs, gathered.served_tokens)
        note(f"budget inferred from the server's {format_tokens(gathered.served_tokens)} tokens")
    elif ask.gpu_memory_bytes is not None and ask.weight_bytes is not None:
        fraction = _fraction(gathered, ask)
        if fraction is None:
            fitting = fraction_that_fits(
                spec.inputs, planner, ask.gpu_memory_bytes, ask.weight_bytes
            )
            fraction = fitting["mem_fraction_static"]
        if fraction is None:
            raise UsageError(
                "the weights leave no room for KV pools on this GPU",
                "more GPUs a replica (--tp-size), which lowers --weight-bytes a rank",
            )
        budget = available_from_fraction(ask.gpu_memory_bytes, ask.weight_bytes, fraction)
        note(f"budget estimated: {format_bytes(budget)} a rank at fraction {fraction:g}")
    if budget is None:
        note(f"no budget given: {format_bytes(DEFAULT_AVAILABLE_BYTES)} a rank")
        return spec
    return replace(spec, inputs=replace(spec.inputs, available_bytes=budget))


def _fraction(gathered: Gathered, ask: SizeAsk) -> float | None:
    if ask.mem_fraction_static is not None:
        return ask.mem_fraction_static
    value = gathered.args.get("mem_fraction_static")
    if value is None:
        return None
    try:
        fraction = float(value)
    except (TypeError, ValueError):
        fraction = 0.0
    if not 0 < fraction <= 1:  # nan, too, is in no range
        raise UsageError(f"--mem-fraction-static {value!r} is no fraction", "like 0.88")
    return fraction


def _answers(
    plan: Plan, accounting: Accounting, ask: SizeAsk, gathered: Gathered
) -> dict[str, Any]:
    """What was asked beside the sizing itself; the three index-K formats always."""

    def planner(inputs: Inputs) -> Plan:
        return _plan(inputs, accounting)

    answers: dict[str, Any] = {"index_k_formats": index_formats(plan.inputs, planner)}
    if ask.gpus is not None or ask.session_tokens is not None:
        fleet = _fleet(plan.inputs, gathered, ask)
        session = ask.session_tokens or plan.inputs.context_len
        answers["capacity"] = sessions_that_fit(plan, fleet, session)
    if ask.gpu_memory_bytes is not None and ask.weight_bytes is not None:
        answers["mem_fraction_static"] = fraction_that_fits(
            plan.inputs, planner, ask.gpu_memory_bytes, ask.weight_bytes
        )
    if ask.sweep:
        from dsv4doctor.flows.size_sweep import sweep_rows

        answers["sweep"] = sweep_rows(gathered.spec, plan.inputs.available_bytes, ask.sweep)
    return answers


def _fleet(inputs: Inputs, gathered: Gathered, ask: SizeAsk) -> Fleet:
    said = str(gathered.args.get("tp_size") or inputs.attn_dp_size)
    if not said.isdigit() or int(said) < 1:
        raise UsageError(f"--tp-size {said!r} is no number of GPUs", "--tp-size 8")
    tp = int(said)
    ranks = tp * inputs.pp_size
    gpus = ask.gpus if ask.gpus is not None else ranks
    if gpus < ranks:
        raise UsageError(
            f"{gpus} GPUs hold no replica of tp_size {tp} x pp_size {inputs.pp_size}",
            f"--gpus {ranks} or more, or a smaller --tp-size",
        )
    return Fleet(gpus=gpus, tp_size=tp, pp_size=inputs.pp_size, attn_dp_size=inputs.attn_dp_size)


def _size_vllm(gathered: Gathered, ask: SizeAsk) -> SizeOutcome:
    from dsv4doctor.sizing.vllm import is_executed, plan_vllm, read_vllm_spec, vllm_figures

    data = dict(gathered.spec)
    budget = ask.available_bytes or data.get("available_bytes") or DEFAULT_AVAILABLE_BYTES
    data["available_bytes"] = budget
    plan = plan_vllm(read_vllm_spec(data))
    checked = is_executed(plan.inputs.model)
    body = {
        "engine": "vllm",
        "version": "0.33.0",
        "model": plan.inputs.model.name,
        "available_bytes": plan.inputs.available_bytes,
        "verdict": FITS if plan.fits else DOES_NOT_FIT,
    }
    body |= vllm_figures(plan)
    body["figures_are"] = "computed and checked" if checked else "estimate"
    findings: list[Finding] = []
    if not plan.fits:
        findings.append(
            Finding(
                rule="SIZING_DOES_NOT_FIT",
                severity=Severity.ERROR,
                title="one request of max_model_len does not fit: vLLM would stop at boot",
                evidence=(
                    Evidence(
                        where="size.num_blocks",
                        what=f"{plan.num_blocks} blocks, {plan.blocks_per_request} needed and one "
                        "null block",
                    ),
                ),
                remedy="a smaller --max-model-len or --max-num-batched-tokens",
            )
        )
    return SizeOutcome(verdict=str(body["verdict"]), findings=tuple(findings), body=body, vllm=plan)


def _size_dsa(gathered: Gathered, model: DsaModel, ask: SizeAsk) -> SizeOutcome:
    """V3.2: told apart from V4, sized by its own rule, its index line named as right."""
    available = ask.available_bytes or DEFAULT_AVAILABLE_BYTES
    fp8 = "fp8" in str(gathered.args.get("kv_cache_dtype", "auto"))
    per_token = model.bytes_per_token(fp8=fp8)
    tokens = available // per_token
    body = {
        "engine": "sglang",
        "path": "dsa",
        "model": model.name,
        "version": gathered.spec.get("version"),
        "available_bytes": available,
        "bytes_per_token": per_token,
        "latent_row_bytes": model.latent_row_bytes(fp8=fp8),
        "index_k": {
            "dtype": "fp8",
            "bytes_per_token_counted": model.index_row_bytes,
            "bytes_per_token_allocated": model.index_row_bytes,
        },
        "tokens": tokens,
        "figures_are": "estimate",
        "estimate_because": ["the DSA pools were read and not executed"],
    }
    finding = Finding(
        rule="SIZING_DSA_PATH",
        severity=Severity.INFO,
        certainty=Certainty.INFERRED,
        title="this is the DSA path (V3.2): none of V4's pools, and its index price is right",
        evidence=(
            Evidence(
                where="DSATokenToKVPool",
                what=f"one fp8 index row of {model.index_row_bytes} B a token and layer, as priced",
            ),
        ),
    )
    verdict = FITS if tokens > 0 else DOES_NOT_FIT
    return SizeOutcome(verdict=verdict, findings=(finding,), body=body | {"verdict": verdict})


def _from_log(ask: SizeAsk, note: Note) -> SizeOutcome:
    from dsv4doctor.flows.size_log import size_log

    assert ask.from_log is not None
    sized = size_log(read_lines(ask.from_log, "--from-log"), ask.args, ask.version, ask.model)
    log_body = _log_body(sized)
    if sized.plan is None:
        body = {"engine": "sglang", "version": sized.release, "verdict": FITS, "from_log": log_body}
        return SizeOutcome(verdict=FITS, findings=(_unexplained(sized),), body=body)
    plan = sized.plan
    accounting, executed = accounting_of(sized.release)
    judged = judge(plan, sized.release, executed=executed)
    if ask.version is None:
        note(f"the log fits SGLang {sized.release} and {plan.inputs.model.name}")
    gathered = Gathered(spec={}, args={**sized.boot.server_args, **ask.args})
    body = judged_figures(judged) | _answers(plan, accounting, replace(ask, sweep=()), gathered)
    body["from_log"] = log_body
    findings = (*findings_of(judged), *_log_findings(sized))
    return SizeOutcome(verdict=judged.verdict, findings=findings, body=body, judged=judged)


def _log_body(sized: LogSizing) -> dict[str, Any]:
    return {
        "lines": sized.boot.lines,
        "releases": list(sized.boot.releases),
        "version_in_log": sized.boot.version,
        "candidates": [
            {
                "version": match.release,
                "model": match.inputs.model.name,
                "speculative": match.inputs.speculative,
                "swa_full_tokens_ratio": match.inputs.swa_full_tokens_ratio,
                "index_dtype": match.inputs.index_dtype,
            }
            for match in sized.matches
        ],
        "differences": list(sized.differences),
        "index_k_proven_by_host_pool": sized.index_k_proven,
        "ranks_with_other_figures": sized.boot.differing,
    }


def _unexplained(sized: LogSizing) -> Finding:
    return Finding(
        rule="SIZING_LOG_UNEXPLAINED",
        severity=Severity.WARNING,
        certainty=Certainty.NOT_DETERMINED,
        title="no known model and settings give the log's bytes_per_full_token",
        evidence=(
            Evidence(
                where="DSV4 memory calculation",
                what=f"bytes_per_full_token={sized.boot.memory['bytes_per_full_token']}",
            ),
        ),
        remedy="name what the log does not say: --model, --version, --swa-full-tokens-ratio, "
        "--speculative-algorithm; a patched configurator prices differently",
    )


def _log_findings(sized: LogSizing) -> Sequence[Finding]:
    off = [row for row in sized.differences if not row["within_rounding"]]
    if not off:
        return ()
    return (
        Finding(
            rule="SIZING_LOG_DIFFERS",
            severity=Severity.WARNING,
            title=f"{len(off)} of the log's figures differ from ours beyond its rounding",
            evidence=tuple(
                Evidence(
                    where=str(row["figure"]),
                    what=f"log {row['log']:g}, ours {row['ours']:g} ({row['difference']:+g})",
                )
                for row in off
            ),
            remedy="give what the log does not show (draft length, decode slots) as flags",
        ),
    )
