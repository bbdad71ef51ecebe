"""Compiles every kernel ahead of time for one GPU and prints what the machine code is made of.

A program of its own (`python compiled_kernels.py cuda 90`), because a process in which Triton
interprets cannot compile. One JSON line a kernel: `kernel`, `case`, `instructions` (of the whole
kernel, to its last exit), `integer` (those of the integer units), `words` (32-bit words a thread
digests or writes), `loads` and `wide_loads` (global, all and 128-bit), `wide_stores`, `registers`,
`stack_bytes`, `spills`. Needs no GPU: the disassemblers are Triton's.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from dsv4doctor.kernels.fill_pattern import BLOCK, fill_pattern_kernel
from dsv4doctor.kernels.index_topk import index_scores_constants, index_scores_kernel
from dsv4doctor.kernels.latent_digest import latent_digest_constants, latent_digest_kernel
from dsv4doctor.kernels.layouts import INDEX_DTYPES, index_layout, latent_layout
from dsv4doctor.kernels.page_digest import page_digest_constants, page_digest_kernel

TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
# argument -> type; every pointer that is not named here is *i64, every number i64
WORDS = {"values_ptr": "*i32", "words_ptr": "*i32", "scales_ptr": "*i32"}
SCORES = {
    "pages_ptr": "*u8", "scales_ptr": "*u8", "table_ptr": "*i64", "queries_ptr": "*fp32",
    "weights_ptr": "*fp32", "values_ptr": "*fp32", "scores_ptr": "*fp32", "heads": "i32",
}  # fmt: skip
UNITS = {"pairs": "i32"}


def cases() -> list[tuple[str, Any, dict[str, str], dict[str, Any], int]]:
    """(case, kernel, argument types, constants and options, words a program handles)."""
    found = []
    for dtype in INDEX_DTYPES:
        layout = index_layout(dtype)
        types = WORDS | ({"scales_ptr": "*u8"} if layout.two_tensors else {})
        words = layout.rows * layout.row_words
        for use_table in (False, True) if dtype == "fp8" else (False,):
            constants = page_digest_constants(layout, use_table=use_table, with_rows=True)
            case = f"{dtype}{'-table' if use_table else ''}"
            found.append((case, page_digest_kernel, types, constants, words))
        found.append((dtype, index_scores_kernel, SCORES, index_scores_constants(layout), 0))
    for pool in ("swa", "c128"):
        layout = latent_layout(pool)
        constants = latent_digest_constants(layout, use_table=False, with_rows=True)
        found.append((pool, latent_digest_kernel, WORDS, constants, 0))
    fill = {"BLOCK": BLOCK, "num_warps": 4}
    found.append(("pattern", fill_pattern_kernel, UNITS, fill, 2 * BLOCK))
    return found


def compile_case(target: GPUTarget, kernel: Any, types: dict[str, str], given: dict) -> Any:
    """The compiled kernel, with pointers and strides known to be multiples of 16."""
    constants = {name: value for name, value in given.items() if name.isupper()}
    options = {name: value for name, value in given.items() if not name.isupper()}
    signature, attributes = {}, {}
    for index, name in enumerate(kernel.arg_names):
        default = "*i64" if name.endswith("_ptr") else "i64"
        signature[name] = "constexpr" if name in constants else types.get(name, default)
        if name.endswith(("_ptr", "_stride")):
            attributes[index,] = [["tt.divisibility", 16]]
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attributes)
    return triton.compile(source, target=target, options=options)


def nvidia_code(binary: bytes) -> dict[str, int]:
    """Counts from SASS."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        sass = _tool("nvdisasm", "-c", file.name)
        usage = _tool("cuobjdump", "--dump-resource-usage", file.name)
    code = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(.*?);", sass)
    last = max(i for i, line in enumerate(code) if "EXIT" in line)
    code = code[: last + 1]  # what follows pads the last block
    loads = [line for line in code if re.search(r"\bLDG\b", line)]
    return {
        "instructions": len(code),
        "integer": sum(
            bool(re.search(r"\b(IMAD|IADD3?|LOP3|SHF|LEA|UIADD3|UIMAD)\b", c)) for c in code
        ),
        "loads": len(loads),
        "wide_loads": sum(".128" in line for line in loads),
        "wide_stores": sum("STG" in line and ".128" in line for line in code),
        "spills": sum(bool(re.search(r"\b(LDL|STL)\b", line)) for line in code),
        "registers": int(re.search(r"REG:(\d+)", usage)[1]),
        "stack_bytes": int(re.search(r"STACK:(\d+)", usage)[1]),
    }


def amd_code(assembly: str) -> dict[str, int]:
    """Counts from AMD's assembly and its metadata."""
    code = [line.split()[0] for line in assembly.splitlines() if re.match(r"\s+[a-z]\w*_\w+", line)]
    loads = [name for name in code if name.startswith(("global_load", "buffer_load"))]
    return {
        "instructions": len(code),
        "integer": sum(bool(re.match(r"v_(mad|mul|add|lsh|xor|or|and|ash)", c)) for c in code),
        "loads": len(loads),
        "wide_loads": sum("dwordx4" in name for name in loads),
        "wide_stores": sum("store" in name and "dwordx4" in name for name in code),
        "spills": int(re.search(r"\.vgpr_spill_count:\s+(\d+)", assembly)[1])
        + int(re.search(r"\.sgpr_spill_count:\s+(\d+)", assembly)[1]),
        "registers": int(re.search(r"\.vgpr_count:\s+(\d+)", assembly)[1]),
        "stack_bytes": int(re.search(r"\.private_segment_fixed_size:\s+(\d+)", assembly)[1]),
    }


def _tool(name: str, *arguments: str) -> str:
    done = subprocess.run(
        [TOOLS / name, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def main(backend: str, arch: str) -> None:
    """Print one JSON line a kernel for `backend` cuda or hip."""
    warp = 32 if backend == "cuda" else 64
    target = GPUTarget(backend, int(arch) if backend == "cuda" else arch, warp)
    for case, kernel, types, given, words in cases():
        compiled = compile_case(target, kernel, types, given)
        is_nvidia = backend == "cuda"
        code = nvidia_code(compiled.asm["cubin"]) if is_nvidia else amd_code(compiled.asm["amdgcn"])
        line = {
            "kernel": kernel.__name__,
            "case": case,
            "words": words / (warp * given["num_warps"]),
        }
        print(json.dumps(line | code), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
