"""The behaviour groups of SGLang's DSML text parser, as data.

Measured on the released wheels: A is 0.5.12 to 0.5.17, B is 0.5.18 to 0.5.20, C is the text
detector of 0.5.21 and later, which drops what is malformed in place of showing it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """Which way one group of releases goes where groups differ.

    Attributes:
        fails_closed: an invoke is handed on whole once it is closed, or dropped (C).
        keeps_prose_of_call_delta: prose in the delta that opens the first invoke is kept.
        leaks_partial_values: an unfinished value that begins no JSON puts the buffered markup
            into `content`, once per delta until the value reads as JSON.
        reads_every_block: without streaming, all blocks count and not only the first.
        version: the release that the lab then says it is.
    """

    group: str
    version: str
    fails_closed: bool = False
    keeps_prose_of_call_delta: bool = True
    leaks_partial_values: bool = False
    reads_every_block: bool = True


GROUP_A = Behaviour(
    group="A",
    version="0.5.17",
    keeps_prose_of_call_delta=False,
    leaks_partial_values=True,
    reads_every_block=False,
)
GROUP_B = Behaviour(group="B", version="0.5.20")
GROUP_C = Behaviour(group="C", version="0.5.22", fails_closed=True)

GROUPS = (GROUP_A, GROUP_B, GROUP_C)


def behaviour_of(group: str, *, leaks_negative_numbers: bool = False) -> Behaviour:
    """The behaviour called `group`; `leaks_negative_numbers` plants A's leak of a lone `-` in it.

    Raises:
        KeyError: if there is no such group.
    """
    behaviour = {known.group: known for known in GROUPS}[group]
    if leaks_negative_numbers:
        return replace(behaviour, leaks_partial_values=True, fails_closed=False)
    return behaviour
