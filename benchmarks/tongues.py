"""Writes dsv4doctor/detect/tongues_table.py: which languages have which small words.

Usage: python benchmarks/tongues.py

The candidates are small words of nineteen languages, as grammars list them. Who else has a word is
counted: in the message catalogues and manual pages of every language in Latin letters that this
machine has at least 5,000 words of, untranslated messages and English paragraphs left out, and in
the soak's English texts (see tests/soak/detect_texts.py).
"""

from __future__ import annotations

import gettext
import gzip
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "soak"))
sys.path.insert(0, str(ROOT))

from detect_texts import _roff, clean_pieces  # noqa: E402

from dsv4doctor.detect.neighbours_table import WORDS as COUNTED  # noqa: E402
from dsv4doctor.detect.switches import FUNCTION_WORDS  # noqa: E402

CANDIDATES = {
    "en": "the of and that which with this from they have been were would could should about"
    " because their there these those what when where while whether than then them his her"
    " its you your was has had not but by for are is be we how who can will into only more"
    " most other such both each every after before through between against without within"
    " upon until unless although however must may might does did being it on if or at an"
    " as so to do no",
    "de": "der die das und nicht mit ist auf eine einen einem einer eines dem den des wird"
    " werden auch oder nach wie sich durch unter über dann wenn sind zur zum nie ein für"
    " von bei aus kann können aber noch nur als um im am vor wurde wurden haben hat sein"
    " ihre seine diese dieser dieses welche keine kein mehr bis sowie ohne gegen zwischen"
    " damit dass daß weil wir ihr sie es zu an so ",
    "fr": "le la les un une des du de et est que qui dans pour avec sont cette ce ces leur"
    " leurs mais aussi nous vous par sur pas plus ou où aux au ses son sa se ne elle ils"
    " être avoir fait comme tout tous toute entre sans sous après avant donc lorsque peut"
    " ont même si il en votre notre très",
    "es": "el la los las un una unos unas de del que en con por para pero como muy más está"
    " están este esta estos estas se sus lo al es son ser ha han no si sin sobre entre"
    " cuando donde desde hasta también porque puede todos todo cada otro otra ya le les"
    " nos ustedes luego fue hay",
    "it": "il lo la gli le un uno una di del della dei delle dello degli da dal dalla nel nella"
    " nei con che sono per anche perché questo questa questi più come se non si ma ed alla"
    " al ai agli dopo prima quando dove può essere stato viene tutti ogni senza tra fra "
    " sul sulla suo sua ci quello in",
    "pt": "os as um uma uns umas de do da dos das no na nos nas em com por para mas como mais"
    " está este esta isso são ser não que se seu sua seus suas ao aos pelo pela pelos"
    " também quando onde você foi tem sem sobre entre até já muito todos cada ou lhe ele"
    " ela depois nem",
    "nl": "de het een en van in op te dat die is niet voor met naar door bij zijn wordt worden"
    " werden ook of maar om dan als aan er uit nog geen deze dit wel kan kunnen moet zoals"
    " over tot hebben heeft had was alleen alle meer andere tussen zonder onder omdat"
    " wanneer wat hoe hij zij wij af der al",
    "sv": "och att det som en ett är inte för på av med den de till från om har kan ska eller"
    " men så vid när där hur vad detta dessa denna alla efter under över utan mellan blir"
    " blev var sin sitt sina jag vi ni hade skulle också bara mycket genom dem in",
    "da": "og at det som en et er ikke for på af med den de til fra om har kan skal eller men"
    " så ved når hvor hvad dette disse denne alle efter under over uden mellem bliver blev"
    " var sin sit sine jeg vi havde skulle også kun meget gennem dem være bruges hvis",
    "pl": "na do nie się że jest są to jak dla od po za przez przed oraz lub ale tylko gdy"
    " jeśli może który która które których tego tym tej ten ta być ich jego jej już tak"
    " także ze pod nad przy bez co czy został można ma ile",
    "tr": "bir ve için ile olarak değil bu da de daha çok gibi sonra kadar veya olan her ancak"
    " ama ya hem mi en ne göre tüm",
    "ro": "și este pentru sunt din cu la nu că sau care de pe un în mai ale al ai acest"
    " această dacă poate prin fără după se ca între lui cel cea",
    "cs": "je se na do že není jsou pro nebo ale jako by který která které podle při pokud také"
    " jen již může být po za ve",
    "fi": "ja on ei että tai se kun joka mutta ovat voi tämä myös niin jos sekä sen ole kuin"
    " mukaan",
    "ca": "el la els les un una de del dels que en amb per però com més és són aquest aquesta"
    " no si al als ha han es seva seu també",
    "no": "og at det som en et er ikke for på av med den de til fra om har kan skal eller men"
    " så ved når hvor dette disse",
    "hu": "az és nem egy hogy is van vagy meg csak ha de ez mint el még már",
    "id": "yang dan di untuk dengan tidak ini dari itu pada adalah akan atau dalam oleh ke bisa"
    " jika",
    "vi": "và là của không có cho được các một trong với để này",
}
# Words that a language has too, though its texts on this machine hardly do.
ALSO = {
    "en": "come care am die man pro sit hat men her van den sur con pour fin tout son mas sin"
    " hay ni bin ist war wider also bei nun ya mi ha et al via per ex de la le en du a do"
    " no on im plus",
    "fr": "sur par car or on des ses mes son main pour ni van te as ta an dos nos ai mi pro",
    "de": "da am an in im so war also ja per pro will man las du uns her er prima plus",
    "nl": "wie al los man na les som las nu je kun per we ze hem been ja pas des den pro plus",
    "sv": "se ser om by nu per hem sen sa ja han er an be dos par",
    "da": "by nu os per ja din se da an han des par",
    "no": "by si per ja din se sa mais la ta da an der sine ha jeg meget sitt to dos par",
    "nds": "en al dann an of af nu se uns na noch her mi ja alle andere am had kann du oder will"
    " nie so van wat dit hebben worden was",
    "az": "il",
    "tr": "il on sen al el et",
    "es": "el sin con son era ni da van te ve dan das des has os di par sur ten mi prima den"
    " come pro",
    "ca": "van te som este pas ni on qui mai sa ses mi nos uns has por ne hem prima et em se mas",
    "pt": "más te és si par sul prima disse la lo",
    "it": "te mais ne mai mi lui voi no sin disse pro",
    "ia": "te",
    "pl": "sie moze sa ich nia mi te je nas was on da no ja",
    "cs": "te on ta ten mi ne nas da dal sem den no",
    "ro": "te sa am ne ni mi el ei des una par dat voi an dos pas or le sine ta vi",
    "sl": "dan on si mi ni sem nas vi dal ja",
    "hr": "dan on ta sa si mi nas no ja",
    "bs": "dan on ta si mi vi nas to ja no",
    "sk": "on ta ten mi da dal sem som ma no ja nas",
    "hu": "le mi ma no hat se per",
    "fi": "ne te et",
    "et": "ta ma sa te nad",
    "lv": "ne es te nu tai",
    "lt": "ten pas ta pro",
    "sq": "por ta sa pas ne na le dal",
    "eo": "si ja nu du",
    "id": "per para",
    "ms": "per para",
    "eu": "non al on die",
    "gl": "han van",
    "la": "est et in de non se si sine per pro qui ne ni has is os una quando sunt an at sua"
    " suas nos sit die es te uno tot mas",
    "ie": "es de in un con por per que qui no ne ni la il on pro ma si ha sur tra til for nu"
    " tot sin nos les se mi al del have di",
    "lb": "an och der de den dem des en et se alle als am um op bei bis dat dass oder zu zur"
    " zum ze du hat kann so do ni nie ma in es er per pro plus no aus sin un dann wat",
    "fy": "de en it te op by is dat as of om der al dan dit we se no har hat wat sa ha men nei"
    " du do was had",
    "fo": "og at er um til av ein men han har so der en du var ta",
    "mt": "il ta ma sa dan din se ser le",
    "rm": "il la da en per che na ma sin ses ha han has dal las un in",
    "sw": "na ya ni si la za au",
    "ast": "to",
}
# Languages with fewer words say nothing.
MIN_WORDS = 5_000
# Those with fewer may be taken for foreign by the first pass, which costs time and nothing else.
FEW_WORDS = 60_000
# A language has a word that is this share of what it is where it is most frequent, and this
# frequent at all; less is a name, a quotation or a slip.
SHARE, LEAST, TIMES = 0.04, 80e-6, 3
# Codes that are left for words which `neighbours_table.py` does not have.
CLASSES = 19
ENGLISH_PIECES = 6_000
ENGLISH_KINDS = ("man-en", "licence", "changelog", "markdown", "text", "html-text")
# One language by several names.
_SAME = {"nb": "no", "nn": "no"}
_LATIN = re.compile(r"[a-z]")
_BEYOND = re.compile(r"[\u0370-\u1cff\u3040-\uffef]")
_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH = re.compile(r"\b(?:the|of|and|is|to|for|with|this|that|by|are|or|be)\b")
_ENGLISH_LINE = 3
TABLE = ROOT / "dsv4doctor" / "detect" / "tongues_table.py"


