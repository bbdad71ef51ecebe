"""What a DeepSeek-V4 model is to the pool configurator: layers by compression ratio, and widths.

Sources: `compress_ratios` as repeated in public copies of the models' `config.json`; the layer
counts are cross-checked by printed server logs (15955.85 for V4-Flash on 0.5.12, 13735.04 for
V4-Pro at ratio 0.15 on 0.5.15.post1, 1670.75 for V4.1-Flash with DSpark on 0.5.21).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dsv4doctor.errors import UsageError

KNOWN_RATIOS = (0, 1, 2, 4, 128)


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """What sizing reads of a `config.json`; `draft_layers` is what a draft worker adds."""

    name: str
    num_hidden_layers: int
    compress_ratios: tuple[int, ...]  # the file's list; past the layers: MTP or draft stages
    kv_source_layer_ids: tuple[int, ...] = ()  # owners of the storage of ratios 1 and 2
    head_dim: int = 512
    qk_rope_head_dim: int = 64
    index_head_dim: int = 128
    sliding_window: int = 128
    context_len: int = 1_048_576
    draft_layers: int = 1
    family: str = "v4"  # v4 | v41

    @property
    def layer_ratios(self) -> tuple[int, ...]:
        """The ratios of the target's own layers."""
        return self.compress_ratios[: self.num_hidden_layers]


_FLASH_RATIOS = (0, 0, *((4, 128) * 20), 4)
_PRO_RATIOS = (128, *((128, 4) * 30))

FLASH = Architecture(name="V4-Flash", num_hidden_layers=43, compress_ratios=_FLASH_RATIOS)
PRO = Architecture(name="V4-Pro", num_hidden_layers=61, compress_ratios=_PRO_RATIOS)
# As shipped: the list carries the MTP layer as one more entry, which 0.5.12 counts.
FLASH_AS_SHIPPED = replace(
    FLASH, name="V4-Flash(44-entry HF list)", compress_ratios=(*_FLASH_RATIOS, 0)
)
PRO_AS_SHIPPED = replace(PRO, name="V4-Pro(62-entry HF list)", compress_ratios=(*_PRO_RATIOS, 0))
V41_FLASH = Architecture(
    name="V4.1-Flash",
    num_hidden_layers=40,
    compress_ratios=(0, 0, *((2,) * 18), *((1,) * 20), 0, 0, 0),
    kv_source_layer_ids=(2, 8, 14, 20),
    draft_layers=3,
    family="v41",
)

MODELS = (FLASH, FLASH_AS_SHIPPED, PRO, PRO_AS_SHIPPED, V41_FLASH)


def find_architecture(name: str) -> Architecture:
    """The model that `name` (a model's name, a repository, a path) names.

    Raises:
        UsageError: no DeepSeek-V4 model by that name.
    """
    for model in MODELS:
        if name == model.name:
            return model
    text = name.lower().replace("_", "-")
    if "v4.1" in text or "v41" in text:
        return V41_FLASH
    if "v4" in text and "pro" in text:
        return PRO
    if "v4" in text and "flash" in text:
        return FLASH
    known = ", ".join(model.name for model in MODELS)
    raise UsageError(
        f"{name!r} names no DeepSeek-V4 model that is known here",
        f"one of {known}, or --model-config path/to/config.json",
    )
