"""GPU memory by kind, as the driver reports it (`nvidia-smi` or `rocm-smi`, total memory)."""

from __future__ import annotations

from dsv4doctor.errors import UsageError
from dsv4doctor.units import MIB, parse_bytes

# MiB that `nvidia-smi --query-gpu=memory.total` prints; AMD's are the data sheet's GiB.
_TOTAL_MIB = {
    "A100-80G": 81_920,
    "H20": 97_871,
    "H100": 81_559,
    "H800": 81_559,
    "H200": 143_771,
    "B200": 183_359,
    "RTX-PRO-6000": 97_887,
    "MI300X": 196_608,
    "MI325X": 262_144,
    "MI355X": 294_912,
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
