"""Clean responses cut from real text that lies on a Debian machine with Python: the soak's raw
stuff.

Nothing is shipped: manual pages in many languages, message catalogues, source code in many
languages, documentation, tables and data are read where packages put them. The same machine gives
the same pieces in the same order for the same seed. A piece is a whole number of lines, as a model
would write them, or (for catalogues) a list of messages.

A seed means the same pieces only while the list of kinds and the installed packages stay the same:
kinds take turns, and a kind draws its files by the seed and its own name. More kinds appear by
themselves where their packages are installed, and nothing else has to be set: `fortunes-*`
(sayings and verses), `wamerican` and its like, `hunspell-*` (lists), `dict-freedict-*`
(dictionaries), `manpages-*`, `libreoffice-help-*`, `debian-reference-*` and any `*-doc` (manuals in
many languages), `golang-src`, `rust-src`, `ghc`, `nim`, `racket`, `r-base` (code), anything with
notebooks or patches.
"""

from __future__ import annotations

import base64
import fnmatch
import gettext
import gzip
import hashlib
import os
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

from detect_made import answer_of, diff_of, dump_of, emoji_texts, formula_texts, notebook_of

MIN_CHARS, MAX_CHARS = 160, 4000
# No file gives more than this, so that one long changelog does not stand for a language.
PIECES_PER_FILE = 6
FILES_PER_KIND = 900

# A piece cut inside a fence is closed, as a model that stops there closes it.
_FENCE = re.compile(r"^ {0,3}```", re.MULTILINE)
_ROFF = re.compile(r"\\f(?:\[[^\]]*\]|\(..|.)|\\s[+-]?\d|\\[&|^%]|\\\*\[[^\]]*\]")


@dataclass(frozen=True, slots=True)
class Piece:
    """One clean text: its kind (`man-de`, `code-py`, …), the file it was cut from, the text."""

    kind: str
    source: str
    text: str


def _read(path: Path) -> str | None:
    """The file's text, or None if it is no strict UTF-8; `.gz` is opened."""
    try:
        raw = path.read_bytes() if path.stat().st_size < 4_000_000 else b""
        if path.suffix in (".gz", ".dz"):
            raw = gzip.decompress(raw)
        return raw[:400_000].decode("utf-8")
    except (OSError, UnicodeDecodeError, EOFError):
        return None


def _roff(text: str) -> str:
    """A manual page without its macros, near enough to what `man` shows."""
    lines = []
    for source in text.splitlines():
        if source.startswith(('.\\"', "'\\\"")):
            continue
        line = source.partition(" ")[2] if source.startswith((".", "'")) else source
        line = _ROFF.sub("", line).replace("\\-", "-").replace("\\e", "\\").replace("\\ ", " ")
        lines.append(line.replace("\\(aq", "'").replace("\\(co", "(c)").replace("\\&", ""))
    return "\n".join(lines)


def _plain(text: str) -> str:
    return text


def _tags_off(text: str) -> str:
    return re.sub(r"<[^<>]{1,400}>", "", text)


def _sayings(text: str) -> str:
    """A file of sayings without the lines of `%` that part them."""
    return re.sub(r"(?m)^%$\n?", "\n", text)


def _base64(text: str) -> str:
    return base64.encodebytes(text.encode()[:2000]).decode()


def _hex(text: str) -> str:
    raw = text.encode()[:700]
    rows = (raw[at : at + 16] for at in range(0, len(raw), 16))
    return "\n".join(
        f"{at * 16:08x}  {row.hex(' ')}  |{''.join(chr(b) if 32 <= b < 127 else '.' for b in row)}|"
        for at, row in enumerate(rows)
    )


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    roots: tuple[str, ...]
    patterns: tuple[str, ...]
    convert: Callable[[str], str] = _plain


