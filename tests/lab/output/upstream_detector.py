"""Runs SGLang's own DSML detector from an unpacked wheel. A program: cases in, results out (JSON).

The detector needs only a few pure modules of the wheel; the two that would pull in all of SGLang
are stood in for. Not imported by any test: it must not leave `sglang` in their process.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import sys
import types
from pathlib import Path
from typing import Any

PACKAGE = "sglang.srt.function_call"
PARENTS = ("sglang", "sglang.srt", "sglang.srt.entrypoints", "sglang.srt.entrypoints.openai")


def _stand_in(name: str, **members: Any) -> None:
    module = types.ModuleType(name)
    module.__path__ = []
    module.__dict__.update(members)
    sys.modules[name] = module


def load_detector(wheel: Path) -> Any:
    """The class `DeepSeekV4Detector` of an unpacked wheel."""
    for name in (*PARENTS, PACKAGE):
        _stand_in(name)
    unknown_tools = types.SimpleNamespace(get=lambda: False)
    _stand_in("sglang.srt.entrypoints.openai.protocol", Tool=object, ToolChoice=object)
    _stand_in(
        "sglang.srt.environ",
        envs=types.SimpleNamespace(SGLANG_FORWARD_UNKNOWN_TOOLS=unknown_tools),
    )
    for name in (
        "core_types",
        "utils",
        "base_format_detector",
        "deepseekv32_detector",
        "deepseekv4_detector",
    ):
        path = wheel / "sglang/srt/function_call" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(f"{PACKAGE}.{name}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    return sys.modules[f"{PACKAGE}.deepseekv4_detector"].DeepSeekV4Detector


def _items(result: Any) -> list[Any]:
    calls = [[call.tool_index, call.name, call.parameters] for call in result.calls]
    return [result.normal_text or "", calls]


def complete(detector: Any, text: str, tools: list[Any]) -> list[Any]:
    """What SGLang's serving code makes of a whole text."""
    if not detector.has_tool_call(text):
        return [text, []]
    return _items(detector.detect_and_parse(text, tools))


def streamed(detector: Any, deltas: list[str], tools: list[Any]) -> list[Any]:
    """What each delta releases, and last what the end of the stream does."""
    results = [_items(detector.parse_streaming_increment(delta, tools)) for delta in deltas]
    finish = getattr(detector, "finish", None)
    results.append(_items(finish(tools)) if finish is not None else ["", []])
    return results


def main() -> None:
    logging.disable(logging.CRITICAL)
    sys.path.insert(0, sys.argv[2])
    detector_class = load_detector(Path(sys.argv[1]))
    given = json.load(sys.stdin)
    tools = [
        types.SimpleNamespace(function=types.SimpleNamespace(name=name)) for name in given["tools"]
    ]
    results = [
        {
            "complete": complete(detector_class(), "".join(deltas), tools),
            "streamed": streamed(detector_class(), deltas, tools),
        }
        for deltas in given["cases"]
    ]
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
