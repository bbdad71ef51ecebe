"""One proof for each factor: what must have been read for the setting to count.

Sources of the names: `/server_info` of SGLang 0.5.12 to 0.5.23, whose server arguments used here
are the same in all, its metrics `cached_tokens_total` and `load_back_tokens_total`, its boot lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dsv4doctor.experiment.factors import Setting
from dsv4doctor.experiment.verification import (
    Check,
    ServerState,
    Standing,
    Traces,
    Verification,
)

# Bytes of an indexer page of 64 slots of 128 values, with its scales: what the boot line shows.
INDEX_K_PAGE_BYTES = {"fp8": 8448, "fp4": 4352, "bf16": 16384}
BF16_INDEX_K_VARIABLE = "SGLANG_DSV4_BF16_INDEX_K"
EARLY_SEND_VARIABLE = "SGLANG_DISAGG_PREFILL_EARLY_SEND_CACHED_PREFIX"
COARSE_BARRIER_VARIABLE = "SGLANG_FORCE_COARSE_WAR_BARRIER"

# Up to 512 compressed positions of 4 tokens the indexer selects all, whatever their bytes are.
IMMUNE_TOKENS = 2_048

Result = tuple[Standing, str]
StateProof = Callable[[str, ServerState], Result]
TraceProof = Callable[[str, Traces], Result]

TRUE = frozenset({"1", "true", "yes", "y", "on"})


def verify(
    settings: Sequence[Setting], before: ServerState, after: ServerState | None, traces: Traces
) -> Verification:
    """Every setting checked on the server before and after the block, and on what it left behind.

    `after` is None where the server no longer answered: then nothing shows that it stayed what it
    was, and its settings are unknown. An arm of no settings claims nothing and is verified.
    """
    return Verification(checks=tuple(_check(s, before, after, traces) for s in settings))


def _check(
    setting: Setting, before: ServerState, after: ServerState | None, traces: Traces
) -> Check:
    results: list[Result] = []
    proof = _state_proof(setting)
    if proof is not None:
        results.append(proof(setting.value, before))
        if after is None:
            results.append((Standing.UNKNOWN, "the server could not be read after the block"))
        else:
            standing, read = proof(setting.value, after)
            if standing is not results[0][0]:
                read = f"{results[0][1]} before, {read} after the block"
            results.append((standing, read))
    if setting.factor in TRACE_PROOFS:
        results.append(TRACE_PROOFS[setting.factor](setting.value, traces))
    worst = max(results, key=lambda result: _SEVERITY.index(result[0]))
    reads = dict.fromkeys(read for standing, read in results if standing is worst[0])
    return Check(setting=str(setting), standing=worst[0], read=", ".join(reads))


# The worst of several standings speaks for the setting.
_SEVERITY = (Standing.PROVED, Standing.UNKNOWN, Standing.VACUOUS, Standing.REFUTED)


def _state_proof(setting: Setting) -> StateProof | None:
    if setting.is_flag:
        name = setting.factor.lstrip("-").replace("-", "_")
        return lambda value, state: _argument(state, name, value)
    if setting.is_variable:
        return lambda value, state: _variable(state, setting.factor, value)
    return STATE_PROOFS.get(setting.factor)


def _argument(state: ServerState, name: str, wanted: str) -> Result:
    """A server argument against its wanted value; `on` and `off` are true and false."""
    if name not in state.server_args:
        return Standing.UNKNOWN, f"/server_info has no {name}"
    found = state.server_args[name]
    read = f"{name} = {found}"
    if wanted == "unset" and found is not None and found is not False:
        return Standing.UNKNOWN, f"{read}, perhaps the server's default"
    if wanted == "unset":
        same = True
    elif isinstance(found, bool):
        same = found == (wanted.lower() in TRUE)
    elif isinstance(found, int | float):
        same = _number(wanted) == float(found)
    else:
        same = str(found) == wanted
    return (Standing.PROVED if same else Standing.REFUTED), read


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _variable(state: ServerState, name: str, wanted: str) -> Result:
    if state.environment is None:
        return Standing.UNKNOWN, f"the process's environment could not be read for {name}"
    found = state.environment.get(name)
    read = f"{name} = {found}" if found is not None else f"{name} is not set"
    same = found is None if wanted == "unset" else found == wanted
    return (Standing.PROVED if same else Standing.REFUTED), read


def _switch(state: ServerState, name: str, *, wanted: bool, default: bool) -> Result:
    """A boolean variable of the process, with the server's own default where it is not set."""
    if state.environment is None:
        return Standing.UNKNOWN, f"the process's environment could not be read for {name}"
    found = state.environment.get(name)
    value = default if found is None else found.strip().lower() in TRUE
    read = f"{name} = {found}" if found is not None else f"{name} is not set"
    return (Standing.PROVED if value == wanted else Standing.REFUTED), read


def _index_k(value: str, state: ServerState) -> Result:
    """The pool's page size where it is known; else the variable and the flag that choose it."""
    if state.index_k_page_bytes is not None:
        same = state.index_k_page_bytes == INDEX_K_PAGE_BYTES[value]
        read = f"an indexer page has {state.index_k_page_bytes} bytes"
        return (Standing.PROVED if same else Standing.REFUTED), read
    fp4 = bool(state.server_args.get("enable_deepseek_v4_fp4_indexer", False))
    if value == "fp4" or fp4:
        read = f"enable_deepseek_v4_fp4_indexer = {fp4}"
        return (Standing.PROVED if value == "fp4" and fp4 else Standing.REFUTED), read
    return _switch(state, BF16_INDEX_K_VARIABLE, wanted=value == "bf16", default=False)


