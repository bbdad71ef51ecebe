"""The one door to the HTTP library: httpx over aiohttp's transport.

httpx's own engine costs two to five times the CPU at one event a read and shows wrong gaps at 256
streams, so its requests travel over aiohttp. A change to another library with httpx's interface is
the import below. What the pair maps badly is named in our own words (`http_errors`).
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import unquote, urljoin, urlsplit

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from dsv4doctor import __version__
from dsv4doctor.client.arrival import StampedSocket, StampedSockets, arrived_at
from dsv4doctor.client.encoding import decoder_for
from dsv4doctor.client.http_errors import HttpFailure, mapped_errors
from dsv4doctor.errors import UsageError
from dsv4doctor.label import Label
from dsv4doctor.reply import Failure
from dsv4doctor.target import Endpoint

MAX_REDIRECTS = 3

# uvicorn, under SGLang and vLLM, closes idle connections after 5 s; we let go before it does.
KEEPALIVE_S = 4.0

# Enough for any error text or status document; what is longer is cut or refused.
SMALL_BODY_BYTES = 4 * 1024 * 1024
ERROR_BODY_BYTES = 64 * 1024


class SeesReuse(Protocol):
    """Told whether its request went over a connection that had been used before."""

    reused: bool


@dataclass(slots=True)
class _Seen:
    """What is learnt of one request on its way: told to `observer`, or kept."""

    observer: SeesReuse | None
    socket: StampedSocket | None = None


_seen: ContextVar[_Seen | None] = ContextVar("_seen", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole, small answer."""

    status: int
    content_type: str
    body: bytes


class ReplyStream:
    """An answer whose body is still to be read."""

    __slots__ = ("_response", "_socket", "content_encoding", "content_type", "location", "status")

    def __init__(self, response: httpx.Response, source: StampedSocket | None = None) -> None:
        self._response = response
        self._socket = source
        self.status = response.status_code
        self.content_type = response.headers.get("content-type", "")
        self.content_encoding = response.headers.get("content-encoding")
        self.location = response.headers.get("location")

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives, still encoded. Skips httpx's own decoding and counting layers,
        which cost more than parsing does."""
        stream = self._response.stream
        assert isinstance(stream, httpx.AsyncByteStream)
        return aiter(stream)

    def arrived(self, now: float) -> float:
        """When the chunk that was just read had arrived, at `now` (`time.perf_counter()`)."""
        return arrived_at(self._socket, now)

    async def close(self) -> None:
        """Give the connection back if the body was read to its end, cut it if not."""
        await self._response.aclose()

    async def read(self, limit: int) -> bytes:
        """Up to `limit` plain bytes of the body.

        Raises:
            EncodingError: if the body is not in the encoding that it claims.
        """
        decoder = decoder_for(self.content_encoding)
        body = bytearray()
        async for chunk in self.chunks():
            for piece in [chunk] if decoder is None else decoder.decode(chunk):
                body += piece
            if len(body) >= limit:
                break
        return bytes(body[:limit])


class HttpClient:
    """Connections to one server. `max_connections=None` sets no limit: a limit queues silently."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        max_connections: int | None = None,
        connect_timeout_s: float = 10.0,
        keeps_connections: bool = True,
    ) -> None:
        self.endpoint = endpoint
        self._keeps_connections = keeps_connections
        self._unkept: HttpClient | None = None
        self._connect_timeout_s = connect_timeout_s
        self._max_connections = max_connections
        self._tls = _tls_context(endpoint)
        self._sockets = StampedSockets()
        _check_headers(endpoint)
        self._client = httpx.AsyncClient(
            transport=AiohttpTransport(client=self._session, verify=self._tls),
            headers=dict(_default_headers(endpoint)),
            timeout=httpx.Timeout(None, connect=connect_timeout_s),
            follow_redirects=False,
            trust_env=False,
        )

    async def __aenter__(self) -> HttpClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._client.aclose()
        if self._unkept is not None:
            await self._unkept.close()

    def unkept(self) -> HttpClient:
        """A client of the same server that opens a connection for every request."""
        if self._unkept is None:
            self._unkept = HttpClient(
                self.endpoint,
                max_connections=self._max_connections,
                connect_timeout_s=self._connect_timeout_s,
                keeps_connections=False,
            )
        return self._unkept

    def _session(self) -> aiohttp.ClientSession:
        trace = aiohttp.TraceConfig()
        trace.on_connection_reuseconn.append(_note_reuse)
        trace.on_request_end.append(self._note_socket)
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._max_connections or 0,
                keepalive_timeout=KEEPALIVE_S if self._keeps_connections else None,
                force_close=not self._keeps_connections,
                ssl=self._tls,
                socket_factory=self._sockets.make,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trace_configs=[trace],
        )

    async def _note_socket(
        self, _session: object, _context: object, params: aiohttp.TraceRequestEndParams
    ) -> None:
        """The head is there: from which socket it came, unless the whole reply came with it."""
        seen, connection = _seen.get(), params.response.connection
        transport = None if connection is None else connection.transport
        used = None if transport is None else transport.get_extra_info("socket")
        if seen is not None and used is not None:
            seen.socket = self._sockets.find(used.fileno())

    async def open(
        self,
        method: str,
        url: str,
        *,
        content: bytes | None = None,
        headers: dict[str, str] | None = None,
        observer: SeesReuse | None = None,
    ) -> ReplyStream:
        """Send a request and return when the answer's head is there.

        Redirects are followed within the same origin only, with the same method and body: a key
        must not travel to another host.

        Raises:
            HttpFailure: if there is no answer, or a redirect that is not followed.
        """
        seen = _Seen(observer)
        _seen.set(seen)
        for _ in range(MAX_REDIRECTS + 1):
            request = self._client.build_request(method, url, content=content, headers=headers)
            with mapped_errors(self.endpoint, self._connect_timeout_s):
                reply = ReplyStream(await self._client.send(request, stream=True), seen.socket)
            if reply.status not in {301, 302, 307, 308} or not reply.location:
                return reply
            await reply.close()
            url = _redirected(url, reply.location, reply.status)
        raise HttpFailure(
            Failure(
                kind=Label.PROTOCOL_ERROR,
                message=f"more than {MAX_REDIRECTS} redirects, last to {url}",
                http_status=reply.status,
            )
        )

    async def fetch(
        self,
        path: str,
        *,
        deadline_s: float,
        method: str = "GET",
        content: bytes | None = None,
    ) -> Answer:
        """A small answer, whole, within `deadline_s`.

        Raises:
            HttpFailure: if there is none in time.
        """
        try:
            async with asyncio.timeout(deadline_s):
                kind = None if content is None else {"Content-Type": "application/json"}
                url = self.endpoint.base_url + path
                reply = await self.open(method, url, content=content, headers=kind)
                try:
                    with mapped_errors(self.endpoint, self._connect_timeout_s):
                        body = await reply.read(SMALL_BODY_BYTES)
                finally:
                    await reply.close()
        except TimeoutError as error:
            message = f"no answer from {path} within {deadline_s:g} s"
            raise HttpFailure(Failure(kind=Label.TIMEOUT, message=message)) from error
        return Answer(status=reply.status, content_type=reply.content_type, body=body)


