"""Whether a reply answers another question than the one asked.

Sharing no word with the request is common and harmless: it takes a positive sign on top of it,
such as figures that are not those of the sum, or particulars of an agreement that the request
knows nothing of.
"""

# Long lines: patterns and prose that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import re

from dsv4doctor.detect.request import asks_for_languages
from dsv4doctor.detect.subject import Subject

_WORD = re.compile(r"[a-z]{3,}")
_STEM = 5
_STOP = frozenset(
    [
        "the",
        "and",
        "for",
        "are",
        "was",
        "were",
        "you",
        "your",
        "our",
        "with",
        "that",
        "this",
        "what",
        "which",
        "who",
        "whom",
        "how",
        "why",
        "when",
        "where",
        "did",
        "does",
        "can",
        "could",
        "would",
        "should",
        "may",
        "might",
        "must",
        "have",
        "has",
        "had",
        "not",
        "but",
        "its",
        "his",
        "her",
        "their",
        "they",
        "them",
        "from",
        "into",
        "out",
        "one",
        "two",
        "any",
        "all",
        "some",
        "more",
        "most",
        "than",
        "then",
        "there",
        "here",
        "about",
        "also",
        "just",
        "only",
        "per",
        "let",
        "lets",
        "get",
        "got",
    ]
)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?!\w|\.\d)")
_SUM = re.compile(
    r"how (?:much|many|far|long|old)|what is the|revenue|area|speed|distance|percent|altogether|weigh|\beach\b|total|income|sum|cost|price|earn|spend|left|remain|calculate|profit|average",
    re.IGNORECASE,
)
_RESULT = re.compile(
    r"####|=\s*\$?\d|\btogether\b|\btotal\b|\bso (?:they|he|she|its?|his|her|their|there|the)\b|\b(?:cost|leaves|makes|earns)\b|"
    r"\bis (?:about |roughly )?[$€£]?\d",
    re.IGNORECASE,
)
# Claims of a shared past, or of things that the person is said to own.
_SHARED_PAST = re.compile(
    r"^\W*(?:as (?:we|you|i) (?:agreed|discussed|said|mentioned|asked|requested|noted)|as (?:agreed|discussed)|"
    r"(?:following|per|regarding|about) (?:our|your) (?:\w+ )?(?:chat|talk|conversation|discussion|request|order|booking|question)|"
    r"you (?:told|asked|mentioned|said)|your (?:flight|order|booking|appointment|reservation|invoice|parcel|package|"
    r"delivery|prescription|application|claim|hotel|table|ticket|subscription|loan|account)\b)",
    re.IGNORECASE,
)
# What a request says of the conversation itself; one of nothing else may be about anything.
_TALK_WORDS = (
    "talk talked chat chatted conversation discussion discussed question questions ask asked first last earlier previous "
    "before today yesterday session summarise summarize summary recap remember remind recall repeat again tell told said "
    "say agreed agree decided decide mentioned mention want wanted please now know note noted context far start started"
)
_OF_TALKS = frozenset(word[:_STEM] for word in _TALK_WORDS.split())
# Parts to be played: what is said in them comes from nowhere.
_ASKS_ROLE = re.compile(
    r"\b(?:act (?:as|like)|pretend|simulat\w+|role-?play\w*|imagine|you (?:work|play|run)|play the)\b",
    re.IGNORECASE,
)
# How a letter or a host greets somebody; and requests that ask for one.
_GREETING = re.compile(
    r"^\W*(?:dear (?:mr|mrs|ms|dr|prof|sir|madam|valued|customer)\b|welcome back\b|thank you for (?:your (?:order|purchase|stay|"
    r"booking)|(?:booking|ordering|shopping|staying)))",
    re.IGNORECASE,
)
_ASKS_LETTER = re.compile(
    r"letter|e-?mail|mails?\b|message|greet|welcome|template|invit|note\b|draft|banner|string|text|reply|respon|translat|"
    r"example|sample|dear\b|story|poem",
    re.IGNORECASE,
)
_PERSONA_PROMPT = re.compile(r"^\W*you are (?:an?|the) ", re.IGNORECASE)
_PROPER = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,})*")
# Requests for something in a formal language; what answers them holds signs of it.
_ASKS_CODE = re.compile(
    r"\b(?:write|give|show|create|implement|generate|provide|need|code|draft|fix)\b[^.?!\n]{0,40}\b(?:sql|quer(?:y|ies)|regexp?|"
    r"regular expression|functions?|scripts?|one-liner|snippet|macro|makefile|dockerfile|json|yaml|cron(?:tab)?|"
    r"(?:rust|python|bash|go|java|javascript|typescript|c\+\+|perl|ruby|haskell|lua) (?:code|program|class|method|test)s?)\b",
    re.IGNORECASE,
)
# Names as only code has them: any answer about one speaks of it, in whatever language.
_CODE_NAME = re.compile(
    r"\w<\w|\w::\w|\w_\w|[a-z][A-Z]\w|\w\(\)|\b\w+\.(?:py|rs|go|c|h|js|ts|java|rb|sh|toml|yaml|json)\b"
)
# Names that any answer about them keeps, in whatever language.
_TECHNICAL = re.compile(
    r"\b(?:docker|kubernetes|nginx|postgres\w*|mysql|sql|git|github|linux|windows|python|rust|java|javascript|typescript|"
    r"http|https|api|regex|terraform|ansible|react|bash|systemd|ssh|tls|redis|json|yaml|kafka|css|html|port \d+)\b",
    re.IGNORECASE,
)
# Requests for words about code.
_ASKS_WORDS = re.compile(
    r"\b(?:messages?|tweets?|posts?|poems?|haikus?|limericks?|songs?|titles?|names?|slogans?|taglines?|mottos?|descriptions?|summar\w+|bios?|"
    r"analog\w+|metaphors?|notes?|stor(?:y|ies)|jokes?|puns?|letters?|e-?mails?|blogs?|articles?|essays?|talks?|headlines?|paragraphs?|"
    r"sentences?|captions?|comments?|intro\w*|abstracts?|reviews?|changelogs?|explanations?|definitions?|outlines?|plans?|topics?|ideas?|"
    r"tips?|advice|reasons?|questions?|quiz\w*|lessons?|courses?|tutorials?|books?|docstrings?|doc(?:s|umentation)|readme|pitch\w*|ads?|"
    r"announcements?|words|terms|english|pseudo-?code|steps|overview|history|pros|specs?|requirements?|tickets?|issues?|user stories)\b",
    re.IGNORECASE,
)
_MERE_PROSE = re.compile(r"[^`{}()\[\]=;<>|/\\_$#*]+")
# Whoever asks back, declines or advises speaks to somebody.
_SPEAKS_TO = re.compile(
    r"\b(?:you|your|i|i'm|i'll|we|sorry|cannot|can't|please|which|let)\b|\?", re.IGNORECASE
)
_GLUE_WORDS = {
    "Spanish": "el la los las de del que en una con por para se es al y su lo",
    "French": "le la les des du que dans une avec pour est au et il elle sur ce qui",
    "German": "der die das und ist nicht mit den dem ein eine auf von im zu sich wird",
    "Italian": "il la gli di del che una con per sono è nel al e si lo della",
    "Portuguese": "os de da que em uma com por para se é ao e na dos das",
}
# Words that only an English request has: one in another language may be without accents too.
_ENGLISH_WORDS = (
    "the is are to of my how what why when where which who does do i you your it its with and this that these from can "
    "should write show give explain list make create need want"
)
_ENGLISH = frozenset(_ENGLISH_WORDS.split())
_GLUE = {language: frozenset(words.split()) for language, words in _GLUE_WORDS.items()}
_GLUE_SHARE = 0.25
_MIN_PROSE_WORDS = 12
_MIN_PROMPT_STEMS = 3
_MIN_REPLY_WORDS = 10
_MAX_REPLY = 2000


