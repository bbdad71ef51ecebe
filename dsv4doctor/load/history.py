"""The conversation that one turn sends: scripted, or with what the model really said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsv4doctor.exchange import Response
from dsv4doctor.load.options import RunOptions
from dsv4doctor.scenario import History
from dsv4doctor.session import Message, SessionScript


class Conversation:
    """Grows turn by turn; `messages_for` is what the next request carries."""

    def __init__(self, script: SessionScript, earlier: Mapping[int, Message]) -> None:
        self._script = script
        self._earlier = earlier
        self._messages: list[Message] = []
        self._reply: Message | None = None
        self._expected: Message | None = None

    def messages_for(self, turn: int) -> list[Message]:
        """All messages up to and including the request of `turn`; turns must come in order."""
        new = self._script.turns[turn].new_messages
        if self._script.history is History.LIVE and self._reply is not None:
            self._messages.extend(answered(new, self._expected or {}, self._reply))
        else:
            self._messages.extend(new)
        return self._messages

    def add_reply(self, turn: int, response: Response | None) -> None:
        """Append the reply of `turn`: the scripted one, or `response` when history is live.

        `response` None means that the turn was done in an earlier run; its reply is then the saved
        one, or for want of that the scripted one.
        """
        expected = self._script.turns[turn].expected_reply
        reply = expected
        if self._script.history is History.LIVE:
            saved = self._earlier.get(turn, expected)
            reply = saved if response is None else assistant_message(response, turn)
        self._messages.append(reply)
        self._reply, self._expected = reply, expected


def assistant_message(response: Response, turn: int) -> dict[str, Any]:
    """A reply as a message of the history. Reasoning is left out, as DeepSeek's template wants."""
    message: dict[str, Any] = {"role": "assistant", "content": response.content or ""}
    if response.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id or f"call_{turn}_{position}",
                "type": "function",
                "function": {"name": call.name or "", "arguments": call.arguments or ""},
            }
            for position, call in enumerate(response.tool_calls)
        ]
    return message


def answered(new: tuple[Message, ...], expected: Message, reply: Message) -> list[Message]:
    """The new messages, their tool results matched to the calls that the model really made.

    Results go to calls by position. A result without a call becomes a user message, so that what
    it plants is still read; a call without a result gets one that says so, since servers refuse a
    history with an open call.
    """
    made = [call.get("id") for call in reply.get("tool_calls") or ()]
    scripted = [call.get("id") for call in expected.get("tool_calls") or ()]
    results: list[Message] = []
    rest: list[Message] = []
    for message in new:
        if message.get("role") != "tool":
            rest.append(message)
            continue
        position = _position(scripted, message, len(results))
        if position < len(made):
            results.append({**message, "tool_call_id": made[position]})
        else:
            rest.append({"role": "user", "content": message.get("content", "")})
    given = {message["tool_call_id"] for message in results}
    open_calls: list[Message] = [
        {"role": "tool", "tool_call_id": call_id, "content": "no result"}
        for call_id in made
        if call_id not in given
    ]
    return [*results, *open_calls, *rest]


def salted(messages: list[Message], salt: str) -> list[Message]:
    """The messages with `salt` before the first one's text: prefix caches go by pages from the
    front, so from the first page on nothing matches. The list given stays as it is."""
    first = messages[0]
    return [{**first, "content": f"{salt} {first.get('content') or ''}"}, *messages[1:]]


def _position(scripted: list[Any], message: Message, otherwise: int) -> int:
    call_id = message.get("tool_call_id")
    return scripted.index(call_id) if call_id in scripted else otherwise


def request_body(
    script: SessionScript, turn: int, messages: list[Message], options: RunOptions
) -> dict[str, Any]:
    """The body of one chat request; key order is fixed, so that equal runs send equal bytes."""
    wanted = script.turns[turn]
    if script.salts_prompts:
        messages = salted(messages, f"[{options.salt} {script.session} {turn}]")
    elif script.salts_sessions:
        messages = salted(messages, f"[{options.salt} {script.session}]")
    body: dict[str, Any] = {"model": options.model, "messages": messages}
    if script.tools:
        body["tools"] = list(script.tools)
        body["tool_choice"] = wanted.tool_choice
    body["max_tokens"] = wanted.max_tokens
    body.update({key: value for key, value in script.sampling.items() if value is not None})
    body["stream"] = script.stream
    if script.stream:
        body["stream_options"] = {"include_usage": True}
    if options.names_requests:
        body["rid"] = options.request_id(script.session, turn)
    body.update(options.extra_body)
    return body
