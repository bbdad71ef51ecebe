"""The router before a prefill and a decode server: both get every request, the decode one answers.

Both copies carry `bootstrap_host`, `bootstrap_port` and a `bootstrap_room` of their own, as
SGLang's routers send them. A client that hangs up ends both copies. Other routes are asked of both
servers, or of the decode server where one answer is enough.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
from aiohttp import web

from dsv4doctor.lab.http_json import BadRequest, encode_json, json_response, read_json

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

_MAX_BODY_BYTES = 128 * 1024 * 1024
_ROOM_BITS = 62
# Of a request's headers these alone go on to the servers.
_PASSED_HEADERS = ("Authorization", "X-Request-Id")
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10.0)
_ASK_TIMEOUT = aiohttp.ClientTimeout(total=10.0)
_JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The servers behind a router."""

    prefill_url: str
    decode_url: str
    bootstrap_host: str
    bootstrap_port: int


class Router:
    """Its routes. Used within `async with`, which opens the connections to the servers."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Router:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=_TIMEOUT, auto_decompress=False
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=_MAX_BODY_BYTES)
        get: dict[str, Handler] = {
            "/": _plain("SGLang router is running"),
            "/health": _ok,
            "/liveness": _ok,
            "/readiness": self._readiness,
            "/ready": self._readiness,
            "/health_generate": self._readiness,
            "/ping": _ok,
            "/workers": self._workers,
            "/metrics": self._metrics,
            "/engine_metrics": self._metrics,
            "/v1/loads": self._loads,
            "/server_info": self._server_info,
            "/get_server_info": self._server_info,
            "/flush_cache": self._both,
            **dict.fromkeys(
                ("/v1/models", "/v1/models/{name:.+}", "/model_info", "/get_model_info"),
                self._decode,
            ),
        }
        post: dict[str, Handler] = {
            "/v1/chat/completions": self._generate,
            "/generate": self._generate,
            "/flush_cache": self._both,
            "/abort_request": self._both,
            "/parse_function_call": self._decode,
        }
        app.add_routes([web.get(path, handler) for path, handler in get.items()])
        app.add_routes([web.post(path, handler) for path, handler in post.items()])
        return app

    @property
    def _client(self) -> aiohttp.ClientSession:
        assert self._session is not None, "the router is not open"
        return self._session

    @property
    def _urls(self) -> tuple[str, str]:
        return self._pair.prefill_url, self._pair.decode_url

    async def _generate(self, http: web.Request) -> web.StreamResponse:
        """A copy to each; what the decode server says, or the first to refuse."""
        try:
            body = await read_json(http)
        except BadRequest as refused:
            return json_response({"object": "error", "message": str(refused)}, status=400)
        if isinstance(body, dict):
            body = {
                **body,
                "bootstrap_host": self._pair.bootstrap_host,
                "bootstrap_port": self._pair.bootstrap_port,
                "bootstrap_room": secrets.randbits(_ROOM_BITS),
            }
        headers = {n: http.headers[n] for n in _PASSED_HEADERS if n in http.headers}
        headers.setdefault("X-Request-Id", uuid.uuid4().hex)
        headers["Content-Type"] = _JSON
        data = encode_json(body)
        prefill = asyncio.create_task(self._prefill(http.path, data, headers))
        decode = asyncio.create_task(
            self._client.post(self._pair.decode_url + http.path, data=data, headers=headers)
        )
        try:
            return await self._answer(http, prefill, decode)
        except aiohttp.ClientError as problem:
            error = {"message": f"a server behind the router failed: {problem}", "code": 502}
            return json_response({"error": error}, status=502)
        finally:
            for task in (prefill, decode):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, aiohttp.ClientError):
                    await task

    async def _prefill(self, path: str, data: bytes, headers: dict[str, str]) -> web.Response:
        """The prefill server's whole answer: one token, or why not."""
        url = self._pair.prefill_url + path
        async with self._client.post(url, data=data, headers=headers) as answer:
            return await _copied(answer)

    async def _answer(
        self,
        http: web.Request,
        prefill: asyncio.Task[web.Response],
        decode: asyncio.Task[aiohttp.ClientResponse],
    ) -> web.StreamResponse:
        await asyncio.wait({prefill, decode}, return_when=asyncio.FIRST_COMPLETED)
        if not decode.done() and prefill.result().status != 200:
            return prefill.result()
        async with await decode as answer:
            if answer.headers.get("Content-Type", "").startswith(_JSON):
                return await _copied(answer)
            response = web.StreamResponse(status=answer.status)
            response.content_type = "text/event-stream"
            response.charset = "utf-8"
            await response.prepare(http)
            async for part in answer.content.iter_any():
                await response.write(part)
            await response.write_eof()
            return response

    async def _ask(self, url: str, http: web.Request) -> web.Response:
        """The request as it is, to one of the servers."""
        headers = {
            n: http.headers[n] for n in (*_PASSED_HEADERS, "Content-Type") if n in http.headers
        }
        async with self._client.request(
            http.method,
            url + http.path_qs,
            data=await http.read(),
            headers=headers,
            timeout=_ASK_TIMEOUT,
        ) as answer:
            return await _copied(answer)

    async def _ask_both(self, http: web.Request) -> list[web.Response]:
        return list(await asyncio.gather(*(self._ask(url, http) for url in self._urls)))

    async def _decode(self, http: web.Request) -> web.Response:
        return await self._ask(self._pair.decode_url, http)

    async def _both(self, http: web.Request) -> web.Response:
        """The worse of the two answers."""
        return max(await self._ask_both(http), key=lambda answer: answer.status)

    async def _readiness(self, http: web.Request) -> web.Response:
        return await self._both(http)

    async def _documents(self, http: web.Request) -> list[dict[str, Any]]:
        return [orjson.loads(answer.body or b"{}") for answer in await self._ask_both(http)]  # type: ignore[arg-type]

    async def _server_info(self, http: web.Request) -> web.Response:
        """As the mini router: the decode server's states, both servers' words; beside them the
        prefill server's launch arguments, since it is the one with the caches."""
        prefill, decode = await self._documents(http)
        states = [*prefill.get("internal_states", []), *decode.get("internal_states", [])]
        return json_response(
            {**prefill, "internal_states": states, "prefill": [prefill], "decode": [decode]}
        )

    async def _loads(self, http: web.Request) -> web.Response:
        prefill, decode = await self._documents(http)
        return json_response({**prefill, "loads": [*prefill["loads"], *decode["loads"]]})

    async def _metrics(self, http: web.Request) -> web.Response:
        """Both servers' samples; their label `engine_type` tells them apart."""
        texts = [answer.body for answer in await self._ask_both(http)]
        lines: list[bytes] = []
        for text in texts:
            assert isinstance(text, bytes)
            known = set(lines)
            lines += [
                line for line in text.splitlines() if not line.startswith(b"#") or line not in known
            ]
        return web.Response(body=b"\n".join(lines) + b"\n", content_type="text/plain")

    async def _workers(self, _: web.Request) -> web.Response:
        workers = [
            {
                "id": kind,
                "url": url,
                "worker_type": kind,
                "is_healthy": await self._is_healthy(url),
                "bootstrap_port": self._pair.bootstrap_port if kind == "prefill" else None,
            }
            for kind, url in zip(("prefill", "decode"), self._urls, strict=True)
        ]
        return json_response({"workers": workers, "total": len(workers)})

    async def _is_healthy(self, url: str) -> bool:
        try:
            async with self._client.get(f"{url}/health", timeout=_ASK_TIMEOUT) as answer:
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False


async def _copied(answer: aiohttp.ClientResponse) -> web.Response:
    kind = answer.headers.get("Content-Type", "").partition(";")[0] or None
    return web.Response(body=await answer.read(), status=answer.status, content_type=kind)


async def _ok(_: web.Request) -> web.StreamResponse:
    return web.Response()


def _plain(text: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(text=text)

    return answer
