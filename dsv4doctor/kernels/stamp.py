"""What one 8-byte unit of a fill pattern says of itself, and the number that says it.

number = key(seed) + (generation≪52 | layer≪44 | page≪20 | place)        unit = mix64(number)
"""

from __future__ import annotations

from dataclasses import dataclass

from dsv4doctor.kernels.coefficients import GOLDEN, MASK64, mix64

UNIT_BYTES = 8
GENERATION_SHIFT, GENERATION_BITS = 52, 12
LAYER_SHIFT, LAYER_BITS = 44, 8
PAGE_SHIFT, PAGE_BITS = 20, 24
PLACE_BITS = 20


def pattern_key(seed: int) -> int:
    """What is added to a pattern's numbers before mixing."""
    return mix64(seed + GOLDEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """The first unit of a fill: which write, layer, page and place in the page; `seed` hides it.

    Raises:
        ValueError: if a number does not fit its field.
    """

    generation: int = 0
    layer: int = 0
    page: int = 0
    place: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, bits in (
            ("generation", GENERATION_BITS),
            ("layer", LAYER_BITS),
            ("page", PAGE_BITS),
            ("place", PLACE_BITS),
        ):
            value = getattr(self, name)
            if not 0 <= value < 1 << bits:
                raise ValueError(f"{name} {value} does not fit the pattern's {bits} bits")

    @property
    def number(self) -> int:
        """The number of the first unit; the units that follow add places and pages to it."""
        fields = self.generation << GENERATION_SHIFT | self.layer << LAYER_SHIFT
        return (pattern_key(self.seed) + fields + (self.page << PAGE_SHIFT) + self.place) & MASK64
