"""`audit --run`: what a run directory tells of its server, and of the client that drove it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dsv4doctor.audit.facts import Fact, Facts, gather_facts
from dsv4doctor.flows.audit_sources import facts_of_server_info, with_family


def facts_of_run(path: Path, stated: Mapping[str, Any], has: frozenset[int]) -> Facts:
    """The facts of a run of `repro`: its target's arguments, and how its requests were.

    Raises:
        UsageError: no run directory there.
    """
    from dsv4doctor.artifacts.store import RunDirectory

    run = RunDirectory.open(path)
    target = run.manifest.get("target")
    target = target if isinstance(target, dict) else {}
    client = _of_requests(run.records())
    client |= _of_plan(run.manifest.get("plan"))
    told = {
        f"client.{name}": Fact(name=f"client.{name}", value=value, source=f"{path}/records.jsonl")
        for name, value in client.items()
    }
    args = target.get("server_args")
    if isinstance(args, dict) and args:
        said = {"version": target.get("version"), **args}
        return facts_of_server_info(said, str(path), {**told, **stated}, has)
    known = {name: target.get(name) for name in ("engine", "version", "model")}
    groups = [(f"{path}/run.json", with_family(known)), ("stated", {**told, **stated})]
    return gather_facts(str(path), groups, complete=False, has_changes=has)


def _of_plan(plan: Any) -> dict[str, Any]:
    """What the run was told to send; a run of another kind has no such plan."""
    if not isinstance(plan, dict):
        return {}
    found: dict[str, Any] = {}
    scenario = plan.get("scenario")
    sampling = scenario.get("sampling") if isinstance(scenario, dict) else None
    if isinstance(sampling, dict) and sampling.get("temperature") is not None:
        found["temperature"] = sampling["temperature"]
    at_once = plan.get("max_concurrency") or plan.get("sessions")
    if isinstance(at_once, int):
        found["concurrency"] = at_once
    return found


def _of_requests(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """How the requests were: streamed, with how many tools, how long; unseen is out."""
    found: dict[str, Any] = {}
    choices: Counter[str] = Counter()
    for record in records:
        found["aborts"] = found.get("aborts", False) or bool(record.get("aborted"))
        if "stream" in record:
            found["streams"] = found.get("streams", False) or bool(record["stream"])
        if "max_tokens" in record:
            capped = record["max_tokens"] is not None
            found["sends_max_tokens"] = found.get("sends_max_tokens", True) and capped
        _longest(found, "context_tokens", record.get("prompt_tokens"))
        tools = record.get("tools")
        if isinstance(tools, list) and tools:
            _longest(found, "tools", len(tools))
            found["strict_tools"] = any(_is_strict(tool) for tool in tools)
            choices[str(record.get("tool_choice") or "auto")] += 1
        response = record.get("response")
        if isinstance(response, dict) and response.get("reasoning_content"):
            found["thinking"] = True
    if choices:
        found["tool_choice"] = choices.most_common(1)[0][0]
    return found


def _longest(found: dict[str, Any], name: str, value: Any) -> None:
    if isinstance(value, int):
        found[name] = max(found.get(name, 0), value)


def _is_strict(tool: Any) -> bool:
    function = tool.get("function") if isinstance(tool, dict) else None
    return isinstance(function, dict) and function.get("strict") is True
