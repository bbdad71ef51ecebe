"""Which devices a host has, and how much of their memory may be used without harm.

A GPU that serves must never be pushed out of memory: what is free, less a reserve for the server's
own peaks and for our context, is the most that is touched; with too little, nothing is started.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dsv4doctor.checksum.worker.engine import Engine, NumpyEngine

MIB = 1 << 20
GPU_RESERVE_BYTES = 1024 * MIB  # left free for the server: its graphs and sampling peak by less
GPU_CONTEXT_BYTES = 768 * MIB  # a CUDA context with torch's kernels loaded, on Hopper about 600 MiB
LEAST_BYTES = 64 * MIB  # below this nothing worth checking fits
CPU_SHARE = 4  # of the memory that is available, a quarter at most
QUERY_TIMEOUT_S = 20


class Refused(Exception):
    """This device cannot or must not be used; the text says why, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """An engine with the bytes it may use."""

    engine: Engine
    budget_bytes: int
    note: str = ""


def cpu_model() -> str:
    """The processor's name, or the machine's kind where the system does not tell."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return f"cpu {line.partition(':')[2].strip()}"
    except OSError:
        pass
    return f"cpu {platform.machine()}"


def _available_bytes() -> int:
    try:
        with open("/proc/meminfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("MemAvailable"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 1024 * MIB


def _budget(free: int, reserve: int, max_bytes: int | None, what: str) -> int:
    budget = free - reserve if max_bytes is None else min(max_bytes, free - reserve)
    if free - reserve < LEAST_BYTES:
        raise Refused(
            f"{what} has {free / MIB:.0f} MiB free; {reserve / MIB:.0f} MiB stay untouched, so "
            "too little is left to check anything: nothing was started"
        )
    return budget


def cpu_device(max_bytes: int | None, *, interpret: bool, why: str) -> Device:
    """The CPU, under the interpreter where asked for and possible."""
    free = _available_bytes()
    budget = _budget(free, free - free // CPU_SHARE, max_bytes, "this machine")
    if interpret:
        try:
            os.environ["TRITON_INTERPRET"] = "1"
            from dsv4doctor.checksum.worker.torch_engine import TorchEngine

            return Device(engine=TorchEngine("cpu"), budget_bytes=budget, note=why)
        except ImportError as error:
            why = f"{why}; without {error.name or 'triton'} the kernels cannot be interpreted"
    engine = NumpyEngine(cpu_model())
    path = "numba" if engine.is_fast else "plain numpy (slow: numba is not installed)"
    return Device(engine=engine, budget_bytes=budget, note=f"{why}; CPU path by {path}")


def gpu_count() -> tuple[int, str]:
    """(GPUs that torch can use, why there are none)."""
    try:
        import torch
    except ImportError:
        return 0, "no torch in this Python"
    if not torch.cuda.is_available():
        built = torch.version.cuda or torch.version.hip
        return 0, "no usable GPU" if built else "torch is built without CUDA or ROCm"
    os.environ["TRITON_INTERPRET"] = "0"  # inherited, it would interpret kernels beside a GPU
    try:
        import triton  # noqa: F401
    except ImportError:
        return 0, "no triton in this Python"
    return torch.cuda.device_count(), ""


def gpu_device(index: int, max_bytes: int | None) -> Device:
    """GPU `index`, its memory asked for before a context is made on it.

    Raises:
        Refused: if too little memory is free.
    """
    import torch

    name = f"GPU {index}"
    free_before = nvidia_facts().get(index, {}).get("memory_free_bytes")
    if free_before is not None and "CUDA_VISIBLE_DEVICES" not in os.environ:
        _budget(free_before, GPU_RESERVE_BYTES + GPU_CONTEXT_BYTES, max_bytes, name)
    try:
        free, total = torch.cuda.mem_get_info(index)
        budget = _budget(free, GPU_RESERVE_BYTES, max_bytes, name)
        torch.cuda.set_per_process_memory_fraction(min(1.0, budget / total), index)
        from dsv4doctor.checksum.worker.torch_engine import TorchEngine

        return Device(engine=TorchEngine(f"cuda:{index}"), budget_bytes=budget)
    except RuntimeError as error:
        raise Refused(f"{name} refuses: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its kind."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


_NVIDIA_QUERY = {
    "index": int,
    "name": str,
    "memory.free": float,
    "driver_version": str,
    "ecc.errors.uncorrected.volatile.total": str,
}


def nvidia_facts() -> dict[int, dict[str, Any]]:
    """What nvidia-smi says of each GPU; empty where there is none."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return {}
    query = ",".join(_NVIDIA_QUERY)
    try:
        done = subprocess.run(
            [tool, f"--query-gpu={query}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=QUERY_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    found = {}
    for line in done.stdout.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(_NVIDIA_QUERY) or not fields[0].isdigit():
            continue
        free = fields[2]
        found[int(fields[0])] = {
            "name": fields[1],
            "memory_free_bytes": int(float(free) * MIB)
            if free.replace(".", "").isdigit()
            else None,
            "driver": fields[3],
            "ecc_uncorrected": fields[4],
        }
    return found


def xid_events() -> int | None:
    """NVIDIA's Xid lines in the kernel log; None where the log may not be read."""
    tool = shutil.which("dmesg")
    if tool is None:
        return None
    try:
        done = subprocess.run(
            [tool], capture_output=True, text=True, errors="replace", timeout=QUERY_TIMEOUT_S,
            check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return sum("NVRM: Xid" in line for line in done.stdout.splitlines())


def versions() -> Mapping[str, str | None]:
    """Python and the libraries that matter, None where not installed."""
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in ("numpy", "numba", "torch", "triton", "sglang"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def devices(job: Mapping[str, Any]) -> Iterator[Device | Refused]:
    """The devices that `job` asks for: chosen or all GPUs, else the CPU.

    A device that refuses is a value, so that the others' results stand.
    """
    max_bytes = job.get("max_bytes")
    count, why = gpu_count()
    chosen = job.get("gpus")
    if count == 0:
        if job.get("require_gpu") or chosen:
            yield Refused(f"a GPU was required, but: {why}")
            return
        try:
            yield cpu_device(max_bytes, interpret=bool(job.get("interpret", True)), why=why)
        except Refused as refused:
            yield refused
        return
    for index in range(count) if chosen is None else chosen:
        if index >= count:
            yield Refused(f"there is no GPU {index}: this host has {count}")
            continue
        try:
            yield gpu_device(index, max_bytes)
        except Refused as refused:
            yield refused
