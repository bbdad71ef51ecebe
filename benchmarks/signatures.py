"""Each fault's signature: under which conditions it shows, from runs, as docs/lab.md has it.

    python benchmarks/signatures.py [--seeds 1] [--only FAULT] [--older] [--write]

Sessions are driven straight into the lab's engines, a round a turn, as its server gathers them; a
reply is corrupted when it is not word for word the scenario's. What happens on the way to a client
(the parser, the abort of a transfer) is measured with `dsv4doctor repro`. Every finished run is a
line of signatures.jsonl at once, so a killed run goes on where it stopped; lines count only for the
code that they were measured on, unless --older lets them stand in for missing ones.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported

from soak_table import code_digest
from stamping import ROOT, stamp

from dsv4doctor.artifacts.catalog import load_scenario
from dsv4doctor.lab.config import EngineConfig
from dsv4doctor.lab.engine import Engine
from dsv4doctor.lab.faults import FAULTS, default_index_k
from dsv4doctor.lab.faults.fault import Fault
from dsv4doctor.lab.pd.decode import DecodeEngine
from dsv4doctor.lab.pd.prefill import PrefillEngine
from dsv4doctor.lab.rendering import assistant_text
from dsv4doctor.lab.requests import EngineRequest, Generation, Room
from dsv4doctor.load.schedule import build_session
from dsv4doctor.scenario import Scenario, TurnKind
from dsv4doctor.session import SessionScript

FOLDER = Path(__file__).parent
LINES = FOLDER / "signatures.jsonl"
DOCUMENT = ROOT / "docs" / "lab.md"
BEGIN, END = "<!-- signatures: made by benchmarks/signatures.py -->", "<!-- end of signatures -->"
SESSIONS = 60

# Which conversations a fault is looked for in; the default elsewhere.
SCENARIOS = {"early-send": "best-of-n", "parser-negative-number": "parser-probe"}
# Where requests have to go through a server.
OVER_HTTP = {"parser-negative-number"}
HTTP_SESSIONS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One column: what is changed from the fault's own condition. `flags` are those of `repro`, for
    what needs a server; None where that shows nothing new. Low ranks are run first."""

    title: str
    sessions: int = SESSIONS
    scenario: Callable[[Scenario], Scenario] = lambda scenario: scenario
    settings: dict[str, Any] = field(default_factory=dict)
    is_fixed: bool = False
    is_apart: bool = False
    flags: tuple[str, ...] | None = None
    rank: int = 0


def _short(scenario: Scenario) -> Scenario:
    short = load_scenario("short-context")
    return replace(short, samples=scenario.samples)


def _without_aborts(scenario: Scenario) -> Scenario:
    kinds = tuple(kind for kind in scenario.turn_kinds if kind is not TurnKind.ABORTED)
    return replace(scenario, turn_kinds=kinds)


CONDITIONS = (
    Condition(title="as it is", flags=()),
    Condition(title="1 session", sessions=1, flags=("--sessions", "1")),
    Condition(title="short contexts", scenario=_short),
    Condition(
        title="longer contexts",
        scenario=lambda scenario: replace(scenario, context_tokens=(3400, 8600)),
        rank=3,
    ),
    Condition(
        title="forced miss",
        scenario=lambda scenario: replace(scenario, salts_prompts=True),
        rank=1,
    ),
    Condition(title="no aborts", scenario=_without_aborts, rank=3),
    Condition(
        title="HiCache off",
        settings={"hicache": False},
        flags=("--lab-hicache", "off"),
        rank=1,
    ),
    Condition(title="fp8", settings={"index_k": "fp8"}, flags=("--lab-index-k", "fp8"), rank=2),
    Condition(title="overlap off", settings={"overlap_schedule": False}, rank=2),
    Condition(title="PD", is_apart=True, flags=("--lab-option", "disaggregation=on"), rank=2),
    Condition(
        title="not streamed", scenario=lambda scenario: replace(scenario, stream=False), flags=()
    ),
    Condition(title="fixed", is_fixed=True),
)


class Pair:
    """A prefill and a decode engine, joined without sockets."""

    def __init__(self, config: EngineConfig) -> None:
        self._batches: list[Any] = []
        self._prefill = PrefillEngine(config, None, self._batches.append)
        self._decode = DecodeEngine(config)

    def on_abort(self, rid: str) -> None:
        """A message between the servers, not the engines."""

    def serve_round(self, requests: list[EngineRequest]) -> list[Generation]:
        self._batches.clear()
        rooms = dict(enumerate(requests))
        apart = [
            replace(one, room=Room(host="", port=0, number=number)) for number, one in rooms.items()
        ]
        said = {one.rid: one for one in self._prefill.serve_round(apart) if one.hung}
        for batch in self._batches:
            said.update((g.rid, g) for g in self._decode.serve_transferred(batch, rooms))
        return [said[one.rid] for one in requests]


def drive(engine: Any, scripts: list[SessionScript]) -> Iterator[tuple[str, Generation]]:
    """What was expected and what came, request by request; aborts are told when they are due."""
    for turn in range(len(scripts[0].turns)):
        requests = [_request(script, turn) for script in scripts]
        for script, reply in zip(scripts, engine.serve_round(requests), strict=True):
            yield assistant_text(script.turns[turn].expected_reply), reply
        for script, request in zip(scripts, requests, strict=True):
            if script.turns[turn].abort_after_tokens is not None:
                engine.on_abort(request.rid)


def _request(script: SessionScript, turn: int) -> EngineRequest:
    messages = script.messages(turn)
    if script.salts_prompts:
        first = messages[0]
        salt = f"[{script.session} {turn}]"
        messages = [{**first, "content": f"{salt} {first['content']}"}, *messages[1:]]
    return EngineRequest(
        rid=f"signature-s{script.session:04d}-t{turn:02d}",
        messages=messages,
        tools=script.tools,
        tool_choice=script.turns[turn].tool_choice,
        max_tokens=script.turns[turn].max_tokens,
    )


