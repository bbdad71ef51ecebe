"""Replies that are whole, in every form that a server may give them."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib

from canned_call import DONE, GOOD, SSE_HEAD, USAGE, Call, call_delta, frame, text


async def good(call: Call) -> None:
    await call.stream(*GOOD)


async def byte_by_byte(call: Call) -> None:
    await call.send(SSE_HEAD)
    for byte in b"".join([*GOOD, DONE]):
        await call.chunk(bytes([byte]))
        await asyncio.sleep(0)
    await call.end()


async def crlf(call: Call) -> None:
    await call.stream(*(event.replace(b"\n", b"\r\n") for event in GOOD))


async def sglang_call(call: Call) -> None:
    nulls = {"role": None, "content": None, "reasoning_content": None, "tool_calls": None}
    await call.stream(
        frame({"role": "assistant", "content": "", "reasoning_content": None}),
        frame({"reasoning_content": "think"}),
        frame({**nulls, **call_delta(0, "call_aa", "look", "")}),
        frame({**nulls, **call_delta(0, None, None, '{"a":')}),
        frame({**nulls, **call_delta(0, None, None, " -1}")}),
        frame({**nulls, **call_delta(1, "call_bb", "store", '{"b": 2}')}),
        frame(nulls, "tool_calls"),
        USAGE,
    )


async def vllm_call(call: Call) -> None:
    later = {"tool_calls": [{"index": 0, "function": {"arguments": '{"a": -1}'}}]}
    await call.stream(
        frame({"role": "assistant", "content": ""}),
        frame({"reasoning": "think"}),
        frame({"tool_calls": [{"index": 0, "id": "call_aa", "type": "function",
                               "function": {"name": "look"}}]}),
        frame(later, "tool_calls"),
    )  # fmt: skip


async def late_names(call: Call) -> None:
    """Arguments first, id and name late and then repeated, a new random id with every piece."""
    await call.stream(
        frame(call_delta(0, "", None, '{"a"')),
        frame(call_delta(0, "call_aa", "look", ": -1")),
        frame(call_delta(0, "call_zz", "look", "}")),
        frame(finish="tool_calls"),
    )


async def reused_index(call: Call) -> None:
    await call.stream(
        frame(call_delta(0, "call_aa", "look", '{"a": -1}')),
        frame(call_delta(0, "call_bb", "store", '{"b": 2}')),
        frame(finish="tool_calls"),
    )


async def no_index(call: Call) -> None:
    pieces = [("call_aa", "look", '{"a":'), (None, None, " -1}"), ("call_bb", "store", '{"b": 2}')]
    frames = []
    for id_, name, arguments in pieces:
        delta = call_delta(None, id_, name, arguments)
        del delta["tool_calls"][0]["index"]
        frames.append(frame(delta))
    await call.stream(*frames, frame(finish="tool_calls"))


async def whole(call: Call) -> None:
    message = {"role": "assistant", "content": "", "reasoning_content": None, "tool_calls": [
        {"id": "call_aa", "index": 0, "type": "function",
         "function": {"name": "look", "arguments": '{"a": -1}'}}]}  # fmt: skip
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 2}}  # fmt: skip
    await call.plain("200 OK", json.dumps(body).encode())


async def no_done(call: Call) -> None:
    await call.stream(*text("fine"), frame(finish="stop"), done=False)


async def done_unterminated(call: Call) -> None:
    await call.stream(*text("fine"), frame(finish="stop"), b"data: [DONE]", done=False)


async def done_without_finish(call: Call) -> None:
    await call.stream(*text("fine"))


async def done_alone(call: Call) -> None:
    await call.stream()


async def linger(call: Call) -> None:
    await call.send(SSE_HEAD)
    for event in [*GOOD, DONE]:
        await call.chunk(event)
    await call.forever()


async def gzipped(call: Call) -> None:
    body = gzip.compress(b"".join([*GOOD, DONE]))
    await call.send(SSE_HEAD[:-2] + b"Content-Encoding: gzip\r\n\r\n")
    for start in range(0, len(body), 7):
        await call.chunk(body[start : start + 7])
    await call.end()


async def deflated(call: Call) -> None:
    packer = zlib.compressobj(wbits=-15)
    body = packer.compress(b"".join([*GOOD, DONE])) + packer.flush()
    await call.send(SSE_HEAD[:-2] + b"Content-Encoding: deflate\r\n\r\n")
    await call.chunk(body)
    await call.end()


async def bad_arguments(call: Call) -> None:
    await call.stream(frame(call_delta(0, "call_aa", "look", '{"a": -1,,}')),
                      frame(finish="tool_calls"))  # fmt: skip


async def leaked_dsml(call: Call) -> None:
    await call.stream(*text('<｜DSML｜invoke name="look">', " zq qz zq"), frame(finish="stop"))


async def call_only(call: Call) -> None:
    await call.stream(frame(call_delta(0, "call_aa", "look", '{"a": -1}')),
                      frame(finish="tool_calls"))  # fmt: skip