_MANUALS = (
    "cs da de el es fi fr hr hu id it ja ko mk nb nl pl pt pt_BR ro ru sl"
    " sr sv tr uk vi zh_CN zh_TW"
)
_MAN_LANGUAGES = _MANUALS.split()
_SHARE, _LIB = "/usr/share", "/usr/lib"
_VENV = str(Path(__file__).parents[2] / ".venv")
_CODE = {
    "py": ("*.py",),
    "c": ("*.c", "*.h"),
    "cpp": ("*.hpp", "*.cpp", "*.cc", "*.hh", "*.tcc"),
    "js": ("*.js", "*.mjs"),
    "ts": ("*.ts",),
    "css": ("*.css",),
    "perl": ("*.pm", "*.pl"),
    "vim": ("*.vim",),
    "elisp": ("*.el",),
    "tcl": ("*.tcl",),
    "cmake": ("*.cmake",),
    "sql": ("*.sql",),
    "sh": ("*.sh",),
    "awk": ("*.awk",),
    "m4": ("*.m4",),
    "xml": ("*.xml",),
    "java": ("*.java",),
    "f90": ("*.f90", "*.f"),
    "pyx": ("*.pyx", "*.pyi"),
}
_CODE_ROOTS = (_VENV, _LIB, _SHARE, "/usr/include", "/usr/local/lib")
_PROSE_ROOTS = (f"{_SHARE}/doc", f"{_SHARE}/perl")
# Languages of which a machine has few files, together one kind.
_MORE_CODE = (
    "*.go", "*.rs", "*.rb", "*.php", "*.lua", "*.hs", "*.ml", "*.mli", "*.erl", "*.ex", "*.exs",
    "*.jl", "*.scala", "*.kt", "*.swift", "*.cs", "*.nim", "*.r", "*.R", "*.pas", "*.adb", "*.ads",
    "*.scm", "*.rkt", "*.lisp", "*.tsx", "*.jsx", "*.vue", "*.proto", "*.g4", "*.asm", "*.s",
    "*.S", "*.ps1", "*.bat",
)  # fmt: skip
KINDS: tuple[Kind, ...] = (
    *(Kind(f"man-{lang}", (f"{_SHARE}/man/{lang}",), ("*.gz",), _roff) for lang in _MAN_LANGUAGES),
    Kind(
        "man-en",
        (f"{_SHARE}/man/man1", f"{_SHARE}/man/man3", f"{_SHARE}/man/man8"),
        ("*.gz",),
        _roff,
    ),
    *(Kind(f"code-{name}", _CODE_ROOTS, patterns) for name, patterns in _CODE.items()),
    Kind("html", (_SHARE, _LIB, _VENV), ("*.html", "*.htm")),
    Kind("html-text", (_SHARE, _LIB), ("*.html",), _tags_off),
    Kind("markdown", (_SHARE, _LIB, _VENV, "/usr/local/lib"), ("*.md", "*.rst")),
    Kind("json", (_SHARE, _LIB, _VENV), ("*.json",)),
    Kind("csv", (_SHARE, _LIB, _VENV), ("*.csv", "*.tab", "*.tsv")),
    Kind("yaml", (_SHARE, _LIB, _VENV), ("*.yaml", "*.yml", "*.toml", "*.ini", "*.conf")),
    Kind("changelog", (f"{_SHARE}/doc",), ("changelog*.gz", "NEWS*.gz", "README*")),
    Kind(
        "licence", (f"{_SHARE}/common-licenses", f"{_SHARE}/doc"), ("GPL*", "copyright", "LICENSE*")
    ),
    Kind("log", ("/var/log", f"{_SHARE}/doc"), ("*.log", "dpkg.log*", "*.log.gz")),
    Kind("text", (_SHARE, _LIB, _VENV), ("*.txt", "*.txt.gz")),
    Kind("base64", (f"{_SHARE}/doc",), ("copyright",), _base64),
    Kind("hexdump", (f"{_SHARE}/doc",), ("copyright",), _hex),
    Kind("pem", ("/usr/share/ca-certificates",), ("*.crt",)),
    Kind("po", (_SHARE, _LIB), ("*.po",)),
    # Only where their packages are installed: see this module's first lines.
    Kind("fortune", (f"{_SHARE}/games/fortunes",), ("*[!.]??", "*.fortunes"), _sayings),
    Kind("wordlist", (f"{_SHARE}/dict", f"{_SHARE}/hunspell"), ("[a-z]*", "*.dic", "*.aff")),
    Kind("dictionary", (f"{_SHARE}/dictd",), ("*.dict.dz",)),
    Kind("notebook", (_SHARE, _LIB, _VENV), ("*.ipynb", "*.ipynb.gz")),
    Kind("patch", (_SHARE, _LIB, _VENV), ("*.diff", "*.patch", "*.diff.gz", "*.patch.gz")),
    Kind("stylesheet", (_SHARE, _LIB), ("*.xsl", "*.xslt", "*.scss", "*.less")),
    Kind("code-more", _CODE_ROOTS, _MORE_CODE),
    # Laid out anew from what is there.
    Kind("made-diff", _CODE_ROOTS, ("*.py", "*.c", "*.js", "*.pl"), diff_of),
    Kind("made-notebook", _CODE_ROOTS, ("*.py", "*.md", "*.rst"), notebook_of),
    Kind(
        "made-answer", (f"{_SHARE}/doc", f"{_SHARE}/perl"), ("README*", "*.pod", "*.txt"), answer_of
    ),
    Kind("made-dump", (f"{_SHARE}/doc", f"{_SHARE}/perl"), ("README*", "*.pod", "*.txt"), dump_of),
    Kind("tex", (_SHARE, _LIB, _VENV), ("*.tex", "*.bib", "*.sty")),
)
_CATALOGUES = (
    "am ar as ast az be bg bn bs ca ckb cs cy da de el eo es et eu fa fi fr fy ga gd gl "
    "gu he hi hr hu hy id is it ja ka kk km kn ko ku ky lo lt lv mai mk ml mn mr ms my nb "
    "ne nl nn oc or pa pl ps pt pt_BR ro ru si sk sl sq sr sv ta te tg th tl tr tt ug uk "
    "ur uz vi zh_CN zh_HK zh_TW"
)
_LOCALES = _CATALOGUES.split()


