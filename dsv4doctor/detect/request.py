"""What the request was about, as far as it excuses what would otherwise be a symptom."""

# Long lines: patterns and prose that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import re

from dsv4doctor.detect.subject import Subject

_MARKUP_TALK = re.compile(
    r"dsml|mark-?up|special[ -]tokens?|control tokens?|chat[ -]?ml|(?:chat|prompt|jinja)[ -]?templates?|"
    r"tool[- ]?call(?:ing)? (?:format|tags?|tokens?|syntax|block|xml)|tool tokens?|stop tokens?|"
    r"\b(?:bos|eos|pad|fim)\b|tokeni[sz]er|im_start|im_end|endoftext|"
    r"\[/?INST\]|</?think|think(?:ing)? tags?|function_calls|<invoke|<parameter|[<＜][｜|]|[｜|][>＞]|｜|"
    r"specialtoken|特殊(?:标记|符号|token|词元)|标记(?:格式|语言)|模板|控制符|トークン|テンプレート|"
    r"спец\w*\s+токен|разметк|токен|шаблон|marqueur|balise|jeton|gabarit|vorlage|etiqueta|plantilla|marcador",
    re.IGNORECASE,
)
_REPEAT_TALK = re.compile(
    r"\brepeat|\btimes\b|\bover and over\b|\bagain and again\b|\brefrain|\bchorus|\bsong\b|\blyrics|"
    r"\bmantra|\bpattern|\bpad(?:ding|ded)?\b|\bfill(?:er|ed)?\b|\bzero(?:s|ed|es)?\b|\bdump\b|\bhex|"
    r"\bboard\b|\bgrid\b|\bmask\b|\bmatrix\b|\brows?\b|\blines? of\b|\bcount(?:ing|down)?\b|\bsample\b|"
    r"\btest data\b|\bplaceholder|\bdummy\b|\bascii\b|\bart\b|\blorem\b|\bsequence\b|\bstress[- ]test|"
    r"\buntil i (?:say|stop|tell)|\b(?:make|imitate|mimic|do)\b[^.?!\n]{0,30}\b(?:sound|noise)|\brepet|\brépét|\bfois\b|\bveces\b|\bwiederhol|\bmal\b|\bripet|\bvolte\b|\bvezes\b|повтор|\bраз\b|"
    r"重复|遍|次|繰り返|回|반복|번|दोहर|बार|كرر|مرات",
    re.IGNORECASE,
)
_LANGUAGE_TALK = re.compile(
    r"translat|languages?\b|\bscripts?\b|alphabet|unicode|glossary|\bwords? (?:for|in)\b|greeting|"
    r"pronounc|\bipa\b|etymolog|vocabular|bilingual|multilingual|transliterat|charset|encoding|codepoint|"
    r"emoji|symbol|character|\bfonts?\b|zalgo|mojibake|dialect|\bloan ?words?\b|"
    r"\b(?:english|french|german|spanish|italian|portuguese|russian|ukrainian|greek|hebrew|arabic|persian|"
    r"farsi|urdu|hindi|bengali|tamil|telugu|thai|vietnamese|korean|japanese|chinese|mandarin|cantonese|"
    r"kanji|hanzi|cjk|ideograph|hiragana|katakana|hangul|cyrillic|devanagari|sinhala|georgian|armenian|amharic|turkish|"
    r"polish|latin|sanskrit)\b|"
    r"翻译|翻譯|语言|語|言語|한국어|일본어|영어|번역|язык|перевед|перевод|traduci|traduire|traduzir|übersetz|"
    r"sprache|idioma|langue|lingua|ترجم|لغة|भाषा|अनुवाद|ภาษา|แปล|dịch|γλώσσ|μετάφρασ|שפה|תרגם",
    re.IGNORECASE,
)
_NONSENSE_TALK = re.compile(
    r"rot-?\d+|caesar|vigen[eè]re|pig latin|\bspel\w* backwards|leet\b|shorthand|abbreviat|telegraphic|telegram style|"
    r"klingon|elvish|quenya|sindarin|lojban|esperanto|conlang|constructed language|onomatop|tongue[- ]twister|"
    r"nonsens|gibberish|random|scrambl|shuffl|salad|jabberwock|garbl|obfuscat|cipher|cypher|encrypt|"
    r"encode|anagram|made[- ]up|invent|voucher|password|passphrase|tokens?\b|fragments?|subwords?|bpe\b|"
    r"lorem|corrupt|noise|fuzz|typo|stutter|glossolal|dada|keyboard|乱码|随机|胡言|случайн|aleatori|zufäll|"
    r"aléatoire|無意味|ランダム|stop[- ]?words?|function words|(?:common|frequent)\w* (?:\w+ )?words|word (?:list|frequenc)|prepositions",
    re.IGNORECASE,
)

# What a request counts in words, and the longest reply that anybody counts out.
_COUNTS = "eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
_NUMBERS = {word: number for number, word in enumerate(_COUNTS.split(), 8)}
_NUMBERS |= {"dozen": 12, "thirty": 30, "forty": 40, "fifty": 50, "hundred": 100}
_NUMBER_OR_WORD = re.compile(r"\d{1,4}|[^\W\d_]+")
_MOST_COUNTED_CHARS = 2000
# Marks around a word, and how far back in a prompt it is looked for.
_MARKS = ".,;!?-\"'"
_REACH = 2000


def asks_about_markup(subject: Subject) -> bool:
    """True when the prompt speaks of tool-call markup, special tokens or chat templates."""
    return bool(subject.prompt) and _MARKUP_TALK.search(subject.prompt) is not None


def asks_for_repetition(subject: Subject) -> bool:
    """True when the prompt asks for something that repeats by nature: a song, rows, padding."""
    prompt = subject.prompt
    return bool(prompt) and (_REPEAT_TALK.search(prompt) is not None or _is_counted_out(subject))


def _is_counted_out(subject: Subject) -> bool:
    """True for a reply of one word as often as the prompt, which names it, says: "ten nops"."""
    reply = subject.content.text
    if len(reply) > _MOST_COUNTED_CHARS:
        return False
    words = [word.strip(_MARKS) for word in reply.lower().split()]
    asked = _NUMBER_OR_WORD.findall(subject.prompt[-_REACH:].lower())
    numbers = {int(word) if word.isdigit() else _NUMBERS.get(word) for word in asked}
    return len(set(words)) == 1 and words[0] in asked and len(words) in numbers


def asks_for_languages(subject: Subject) -> bool:
    """True when the prompt asks for several languages, scripts or symbols."""
    return bool(subject.prompt) and _LANGUAGE_TALK.search(subject.prompt) is not None


def speaks_of_languages(text: str) -> bool:
    """True when a text itself names languages or scripts."""
    return _LANGUAGE_TALK.search(text) is not None


def asks_for_nonsense(subject: Subject) -> bool:
    """True when the prompt asks for text without sense: random strings, nonsense verse, ciphers."""
    return bool(subject.prompt) and _NONSENSE_TALK.search(subject.prompt) is not None
