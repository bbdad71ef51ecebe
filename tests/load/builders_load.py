"""Small session scripts."""

from __future__ import annotations

from dsv4doctor.scenario import History, TurnKind
from dsv4doctor.session import Message, SessionScript, Turn


def script(
    session: int,
    *,
    turns: int = 1,
    new: tuple[Message, ...] | None = None,
    expected: Message | None = None,
    history: History = History.SCRIPTED,
    tools: tuple = (),
    stream: bool = True,
    abort_at: dict[int, int] | None = None,
) -> SessionScript:
    """A session of `turns` plain turns; `abort_at` maps a turn to its abort_after_tokens."""
    return SessionScript(
        session=session,
        turns=tuple(
            Turn(
                turn=number,
                kind=TurnKind.LONG_TEXT,
                new_messages=new or ({"role": "user", "content": f"s{session} t{number}"},),
                expected_reply=expected or {"role": "assistant", "content": f"reply {number}"},
                canaries=(),
                prompt="",
                max_tokens=9,
                tool_choice="auto",
                abort_after_tokens=(abort_at or {}).get(number),
            )
            for number in range(turns)
        ),
        tools=tools,
        history=history,
        stream=stream,
        sampling={"temperature": 0.0, "top_p": None},
        canary_key=1,
    )
