"""DeepSeek-V3.2's DSA path: recognised, priced by its own rule, never by V4's.

DSA keeps one MLA row and one index-K row a token and layer: no compressed pools, no SWA, no state.
Its index line is of the same shape as V4's (`index_head_dim` + scales, 132 B) and is right as it
stands, because `DSATokenToKVPool` stores fp8 keys in uint8 only.

Source: `DSATokenToKVPool` in `mem_cache/memory_pool.py` of SGLang 0.5.12-0.5.23, read and not
executed: figures from here are estimates.
"""

from __future__ import annotations

from dataclasses import dataclass

from dsv4doctor.sizing.layouts import index_row_bytes

FP8_SCALE_BYTES = 16  # four fp32 scales for the 512 latent values of an fp8 row


@dataclass(frozen=True, slots=True, kw_only=True)
class DsaModel:
    """The fields of a V3.2 `config.json` that its pools follow."""

    name: str
    num_hidden_layers: int
    kv_lora_rank: int = 512
    qk_rope_head_dim: int = 64
    index_head_dim: int = 128

    def latent_row_bytes(self, *, fp8: bool) -> int:
        """One MLA row: 656 B packed fp8 (latent, scales, bf16 rope), or 1152 B bf16."""
        if fp8:
            return self.kv_lora_rank + FP8_SCALE_BYTES + 2 * self.qk_rope_head_dim
        return 2 * (self.kv_lora_rank + self.qk_rope_head_dim)

    @property
    def index_row_bytes(self) -> int:
        return index_row_bytes("fp8", self.index_head_dim)

    def bytes_per_token(self, *, fp8: bool) -> int:
        """All layers of one token."""
        return self.num_hidden_layers * (self.latent_row_bytes(fp8=fp8) + self.index_row_bytes)


V32 = DsaModel(name="V3.2", num_hidden_layers=61)


def is_dsa_name(name: str) -> bool:
    """Whether a model's name says V3.2."""
    text = name.lower().replace("_", "-")
    return "v3.2" in text or "v32" in text
