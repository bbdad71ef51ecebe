"""Pieces of a vocabulary, to be strung together as salad: small words of nine languages, pieces of
words, marks out of code, nouns.

They were written before the rules that tell them, not after; some endings and most small words are
in the detectors' tables since those list what grammars list.
"""

from __future__ import annotations

import random

_SMALL_WORDS = (
    "as at be but have has these there can could when where if on in for or it he we you not all"
    " been more der ein eine für sich von wird oder aber auch kann bei nach wir durch um am im le"
    " la des est qui que sur par avec pas plus ce se du aux ses el del con por como pero más sus al"
    " lo es che di non per della sono nel anche più una gli van voor met zijn ook maar naar door"
    " bij deze não uma com são mas pelo também quando dos foi nie się jest na do że przez oraz od"
    " ale och att är inte som för med av till den"
)
SMALL_WORDS = _SMALL_WORDS.split()
_WORD_PIECES = (
    "ness ulating ofacas orsch enka uget blit EL zzle etra ocumented ierung mente ción ungs keit"
    " lich ement atore ável ości ningen ized ably ful ish ward uous ctor plen strat isse unk"
)
WORD_PIECES = _WORD_PIECES.split()
_MARKS = "]] ); => (\" NULL {{ ##### ___ -> :: && */ }) '\"> /> || $ [] __ ... == \\n %s '; ++"
MARKS = _MARKS.split()
_NOUNS = (
    "umbrella bread ticket vertex harbour window copper Fenster Gabel Mittwoch Strasse Brot maison"
    " jardin pain ventana mesa zapato finestra pane raam brood janela livro okno chleb fönster bord"
)
NOUNS = _NOUNS.split()

# Name, pieces, the length from which 0.95 is reached.
MIXES: tuple[tuple[str, list[str], int | None], ...] = (
    ("small words of nine languages", SMALL_WORDS, 30),
    ("small words and marks", SMALL_WORDS + MARKS, 45),
    ("small words and nouns", SMALL_WORDS + NOUNS, 120),
    ("small words and pieces of words", SMALL_WORDS + WORD_PIECES, 60),
    ("words, pieces, marks and nouns", SMALL_WORDS + WORD_PIECES + MARKS + NOUNS, 120),
    ("pieces of words and marks", WORD_PIECES + MARKS, 300),
    ("nouns and marks", NOUNS + MARKS, None),
)


def strung(pieces: list[str], size: int, rng: random.Random) -> str:
    """Pieces drawn evenly, a blank between, until they are `size` characters."""
    made = ""
    while len(made) < size:
        made += " " * bool(made) + rng.choice(pieces)
    return made