@lru_cache(maxsize=8)
def _all_files(root: str) -> tuple[Path, ...]:
    """Every file under a root; one walk serves all kinds."""
    return tuple(Path(folder, name) for folder, _, names in os.walk(root) for name in sorted(names))


def _files(kind: Kind, rng: random.Random) -> list[Path]:
    wanted = re.compile("|".join(fnmatch.translate(pattern) for pattern in kind.patterns))
    found = {path for root in kind.roots for path in _all_files(root) if wanted.match(path.name)}
    ordered = sorted(found)
    rng.shuffle(ordered)
    usable = (path for path in ordered if path.is_file() and not path.is_symlink())
    return list(islice(usable, FILES_PER_KIND))


def _pieces(kind: str, source: str, text: str, rng: random.Random) -> Iterator[Piece]:
    lines = text.splitlines()
    at = 0
    for _ in range(PIECES_PER_FILE):
        wanted = rng.randint(MIN_CHARS, MAX_CHARS)
        taken: list[str] = []
        size = 0
        while at < len(lines) and size < wanted:
            taken.append(lines[at])
            size += len(lines[at]) + 1
            at += 1
        piece = "\n".join(taken).strip("\n")
        if len(_FENCE.findall(piece)) % 2:
            piece += "\n```"
        if len(piece) >= MIN_CHARS:
            yield Piece(kind, source, piece[: 4 * MAX_CHARS])
        if at >= len(lines):
            return


def _catalogues(language: str, rng: random.Random) -> Iterator[Piece]:
    for path in sorted(Path("/usr/share/locale").glob(f"{language}/LC_MESSAGES/*.mo")):
        try:
            with path.open("rb") as stream:
                messages = list(gettext.GNUTranslations(stream)._catalog.values())
        except (OSError, UnicodeDecodeError, ValueError, EOFError, IndexError):
            continue
        # Several messages have one translation; a list has it once.
        told = dict.fromkeys(m for m in messages[1:] if isinstance(m, str) and len(m) > 8)
        text = "\n".join(told)
        yield from _pieces(f"messages-{language}", str(path), text, rng)


def _kind_stream(kind: Kind, seed: int) -> Iterator[Piece]:
    rng = random.Random(f"{seed}-{kind.name}")
    for path in _files(kind, rng):
        text = _read(path)
        if text is not None:
            yield from _pieces(kind.name, str(path), kind.convert(text), rng)


def _drawn(
    kind: str, texts: Callable[[random.Random], Iterator[str]], seed: int
) -> Iterator[Piece]:
    rng = random.Random(f"{seed}-{kind}")
    for text in texts(rng):
        yield from _pieces(kind, "drawn", text, rng)


# Real files are not all sound: these are faults of the text itself, and set apart as such.
UNSOUND = re.compile("[\ufffd\x00-\x07\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffe\uffff]|Ã[\u0080-\u00bf]|â€")


def is_sound(text: str) -> bool:
    """False for a text that is itself damaged: undecodable bytes, raw controls, mojibake."""
    return UNSOUND.search(text) is None


def clean_pieces(
    count: int, seed: int = 0, set_apart: list[Piece] | None = None
) -> Iterator[Piece]:
    """Up to `count` distinct pieces, the kinds taking turns so that none dominates.

    Texts that are damaged themselves are left out, and put into `set_apart` if it is given.
    """
    streams: list[Iterator[Piece]] = [_kind_stream(kind, seed) for kind in KINDS]
    streams += [_drawn("emoji", emoji_texts, seed), _drawn("formulas", formula_texts, seed)]
    streams += [_catalogues(lang, random.Random(f"{seed}-{lang}")) for lang in _LOCALES]
    seen: set[bytes] = set()
    given = 0
    while streams and given < count:
        for stream in list(streams):
            piece = next(stream, None)
            if piece is None:
                streams.remove(stream)
                continue
            if not is_sound(piece.text):
                if set_apart is not None:
                    set_apart.append(piece)
                continue
            digest = hashlib.blake2b(
                piece.text.encode("utf-8", "surrogatepass"), digest_size=12
            ).digest()
            if digest in seen:
                continue
            seen.add(digest)
            yield piece
            given += 1
            if given >= count:
                return
