"""The lab's HTTP server: SGLang's surface over the engine, started and stopped.

Simplifications, all deliberate: `/health` and `/health_generate` answer 200 at once, as SGLang's do
while its scheduler loop turns (also when no request can pass); `/metrics` and the cache report are
always on; the model is deterministic, so sampling parameters, stop strings, response formats and
log-probabilities are accepted and change nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import orjson
from aiohttp import web

from dsv4doctor.errors import EXIT_BUG, EXIT_DONE, DoctorError
from dsv4doctor.lab import http_info
from dsv4doctor.lab.http_chat import Completions, PromptCounter, json_response, read_json
from dsv4doctor.lab.http_frames import error_body
from dsv4doctor.lab.http_launch import LaunchOptions
from dsv4doctor.lab.http_log import READY_LINE, log, log_prefill
from dsv4doctor.lab.http_metrics import CONTENT_TYPE, Meter, render_loads, render_metrics
from dsv4doctor.lab.http_pacer import Pacer
from dsv4doctor.lab.http_request import BadRequest
from dsv4doctor.lab.output.behaviour import behaviour_of
from dsv4doctor.lab.output.complete import parse_complete
from dsv4doctor.lab.requests import Generation
from dsv4doctor.lab.rounds import JobState, Rounds, ServingEngine

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

# A prompt of a million tokens is some 4 MB; beyond this a body is a mistake.
_MAX_BODY_BYTES = 128 * 1024 * 1024
_SHUTDOWN_S = 0.2
# Routes that never ask for a key.
_OPEN_ROUTES = ("/health", "/health_generate", "/ready", "/ping", "/metrics")


class Engine(ServingEngine, PromptCounter, Protocol):
    """What the server needs of the engine."""

    @property
    def parser_leaks_negative_numbers(self) -> bool: ...


class LabServer:
    """One launch: the routes, and what they share."""

    def __init__(self, engine: Engine, options: LaunchOptions) -> None:
        self._options = options
        self._behaviour = behaviour_of(
            options.parser_group, leaks_negative_numbers=engine.parser_leaks_negative_numbers
        )
        self.meter = Meter()
        self.port = options.port
        self.rounds = Rounds(
            engine,
            quiet_s=options.quiet_ms / 1000,
            most_running=options.max_running_requests,
            on_round=self._log_round,
        )
        self._completions = Completions(
            options=options,
            behaviour=self._behaviour,
            engine=engine,
            rounds=self.rounds,
            pacer=Pacer(ttft_s=options.ttft_ms / 1000, itl_s=options.itl_ms / 1000),
            meter=self.meter,
        )

    def application(self) -> web.Application:
        """The aiohttp application with every route."""
        app = web.Application(client_max_size=_MAX_BODY_BYTES, middlewares=[self._guard])
        get: dict[str, Handler] = {
            "/": _plain("SGLang is running"),
            "/health": _ok,
            "/health_generate": _ok,
            "/ready": _ok,
            "/ping": _ok,
            "/metrics": self._metrics,
            "/v1/loads": self._loads,
            "/v1/models": self._models,
            "/v1/models/{name:.+}": self._model,
            "/model_info": self._model_info,
            "/get_model_info": self._model_info,
            "/server_info": self._server_info,
            "/get_server_info": self._server_info,
            "/flush_cache": self._flush_cache,
        }
        post: dict[str, Handler] = {
            "/v1/chat/completions": self._completions.chat,
            "/generate": self._completions.generate,
            "/flush_cache": self._flush_cache,
            "/abort_request": self._abort_request,
            "/parse_function_call": self._parse_function_call,
        }
        app.add_routes([web.get(path, handler) for path, handler in get.items()])
        app.add_routes([web.post(path, handler) for path, handler in post.items()])
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Ask for the key, count, and say errors as SGLang's web framework says them."""
        try:
            if not self._may_enter(request):
                response: web.StreamResponse = json_response({"error": "Unauthorized"}, status=401)
            else:
                response = await handler(request)
        except web.HTTPException as refused:
            response = json_response({"detail": refused.reason}, status=refused.status)
        except Exception as bug:
            traceback.print_exc()
            message = f"Internal server error: {bug}"
            response = json_response(error_body(message, "InternalServerError", 500), status=500)
        self.meter.count_http(request.method, request.path, response.status)
        return response

    def _may_enter(self, http: web.Request) -> bool:
        key = self._options.api_key
        if key is None or http.path in _OPEN_ROUTES:
            return True
        return http.headers.get("Authorization") == f"Bearer {key}"

    async def _metrics(self, _: web.Request) -> web.Response:
        name = self._options.served_model_name
        text = render_metrics(self.meter, self.rounds, name)
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})

    async def _loads(self, _: web.Request) -> web.Response:
        return json_response(render_loads(self.meter, self.rounds, self._behaviour.version))

    async def _models(self, _: web.Request) -> web.Response:
        return json_response({"object": "list", "data": [http_info.model_card(self._options)]})

    async def _model(self, http: web.Request) -> web.Response:
        name = http.match_info["name"]
        if name != self._options.served_model_name:
            return json_response(http_info.unknown_model(name), status=404)
        return json_response(http_info.model_card(self._options))

    async def _model_info(self, _: web.Request) -> web.Response:
        return json_response(http_info.model_info(self._options))

    async def _server_info(self, _: web.Request) -> web.Response:
        return json_response(
            http_info.server_info(
                self._options,
                port=self.port,
                version=self._behaviour.version,
                engine=self.rounds.gauges,
                throughput=self.meter.throughput(),
            )
        )

    async def _flush_cache(self, http: web.Request) -> web.Response:
        try:
            timeout_s = float(http.query.get("timeout", "0"))
        except ValueError:
            return json_response(
                error_body("timeout: not a number", "Bad Request", 400), status=400
            )
        if await self.rounds.flush_cache(timeout_s=timeout_s):
            log("Cache flushed successfully!")
            return web.Response(
                text="Cache flushed.\nPlease check backend logs for more details. (When there are "
                "running or waiting requests, the operation will not be performed.)\n"
            )
        running = self.rounds.count(JobState.COMPUTING, JobState.DELIVERING)
        log(
            "Cache not flushed because there are pending requests. "
            f"#queue-req: {self.rounds.prompts_waiting()}, #running-req: {running}"
        )
        return web.Response(text="Flush cache failed.\n", status=400)

    async def _abort_request(self, http: web.Request) -> web.Response:
        try:
            body = await read_json(http)
        except BadRequest as refused:
            return json_response(error_body(str(refused), refused.kind, 400), status=400)
        fields: dict[str, Any] = body if isinstance(body, dict) else {}
        rid, abort_all = fields.get("rid") or "", bool(fields.get("abort_all"))
        self.meter.aborted += self.rounds.abort_matching(str(rid), abort_all=abort_all)
        return web.Response()

    async def _parse_function_call(self, http: web.Request) -> web.Response:
        try:
            body = await read_json(http)
            text, names = _read_parse_request(body)
        except BadRequest as refused:
            return json_response(error_body(str(refused), refused.kind, 400), status=400)
        parsed = parse_complete(text, names, self._behaviour)
        calls = [
            {"tool_index": call.index, "name": call.name, "parameters": call.arguments}
            for call in parsed.calls
        ]
        return json_response({"normal_text": parsed.text, "calls": calls})

    def _log_round(self, generations: Sequence[Generation], seconds: float) -> None:
        log_prefill(
            generations,
            queued=self.rounds.prompts_waiting(),
            token_usage=self.rounds.gauges.get("token_usage", 0.0),
            seconds=seconds,
        )


