"""The generations of DeepSeek's tool-call markup, exactly as the encoders write them.

V3.2 and later are tags around the one vocabulary token `｜DSML｜` (U+FF5C, never the ASCII bar);
V3 and V3.1 are special tokens with low blocks (U+2581). V4.1 has a blank before each element name.

Source: the `deepseek-recipe` package 0.2.0 (V4, V4.1), SGLang's `encoding_dsv32.py` (V3.2) and
`deepseekv3_detector.py`, `deepseekv31_detector.py` (V3, V3.1).
"""

from __future__ import annotations

from dataclasses import dataclass

BAR = "｜"
LOW_BLOCK = "▁"
DSML = f"{BAR}DSML{BAR}"

TOOL_CALLS_BEGIN = "<｜tool▁calls▁begin｜>"
TOOL_CALLS_END = "<｜tool▁calls▁end｜>"
TOOL_CALL_BEGIN = "<｜tool▁call▁begin｜>"
TOOL_CALL_END = "<｜tool▁call▁end｜>"
TOOL_SEP = "<｜tool▁sep｜>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One DSML generation: the names of its three elements, blanks included."""

    name: str
    block: str
    invoke: str
    parameter: str

    def opener(self, element: str, attributes: str = "") -> str:
        return f"<{DSML}{element}{attributes}>"

    def closer(self, element: str) -> str:
        return f"</{DSML}{element}>"


V32 = Generation(name="V3.2", block="function_calls", invoke="invoke", parameter="parameter")
V4 = Generation(name="V4", block="tool_calls", invoke="invoke", parameter="parameter")
V41 = Generation(name="V4.1", block=" calls", invoke=" invoke", parameter=" parameter")
GENERATIONS = (V32, V4, V41)
