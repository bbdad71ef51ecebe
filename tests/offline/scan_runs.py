"""Logs to scan, in the forms that logs have, and the command run over them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

LEAK = '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="f">\n</｜DSML｜invoke>'
GOOD_BLOCK = (
    '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="f">\n'
    '<｜DSML｜parameter name="x" string="true">1</｜DSML｜parameter>\n'
    "</｜DSML｜invoke>\n</｜DSML｜tool_calls>"
)


def scan(
    *arguments: str | Path, stdin: bytes = b"", cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "dsv4doctor", "scan", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1"},
        timeout=120,
        check=False,
    )


def scan_json(
    *arguments: str | Path, stdin: bytes = b"", code: int | None = None
) -> dict[str, Any]:
    done = scan(*arguments, "--json", stdin=stdin)
    assert done.returncode in ((0, 1) if code is None else (code,)), done.stderr.decode()
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["exit_code"] == done.returncode
    return document


def record(content: Any, **more: Any) -> dict[str, Any]:
    reply = {"content": content, "reasoning_content": None, "tool_calls": None}
    return {"response": {**reply, "finish_reason": "stop"}, **more}


def write_lines(path: Path, *values: Any) -> Path:
    path.write_text("".join(json.dumps(v) + "\n" for v in values), encoding="utf-8")
    return path


def chat(content: str, finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion", "choices": [choice], **more}


def sse(*deltas: dict[str, Any], finish: str = "stop", done: bool = True) -> str:
    frames = [
        {"id": "s1", "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas
    ]
    frames.append({"id": "s1", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    text = "".join(f"data: {json.dumps(f)}\n\n" for f in frames)
    return text + ("data: [DONE]\n\n" if done else "")
