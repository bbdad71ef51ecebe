"""Sentences that announce an action: what a reply ends on when its tool call went missing."""

# Long lines: patterns and prose that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import re

# What an agent does with a tool, as the verb that follows its intention.
_VERB = (
    r"(?:(?:double[- ]?)?check|look|read|search|open|run(?! through\b| into\b)|list|fetch|inspect|examine|grep|find|"
    r"query|invoke|try|start|create|write|edit|update|fix|view|scan|load|get (?:the|a|all|more|some)|retrieve|apply|"
    r"execute|test|verify|trace|pull|dig|explore|review|analy[sz]e|investigate|gather|install|build|deploy|restart|"
    r"implement|refactor|debug|re-?run|compile|download|modify|locate|diagnose|reproduce|track|"
    r"(?:take|have) (?:a|another) (?:\w+ )?look|see (?:what|which|where|how|whether)|"
    r"(?:call|use)(?= (?:the |my )?`?(?:\w+_\w+|\w+ (?:tool|function|api)|tool)))\b"
)
# Words that may stand between: "I'll now quickly start by reading".
_BETWEEN = (
    r"(?:(?:now|first|next|then|also|just|quickly|briefly|simply|immediately|carefully|again|go ahead and|need to|"
    r"have to|try to|proceed to|continue to|begin to|start to) ){0,3}"
)
_STARTS_BY = r"(?:(?:start|begin|proceed|continue) (?:by|with) )(?:\w+ly )?(?:the|a|an|\w+ing)\b"
_INTENT = (
    r"(?:let me|let's|let us|i['’]?ll|i will|i(?:'m| am) (?:going to|about to)|i (?:need to|must|should|have to)|"
    r"(?:next|now|first|then),? i (?:need to|must|should|have to|will|can)|i can now)"
)
# Where a clause begins: a wish in a relative clause ("what I will use") is no announcement.
_CLAUSE = r"(?:^|[,;:.!—–-]\s*|\b(?:and|so|then|but|now|next|first|therefore|thus|okay|ok)\s+)"
_ENGLISH = re.compile(
    rf"{_CLAUSE}{_INTENT} {_BETWEEN}(?:{_VERB}|{_STARTS_BY})(?! (?:you|to you|forward|if|it this way)\b)"
    # What is said to be going on while nothing is: "Running the tests now...", "One moment".
    rf"|^\W*(?:(?:check|read|search|look|open|fetch|execut|creat|writ|updat|query|inspect|load|install|build)ing|running|"
    rf"getting|scanning|listing)\b[^.!?\n]{{0,80}}(?:\bnow\W{{0,3}}|\.\.\.|…|:)$"
    rf"|^\W*(?:one (?:moment|second)|just a (?:moment|second|sec)|hold on|give me a (?:moment|second|minute|sec))(?!['’])\b"
    rf"(?=[^a-z]|,? (?:please|while i|and i|let me|i))",
    re.IGNORECASE,
)
_ZH_VERB = "(?:看|查|读|搜|运行|执行|打开|列|调用|获取|检查|修改|写|创建|试)"
_OTHERS = re.compile(
    # Chinese: what I am about to do; no advice (请, 您), nothing done (过, 了).
    r"(?:我(?:这就|先|来|将|会|要|去|马上|再|接着|需要先)|让我(?:们)?|(?:接下来|下面|现在|首先|那么)[，,]?我(?:们)?)"
    rf"(?:(?!请|您|你|可以|能|已)[^。！？，,\n]){{0,8}}?{_ZH_VERB}(?![^。！？，,\n]{{0,2}}[过了])"
    # A service done for the person, and at once.
    rf"|我(?:这就|现在就?|马上|立刻|立即|来|先)(?:帮|为|给|替)(?:您|你)[^。！？，,\n]{{0,6}}?{_ZH_VERB}(?![^。！？，,\n]{{0,2}}[过了])"
    rf"|正在{_ZH_VERB}[^。！？\n]{{0,20}}(?:…|\.\.\.|：)$"
    # Japanese and Korean: the forms of the will, not those of description.
    r"|(?:確認|検索|実行|読み込|調べ|開[いき]|取得|作成|修正|見)[^。\n]{0,4}(?:てみます|ていきます|てまいります|てみましょう|しましょう)"
    r"|(?:まず|次に|それでは|では|これから|今から)[^。\n]{0,30}(?:確認|検索|実行|読み込み|調べ|開き|取得|作成|修正)(?:いた)?し?ます"
    # A statement that has a subject describes; one that has none is about its speaker.
    r"|^(?!.*以下)[^はが]*(?:確認|検索|実行|読み込み|調べ|開き|取得|作成)(?:いた)?し?ます[。:：]?$"
    r"|(?:확인|검색|실행|조회|열어|읽어|살펴)[^.\n]{0,8}(?:겠습니다|볼게요|할게요|을게요)"
    # A word or two may stand between: "je vais d'abord regarder", "voy a primero leer".
    r"|\b(?:voy a|vamos a|déjame|permíteme)(?: \w+){0,2} (?:revis|busc|le|abr|ejecut|comprob|verific|mir|consult|cre|escrib|"
    r"edit|actualiz|modific|list|inspeccion|examin|analiz|explor|correg|arregl)[aei]r\b"
    r"|\b(?:je vais|laissez-moi|laisse-moi|commençons par|je commence par)(?:[ ']\w+'?){0,3} (?:regard|vérifi|cherch|recherch|"
    r"li|ouvr|exécut|lanc|consult|cré|écri|modifi|édit|list|inspect|examin|analys|explor|corrig|récupér|test)(?:er|ir|re)\b"
    r"|\b(?:regardons|vérifions|cherchons|ouvrons|lisons|veamos|revisemos|busquemos|vediamo|controlliamo)\b"
    r"|\b(?:ich (?:schaue|prüfe|suche|lese|öffne|führe|rufe)|(?:schaue|prüfe|suche|lese|öffne|führe|rufe|sehe) ich|"
    r"ich sehe (?:mir|nach)|ich werde\b[^.!?\n]{0,60}\b(?:nach|an|durch)?(?:sehen|schauen|prüfen|suchen|lesen|öffnen|ausführen|aufrufen|starten|ändern|anpassen))\b"
    r"|\blass(?:en Sie)? mich\b"
    r"|\b(?:vou|deixe-me|deixa-me)(?: \w+){0,2} (?:verific|busc|procur|l|abr|execut|chec|olh|consult|cri|escrev|edit|atualiz|"
    r"modific|list|analis|corrig|rod)[aei]r\b"
    r"|\b(?:ora|adesso|prima|intanto|subito) (?:controllo|verifico|leggo|cerco|apro|eseguo|guardo)\b|\bfammi \w+re\b"
    # The speaker's own verb opens the sentence, and says when: "Cerco subito", "Leggo ora".
    r"|^\W*(?:controllo|verifico|leggo|cerco|apro|eseguo|guardo|creo|lancio|avvio|aggiorno|consulto|recupero) "
    r"(?:subito|ora|adesso|immediatamente)\b|\b(?:sto per|vado a) \w+(?:are|ere|ire)\b"
    r"|^\W*(?:busco|reviso|leo|abro|ejecuto|compruebo|verifico|consulto|miro) (?:ahora|ya|enseguida|de inmediato)\b"
    r"|\b(?:laat me|ik (?:ga|zal))\b[^.!?\n]{0,30}\b(?:kijken|controleren|lezen|zoeken|openen|uitvoeren|bekijken)\b"
    r"|\b(?:посмотрю|посмотрим|проверю|проверим|прочитаю|прочту|найду|запущу|открою|выполню|давайте (?:по)?смотреть|"
    r"позвольте (?:проверить|посмотреть)|перевірю|прочитаю|знайду|відкрию|виконаю|подивлюся)\b"
    r"|\b(?:najpierw|teraz|zaraz) (?:sprawdzę|przeczytam|otworzę|uruchomię|poszukam|zobaczę)\b"
    r"|\b(?:şimdi|önce)\b[^.!?\n]{0,40}(?:edeceğim|bakacağım|okuyacağım|açacağım|arayacağım|çalıştıracağım)\b"
    r"|\b(?:tôi sẽ|để tôi|saya akan|mari saya|biar saya)\b[^.!?\n]{0,30}\b(?:kiểm tra|đọc|mở|chạy|tìm|xem|periksa|memeriksa|membaca|membuka|menjalankan|mencari|melihat)\b"
    r"|(?:سأتحقق|سأقرأ|سأبحث|سأفتح|سأشغل|سأقوم ب|دعني أ)|(?:देखता|देखती|जाँचता|जाँचती|पढ़ता|पढ़ती|खोलता|चलाता) हूँ",
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
    r"\b(?:once|when|if|after|unless|until|whenever|would you|shall i|do you|let me know|"
    r"wenn|falls|sobald|quand|lorsque|cuando|quando|если|когда)\b|\?|？|如果|吗|么|もし|면 ",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:no need|not need|don't need|do not need|(?:look at|see) it this way|without|cannot|can't|won't|shouldn't|"
    r"will not|do not|did not|(?:i must|i have to) (?:say|admit))\b|不需要|无需|不用",
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
    match = _ENGLISH.search(sentence) or _OTHERS.search(sentence)
    return match is not None and _GIVES.search(sentence, match.end()) is None


def announces_call(text: str, name: str) -> bool:
    """True when the end of a text says that the tool `name` is about to be called."""
    tail = text[-_LAST:]
    if name not in tail or _NEGATION.search(tail):
        return False
    pattern = rf"\b(?:call|use|invoke|run|try|query)\w*\b[^.!?\n]{{0,30}}\b{re.escape(name)}\b|调用[^。\n]{{0,10}}{re.escape(name)}"
    return re.search(pattern, tail, re.IGNORECASE) is not None