def _redirected(url: str, location: str, status: int) -> str:
    target = urljoin(url, location)
    old, new = urlsplit(url), urlsplit(target)
    if (old.scheme, old.hostname, old.port) == (new.scheme, new.hostname, new.port):
        return target
    origin = f"{new.scheme}://{new.hostname}" + (f":{new.port}" if new.port else "")
    raise HttpFailure(
        Failure(
            kind=Label.HTTP_ERROR,
            message=f"redirects to another origin, {origin}; give that as --base-url if meant",
            http_status=status,
        )
    )


def _default_headers(endpoint: Endpoint) -> Iterator[tuple[str, str]]:
    yield "User-Agent", f"dsv4doctor/{__version__}"
    # Compression holds tokens back in the server's buffer, so none is asked for.
    yield "Accept-Encoding", "identity"
    if endpoint.api_key is not None:
        yield "Authorization", f"Bearer {endpoint.api_key}"
    elif endpoint.userinfo is not None:
        yield "Authorization", f"Basic {b64encode(unquote(endpoint.userinfo).encode()).decode()}"
    yield from endpoint.headers


def _check_headers(endpoint: Endpoint) -> None:
    for name, value in _default_headers(endpoint):
        if not name or not f"{name}{value}".isascii() or not f"{name}{value}".isprintable():
            shown = "its value" if name.lower() == "authorization" else repr(value)
            raise UsageError(
                f"header {name!r} cannot be sent: {shown} is not printable ASCII",
                "check --header and --api-key",
            )


def _tls_context(endpoint: Endpoint) -> ssl.SSLContext:
    if endpoint.base_url.startswith("https://") and endpoint.verify_tls:
        return httpx.create_ssl_context(verify=True, trust_env=True)
    # Loading the certificate bundle takes 20 to 50 ms: not for plain http, nor when unchecked.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _note_reuse(_session: object, _context: object, _params: object) -> None:
    seen = _seen.get()
    if seen is not None and seen.observer is not None:
        seen.observer.reused = True