def on_engines(fault: Fault, condition: Condition, seed: int) -> dict[str, int] | None:
    """One run without a server; None where the condition is a server's, or holds anyway."""
    scenario = condition.scenario(load_scenario(SCENARIOS.get(fault.name, "tool-calls")))
    if not scenario.stream or (condition.is_apart and fault.needs_disaggregation):
        return None
    settings = {"index_k": default_index_k([fault.name]), **condition.settings}
    config = EngineConfig(
        faults=(fault.name,),
        fixes=(fault.fix,) if condition.is_fixed and fault.fix else (),
        seed=seed,
        **settings,
    )
    apart = condition.is_apart or fault.needs_disaggregation
    scripts = [
        build_session(scenario, seed=seed, session=number) for number in range(condition.sessions)
    ]
    pairs = list(drive(Pair(config) if apart else Engine(config), scripts))
    return {
        "responses": sum(not reply.hung for _, reply in pairs),
        "corrupted": sum(not r.hung and r.text != expected for expected, r in pairs),
        "failures": sum(reply.hung for _, reply in pairs),
    }


def over_http(fault: Fault, condition: Condition, seed: int) -> dict[str, int] | None:
    """One run with `repro`; None where the condition is none of a server's."""
    if condition.flags is None and not condition.is_fixed:
        return None
    name = SCENARIOS.get(fault.name, "tool-calls")
    scenario = condition.scenario(load_scenario(name))
    with tempfile.TemporaryDirectory() as folder:
        if not scenario.stream:
            text = (ROOT / "repro" / f"{name}.toml").read_text(encoding="utf-8")
            name = str(Path(folder) / "unstreamed.toml")
            Path(name).write_text(text.replace("turns = ", "stream = false\nturns = ", 1))
        words = ["--scenario", name, "--lab-fault", fault.name, "--seed", str(seed)]
        words += ["--sessions", str(HTTP_SESSIONS), *(condition.flags or ())]
        words += ["--lab-fix", fault.fix] if condition.is_fixed else []
        done = subprocess.run(
            [sys.executable, "-m", "dsv4doctor", "repro", "--json", "--no-progress",
             "--output-dir", folder, *words],
            capture_output=True, text=True, check=False, timeout=900,
        )  # fmt: skip
    body = json.loads(done.stdout)["repro"]
    return {
        "responses": body["responses"],
        "corrupted": body["corrupted_responses"],
        "failures": body["failures"],
    }


def measure(fault: Fault, condition: Condition, seed: int, code: str) -> dict[str, Any] | None:
    """One run of `code` as a line of the log; None where there is nothing to run."""
    began = time.monotonic()
    # Between two servers an abort is a message to a thread that no engine has.
    by_message = condition.is_apart and fault.abort_kills_transfer_thread
    run = over_http if fault.name in OVER_HTTP or by_message else on_engines
    counts = run(fault, condition, seed)
    if counts is None:
        return None
    return {
        "fault": fault.name,
        "condition": condition.title,
        "seed": seed,
        "code": code,
        "seconds": round(time.monotonic() - began, 1),
        **counts,
    }


def cell(lines: list[dict[str, Any]]) -> str:
    """What the runs of one cell say: a share, exactly nothing, or a standstill."""
    if not lines:
        return ""
    if any(line["failures"] for line in lines):
        return "**hangs**"
    corrupted = sum(line["corrupted"] for line in lines)
    share = 100 * corrupted / sum(line["responses"] for line in lines)
    return f"**{share:.1f} %**" if corrupted else "0"


def table(lines: list[dict[str, Any]], seeds: int) -> str:
    """The Markdown table of all lines."""
    rows = []
    for fault in FAULTS:
        cells = [
            cell([x for x in lines if (x["fault"], x["condition"]) == (fault.name, c.title)])
            for c in CONDITIONS
        ]
        rows.append(f"| `{fault.name}` | {' | '.join(cells)} |")
    head = " | ".join(condition.title for condition in CONDITIONS)
    of_seeds = f"{seeds} seeds" if seeds > 1 else "one seed"
    return "\n".join(
        (
            BEGIN,
            f"| fault | {head} |",
            "|---" * (len(CONDITIONS) + 1) + "|",
            *rows,
            "",
            f"Corrupted responses, {of_seeds} each; zeros are exact counts. {stamp()}",
            END,
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", choices=[fault.name for fault in FAULTS])
    parser.add_argument("--older", action="store_true")
    parser.add_argument("--write", action="store_true", help="put the table into docs/lab.md")
    options = parser.parse_args()
    lines = [json.loads(line) for line in LINES.read_text().splitlines()] if LINES.exists() else []
    code = code_digest()
    if not options.older:
        lines = [line for line in lines if line["code"] == code]
    known = {(line["fault"], line["condition"], line["seed"]) for line in lines}
    # Column by column: a run that is cut short has told of every fault.
    for seed in range(options.seeds):
        for condition in sorted(CONDITIONS, key=lambda one: one.rank):
            for fault in FAULTS:
                if options.only not in {None, fault.name}:
                    continue
                if (fault.name, condition.title, seed) in known:
                    continue
                line = measure(fault, condition, seed, code)
                if line is None:
                    continue
                lines.append(line)
                with LINES.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
                print(line, flush=True)
    text = table(lines, options.seeds)
    print(text)
    if options.write:
        page = DOCUMENT.read_text(encoding="utf-8")
        head, _, rest = page.partition(BEGIN)
        DOCUMENT.write_text(head + text + rest.partition(END)[2], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
