"""The probe's kernels, interpreted against the reference or compiled for a GPU; prints JSON.

    python layers_programs.py interpret | compile BACKEND ARCH

Programs of their own: a process in which Triton interprets cannot compile, and the other way round.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

if sys.argv[1] == "interpret":
    os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, str(Path(__file__).parents[1] / "kernels"))

import torch

from dsv4doctor.kernels.coefficients import SCALE_COLUMN
from dsv4doctor.kernels.latent_digest import latent_digest_constants
from dsv4doctor.kernels.layouts import index_layout, latent_layout
from dsv4doctor.kernels.page_digest import page_digest_constants
from dsv4doctor.probe.banks import Bank
from dsv4doctor.probe.devices import CpuDevice, CudaDevice, normal_digests
from dsv4doctor.probe.layers_digest import (
    confine_kernel,
    flip_kernel,
    layers_digest_kernel,
    layers_latent_kernel,
)

KEPT = ("ROWS", "COLUMNS", "SCALES", "TWO_TENSORS", "SCALE_BETA", "ROW_BLOCK", "num_warps")


def bank_of(name: str, layers: int = 2, pages: int = 4) -> Bank:
    layout = latent_layout(name) if name in ("c128", "c4") else index_layout(name)
    dice = torch.Generator().manual_seed(3)

    def pages_of(width: int) -> tuple[torch.Tensor, ...]:
        return tuple(
            torch.randint(0, 256, (pages, width), generator=dice, dtype=torch.uint8)
            for _ in range(layers)
        )

    return Bank(
        pool="index_k", layout=layout, layers=tuple(range(layers)),
        values=pages_of(layout.page_bytes),
        scales=pages_of(layout.scale_page_bytes) if layout.two_tensors else None, page_tokens=256,
    )  # fmt: skip


def page_first(bank: Bank) -> Bank:
    """The same pages as one tensor [pages, layers, bytes], as HiCache's page_first keeps them."""
    whole = torch.stack(bank.values, dim=1)
    return Bank(
        pool=bank.pool, layout=bank.layout, layers=bank.layers,
        values=tuple(whole[:, layer] for layer in range(len(bank.layers))), scales=None,
        page_tokens=256,
    )  # fmt: skip


def interpret() -> None:
    """Digests of the device's path against the CPU's, bit for bit; a byte flipped and put back."""
    device, plain, results = CudaDevice(torch.device("cpu")), CpuDevice(), {}
    for name in ("fp8", "fp4-rocm", "c128"):
        bank, table = bank_of(name), torch.tensor([3, 1], dtype=torch.int64)
        found, expected = torch.zeros(4, dtype=torch.int64), torch.zeros(4, dtype=torch.int64)
        device.digest(bank, (0, 1), table, found)
        plain.digest(bank, (0, 1), table, expected)
        results[name] = found.tolist() == expected.tolist()
    bank, table = bank_of("fp8"), torch.tensor([2], dtype=torch.int64)
    one, other = torch.zeros(2, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)
    device.digest(bank, (0, 1), table, one)
    device.digest(page_first(bank), (0, 1), table, other)
    results["page_first"] = one.tolist() == other.tolist()
    device.flip(bank, 1, table, 0, 700)
    device.digest(bank, (0, 1), table, other)
    results["flipped"] = [a == b for a, b in zip(one.tolist(), other.tolist(), strict=True)]
    device.flip(bank, 1, table, 0, 700)
    device.digest(bank, (0, 1), table, other)
    results["put back"] = one.tolist() == other.tolist()
    two = torch.zeros(2, dtype=torch.int64)
    device.digest(bank, (0,), torch.tensor([0, 2]), two)
    results["anywhere"] = (
        normal_digests(two.tolist(), bank)[1] == normal_digests(one.tolist(), bank)[0]
    )
    ids = torch.tensor([3, 4, -1, 1 << 40, 0, 1], dtype=torch.int64)
    device.confine(ids, 4)
    results["confined"] = ids.tolist()
    print(json.dumps(results))


def compile_all(backend: str, arch: str) -> None:
    """What the machine code is made of: nothing may spill."""
    from compiled_kernels import amd_code, compile_case, nvidia_code
    from triton.backends.compiler import GPUTarget

    is_nvidia = backend == "cuda"
    target = GPUTarget(backend, int(arch) if is_nvidia else arch, 32 if is_nvidia else 64)
    words = {"pointers_ptr": "*u64", "scale_pointers_ptr": "*u64"}
    fp8 = page_digest_constants(index_layout("fp8"), use_table=True, with_rows=False)
    latent = latent_digest_constants(latent_layout("c4"), use_table=True, with_rows=False)
    assert fp8["SCALE_BETA"] == SCALE_COLUMN
    found: dict[str, Any] = {}
    for kernel, given in (
        (layers_digest_kernel, fp8), (layers_latent_kernel, latent),
        (flip_kernel, {"num_warps": 1}), (confine_kernel, {"num_warps": 1}),
    ):  # fmt: skip
        constants = {name: value for name, value in given.items() if name in KEPT}
        compiled = compile_case(target, kernel, words, constants)
        asm = compiled.asm
        found[kernel.__name__] = nvidia_code(asm["cubin"]) if is_nvidia else amd_code(asm["amdgcn"])
    print(json.dumps(found))


if __name__ == "__main__":
    if sys.argv[1] == "interpret":
        interpret()
    else:
        compile_all(*sys.argv[2:])
