"""The lab's routes: SGLang's surface over the rounds, the engine's gauges and the parser.

Simplifications, all deliberate: `/health` and `/health_generate` answer 200 at once, as SGLang's do
while its scheduler loop turns (also when no request can pass); `/metrics` and the cache report are
always on; the model is deterministic, so sampling parameters, stop strings, response formats and
log-probabilities are accepted and change nothing.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from aiohttp import web

from dsv4doctor.lab import http_info
from dsv4doctor.lab.http_chat import Completions, PromptCounter
from dsv4doctor.lab.http_frames import error_body
from dsv4doctor.lab.http_json import BadRequest, json_response, read_json
from dsv4doctor.lab.http_launch import DECODE, LaunchOptions
from dsv4doctor.lab.http_log import RoundLog, log, log_decode, log_prefill
from dsv4doctor.lab.http_metrics import CONTENT_TYPE, Meter, render_loads, render_metrics
from dsv4doctor.lab.http_pacer import Pacer
from dsv4doctor.lab.output.behaviour import behaviour_of
from dsv4doctor.lab.output.complete import parse_complete
from dsv4doctor.lab.probe_state import LabProbe
from dsv4doctor.lab.requests import Generation
from dsv4doctor.lab.rounds import Desk, JobState, Rounds, ServingEngine
from dsv4doctor.probe_protocol import STATE_KEY

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

# A prompt of a million tokens is some 4 MB; beyond this a body is a mistake.
_MAX_BODY_BYTES = 128 * 1024 * 1024
# Routes that never ask for a key.
_OPEN_ROUTES = ("/health", "/health_generate", "/ready", "/ping", "/metrics")


class ServerEngine(PromptCounter, Protocol):
    """What the server itself needs of the engine."""

    @property
    def parser_leaks_negative_numbers(self) -> bool: ...


class Engine(ServingEngine, ServerEngine, Protocol):
    """An engine that does prefill and decode."""


# Makes the desk of a server, which tells every round to what it is given.
DeskOf = Callable[[Callable[[Sequence[Generation], float], None]], Desk]


def unified_desk(engine: Engine, options: LaunchOptions) -> DeskOf:
    """Rounds of whole requests."""
    return lambda on_round: Rounds(
        engine,
        quiet_s=options.quiet_ms / 1000,
        most_running=options.max_running_requests,
        on_round=on_round,
    )


class LabServer:
    """One launch: the routes, and what they share."""

    def __init__(
        self,
        engine: ServerEngine,
        options: LaunchOptions,
        desk_of: DeskOf,
        probe: LabProbe | None = None,
    ) -> None:
        self._options = options
        self._probe = probe
        behaviour = behaviour_of(
            options.parser_group, leaks_negative_numbers=engine.parser_leaks_negative_numbers
        )
        self._behaviour = replace(behaviour, version=options.as_version or behaviour.version)
        self.meter = Meter()
        self.port = options.port
        self.rounds = desk_of(self._log_round)
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
        mode = self._options.disaggregation_mode
        text = render_metrics(self.meter, self.rounds, name, mode)
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
        said = http_info.server_info(
            self._options,
            port=self.port,
            version=self._behaviour.version,
            engine=self.rounds.gauges,
            throughput=self.meter.throughput(),
        )
        if self._probe is not None:
            said["internal_states"][0][STATE_KEY] = self._probe.status()
        return json_response(said)

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
        mode = self._options.disaggregation_mode
        facts = RoundLog(
            mode=mode,
            queues=self.rounds.transfer_queues(),
            queued=self.rounds.prompts_waiting() if mode != DECODE else 0,
            gauges=self.rounds.gauges,
            seconds=seconds,
        )
        (log_decode if mode == DECODE else log_prefill)(generations, facts)


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
