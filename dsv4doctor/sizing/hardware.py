"""GPU memory by kind, as the driver reports it (`nvidia-smi` or `rocm-smi`, total memory)."""

from __future__ import annotations

from dsv4doctor.errors import UsageError
from dsv4doctor.units import MIB, parse_bytes

# MiB in total as the driver prints them: `nvidia-smi --query-gpu=memory.total`, `amd-smi` (which
# says MB and means MiB; `rocm-smi` gives the same in bytes). Read off outputs pasted in public:
# A100 and H100 in modal-labs/modal-client#2797, B200 in NVIDIA/TensorRT-LLM#10278, MI300X
# (206141652992 B) in ROCm/legacy-rocm-build#4750; H20, H200, RTX PRO 6000 Blackwell, MI325X and
# MI355X (309220868096 B) in many bench logs. H800 is an H100 in memory.
_TOTAL_MIB = {
    "A100-80G": 81_920,
    "H20": 97_871,
    "H100": 81_559,
    "H800": 81_559,
    "H200": 143_771,
    "B200": 183_359,
    "RTX-PRO-6000": 97_887,
    "MI300X": 196_592,
    "MI325X": 262_128,
    "MI355X": 294_896,
}
KINDS = tuple(_TOTAL_MIB)


def gpu_bytes(kind: str) -> int:
    """Memory of one GPU of `kind`: a name of `KINDS`, or a size as `141GiB`.

    Raises:
        UsageError: neither.
    """
    name = kind.strip().upper().replace(" ", "-").replace("_", "-")
    for known, mib in _TOTAL_MIB.items():
        if name in (known, f"NVIDIA-{known}", f"AMD-{known}"):
            return mib * MIB
    try:
        return parse_bytes(kind)
    except UsageError:
        raise UsageError(
            f"GPU kind {kind!r} is unknown", f"one of {', '.join(KINDS)}, or a size as 141GiB"
        ) from None
