"""An OpenAI chat completion request: what the lab takes of it, checked as SGLang checks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from dsv4doctor.lab.http_json import BadRequest, encode_json
from dsv4doctor.lab.http_launch import UNIFIED, LaunchOptions
from dsv4doctor.lab.requests import Room

DEFAULT_MAX_TOKENS = 512
_ROLES = frozenset(
    {"system", "user", "assistant", "tool", "function", "developer", "latest_reminder"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """The checked request. `model` is echoed: SGLang serves any name under its one model."""

    model: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]]
    tool_choice: Any
    max_tokens: int
    stream: bool
    include_usage: bool
    continuous_usage: bool
    parses_calls: bool

    @property
    def tool_names(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.tools]


def read_chat_request(body: object, options: LaunchOptions) -> ChatRequest:
    """The request in a decoded body.

    Raises:
        BadRequest: with SGLang's wording where SGLang refuses it, ours where only the lab does.
    """
    if not isinstance(body, Mapping):
        raise BadRequest("the body is not a JSON object", "Bad Request")
    tools = _read_tools(body.get("tools"))
    tool_choice = _read_tool_choice(body.get("tool_choice"), tools)
    stream_options = body.get("stream_options") or {}
    if not isinstance(stream_options, Mapping):
        raise BadRequest("stream_options: Input should be an object", "Bad Request")
    if _read_count(body, "n", 1) != 1:
        raise BadRequest("n: the lab generates one choice a request, n must be 1")
    return ChatRequest(
        model=_read_model(body.get("model"), options),
        messages=_read_messages(body.get("messages")),
        tools=tools,
        tool_choice=tool_choice,
        max_tokens=_read_max_tokens(body, options),
        stream=bool(body.get("stream")),
        include_usage=bool(stream_options.get("include_usage")),
        continuous_usage=bool(stream_options.get("continuous_usage_stats")),
        parses_calls=bool(tools) and tool_choice != "none" and bool(options.tool_call_parser),
    )


def read_room(body: Mapping[str, Any], options: LaunchOptions) -> Room | None:
    """Where the other engine is told of the request; None on a server that does both by itself.

    Raises:
        BadRequest: if a prefill or decode engine is not told.
    """
    if options.disaggregation_mode == UNIFIED:
        return None
    host, port = body.get("bootstrap_host"), body.get("bootstrap_port")
    number = body.get("bootstrap_room")
    if not isinstance(host, str) or not isinstance(port, int) or not isinstance(number, int):
        raise BadRequest(
            "Disaggregated request received without bootstrap room id: bootstrap_host, "
            "bootstrap_port and bootstrap_room belong into both copies of it."
        )
    return Room(host=host, port=port, number=number)


def _read_model(model: object, options: LaunchOptions) -> str:
    if model is None:
        return "default"
    if not isinstance(model, str):
        raise BadRequest("model: Input should be a valid string", "Bad Request")
    adapter = model.partition(":")[2].strip()
    if adapter and model != options.served_model_name:
        raise BadRequest(
            f"LoRA adapter '{adapter}' was requested, but LoRA is not enabled. "
            "Please launch the server with --enable-lora flag.",
            "BadRequest",
        )
    return model


def _read_messages(messages: object) -> Sequence[Mapping[str, Any]]:
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise BadRequest("messages: Input should be a valid list", "Bad Request")
    if not messages:
        raise BadRequest("Messages cannot be empty.")
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping) or message.get("role") not in _ROLES:
            raise BadRequest(f"messages.{number}: no message with a known role", "Bad Request")
        _check_content(number, message.get("content"))
        _check_past_calls(number, message.get("tool_calls"))
    return messages


def _check_content(number: int, content: object) -> None:
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, Sequence) or not all(isinstance(part, Mapping) for part in content):
        raise BadRequest(f"messages.{number}.content: neither text nor parts", "Bad Request")
    for part in content:
        if part.get("type") != "text":
            raise BadRequest(
                "Model only supports text input; received unsupported content type "
                f"'{part.get('type')}'."
            )
        if not isinstance(part.get("text"), str):
            raise BadRequest(f"messages.{number}.content: a text part has no text", "Bad Request")


def _check_past_calls(number: int, calls: object) -> None:
    if calls is None:
        return
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise BadRequest(f"messages.{number}.tool_calls: not a list", "Bad Request")
    for call in calls:
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise BadRequest(
                f"messages.{number}.tool_calls: no function with a name", "Bad Request"
            )


def _read_tools(tools: object) -> Sequence[Mapping[str, Any]]:
    if tools is None:
        return ()
    if not isinstance(tools, Sequence) or isinstance(tools, str):
        raise BadRequest("tools: Input should be a valid list", "Bad Request")
    for number, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise BadRequest(f"tools.{number}.function.name: Field required", "Bad Request")
        problem = _schema_problem(encode_json(function.get("parameters")))
        if problem:
            raise BadRequest(f"Tool {number} function has invalid 'parameters' schema: {problem}")
    return tools


@lru_cache(maxsize=256)
def _schema_problem(schema: bytes) -> str:
    """What is wrong with a tool's parameters; empty when nothing is. Tools come again and again."""
    parameters = orjson.loads(schema)
    if parameters is None:
        return ""
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(parameters)
    except SchemaError as error:
        return str(error.message)
    return "" if isinstance(parameters, dict) else "Input should be a valid dictionary"


def _read_tool_choice(choice: object, tools: Sequence[Mapping[str, Any]]) -> Any:
    if choice is None:
        return "auto" if tools else "none"
    if isinstance(choice, str):
        if choice not in {"auto", "none", "required"}:
            raise BadRequest(
                "tool_choice: Input should be 'auto', 'required' or 'none'", "Bad Request"
            )
        if choice == "required" and not tools:
            raise BadRequest("Tools cannot be empty if tool choice is set to required.")
        return choice
    function = choice.get("function") if isinstance(choice, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise BadRequest("tool_choice.function.name: Field required", "Bad Request")
    if not tools:
        raise BadRequest("Tools cannot be empty if tool choice is set to a specific tool.")
    if not any(tool["function"]["name"] == function["name"] for tool in tools):
        raise BadRequest(f"Tool '{function['name']}' not found in tools list.")
    return choice


def _read_max_tokens(body: Mapping[str, Any], options: LaunchOptions) -> int:
    """SGLang's rule: `max_completion_tokens`, else `max_tokens`."""
    tokens = _read_count(body, "max_completion_tokens", 0) or _read_count(body, "max_tokens", 0)
    if tokens > options.context_length:
        raise BadRequest(
            f"max_completion_tokens is too large: {tokens}."
            f"This model supports at most {options.context_length} completion tokens."
        )
    return tokens or DEFAULT_MAX_TOKENS


def _read_count(body: Mapping[str, Any], key: str, default: int) -> int:
    value = body.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadRequest(f"{key}: Input should be an integer of at least 1", "Bad Request")
    return value