def _inverted(value: str) -> str:
    return "off" if value == "on" else "on"


def _spec(value: str, state: ServerState) -> Result:
    if "speculative_algorithm" not in state.server_args:
        return Standing.UNKNOWN, "/server_info has no speculative_algorithm"
    found = state.server_args["speculative_algorithm"]
    same = (found is not None) == (value == "on")
    return (Standing.PROVED if same else Standing.REFUTED), f"speculative_algorithm = {found}"


STATE_PROOFS: dict[str, StateProof] = {
    "index_k": _index_k,
    "hicache": lambda value, state: _argument(state, "enable_hierarchical_cache", value),
    "overlap": lambda value, state: _argument(state, "disable_overlap_schedule", _inverted(value)),
    "cuda_graph": lambda value, state: _argument(state, "disable_cuda_graph", _inverted(value)),
    "early_send": lambda value, state: _switch(
        state, EARLY_SEND_VARIABLE, wanted=value == "on", default=True
    ),
    "war_barrier": lambda value, state: _switch(
        state, COARSE_BARRIER_VARIABLE, wanted=value == "coarse", default=False
    ),
    "spec": _spec,
}


def _hicache(value: str, traces: Traces) -> Result:
    """On: tokens must have come back from the host. Off: none may have."""
    tokens = traces.host_hit_tokens
    if tokens is None and value == "off":
        return Standing.PROVED, "no host-hit tokens reported"
    return _hits(tokens, "host-hit tokens", flag="--enable-metrics", wanted=value == "on")


def _cache(value: str, traces: Traces) -> Result:
    flag = "--enable-cache-report"
    return _hits(traces.cached_tokens, "cached tokens", flag=flag, wanted=value == "hit")


def _hits(tokens: int | None, name: str, *, flag: str, wanted: bool) -> Result:
    """Where they are wanted, none seen proves nothing; where not, a single one refutes."""
    if tokens is None:
        return Standing.UNKNOWN, f"{name} could not be read (is {flag} on?)"
    read = f"{tokens} {name} during the run"
    if not wanted:
        return (Standing.REFUTED if tokens else Standing.PROVED), read
    return (Standing.PROVED if tokens else Standing.VACUOUS), read


def _concurrency(value: str, traces: Traces) -> Result:
    peak = traces.peak_in_flight
    if peak is None:
        return Standing.UNKNOWN, "requests in flight were not counted"
    read = f"at most {peak} in flight"
    if peak > int(value):
        return Standing.REFUTED, read
    return (Standing.PROVED if peak == int(value) else Standing.VACUOUS), read


def _context(value: str, traces: Traces) -> Result:
    """Short prompts must all be immune; long ones must all be exposed by their last turn."""
    if traces.prompt_tokens is None:
        return Standing.UNKNOWN, "prompt tokens were not reported"
    least, greatest = traces.prompt_tokens
    read = f"last prompts of {least} to {greatest} tokens"
    if value == "short":
        return (Standing.PROVED if greatest <= IMMUNE_TOKENS else Standing.REFUTED), read
    return (Standing.PROVED if least > IMMUNE_TOKENS else Standing.VACUOUS), read


def _aborts(value: str, traces: Traces) -> Result:
    if traces.aborted is None:
        return Standing.UNKNOWN, "aborted requests were not counted"
    read = f"{traces.aborted} requests aborted by us"
    if value == "off":
        return (Standing.REFUTED if traces.aborted else Standing.PROVED), read
    return (Standing.PROVED if traces.aborted else Standing.VACUOUS), read


def _stream(value: str, traces: Traces) -> Result:
    if traces.streamed is None:
        return Standing.UNKNOWN, "no reply came whose form could be seen"
    read = "replies came as streams" if traces.streamed else "replies came whole"
    return (Standing.PROVED if traces.streamed == (value == "on") else Standing.REFUTED), read


def _cuda_graph(value: str, traces: Traces) -> Result:
    """The batch lines of the log, where there is one; the argument alone where there is none."""
    used = traces.cuda_graph_used
    if used is None:
        return Standing.PROVED, "no batch line seen"
    read = "batch lines show a CUDA graph" if used else "no batch line shows a CUDA graph"
    if value == "off":
        return (Standing.REFUTED if used else Standing.PROVED), read
    return (Standing.PROVED if used else Standing.VACUOUS), read


def _accepted(value: str, traces: Traces) -> Result:
    length = traces.accept_length
    if value == "off":
        return Standing.PROVED, "no drafts expected"
    if length is None:
        return Standing.UNKNOWN, "the accept length could not be read"
    return (Standing.PROVED if length > 1.0 else Standing.VACUOUS), f"accept length {length:.2f}"


def _sent_by_us(value: str, _traces: Traces) -> Result:
    return Standing.PROVED, f"{value} in every request that we sent"


TRACE_PROOFS: dict[str, TraceProof] = {
    "hicache": _hicache,
    "cuda_graph": _cuda_graph,
    "spec": _accepted,
    "cache": _cache,
    "concurrency": _concurrency,
    "context": _context,
    "aborts": _aborts,
    "stream": _stream,
    "history": _sent_by_us,
    "temperature": _sent_by_us,
}