def catalogues() -> Iterator[tuple[str, str]]:
    """(language, messages) of every catalogue, less what is not translated."""
    for path in sorted(Path("/usr/share/locale").glob("*/LC_MESSAGES/*.mo")):
        named = path.parts[-3]
        if "@" in named or named.startswith("en"):
            continue
        try:
            with path.open("rb") as stream:
                messages = gettext.GNUTranslations(stream)._catalog.items()
        except (OSError, UnicodeDecodeError, ValueError, EOFError, IndexError):
            continue
        said = [v for k, v in messages if k and isinstance(v, str) and v != k]
        yield named.split("_")[0], "\n".join(said)


def manuals() -> Iterator[tuple[str, str]]:
    for folder in sorted(Path("/usr/share/man").iterdir()):
        if folder.is_dir() and not folder.name.startswith("man"):
            for path in sorted(folder.rglob("*.gz")):
                try:
                    page = _roff(gzip.decompress(path.read_bytes()).decode())
                except (OSError, UnicodeDecodeError, EOFError):
                    continue
                yield folder.name.split("_")[0], page


def texts() -> Iterator[tuple[str, str]]:
    """(language, text) with the English lines of other languages' texts left out."""
    for language, text in (*catalogues(), *manuals()):
        kept = (x for x in text.split("\n") if len(_ENGLISH.findall(x)) < _ENGLISH_LINE)
        yield _SAME.get(language, language), "\n".join(kept)
    for piece in clean_pieces(ENGLISH_PIECES, seed=1):
        if piece.kind in ENGLISH_KINDS:
            yield "en", piece.text


