"""What surfaces of odd markup, release by release, and which injection stands for it.

Measured on SGLang 0.5.12 to 0.5.23; each line is an input of the model, what a client sees of it
somewhere, and the injections that put exactly that into a clean text. Where nothing is left by
which a reader could know, the reason stands in the place of the injection.
"""

# Long lines: a table, a row each.
# ruff: noqa: E501

from __future__ import annotations

ROWS: tuple[tuple[str, str, tuple[str, ...] | str], ...] = (
    ("a good call", "the call, at most a newline around the text", "sound: no symptom, see the false alarms"),
    ("prose and marker in one delta", "the prose is lost up to 0.5.17", "no trace: a call without prose is sound"),
    ("a negative number", "the block once per delta, and the call", ("DSML: block once per delta", "DSML: whole block beside the call")),
    ("a value that is no JSON", "a string where a number is due; invalid JSON; DSML", ("schema: wrong type", "arguments: a value that is no JSON", "DSML: block once per delta")),
    ("NaN", "NaN, or the string NaN", ("arguments: NaN", "schema: NaN as a string")),
    ("an invoke without wrapper", "all of it in the text", ("DSML: bare invoke",)),
    ("a garbled wrapper", "all of it, or the opener alone", ("DSML: garbled wrapper", "DSML: wrapper opener left", "DSML: opener beside the call")),
    ("the opener's first bar lost", "the whole block, or half an opener and the call", ("DSML: first bar lost", "DSML: half opener beside the call")),
    ("ASCII bars, plain tags", "verbatim", ("DSML: ASCII bars", "DSML: XML tags without the marker")),
    ("a block never closed, or its closer cut", "the call is dropped", ("forced call dropped, nothing left", "forced call missing", "nothing")),
    ("an invoke never closed", "a name and `{`, cut arguments, or nothing", ("arguments: an opening brace alone", "arguments: cut", "DSML: invoke never closed")),
    ("a parameter never closed", "`{}`, or markup inside the arguments", ("schema: empty", "arguments: cut with markup inside", "DSML: closer in a value")),
    ("no `string` attribute", "`{}`, or raw markup in the arguments", ("schema: empty", "DSML: markup in raw arguments")),
    ("`string` neither true nor false", "arguments that end after a colon", ("arguments: a value cut off",)),
    ("a JSON body instead of parameters", "`{}`", ("schema: empty",)),
    ("a broken JSON body", "`{}`, or a part of it", ("schema: empty", "arguments: cut")),
    ("a value that holds a closer", "the value cut there, or the call dropped", ("forced call dropped, nothing left",)),
    ("blanks around a value", "stripped or kept", "no trace: both are sound values"),
    ("a parameter twice", "both keys in the text", ("arguments: a key twice",)),
    ("an unknown tool's name", "forwarded, or dropped", ("name: a token lost", "forced call missing")),
    ("prose with half a marker", "what follows it is lost while streaming", "no trace but a sentence that ends early, which a stop may do"),
    ("prose that ends in `<`", "the sign is lost", "no trace"),
    ("prose that names the marker", "passes", "sound: prose about it"),
    ("the end inside an opener", "half an opener, or nothing", ("DSML: half opener at the end",)),
    ("prose after the block", "dropped", "no trace"),
    ("`</think>` in chat mode", "in the text", ("thinking tag",)),
    ("a call inside the thinking", "in the reasoning; a late `<think>` in the text", ("DSML: call inside the thinking", "thinking tag")),
)  # fmt: skip
