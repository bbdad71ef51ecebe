"""What a bench will do, fixed before it starts, kept in `run.json` so that it can be resumed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dsv4doctor.artifacts.prompts import FilePrompt, read_prompts
from dsv4doctor.canary import MAX_SESSIONS
from dsv4doctor.errors import UsageError
from dsv4doctor.flows.live_target import LabOptions
from dsv4doctor.flows.saved_target import (
    START_ANEW,
    lab_fields,
    lab_from_fields,
    same_endpoint,
    saved_plan,
    told_as_damage,
)
from dsv4doctor.load.arrivals import Arrival
from dsv4doctor.target import Endpoint

__all__ = ["Arrival", "BenchPlan", "BlockPlan", "Level", "resumed_bench"]

# One request alone shows the pace of a stream, a batch shows what is left of it.
DEFAULT_LEVELS = (1, 32)
# Requests a block where none are asked for: two waves at any concurrency, but never fewer than
# this; at a request rate, as many as arrive in so many seconds.
FEWEST_REQUESTS = 4
WAVES = 2
RATE_SECONDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One setting that is measured: at most `max_concurrency` in flight (None: no limit), and
    `num_prompts` requests a block; its sessions are numbered from `first_session`."""

    max_concurrency: int | None
    num_prompts: int
    first_session: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPlan:
    """Block `number` (from 0) of one level: one point of the interval."""

    level: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPlan:
    """One bench. `endpoint` None means the lab; `request_rate` None sends as slots become free."""

    seed: int
    output_dir: Path
    concurrencies: tuple[int, ...] = ()
    blocks: int = 5
    num_prompts: int | None = None
    warmup_requests: int = 1
    ramp_up_s: float = 0.0
    request_rate: float | None = None
    arrival: Arrival = Arrival.POISSON
    input_len: int = 1024
    output_len: int = 256
    length_jitter: float = 0.0
    dataset_path: Path | None = None
    prompts: tuple[FilePrompt, ...] = ()
    ignore_eos: bool = False
    salts_prompts: bool = True
    stream: bool = True
    endpoint: Endpoint | None = None
    lab: LabOptions | None = None
    model: str | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    stall_timeout_s: float = 30.0
    request_timeout_s: float = 600.0
    argv: tuple[str, ...] = ()
    resume: Path | None = None

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels in the order asked for, their sessions numbered one after another."""
        asked: tuple[int | None, ...] = self.concurrencies
        if not asked:
            asked = DEFAULT_LEVELS if self.request_rate is None else (None,)
        levels, first = [], 0
        for concurrency in dict.fromkeys(asked):
            count = self.num_prompts or self._requests_at(concurrency)
            levels.append(
                Level(max_concurrency=concurrency, num_prompts=count, first_session=first)
            )
            first += count * self.blocks
        return tuple(levels)

    def _requests_at(self, concurrency: int | None) -> int:
        if self.request_rate is not None:
            return max(FEWEST_REQUESTS, math.ceil(self.request_rate * RATE_SECONDS))
        return max(FEWEST_REQUESTS, WAVES * (concurrency or 1))

    @property
    def warmup_session(self) -> int:
        """The first session number of warm-up requests: behind all measured ones."""
        last = self.levels[-1]
        return last.first_session + last.num_prompts * self.blocks

    def order(self) -> Iterator[BlockPlan]:
        """All blocks: a block of every level, then the next of every level the other way round, so
        that drift and time of day fall on all levels alike."""
        count = len(self.levels)
        for number in range(self.blocks):
            levels = range(count) if number % 2 == 0 else reversed(range(count))
            for level in levels:
                yield BlockPlan(level=level, number=number)

    @property
    def is_judged(self) -> bool:
        """False when the model is made to go on past its own end: that text has no right form."""
        return not (self.ignore_eos or self.extra_body.get("ignore_eos"))

    def check(self) -> None:
        """Refuse what cannot be run.

        Raises:
            UsageError: if there are more requests than sessions can be numbered.
        """
        total = self.warmup_session + self.warmup_requests * len(self.levels)
        if total > MAX_SESSIONS:
            raise UsageError(
                f"{total:,} requests in one bench",
                f"give fewer --num-prompts or --blocks: at most {MAX_SESSIONS:,} requests",
            )

    def workload(self) -> dict[str, Any]:
        """What two runs must share for their speeds to be about the same thing."""
        rate = self.request_rate
        return {
            "dataset": "synthetic" if self.dataset_path is None else self.dataset_path.name,
            "input_len": None if self.prompts else self.input_len,
            "output_len": self.output_len,
            "length_jitter": None if self.prompts else self.length_jitter,
            "ignore_eos": self.ignore_eos,
            "salted": self.salts_prompts,
            "stream": self.stream,
            "request_rate": rate,
            "arrival": None if rate is None else self.arrival.value,
            "ramp_up_s": self.ramp_up_s,
            "seed": self.seed,
        }

    def manifest(self) -> dict[str, Any]:
        """What `resumed_bench` needs, as JSON types; holds no secret."""
        return {
            **self.workload(),
            "concurrencies": list(self.concurrencies),
            "blocks": self.blocks,
            "num_prompts": self.num_prompts,
            "warmup_requests": self.warmup_requests,
            "arrival": self.arrival.value,
            "input_len": self.input_len,
            "length_jitter": self.length_jitter,
            "dataset_path": None if self.dataset_path is None else str(self.dataset_path),
            "base_url": self.endpoint.base_url if self.endpoint else None,
            "lab": None if self.endpoint else lab_fields(self.lab or LabOptions()),
            "model": self.model,
            "extra_body": dict(self.extra_body),
            "stall_timeout_s": self.stall_timeout_s,
            "request_timeout_s": self.request_timeout_s,
        }


def with_prompts(plan: BenchPlan) -> BenchPlan:
    """The plan with the prompts of its file, as many as it sends.

    Raises:
        UsageError: as `read_prompts`.
    """
    if plan.dataset_path is None:
        return plan
    return replace(plan, prompts=read_prompts(plan.dataset_path, most=plan.warmup_session))


def plan_from(manifest: Mapping[str, Any], given: BenchPlan) -> BenchPlan:
    """The plan that `manifest` (a run's `plan`) tells of, `given` where it says nothing.

    Raises:
        KeyError, TypeError, ValueError: if it is damaged.
    """
    path = manifest["dataset_path"]
    rate = manifest["request_rate"]
    return replace(
        given,
        seed=int(manifest["seed"]),
        concurrencies=tuple(int(each) for each in manifest["concurrencies"]),
        blocks=int(manifest["blocks"]),
        num_prompts=manifest["num_prompts"],
        warmup_requests=int(manifest["warmup_requests"]),
        ramp_up_s=float(manifest["ramp_up_s"]),
        request_rate=None if rate is None else float(rate),
        arrival=Arrival(manifest["arrival"]),
        input_len=int(manifest["input_len"]),
        output_len=int(manifest["output_len"]),
        length_jitter=float(manifest["length_jitter"]),
        dataset_path=None if path is None else Path(path),
        ignore_eos=bool(manifest["ignore_eos"]),
        salts_prompts=bool(manifest["salted"]),
        stream=bool(manifest["stream"]),
        lab=lab_from_fields(manifest["lab"]),
        model=manifest["model"],
        extra_body=given.extra_body or manifest["extra_body"],
        stall_timeout_s=float(manifest["stall_timeout_s"]),
        request_timeout_s=float(manifest["request_timeout_s"]),
    )


def resumed_bench(run_dir: Path, given: BenchPlan) -> BenchPlan:
    """The plan that the run at `run_dir` was started with; of `given` only credentials, headers,
    TLS verification and the extra body count.

    Raises:
        UsageError: if `run_dir` is no run of `bench`, or names another server.
    """
    saved = saved_plan(run_dir, "bench")
    with told_as_damage(run_dir, START_ANEW):
        plan = plan_from(saved, given)
        endpoint = same_endpoint(run_dir, saved["base_url"], given.endpoint)
    return replace(plan, endpoint=endpoint, resume=run_dir)
