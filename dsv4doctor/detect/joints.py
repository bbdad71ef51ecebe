"""Small words of another language between two Latin words: `ten seconds 然后 release it`.

Names, dishes and terms keep their script in anybody's English; words that join and the small ones
do not. One is enough where hardly another word of its script stands: a single token came from
elsewhere, as isolated garbage in sound text is reported.
Source: https://github.com/MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark/pull/3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dsv4doctor.detect.scripts import Splice, letters_of

_SMALL_WORDS = {
    "CJK": "但是 因为 所以 然后 如果 而且 或者 以及 可以 需要 没有 这个 那么 已经 就是 不是 "
    "并且 因此 不过 只有 还是 我们 他们 的 了 是 在 和 就 也 与 及 そして しかし また から "
    "です ます する この その ので 即座に すぐに 常に 完全に 非常に 特に 立即 立刻 马上 总是 "
    "完全 非常 仍然 终于 突然 同时 自动 只能 必须 直到",
    "Hangul": "그리고 그러나 하지만 때문에 그래서 또는 그런데 따라서 있는 있다 합니다 다시 않은 "
    "위해 위한 및 그 것을 것은 대한 또한 바로 즉시 항상 매우 완전히 모두 함께 이미 "
    "아직 먼저 자동으로",
    "Cyrillic": "но что чтобы если когда потому который которая которые только также его не на "
    "по для это как или уже где при так все был быть может сразу всегда очень уже снова затем "
    "потом полностью сейчас здесь теперь обычно после перед между",
    "Greek": "και αλλά γιατί που δεν είναι για από στο στη την των όταν όπως αμέσως πάντα "
    "πολύ πάλι τώρα μόνο μετά πριν",
    "Arabic": "لكن لأن في من على إلى هذا هذه التي الذي أن إذا ثم كان دائما است که این برای "
    "فوراً تماماً دائماً جداً أيضاً فقط بعد قبل بين حتى أو آنگاه همیشه فقط بسیار کاملاً سپس",
    "Hebrew": "אבל כי של את לא על עם או זה גם אם כל היא הוא מיד תמיד מאוד שוב עכשיו רק אחרי "
    "לפני בין",
    "Devanagari": "और लेकिन क्योंकि है में के की को से यह तो नहीं पर था हैं सदैव हमेशा तुरंत "
    "तत्काल बहुत फिर अब केवल सिर्फ बाद पहले लिए साथ",
    "Bengali": "এবং কিন্তু কারণ না এই থেকে করে সবসময় দ্রুত খুব আবার এখন শুধু পরে আগে জন্য সঙ্গে",
    "Thai": "และ แต่ เพราะ ที่ ของ ไม่ ได้ ให้ เป็น หรือ ทันที เสมอ มาก อีก แล้ว กับ จาก ต้อง เพื่อ",
    "Tamil": "மற்றும் ஆனால் இந்த என்று எப்போதும் உடனே மிகவும் மீண்டும் இப்போது மட்டும் பிறகு முன்",
    "Armenian": "և բայց որ է անմիջապես միշտ շատ կրկին հիմա միայն հետո",
    "Georgian": "და მაგრამ რომ არის დაუყოვნებლივ ყოველთვის ძალიან ისევ ახლა მხოლოდ შემდეგ",
}
_JOINTS = {family: frozenset(words.split()) for family, words in _SMALL_WORDS.items()}
# A word of small letters right before, and one right behind.
_BEFORE = re.compile(r"(?<![\w.&'’-])[a-z\u00df-\u024f]{2,},? \Z")
_AFTER = re.compile(r" [a-z\u00df-\u024f]{2,}(?![\w&-])")
_REACH = 40
# More of them in a row are a sentence.
_MOST_WORDS = 3
# Letters of the script beside these words: a text with more is written in it too.
_OTHERS = 12


def joints(prose: str, found: Sequence[Splice]) -> Iterator[Splice]:
    """Those of the foreign words that join Latin words, where their script has hardly another."""
    joining = [splice for splice in _rows(prose, found) if _joins(prose, splice)]
    for family in dict.fromkeys(splice.family for splice in joining):
        same = [splice for splice in joining if splice.family == family]
        if letters_of({family}, prose) - sum(s.end - s.start for s in same) <= _OTHERS:
            yield from same


def _rows(prose: str, found: Sequence[Splice]) -> list[Splice]:
    """The foreign words, those side by side as one: `потому что`."""
    rows: list[Splice] = []
    for splice in found:
        last = rows[-1] if rows else None
        if last and last.family == splice.family and prose[last.end : splice.start] == " ":
            rows[-1] = replace(last, end=splice.end)
        else:
            rows.append(splice)
    return rows


def _joins(prose: str, splice: Splice) -> bool:
    start, end = splice.start, splice.end
    words = prose[start:end].split()
    return (
        len(words) <= _MOST_WORDS
        and _JOINTS.get(splice.family, frozenset()).issuperset(words)
        and _AFTER.match(prose, end) is not None
        and _BEFORE.search(prose[max(0, start - _REACH) : start]) is not None
    )
