"""Kinds of clean text that no package ships as files: made from those that they ship.

Diffs, notebooks, answers in Markdown and dumps of tables are laid out around real lines; rows of
emoji and of formulas are drawn from Unicode's own data.
"""

from __future__ import annotations

import difflib
import json
import random
import unicodedata
from collections.abc import Iterator

_MOST_LINES = 400
# One line in so many is changed, left out or put twice in a diff.
_TOUCHED = 12
_CELL_LINES = 8
_COLUMNS = 4
_MADE = 300


def diff_of(text: str) -> str:
    """A unified diff between the text and one in which some lines were touched."""
    rng = random.Random(text[:200])
    before = text.splitlines()[:_MOST_LINES]
    after: list[str] = []
    for line in before:
        if rng.randrange(_TOUCHED):
            after.append(line)
        elif rng.random() < 0.6:
            after.append(line.replace("a", "b", 1) + " # changed")
    return "\n".join(difflib.unified_diff(before, after, "a/src/file", "b/src/file", lineterm=""))


def notebook_of(text: str) -> str:
    """A Jupyter notebook whose cells hold the text's lines, as it stands on disk."""
    lines = text.splitlines(keepends=True)[:_MOST_LINES]
    cells = [
        {
            "cell_type": "code" if number % 2 else "markdown",
            "metadata": {},
            "source": lines[at : at + _CELL_LINES],
            **({"execution_count": number, "outputs": []} if number % 2 else {}),
        }
        for number, at in enumerate(range(0, len(lines), _CELL_LINES))
    ]
    return json.dumps({"cells": cells, "nbformat": 4}, indent=1, ensure_ascii=False)


def answer_of(text: str) -> str:
    """The text's paragraphs as an assistant lays them out: headings, lists, quotations, a table."""
    rng = random.Random(text[:200])
    made: list[str] = []
    for number, part in enumerate(p for p in text.split("\n\n") if p.strip()):
        lines = [line.strip() for line in part.splitlines() if line.strip()]
        head = " ".join(lines[0].split()[:5])
        layout = rng.randrange(5)
        if layout == 0:
            made.append(f"## {number + 1}. {head}\n\n" + "\n".join(lines))
        elif layout == 1:
            made.append("\n".join(f"- **{line.split()[0]}** {line}" for line in lines))
        elif layout == 2:
            made.append("\n".join(f"{at}. {line}" for at, line in enumerate(lines, 1)))
        elif layout == 3:
            rows = "\n".join(
                f"| {at} | {line.replace('|', '/')} |" for at, line in enumerate(lines)
            )
            made.append(f"| # | {head.replace('|', '/')} |\n|---|---|\n{rows}")
        else:
            made.append("> " + "\n> ".join(lines))
    return "\n\n".join(made)


def dump_of(text: str) -> str:
    """The text's words as the rows of a table, dumped as SQL."""
    words = [word.replace("'", "''") for word in text.split()[:2000]]
    rows = [words[at : at + _COLUMNS] for at in range(0, len(words) - _COLUMNS, _COLUMNS)]
    values = ",\n".join(
        "({}, '{}', NULL)".format(number, "', '".join(row)) for number, row in enumerate(rows)
    )
    return f"INSERT INTO words (id, a, b, c, d, note) VALUES\n{values};"


def _named(*blocks: tuple[int, int]) -> list[tuple[str, str]]:
    """Characters of blocks of Unicode with their names."""
    every = (chr(code) for first, last in blocks for code in range(first, last + 1))
    return [(char, unicodedata.name(char).lower()) for char in every if unicodedata.name(char, "")]


def emoji_texts(rng: random.Random) -> Iterator[str]:
    """Lists, rows and sentences with emoji, as chats and release notes have them."""
    known = _named((0x1F300, 0x1F64F), (0x1F680, 0x1F6C5), (0x2600, 0x26FF), (0x2700, 0x27BF))
    for _ in range(_MADE):
        some = rng.sample(known, rng.randint(8, 60))
        listed = "\n".join(f"- {sign} {name}" for sign, name in some)
        rows = "\n".join(" ".join(s for s, _ in some[at : at + 8]) for at in range(0, len(some), 8))
        said = " ".join(f"The {name} {sign} is here!" for sign, name in some[:6])
        yield "\n\n".join(rng.sample([listed, rows, said], 2))


def formula_texts(rng: random.Random) -> Iterator[str]:
    """Formulas in Unicode and in LaTeX with a sentence between them."""
    names = [*"xyzabnkpq", *"αβγδελμπστφψω", "Σ", "Ω"]
    joins = [*"+−·×÷=≠≤≥≈≡∈∉⊂⊆∪∩→⇒⇔∧∨∘⊕⊗±", "↦", "∝", "∥", "⊥"]
    heads = [
        "∀{a} ∃{b}: ",
        "∑ₖ₌₁ⁿ ",
        "∫₀^∞ ",
        "∂{a}/∂{b} = ",
        "∇·",
        "√",
        "lim_{{{a}→∞}} ",
        "¬",
        "∏ᵢ ",
        "",
    ]
    tex = [
        r"\frac{{{a}}}{{{b}}}",
        r"\sum_{{k=1}}^{{n}} {a}_k",
        r"\int_0^1 {a}\,d{b}",
        r"\sqrt{{{a}^2+{b}^2}}",
    ]
    for _ in range(_MADE):
        lines: list[str] = []
        for number in range(rng.randint(6, 30)):
            a, b = rng.choice(names), rng.choice(names)
            row = " ".join(
                rng.choice(names) + rng.choice(["", "²", "ₙ", "₁", "′"]) + " " + rng.choice(joins)
                for _ in range(rng.randint(2, 7))
            )
            lines.append(f"{rng.choice(heads).format(a=a, b=b)}{row} {b}")
            lines.append(f"$${rng.choice(tex).format(a=a, b=b)} = {a}$$")
            if number % 3 == 0:
                lines.append(
                    f"Hence {a} is bounded by {b}, and the claim follows from step {number + 1}. ∎"
                )
        yield "\n".join(lines)
