"""A raw-socket HTTP server that answers with canned bytes, good and bad, in its own process.

The first path segment of a request names the case: `http://HOST:PORT/cut/v1/chat/completions` is
answered by `cut`. A suffix after a dot (`/silent_two.a7/...`) gives a test its own request count.
Prints one JSON line with its port and ends at the end of stdin. A PEM file with key and certificate
as argument makes it speak TLS.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import ssl
import sys

import canned_breaks
import canned_moods
import canned_streams
from canned_call import COUNTS, SEEN, Call, Hangup

# Every coroutine of these that is not their own business is a case, by its name.
CASES = {
    name: function
    for module in (canned_streams, canned_breaks, canned_moods)
    for name, function in vars(module).items()
    if inspect.iscoroutinefunction(function) and not name.startswith("_")
}

METRICS = b"""# HELP sglang:num_running_reqs The number of running requests.
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m",tp_rank="0"} 3.0
sglang:num_queue_reqs{model_name="m",tp_rank="0"} 2
sglang:num_queue_reqs{model_name="m",tp_rank="1"} 1
sglang:prompt_tokens_total{model_name="m"} 100.0
sglang:time_to_first_token_seconds_bucket{le="0.1"} 4
"""


async def _other_routes(call: Call) -> bool:
    """The server's own routes; True when one of them answered."""
    route = "/" + call.path.split("/", 2)[2] if call.path.count("/") > 1 else "/"
    if route in {"/health", "/health_generate"}:
        await call.plain("200 OK", b"", "text/plain")
    elif route == "/metrics" and call.case.split(".")[0] not in {"silent_two", "unlucky"}:
        await call.plain("200 OK", METRICS, "text/plain; version=0.0.4")
    elif route == "/v1/models":
        await call.plain("200 OK", b'{"object": "list", "data": [{"id": "m"}, {"id": "n"}]}')
    elif route == "/server_info" and call.case.startswith("good"):
        body = {"version": "0.5.23", "api_key": "s3cret", "enable_hierarchical_cache": True,
                "launch_command": "python -m sglang.launch_server --api-key s3cret",
                "internal_states": [{"page_size": 256}]}  # fmt: skip
        await call.plain("200 OK", json.dumps(body).encode())
    elif route == "/model_info" and call.case.startswith("good"):
        await call.plain("200 OK", b'{"model_path": "/models/v4", "tool_call_parser": "dsv4"}')
    elif route == "/version" and call.case.startswith("vllm"):
        await call.plain("200 OK", b'{"version": "0.33.0"}')
    elif route == "/seen":
        await call.plain("200 OK", json.dumps(SEEN.get(call.case, [])).encode())
    elif call.method == "GET":
        await call.plain("404 Not Found", b'{"detail": "Not Found"}')
    else:
        return False
    return True


async def _read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Call | None:
    start = await reader.readexactly(1)
    if not start.isalpha():  # a TLS hello, say
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        raise Hangup
    head = start + await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    name = path.split("/")[1]
    call = Call(name, 0, method, path, headers, body, reader, writer)
    if method == "POST":
        document = json.loads(body)
        if document.get("max_tokens", 0) > 0:
            call.n = COUNTS[name]
            COUNTS[name] += 1
        SEEN.setdefault(name, []).append({"headers": headers, "body": document})
    return call


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            call = await _read_request(reader, writer)
            if not await _other_routes(call):
                await CASES[call.case.split(".")[0]](call)
    except (Hangup, asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def _main() -> None:
    tls = None
    if len(sys.argv) > 1:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(sys.argv[1])
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, limit=1 << 24, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    print(json.dumps({"port": port}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main())
