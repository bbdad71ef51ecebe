"""Sentences that announce an action: what a reply ends on when its tool call went missing."""

# Long lines: patterns and prose that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import re
from collections.abc import Iterable

from dsv4doctor.detect.announcement_tongues import ANNOUNCED, NOW, UNLESS, WILL
from dsv4doctor.detect.signs import holds_any

# What an agent does with a tool, as the verb that follows its intention.
_VERB = (
    r"(?:(?:double[- ]?)?check|look|read|search|open|run(?! through\b| into\b)|list|fetch|inspect|examine|grep|find|"
    r"query|invoke|try|start|create|write|edit|update|fix|view|scan|load|get (?:the|a|all|more|some)|retrieve|apply|"
    r"execute|test|verify|trace|pull|dig|explore|review|analy[sz]e|investigate|gather|install|build|deploy|restart|"
    r"implement|refactor|debug|re-?run|compile|download|modify|locate|diagnose|reproduce|track|"
    r"send|delete|remove|rename|commit|submit|cancel|reserve|upload|transfer|schedule|register|insert|append|replace|"
    r"(?:book|log|save|push)(?= (?:the|a|an|your|this|these|those|it)\b)|(?:turn|switch)(?= (?:on|off|up|down)\b)|"
    r"(?:take|have) (?:a|another) (?:\w+ )?look|see (?:what|which|where|how|whether)|"
    r"(?:call|use)(?= (?:the |my )?`?(?:\w+_\w+|\w+ (?:tool|function|api|service)|tool)))\b"
)
# Words that may stand between: "I'll now quickly start by reading".
_BETWEEN = (
    r"(?:(?:now|first|next|then|also|just|quickly|briefly|simply|immediately|carefully|again|go ahead and|need to|"
    r"have to|try to|proceed to|continue to|begin to|start to) ){0,3}"
)
_STARTS_BY = r"(?:(?:start|begin|proceed|continue) (?:by|with) )(?:\w+ly )?(?:the|a|an|\w+ing)\b"
_INTENT = (
    r"(?:let me|let's|let us|i['’]?ll|i will|i(?:['’]m| am) (?:now |just |also )?(?:going to|about to)|i (?:need to|must|should|have to)|"
    r"(?:next|now|first|then),? i (?:need to|must|should|have to|will|can)|i can now)"
)
# Where a clause begins: a wish in a relative clause ("what I will use") is no announcement.
_CLAUSE = r"(?:^|[,;:.!—–-]\s*|\b(?:and|so|then|but|now|next|first|therefore|thus|okay|ok)\s+)"
# A sentence about the doing itself has a verb of its own: "Running shoes are on sale now".
_NO_STATEMENT = r"(?!\w+ (?:\w+ )?(?:is|are|was|were)\b|[^.!?\n]{0,80}\b(?:helps?|makes?|takes?|saves?|requires?|means?|works?)\b)"
_ENGLISH = re.compile(
    rf"{_CLAUSE}{_INTENT} {_BETWEEN}(?:{_VERB}|{_STARTS_BY})(?! (?:you|to you|forward|if|it this way)\b)"
    # What is said to be going on while nothing is: "Running the tests now...", "One moment".
    rf"|^\W*(?:(?:okay|ok|sure|alright|certainly|of course|got it)[,.!] )?{_NO_STATEMENT}(?:(?:check|read|search|look|open|fetch|execut|creat|writ|updat|query|inspect|load|install|build)ing|running|"
    rf"getting|scanning|listing)\b[^.!?\n]{{0,80}}(?:\bnow\W{{0,3}}|\.\.\.|…|:)$"
    rf"|^\W*(?:one (?:moment|second)|just a (?:moment|second|sec)|hold on|give me a (?:moment|second|minute|sec))(?!['’])\b"
    rf"(?=[^a-z]|,? (?:please|while i|and i|let me|i))",
    re.IGNORECASE,
)
_INTENDS = re.compile(_INTENT, re.IGNORECASE)
# A promise to do something to something now, with any verb but those of words and of rest.
_DOES_NOW = re.compile(
    rf"{_CLAUSE}(?:let me|i['’]?ll|i will|i(?:['’]m| am) going to) "
    r"(?!(?:explain|tell|say|answer|describe|summari[sz]e|stop|wait|leave|be|go|give|show|ask|assume|admit|skip|keep|"
    r"take|hand|repeat|think|name|list|discuss|mention|note|present|introduce|share|let|make|do|have|see|move|return|consider|"
    r"accept|pass|love|need|want|turn to|turn this|put it|put this|use|call)\b)[a-z]+ (?:up |off |out )?(?:it|them|that|this|those|these|the|your|an?) "
    r"(?:[^.!?:;\n]{0,60} )?now\W{0,3}$",
    re.IGNORECASE,
)
_PIECE = re.compile(r"[A-Z]?[a-z]{2,}")
# What is done to something, by a verb that only the offered tools make one of doing.
_OBJECT = (
    r"(?: (?:up|on|off|out|down|in))? (?=(?:the|an?|that|this|these|those|your|all|both|some|another|it|to your)\b|[\d`'A-Z])"
    r"(?!that (?:the|an?|it|this|you|we)\b)"
)
# Pieces of tools' names that one also does with words alone.
_IN_WORDS = frozenset(
    ["note", "comment", "answer", "reply", "respond", "explain", "say", "think", "plan", "suggest", "call", "point", "state", "summarize"]
)  # fmt: skip
# A whole reply that says what is going on: "Checking the weather for Porto."
_DOING = re.compile(
    r"\W*(?:check|look|search|read|fetch|open|query|pull|runn|gett|list|scann|load|call|inspect|retriev|execut|creat|updat|"
    r"writ|send|book|delet|edit|restart|start|install|deploy|verify|find|tak)ing\b(?: (?:up|for|into|through|at|a look at))? "
    r"(?:the|your|that|this|all|it|in|for|(?-i:[`A-Z]))[^.!?:\n]{0,100}[.…]?",
    re.IGNORECASE,
)
_OWN_DOING = re.compile(
    r"\W*(?:(?i:ok|okay|sure|great|alright|certainly|right away)\W+)?([A-Z]?[a-z]{2,}ing) (?:the|your|that|this|all|an?|it|[\d`A-Z]|\w+[._/]\w)(?:[^.!?:\n]|\.(?=\w)){0,100}(?:\.{1,3}|…)?"
)
_FINITE = re.compile(
    r"\b(?:is|are|was|were|can|will|would|should|could|may|might|must|has|have|does|do|takes?|saves?|gives?|makes?|helps?|"
    r"requires?|means?|needs?|lets?|works?|shows?|fails?|returns?|causes?|keeps?|avoids?|prevents?)\b",
    re.IGNORECASE,
)
# A sentence that goes on behind its colon gives what it announces.
_GIVES = re.compile(r"[:：]\s*\S+\s+\S+\s+\S")
# What somebody else says or thinks in the text: a quotation, a thought in italics.
_SPEECH = re.compile(
    r"\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|„[^“”\n]{1,200}[“”]|«[^»\n]{1,200}»|「[^」\n]{1,200}」|"
    r"(?<!\w)'[^'\n]{1,200}'(?!\w)|‘[^’\n]{1,200}’(?!\w)|<(?:i|em|q)>[^<\n]{1,200}</(?:i|em|q)>"
)
# A promise that waits for the person is no announcement.
_CONDITION = re.compile(
    r"^\W*(?:just |please |so )*(?:tell|send|give|share|paste|provide|say|pick|choose|confirm|name|attach|upload|grant|point|type|reply|show)\b.*\b(?:and|then|,) i\b|"
    r"\b(?:as soon as|before|go-ahead|from now on|in future|next time|tomorrow|nothing|provided|should you|with your)\b|"
    r"\b(?:once|when|if|after|unless|until|whenever|would you|shall i|do you|let me know|"
    r"wenn|falls|sobald|quand|lorsque|cuando|quando|если|когда)\b|\?|？|如果|吗|么|もし|면 ",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:no need|not need|don't need|do not need|(?:look at|see) it this way|without|cannot|can't|won't|shouldn't|"
    r"will not|do not|did not|(?:i must|i have to) (?:say|admit))\b|不需要|无需|不用",
    re.IGNORECASE,
)
# A call that is thought of and let be.
_WEIGHED = re.compile(
    r"\b(?:could|would|might) (?:also |just |again |simply |of course )?(?:call|use|invoke|run|try|query)\b(?![^.!?\n]*[.!?]\W*(?:let|i['’]ll|so i))|"
    r"\bno (?:\w+ ){0,2}(?:calls?|tools?|lookups?|searche?s?) (?:is|are) (?:needed|necessary|required)|\b(?:unnecessary|not necessary|not needed|redundant|"
    r"already (?:there|here|known|given|have)\b(?![^\n]*\b(?:call|use|invoke|run|query)\b))|\b(?:rather than|instead of) (?:call|us|invok|runn|query)ing",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")
# The same where no full-width mark ends a sentence, at a fraction of the cost.
_NARROW_END = re.compile(r"[.!?]\s+|\n")
_WIDE_ENDS = ("。", "！", "？")
# Words of English that no other language of `ANNOUNCED` has.
_ONLY_ENGLISH = (" the ", " this ", " that ", " with ", " and ")
_LAST = 400


def last_sentence(text: str) -> str:
    """The last sentence of a text, its closing punctuation included."""
    tail = text.rstrip()[-_LAST:]
    if not holds_any(tail, _WIDE_ENDS):
        start = 0
        for match in _NARROW_END.finditer(tail):
            start = match.end()
        return tail[start:].strip()
    parts = [part for part in _SENTENCE_END.split(tail) if part and part.strip()]
    return parts[-1].strip() if parts else ""


def announces_action(sentence: str, tools: Iterable[str] = ()) -> bool:
    """True when a sentence says that its writer is about to act, on no condition; also by what
    only the names of the offered `tools` make an act."""
    if not sentence or _CONDITION.search(sentence) or _NEGATION.search(sentence):
        return False
    sentence = _SPEECH.sub("…", sentence)
    match = _ENGLISH.search(sentence) or _by_tool(sentence, tools)
    if match is None and sentence.rstrip(".!… ").endswith("now"):
        match = _DOES_NOW.search(sentence)
    if match is None and not (sentence.isascii() and holds_any(sentence, _ONLY_ENGLISH)):
        match = ANNOUNCED.search(sentence)
        if match is None and NOW.search(sentence) and not UNLESS.search(sentence):
            match = WILL.search(sentence)
    return match is not None and _GIVES.search(sentence, match.end()) is None


def is_doing(text: str, tools: Iterable[str] = ()) -> bool:
    """True for a text that is one clause about what its writer is doing at the moment; also with
    the verb of an offered tool's name."""
    if len(text) > _LAST:
        return False
    clause = text.strip()
    doing = _DOING.fullmatch(clause)
    if doing is None and (opening := _OWN_DOING.fullmatch(clause)):
        verb = opening[1].lower()
        doing = opening if any(verb.startswith(own[:-1]) for own in _verbs(tools)) else None
    return doing is not None and _FINITE.search(text) is None


def _by_tool(sentence: str, tools: Iterable[str]) -> re.Match[str] | None:
    if _INTENDS.search(sentence) is None:
        return None
    verbs = _verbs(tools)
    if not verbs:
        return None
    either = "|".join(map(re.escape, sorted(verbs)))
    return re.search(rf"(?i:{_CLAUSE}{_INTENT} {_BETWEEN}(?:{either})){_OBJECT}", sentence)


def _verbs(tools: Iterable[str]) -> set[str]:
    """What the names of tools do: `book_room`, `git_commit` and `setLight` have their verb as the
    first piece or as the last."""
    pieces = [_PIECE.findall(name) for name in tools]
    return {piece.lower() for found in pieces for piece in (*found[:1], *found[-1:])} - _IN_WORDS


def announces_call(text: str, name: str) -> bool:
    """True when the end of a text says that the tool `name` is about to be called."""
    tail = text[-_LAST:]
    if name not in tail or _NEGATION.search(tail) or _WEIGHED.search(tail):
        return False
    pattern = rf"\b(?:call|use|invoke|run|try|query)\w*\b[^.!?\n]{{0,30}}\b{re.escape(name)}\b|调用[^。\n]{{0,10}}{re.escape(name)}"
    return re.search(pattern, tail, re.IGNORECASE) is not None
