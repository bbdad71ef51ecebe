"""Sentences that announce an action: what a reply ends on when its tool call went missing."""

# Long lines: patterns and prose that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import re

_VERB = (
    r"(?:check|look|read|search|open|run|list|fetch|inspect|examine|grep|find|query|call|invoke|use|try|"
    r"start|create|write|edit|update|fix|view|scan|load|get|retrieve|apply|execute|test|verify|trace|pull|"
    r"dig|explore|review|analy[sz]e|investigate|gather|install|build|deploy|restart|implement|refactor|debug|"
    r"re-?run|compile|download|modify|locate|diagnose|reproduce|see (?:what|which|where|how|whether))"
)
_ENGLISH = re.compile(
    rf"\b(?:let me|let's|let us|i['’]?ll|i will|i(?:'m| am) going to|i(?:'m| am) about to|i need to|i must|"
    rf"i should|next,? i|now,? i|first,? i)\b[^.!?\n]{{0,40}}?\b{_VERB}\b(?! you\b| if\b)"
    # What is said to be going on while nothing is: "Running the tests now...", "One moment".
    rf"|^\W*(?:(?:check|read|search|look|open|fetch|execut|creat|writ|updat|query|inspect|load|install|build)ing|running|"
    rf"getting|scanning|listing)\b[^.!?\n]{{0,80}}(?:\bnow\b\W{{0,3}}|\.\.\.|…|:)$"
    rf"|\b(?:one (?:moment|second)|just a (?:moment|second|sec)|hold on|give me a (?:moment|second|minute|sec))\b",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"(?:我|让我|接下来|下面|现在|首先)[^。！？\n]{0,12}(?:看|查|读|搜|运行|执行|打开|列|调用|获取|检查|修改|写|创建|试)"
    r"|(?:確認|検索|実行|読み込|調べ|開き|取得|作成)[^。\n]{0,8}(?:ます|みます|しましょう)"
    r"|(?:확인|검색|실행|조회|열어|읽어)[^.\n]{0,8}(?:겠습니다|볼게요|합니다|할게요)"
    # A word or two may stand between: "je vais d'abord regarder", "voy a primero leer".
    r"|\b(?:voy a|vamos a|déjame|permíteme)(?: \w+){0,2} \w+[aei]r\b"
    r"|\b(?:je vais|laissez-moi|laisse-moi|commençons par|je commence par)(?:[ ']\w+'?){0,3} \w+(?:er|ir|re)\b"
    r"|\b(?:ich (?:schaue|prüfe|suche|lese|öffne|führe|rufe)|(?:schaue|prüfe|suche|lese|öffne|führe|rufe|sehe) ich|"
    r"ich sehe (?:mir|nach)|ich werde\b[^.!?\n]{0,60}\b(?:nach|an|durch)?(?:sehen|schauen|prüfen|suchen|lesen|öffnen|ausführen|aufrufen|starten|ändern|anpassen))\b"
    r"|\blass(?:en Sie)? mich\b"
    r"|\b(?:regardons|vérifions|cherchons|ouvrons|lisons|veamos|revisemos|busquemos|vediamo|controlliamo)\b"
    r"|\b(?:vou|deixe-me|deixa-me)(?: \w+){0,2} \w+[aei]r\b"
    r"|\b(?:ora|adesso|prima|intanto) (?:controllo|verifico|leggo|cerco|apro|eseguo|guardo)\b|\bfammi \w+re\b"
    r"|\b(?:laat me|ik (?:ga|zal))\b[^.!?\n]{0,30}\b(?:kijken|controleren|lezen|zoeken|openen|uitvoeren|bekijken)\b"
    r"|\b(?:сейчас|давайте|позвольте|сначала|зараз|спочатку)\b[^.!?\n]{0,20}\b(?:я )?(?:посмотр|провер|прочит|найд|запущ|откро|выполн|перевір|прочита|знайд|запущ|відкри|викона)"
    r"|\b(?:najpierw|teraz|zaraz) (?:sprawdzę|przeczytam|otworzę|uruchomię|poszukam|zobaczę)\b"
    r"|\b(?:şimdi|önce)\b[^.!?\n]{0,40}(?:edeceğim|bakacağım|okuyacağım|açacağım|arayacağım|çalıştıracağım)\b"
    r"|\b(?:tôi sẽ|để tôi|saya akan|mari saya|biar saya)\b[^.!?\n]{0,30}\b(?:kiểm tra|đọc|mở|chạy|tìm|xem|periksa|memeriksa|membaca|membuka|menjalankan|mencari|melihat)\b"
    r"|(?:سأتحقق|سأقوم|سأقرأ|سأبحث|سأفتح|سأشغل|دعني أ)|(?:देखता|देखती|जाँचता|जाँचती|पढ़ता|पढ़ती|खोलता|चलाता) हूँ",
    re.IGNORECASE,
)
# What somebody else says or thinks in the text: a quotation, a thought in italics.
_SPEECH = re.compile(
    r"\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|„[^“”\n]{1,200}[“”]|«[^»\n]{1,200}»|「[^」\n]{1,200}」|"
    r"(?<!\w)'[^'\n]{1,200}'(?!\w)|‘[^’\n]{1,200}’(?!\w)|<(?:i|em|q)>[^<\n]{1,200}</(?:i|em|q)>"
)
# A promise that waits for the person is no announcement.
_CONDITION = re.compile(
    r"\b(?:once|when|if|after|unless|until|whenever|would you|shall i|do you|let me know)\b|\?|？|如果|吗|么",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:no need|not need|don't need|do not need|(?:look at|see) it this way|without|cannot|can't|won't|shouldn't)\b|不需要|无需|不用",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")
_LAST = 400


def last_sentence(text: str) -> str:
    """The last sentence of a text, its closing punctuation included."""
    tail = text.rstrip()[-_LAST:]
    parts = [part for part in _SENTENCE_END.split(tail) if part and part.strip()]
    return parts[-1].strip() if parts else ""


def announces_action(sentence: str) -> bool:
    """True when a sentence says that its writer is about to act, on no condition."""
    if not sentence or _CONDITION.search(sentence) or _NEGATION.search(sentence):
        return False
    sentence = _SPEECH.sub("…", sentence)
    return _ENGLISH.search(sentence) is not None or _OTHERS.search(sentence) is not None


def announces_call(text: str, name: str) -> bool:
    """True when the end of a text says that the tool `name` is about to be called."""
    tail = text[-_LAST:]
    if name not in tail or _NEGATION.search(tail):
        return False
    pattern = rf"\b(?:call|use|invoke|run|try|query)\w*\b[^.!?\n]{{0,30}}\b{re.escape(name)}\b|调用[^。\n]{{0,10}}{re.escape(name)}"
    return re.search(pattern, tail, re.IGNORECASE) is not None
