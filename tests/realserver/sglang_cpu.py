"""SGLang 0.5.23 on a CPU: what to install, what stands in for its GPU parts, how to start it.

Its metadata wants CUDA packages by the dozen; a CPU needs none of them, so it goes in without its
dependencies and those that its import path meets are named here. torchvision and vLLM's operators
are stood in for (`standins/`), the model is made on the spot (`tiny_model.py`).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from realserver.environments import FOLDER, python_of
from realserver.serving import Serving, free_port, serving

VERSION = "0.5.23"
KEY = "sk-realserver0123456789abcdef"
HERE = Path(__file__).parent
STANDINS = HERE / "standins"
# Importing it alone takes half a minute on a busy core, and three processes do.
START_LIMIT_S = 600

# Exact releases where SGLang or its neighbours are particular about them.
STEPS = (
    ("torch==2.13.0", "transformers==5.19.0", "xgrammar==0.2.7"),
    (
        "aiohttp", "fastapi", "uvicorn>=0.51", "uvloop", "orjson", "msgspec", "pyzmq", "psutil",
        "prometheus-client", "python-multipart", "partial_json_parser", "interegular",
        "llguidance>=1.7.6,<2", "einops", "pybase64", "pillow", "setproctitle",
        "sentencepiece==0.2.1", "tiktoken", "openai==2.8.0", "openai-harmony==0.0.4", "requests",
        "scipy", "IPython", "gguf", "blobfile==3.0.0", "nvidia-ml-py", "watchfiles", "zstandard",
        "xxhash", "distro", "python-dateutil", "deepseek-recipe==0.2.0",
        "compressed-tensors==0.18.0", "accelerate", "dill", "jsonschema", "soundfile",
    ),
    ("--no-deps", f"sglang=={VERSION}"),
)  # fmt: skip
FLAGS = (
    "--device", "cpu",
    "--attention-backend", "torch_native",
    "--sampling-backend", "pytorch",
    "--grammar-backend", "xgrammar",
    "--disable-cuda-graph",
    "--disable-overlap-schedule",
    "--skip-server-warmup",
    "--max-total-tokens", "8192",
    "--random-seed", "1",
    "--tool-call-parser", "deepseekv4",
    "--reasoning-parser", "deepseek-v4",
    "--enable-metrics",
    "--api-key", KEY,
)  # fmt: skip


def environment() -> Path:
    """SGLang's Python."""
    return python_of("sglang", *STEPS)


def tiny_model(python: Path) -> Path:
    """The folder of the random model, made if it is not there."""
    folder = FOLDER / "tiny-qwen2"
    if not (folder / "config.json").exists():
        subprocess.run([python, HERE / "tiny_model.py", folder], check=True)
    return folder


def token_ids(model: Path) -> dict[str, int]:
    vocabulary: dict[str, int] = json.loads((model / "tokenizer.json").read_text("utf-8"))["model"][
        "vocab"
    ]
    return vocabulary


@contextmanager
def sglang(log: Path) -> Iterator[Serving]:
    """The server, ready to serve."""
    python = environment()
    port = free_port()
    command = [
        python, "-m", "sglang.launch_server", "--model-path", tiny_model(python),
        "--host", "127.0.0.1", "--port", port, *FLAGS,
    ]  # fmt: skip
    env = {
        "SGLANG_USE_CPU_ENGINE": "0",  # 1 wants its own compiled CPU kernels
        "PYTHONPATH": str(STANDINS),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",  # the matrices are tiny; threads would only get in each other's way
    }
    with serving(
        command, port=port, log=log, health="/health", limit_s=START_LIMIT_S, env=env
    ) as it:
        yield it