async def serve(engine: Engine, options: LaunchOptions) -> int:
    """Serve until a signal, or the parent's end. Returns the exit code.

    Raises:
        DoctorError: if the address cannot be listened on.
    """
    server = LabServer(engine, options)
    runner = web.AppRunner(
        server.application(),
        handler_cancellation=True,
        access_log=None,
        shutdown_timeout=_SHUTDOWN_S,
    )
    await runner.setup()
    listener = _listen(options)
    await web.SockSite(runner, listener).start()
    server.port = listener.getsockname()[1]
    log(f"Lab server listens on http://{options.host}:{server.port}", rank="")
    stopped = _stop_event(options)
    rounds = asyncio.create_task(server.rounds.run())
    log(READY_LINE, rank="")
    print(ready_line(options, server.port), flush=True)
    await asyncio.wait(
        {rounds, asyncio.create_task(stopped.wait())}, return_when=asyncio.FIRST_COMPLETED
    )
    code = _crash_code(rounds)
    busy = server.rounds.computes
    rounds.cancel()
    await runner.cleanup()
    server.rounds.close()
    if busy or code:
        # A round in the engine's thread would hold up the end by seconds.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def ready_line(options: LaunchOptions, port: int) -> str:
    """The one line on stdout."""
    host = "127.0.0.1" if options.host == "0.0.0.0" else options.host
    bracketed = f"[{host}]" if ":" in host else host
    ready = {
        "base_url": f"http://{bracketed}:{port}",
        "pid": os.getpid(),
        "ground_truth": options.ground_truth,
    }
    return orjson.dumps(ready).decode()


def _crash_code(rounds: asyncio.Task[None]) -> int:
    """Tells of an engine that raised, as SGLang's scheduler does before it dies."""
    if not rounds.done() or rounds.cancelled() or rounds.exception() is None:
        return EXIT_DONE
    trace = "".join(traceback.format_exception(rounds.exception()))
    log(f"Scheduler hit an exception: {trace}")
    return EXIT_BUG


def _listen(options: LaunchOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host, options.port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise DoctorError(
            f"cannot listen on {options.host}:{options.port}: {error.strerror or error}",
            "give another --port (0 takes any free one), or stop what listens there",
        ) from error
    return listener


def _stop_event(options: LaunchOptions) -> asyncio.Event:
    """Set by SIGTERM, SIGINT, and in a lab that was started by us also by its parent's end."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    if options.exit_with_stdin:

        def parent_ended() -> None:
            with contextlib.suppress(RuntimeError):  # the loop may be closed by then
                loop.call_soon_threadsafe(stopped.set)

        # A daemon thread with raw reads: nothing that the interpreter's end has to wait for.
        threading.Thread(target=_wait_for_end_of_stdin, args=(parent_ended,), daemon=True).start()
    return stopped


def _wait_for_end_of_stdin(ended: Callable[[], None]) -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    ended()


def _read_parse_request(body: object) -> tuple[str, list[str]]:
    if not isinstance(body, dict) or not isinstance(body.get("text"), str):
        raise BadRequest("text: Field required", "Bad Request")
    if body.get("tool_call_parser", "deepseekv4") != "deepseekv4":
        raise BadRequest(f"Unsupported tool_call_parser: {body['tool_call_parser']}")
    try:
        names = [str(tool["function"]["name"]) for tool in body.get("tools") or ()]
    except (TypeError, KeyError) as error:
        raise BadRequest("tools: no function with a name", "Bad Request") from error
    return body["text"], names


async def _ok(_: web.Request) -> web.Response:
    return web.Response()


def _plain(text: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(text=text)

    return answer
