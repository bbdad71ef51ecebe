"""Rows of words whose letters no language strings together."""

from __future__ import annotations

import random
import time

import pytest

from dsv4doctor.detect.drawn_words import unlikely_row
from dsv4doctor.detect.letters import ALPHABETS, ORDER, likelihood, table_of
from dsv4doctor.detect.many_letters import latin_suspects, suspects

# Long lines: tables of cases, a row each.
# ruff: noqa: E501

FIRES = {
    "prose goes on in letters": "The pool is sized at start. tno iedrf czilnhxp ijixooy hqs vqgdfej rafcxu",
    "letters alone": "qxvb wzkjt hgfdpl xqcvr ttkjw nbvxq",
    "with the marks of a sentence": "Zqwk, the hjxvl bcdfgk (pqrxz) mwkjh vttqx. Ok.",
    "Cyrillic": "Сервис запущен. йцщыхъ эжъфыв цьщпкх юъйзщ гшьъ",
    "Greek": "Το αρχείο είναι εδώ. ξφχψωθ βζκψγξ δφθχζ ψξβγ κθφχ",
    "Hebrew": "הקובץ כאן. צקךטזג ףץםסזט גטצקנם ךףזסץ טגקזצ",
    "Arabic": "الملف هنا. ثظغذضخ شضظغثذ ذثزظغش طظضغثخ غضثظذ",
    "accents are letters": "Le fichier est là. xqévk wzjtœ hgfüdp lxqcvr",
}
QUIET = {
    "German": "Die Zwischenspeicherung der Rechtsschutzversicherungsgesellschaften schlägt fehl.",
    "Polish": "W Szczebrzeszynie chrząszcz brzmi w trzcinie i Szczebrzeszyn z tego słynie.",
    "Czech without a vowel": "Strč prst skrz krk. Vlk zmrzl, zhltl hrst zrn.",
    "Welsh": "Mae'r gwasanaeth yn ddiogel ac yn gyflym, ond mae'n rhaid ichi ei ailgychwyn wrth gwrs.",
    "Swahili": "Faili haikupatikana kwenye seva, tafadhali jaribu tena baadaye ama uwasiliane nasi.",
    "Zulu": "Ifayela alitholakalanga kuseva, sicela uzame futhi ngokuhamba kwesikhathi noma usithinte.",
    "Hawaiian": "Aole i loaa ka waihona ma ke kikowaena, e hoao hou ke olu olu.",
    "Basque": "Fitxategia ez da zerbitzarian aurkitu, mesedez saiatu berriro geroago edo jarri gurekin harremanetan.",
    "Finnish": "Epäjärjestelmällistyttämättömyydellänsäkään tiedostoa ei löytynyt palvelimelta.",
    "Vietnamese": "Không tìm thấy tệp trên máy chủ, vui lòng thử lại sau hoặc liên hệ với chúng tôi.",
    "Pinyin": "Qing xian jiancha wangluo lianjie, ranhou chongxin qidong fuwuqi, xiexie nin de naixin.",
    "lorem ipsum": "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt.",
    "names of commands": "ls cp mv rm mkdir rmdir chmod chown grep sed awk xargs tr wc sort uniq",
    "mnemonics in order": "The group has vpabsb vpackssdw vpaddb vpalignr vpblendw vpbroadcastb vpcmpeqb.",
    "mnemonics with commas": "It adds pcmpgtq, crc32, psrldq, movntdqa, ptest, mpsadbw and phminposuw.",
    "names of one family": "AMES gslcblasd cblasd gslcblas cblas",
    "two names of one family": "Add xdvipdfmx and dvipdfmx as aliases.",
    "names in an expression": "if (kpfkt == 6650 && ywmmc == 544 && hphms == 9520 && lzqng == 48) {",
    "rows of names": "syn keyword op movzbw movzbl movzwl popl pushl rotl sbwc\nsyn keyword op vvcvt mfvp mtvp vvmrg",
    "a cipher talked about": "In ROT13 the line reads: gur dhvpx oebja sbk whzcf bire gur ynml qbt.",
    "genes": "The primer reads gattacag ttgacgtc aatgggac tacgtacc.",
    "hexadecimal": "The key is deadbeef cafebabe fadedace beadface.",
    "code": "x = fgetxattr(fd, qbuf); y = mmapctl(hdlr, cfgptr);",
    "place names": "We drove from Llanfairpwllgwyngyll to Ystradgynlais and on to Ynysybwl.",
    "a quotation is the detector's matter, one odd word is a name": "The user Mxyzptlk of Krzysztof's team.",
}


def _suspects(texts: list[str]) -> list[list[int]]:
    return latin_suspects(texts, [text.encode("utf-8", "surrogatepass") for text in texts])


def _row(text: str, prompt: str = "") -> tuple[int, int] | None:
    found = unlikely_row(text, _suspects([text])[0], prompt)
    for script in ALPHABETS.keys() - {"Latin"}:
        found = found or unlikely_row(text, suspects(text, script), prompt)
    return found


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires(text: str) -> None:
    assert _row(text) is not None


@pytest.mark.parametrize("text", QUIET.values(), ids=QUIET)
def test_stays_quiet(text: str) -> None:
    assert _row(text) is None


def test_words_of_the_request_are_the_persons_own() -> None:
    text = FIRES["letters alone"]
    assert _row(text, f"What does {text} mean?") is None


def test_a_row_is_where_it_says() -> None:
    text = FIRES["prose goes on in letters"]
    found = _row(text)
    assert found is not None
    assert "czilnhxp" in text[slice(*found)]
    assert "pool" not in text[slice(*found)]


@pytest.mark.parametrize("script", ALPHABETS)
def test_a_table_has_an_entry_for_every_run_of_letters(script: str) -> None:
    assert len(table_of(script)) == (len(ALPHABETS[script]) + 1) ** ORDER[script]


def test_words_of_languages_are_likelier_than_their_letters_in_disorder() -> None:
    words = ("conversation", "Zwischenspeicher", "développement", "propriedade", "подключение")
    rng = random.Random(1)
    for word in words:
        turned = "".join(rng.sample(word.lower(), len(word)))
        assert (likelihood(word) or 0) > 0 > (likelihood(turned) or 0), (word, turned)


def test_names_in_code_and_words_of_two_scripts_have_no_likelihood() -> None:
    assert [likelihood(word) for word in ("getName", "NULL", "паrol", "数据")] == [None] * 4


def test_many_texts_at_once_are_read_as_one_by_one() -> None:
    rng = random.Random(7)
    texts = [*FIRES.values(), *QUIET.values(), "", " ", "é", "\ud800 x", "a" * 31, "zq" * 40]
    texts += [
        "".join(rng.choice("abc xyzq\nÄß漢") for _ in range(rng.randrange(400))) for _ in range(60)
    ]
    rng.shuffle(texts)
    assert _suspects(texts) == [_suspects([text])[0] for text in texts]


def test_long_lines_beside_each_other_are_read_once() -> None:
    rng = random.Random(5)
    words = ["".join(rng.choice("zqxjkvwb") for _ in range(6)) for _ in range(70_000)]
    # Commas explain every row, and each asks whether the line next to it begins alike.
    line = "row " + ", ".join(words)
    text = f"{line}\n{line}\n"
    started = time.process_time()
    assert _row(text) is None
    assert time.process_time() - started < 10