def is_off_topic(subject: Subject) -> str | None:
    """Why the reply must belong to another request; None where that cannot be said."""
    prompt, reply = subject.prompt, subject.content.text
    if not prompt or not reply or subject.calls or subject.content.code:
        return None
    if not prompt.isascii() or len(reply) > _MAX_REPLY:
        return None
    asked = _stems(prompt)
    if len(asked) < _MIN_PROMPT_STEMS or len(reply.split()) < _MIN_REPLY_WORDS:
        return None
    if not asked.isdisjoint(_stems(reply)):
        return None
    if why := _is_no_answer_in_code(subject, prompt, reply):
        return why
    return _is_about_else(prompt, reply) if reply.isascii() else None


def _is_no_answer_in_code(subject: Subject, prompt: str, reply: str) -> str | None:
    """Why prose cannot be the answer to a request for code, or about a name of code."""
    words = reply.lower().split()
    if len(words) < _MIN_PROSE_WORDS or not _MERE_PROSE.fullmatch(reply):
        return None
    asks_code = _ASKS_CODE.search(prompt) is not None and not _ASKS_WORDS.search(prompt)
    if asks_code and reply.isascii() and not _SPEAKS_TO.search(reply):
        return f"code was asked for, and this is prose about something else: {reply[:60]!r}"
    named = asks_code or _CODE_NAME.search(prompt) or _TECHNICAL.search(prompt)
    if named and not asks_for_languages(subject):
        if _ENGLISH.isdisjoint(prompt.lower().split()):
            return None
        for language, glue in _GLUE.items():
            if sum(word in glue for word in words) >= _GLUE_SHARE * len(words):
                return f"{language} that speaks of nothing in the request: {reply[:60]!r}"
    return None


def _is_about_else(prompt: str, reply: str) -> str | None:
    numbers = set(_NUMBER.findall(prompt))
    theirs = set(_NUMBER.findall(reply))
    if (
        len(numbers) >= 2
        and _SUM.search(prompt)
        and len(theirs) >= 2
        and not numbers & theirs
        and _RESULT.search(reply)
    ):
        return "works out another sum: none of its figures and words are the request's"
    if _SHARED_PAST.match(reply):
        # A talk with no topic named may have been about it, and a part may be played.
        if not (_stems(prompt) <= _OF_TALKS or _ASKS_ROLE.search(prompt)):
            return f"speaks of an agreement that the request knows nothing of: {reply[:60]!r}"
    elif _GREETING.match(reply) and not (_ASKS_LETTER.search(prompt) or _ASKS_ROLE.search(prompt)):
        return f"greets somebody that the request knows nothing of: {reply[:60]!r}"
    names = {name for name in _PROPER.findall(reply) if name not in prompt}
    # A persona with nothing to answer may tell of anything.
    if _PERSONA_PROMPT.match(prompt) and "?" in prompt and len(names) >= 2:
        return f"another conversation's names: {', '.join(sorted(names)[:3])}"
    return None


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in _WORD.findall(text.lower()) if word not in _STOP}