def languages_of(
    source: Iterator[tuple[str, str]],
) -> tuple[dict[str, frozenset[str]], frozenset[str]]:
    """The languages of every candidate, and the languages of which little was counted."""
    listed = {language: set(words.split()) for language, words in CANDIDATES.items()}
    wanted = set().union(*listed.values())
    more = (*ALSO.items(), *FUNCTION_WORDS.items())
    known = [*listed.items(), *((n, set(words.split())) for n, words in more)]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    totals: Counter[str] = Counter()
    for language, text in source:
        if 2 * len(_BEYOND.findall(text)) > len(_LATIN.findall(text)):
            continue
        found = _WORD.findall(text)
        totals[language] += len(found)
        counts[language].update(word for word in found if word in wanted)
    enough = [language for language, total in totals.items() if total >= MIN_WORDS]

    def speakers(word: str) -> frozenset[str]:
        rates = {n: counts[n][word] / totals[n] for n in enough if counts[n][word] >= TIMES}
        least = max(LEAST, SHARE * max(rates.values(), default=0.0))
        counted = {language for language, rate in rates.items() if rate >= least}
        return frozenset(counted | {n for n, words in known if word in words})

    small = frozenset(language for language in enough if totals[language] < FEW_WORDS)
    return {word: speakers(word) for word in wanted}, small


def classes_of(
    spoken: dict[str, frozenset[str]], small: frozenset[str]
) -> list[tuple[frozenset[str], list[str]]]:
    """The languages and the words of each class: at most small languages are lost to a word when
    it is known by its class alone. Words that fit in none are the last class, of no language."""
    left, made = dict(spoken), []
    cores = sorted(set(spoken.values()), key=sorted)

    def held(core: frozenset[str]) -> list[str]:
        return sorted(w for w, names in left.items() if core <= names and names - core <= small)

    for _ in range(CLASSES):
        core = max(cores, key=lambda core: len(held(core)))
        made.append((core, held(core)))
        for word in made[-1][1]:
            del left[word]
    return [*made, (frozenset(), sorted(left))]


def written(spoken: dict[str, frozenset[str]], small: frozenset[str]) -> str:
    """The table as a module: the words of each code, a row for each set of languages."""
    counted = set(COUNTED.split())
    new = {word: names for word, names in spoken.items() if word not in counted}
    parts = []
    for core, words in [
        (frozenset[str](), sorted(set(spoken) & counted)),
        *classes_of(new, small),
    ]:
        rows: dict[str, list[str]] = defaultdict(list)
        for word in words:
            rows[" ".join(sorted(spoken[word]))].append(word)
        shown = [f"{named}: {' '.join(row)}" for named, row in sorted(rows.items())]
        parts.append("\n".join([" ".join(sorted(core)) or "-", *shown]))
    return (
        '"""Which languages have which small words; written by `benchmarks/tongues.py`.\n\n'
        f"{len(spoken)} words. A part is a line of languages, then rows of words with the languages"
        " that have\neach. The words of a part share a code, which stands for the part's languages;"
        " those of the first\npart are in `neighbours_table.py` and have codes of their own, those"
        ' of the last have none.\n"""\n\n# Long rows, as the script writes them.\n'
        "# ruff: noqa: E501\n\nfrom __future__ import annotations\n\n"
        'PARTS = """\n' + "\n\n".join(parts) + '\n"""\n'
    )


def main() -> None:
    spoken, small = languages_of(texts())
    TABLE.write_text(written(spoken, small), encoding="utf-8")
    print(f"{len(spoken)} words of {len(frozenset().union(*spoken.values()))} languages")


if __name__ == "__main__":
    main()
