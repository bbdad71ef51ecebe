"""Writes dsv4doctor/detect/neighbours_table.py: which small words never stand side by side.

Usage: python benchmarks/neighbours.py [--folder DIR]... [--pieces 32000]

Counts neighbouring small words in the soak's texts (see tests/soak/detect_texts.py) and in every
UTF-8 text below the given folders; the shipped table was counted with `--pieces 80000` and, beside
them, the texts of the Debian packages fortunes-*, debian-reference-*, debian-handbook,
installation-guide and manpages-*, and the messages of libreoffice-l10n-* in 83 languages, a text
for each. A pair is in the table when it never occurs although chance alone would have brought
it several times, or although both words are common and share no language.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
import textwrap
from base64 import b85encode
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "soak"))
sys.path.insert(0, str(ROOT))

from detect_texts import clean_pieces, is_sound  # noqa: E402

from dsv4doctor.detect.switches import FUNCTION_WORDS  # noqa: E402

# Small words that are counted beside the function words by which languages are told.
MORE_WORDS = (
    "the of and to a in is that it was for on are as with they be at one have this from or had by"
    " but not what all were we when your can there use an which do if will up about out then so"
    " some would into has more no could than been who its now only may over even most after also"
    " these any same where how should because while though whether"
    " de le la el en des du et il un im zu von den die der al se di da do os na ne te det på av med"
    " om в и не на с по для что как или minus"
)  # fmt: skip
WORDS = sorted({*MORE_WORDS.split(), *" ".join(FUNCTION_WORDS.values()).split()})
# Chance alone would have brought the pair this often.
MIN_EXPECTED = 6.0
# Or each of the two words is there this often, in whatever language.
MIN_EACH = 800
# Languages with fewer words say nothing about chance.
MIN_WORDS = 30_000
TABLE = ROOT / "dsv4doctor" / "detect" / "neighbours_table.py"
_WORD = re.compile(r"[^\W\d_]+")
_PAIR = re.compile(r"(?<![\w'’./_-])([^\W\d_]{1,8})[ \n](?=([^\W\d_]{1,8})(?![\w'’/_.-]))")


def folder_texts(folder: Path) -> Iterator[tuple[str, str]]:
    """(language, text) of every readable text below a folder; a two-letter folder or suffix
    names the language."""
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink()):
        if path.suffix not in ("", ".txt", ".gz"):
            continue
        try:
            raw = path.read_bytes()[:2_000_000]
            text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
        except (OSError, UnicodeDecodeError, EOFError):
            continue
        named = re.search(r"(?:/|\.)([a-z]{2})(?:/|\.txt|-)", str(path))
        if is_sound(text):
            yield named[1] if named else "en", text


def texts(pieces: int, folders: list[Path]) -> Iterator[tuple[str, str]]:
    for piece in clean_pieces(pieces):
        named = re.match(r"(?:man|messages)-([a-z]{2})", piece.kind)
        yield named[1] if named else "en" if "-" not in piece.kind else "code", piece.text
    for folder in folders:
        yield from folder_texts(folder)


def never_pairs(source: Iterator[tuple[str, str]]) -> set[tuple[str, str]]:
    """The pairs of small words that the texts never have, though they should by chance."""
    small = set(WORDS)
    words: dict[str, Counter[str]] = defaultdict(Counter)
    totals: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for language, text in source:
        lowered = text.lower()
        found = _WORD.findall(lowered)
        totals[language] += len(found)
        words[language].update(word for word in found if word in small)
        pairs.update((a, b) for a, b in _PAIR.findall(lowered) if a in small and b in small)
    spoken = [language for language in words if totals[language] >= MIN_WORDS]
    every = {word: sum(words[language][word] for language in spoken) for word in small}

    def is_never(a: str, b: str) -> bool:
        if a == b or pairs[a, b]:
            return False
        by_chance = max(words[n][a] * words[n][b] / totals[n] for n in spoken)
        return by_chance >= MIN_EXPECTED or min(every[a], every[b]) >= MIN_EACH

    return {(a, b) for a in small for b in small if is_never(a, b)}


def written(pairs: set[tuple[str, str]]) -> str:
    """The table as a module: one bit a pair, rows and columns in the order of `WORDS`."""
    place = {word: number for number, word in enumerate(WORDS)}
    bits = 0
    for a, b in pairs:
        bits |= 1 << (place[a] * len(WORDS) + place[b])
    raw = b85encode(bits.to_bytes((len(WORDS) ** 2 + 7) // 8, "little")).decode()
    rows = "\n".join(raw[at : at + 96] for at in range(0, len(raw), 96))
    return (
        '"""Which small words never stand side by side; written by `benchmarks/neighbours.py`.\n\n'
        f"{len(pairs):,} of {len(WORDS) ** 2:,} pairs, one bit each, in base 85.\n"
        '"""\n\nfrom __future__ import annotations\n\n'
        f'WORDS = """\n{textwrap.fill(" ".join(WORDS), 96)}\n"""\n'
        f'NEVER = r"""\n{rows}\n"""\n'
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, action="append", default=[])
    parser.add_argument("--pieces", type=int, default=32_000)
    args = parser.parse_args()
    pairs = never_pairs(texts(args.pieces, args.folder))
    TABLE.write_text(written(pairs), encoding="utf-8")
    print(f"{len(pairs):,} pairs never seen, of {len(WORDS) ** 2:,}")


if __name__ == "__main__":
    main()
