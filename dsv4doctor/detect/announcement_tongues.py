"""How speakers of many languages say what they are about to do with a tool.

The first person's forms of the will or of the moment; what describes ("this command searches"),
advises or reports is left out.
"""

# Long lines: patterns that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import re

_ZH_VERB = (
    "(?:看|查|读|搜|运行|执行|打开|列|调用|获取|检查|修改|写|创建|试|翻|找|预订|预约|发送|提交|更新|删除|调出|拉取|确认|核实|核对|"
    "安排|设置|设定|启动|重启|部署|安装|添加|记录|转账|播放|关闭)"
)
_JA_VERB = "(?:確認|検索|実行|読み込み|読み取り|調べ|開き|取得|作成|修正|照会|呼び出し|探し|更新|登録|削除|予約|書き込み|変更|送信|起動|再生)"
ANNOUNCED = re.compile(
    # Chinese: what I am about to do; no advice (请, 您), nothing done (过, 了).
    r"(?:我(?:这就|先|来|将|会|要|去|马上|再|接着|需要先)|(?<![你您他她它请])让我(?:们)?|(?:接下来|下面|现在|首先|那么)[，,]?我(?:们)?)"
    rf"(?:(?!请|您|你|可以|能|已)[^。！？，,\n]){{0,8}}?{_ZH_VERB}(?![^。！？，,\n]{{0,2}}[过了])"
    # At this moment, by a verb that has no other sense: no finding ("我现在看到"), no state ("在").
    r"|我(?:现在|立即|立刻)(?:就|来|去|开始|先)?(?:[帮为给替][您你])?(?:调用|查询|检索|搜索|读取|打开|获取|检查|创建|修改|更新|删除|发送|提交|重启|部署|执行)"
    r"(?![^。！？，,\n]{0,2}[过了的到着])(?=[^。！？，\n]*[。：…\w]?$)"
    # A service done for the person, and at once.
    r"|(?:我(?:这就|现在就?|马上|立刻|立即|来|先)|(?:^|[，,。！])(?:马上|立刻|立即|这就|现在就))(?:帮|为|给|替)(?:您|你)"
    rf"[^。！？，,\n]{{0,6}}?{_ZH_VERB}(?![^。！？，,\n]{{0,2}}[过了])"
    rf"|正在(?:帮|为|给)?(?:您|你)?{_ZH_VERB}[^。！？\n]{{0,20}}(?:…|\.\.\.|：)$"
    # Japanese and Korean: the forms of the will, not those of description.
    r"|(?:確認|検索|実行|読み込|読み取|調べ|開[いき]|取得|作成|修正|照会|探|見)[^。\n]{0,4}(?:てみます|ていきます|てまいります|てみましょう|しましょう)"
    rf"|(?:まず|次に|それでは|では|これから|今から|今すぐ|ただいま)[^。\n]{{0,30}}{_JA_VERB}(?:いた)?し?ます"
    # A statement that has a subject describes; one that has none is about its speaker.
    rf"|^(?!.*以下)[^はが]*{_JA_VERB}(?:いた)?し?ます[。:：]?$"
    r"|(?:확인|검색|실행|조회|열어|읽어|살펴|찾아|예약|전송|보내|설정|생성|가져와?|불러)[^.\n]{0,8}(?:겠습니다|볼게요|할게요|을게요|드릴게요)"
    # A word or two may stand between: "je vais d'abord regarder", "voy a primero leer".
    r"|\b(?:voy a|vamos a|déjame|déjeme|perm[ií]t[ea]me|procedo a|paso a)(?: \w+){0,2} (?:revis|busc|le|abr|ejecut|comprob|verific|mir|consult|cre|escrib|"
    r"edit|actualiz|modific|list|inspeccion|examin|analiz|explor|correg|arregl|envi|reserv|registr|borr|elimin)[aei]r\b"
    r"|\b(?:ahora|primero|enseguida|ya|ya mismo|de inmediato) (?:reviso|busco|leo|abro|ejecuto|compruebo|verifico|consulto|miro|listo|edito|actualizo|envío|reservo)\b"
    r"|^\W*(?:busco|reviso|leo|abro|ejecuto|compruebo|verifico|consulto|miro) (?:ahora|ya|enseguida|de inmediato)\b"
    r"|\b(?:buscaré|revisaré|leeré|abriré|ejecutaré|comprobaré|verificaré|consultaré|miraré|crearé|editaré|actualizaré|listaré|enviaré|reservaré)\b"
    r"|\b(?:je vais|laissez-moi|laisse-moi|commençons par|je commence par)(?:[ ']\w+'?){0,3} (?:regard|vérifi|cherch|recherch|"
    r"li|ouvr|exécut|lanc|consult|cré|écri|modifi|édit|list|inspect|examin|analys|explor|corrig|récupér|test|envoy|réserv|supprim)(?:er|ir|re)\b"
    r"|\bje (?:vérifie|cherche|regarde|lis|ouvre|lance|consulte|exécute|crée|récupère|liste|modifie|envoie|réserve) "
    r"(?:le|la|les|l['’]\w+|ce|cet|cette|cela|ça|votre|vos|tout de suite|maintenant|immédiatement|d['’]abord|dans)\b"
    r"|\b(?:regardons|vérifions|cherchons|ouvrons|lisons|veamos|revisemos|busquemos|vediamo|controlliamo)\b"
    r"|\b(?:ich (?:schaue|prüfe|suche|lese|öffne|führe|rufe)(?!(?: \w+){0,2} (?:gern|gerne|oft|immer|nie|manchmal)\b)|(?:schaue|prüfe|suche|lese|öffne|führe|rufe|sehe) ich|"
    r"ich sehe (?:mir|nach)|ich werde\b[^.!?\n]{0,60}\b(?:nach|an|durch)?(?:sehen|schauen|prüfen|suchen|lesen|öffnen|ausführen|aufrufen|starten|ändern|anpassen|abfragen|anlegen|buchen|senden))\b"
    r"|\bich (?:frage|lege|hole|starte|erstelle|buche|sende|schicke|ändere|setze|stelle|schalte|trage|lade|lösche)\b[^.!?\n]{0,60}"
    r"\b(?:jetzt|nun|gleich|sofort|kurz|zuerst|zunächst|ab|an|ein|aus)\b"
    r"|\blass(?:en Sie)? mich\b"
    r"|\b(?:vou|deixe-me|deixa-me)(?: \w+){0,2} (?:verific|busc|procur|l|abr|execut|chec|olh|consult|cri|escrev|edit|atualiz|"
    r"modific|list|analis|corrig|rod|envi|reserv|regist)[aei]r\b"
    r"|\b(?:verificarei|buscarei|procurarei|lerei|abrirei|executarei|consultarei|criarei|enviarei)\b"
    r"|\b(?:ora|adesso|prima|intanto|subito) (?:controllo|verifico|leggo|cerco|apro|eseguo|guardo)\b|\bfammi \w+re\b"
    # The speaker's own verb opens the sentence, and says when: "Cerco subito", "Leggo ora".
    r"|^\W*(?:controllo|verifico|leggo|cerco|apro|eseguo|guardo|creo|lancio|avvio|aggiorno|consulto|recupero) "
    r"(?:subito|ora|adesso|immediatamente)\b|\b(?:sto per|vado a) \w+(?:are|ere|ire)\b"
    r"|\b(?:controllerò|verificherò|cercherò|leggerò|aprirò|eseguirò|creerò)\b"
    r"|\b(?:laat me|ik (?:ga|zal))\b[^.!?\n]{0,30}\b(?:kijken|controleren|lezen|zoeken|openen|uitvoeren|bekijken)\b"
    r"|\b(?:посмотрю|посмотрим|проверю|проверим|прочитаю|прочту|найду|поищу|запущу|открою|выполню|запрошу|выясню|узнаю|загляну|создам|обновлю|"
    r"забронирую|отправлю|давайте (?:по)?смотреть|позвольте (?:проверить|посмотреть)|перевірю|прочитаю|знайду|пошукаю|відкрию|виконаю|подивлюся|запущу)\b"
    r"|^\W*(?:хорошо,? |сейчас |я (?:сейчас )?)?(?:запускаю|открываю|проверяю|ищу|выполняю|создаю|обновляю|запрашиваю)\b"
    r"|\b(?:sprawdzę|przeczytam|otworzę|uruchomię|poszukam|zobaczę|wyszukam|pobiorę|utworzę|wykonam|zarezerwuję|wyślę)\b"
    r"|\b(?:podívám se|zkontroluji|ověřím|přečtu|otevřu|spustím|vyhledám|najdu|vytvořím|zjistím)\b"
    r"|\bjag (?:ska|kommer att|tänker)\b[^.!?\n]{0,30}\b(?:kontrollera|kolla|läsa|öppna|köra|söka|titta|hämta)\b|\blåt mig\b"
    r"|\bjeg (?:sjekker|tjekker|leser|læser|åpner|åbner|kjører|kører|søker|søger|henter|finder|finner|booker|opretter|oppretter|sender)\b[^.!?\n]{0,40}\b(?:nå|nu|først)\b|\b(?:la meg|lad mig)\b"
    r"|^\W*(?:tarkistan|haen|avaan|luen|suoritan|etsin)\b|\b(?:tarkistan|haen|avaan|suoritan|etsin)\b[^.!?\n]{0,40}\b(?:nyt|ensin|heti)\b"
    r"|\b(?:şimdi|önce|hemen)\b[^.!?\n]{0,60}(?:edeceğim|bakacağım|okuyacağım|açacağım|arayacağım|çalıştıracağım|ediyorum|bakıyorum|okuyorum|açıyorum|arıyorum|çalıştırıyorum)\b"
    r"|\b(?:tôi sẽ|để tôi|saya akan|mari saya|biar saya)\b[^.!?\n]{0,30}\b(?:kiểm tra|đọc|mở|chạy|tìm|xem|periksa|memeriksa|membaca|membuka|menjalankan|mencari|melihat)\b"
    r"|\bsaya (?:cek|periksa|cari|buka|jalankan|lihat|baca)\b[^.!?\n]{0,20}\b(?:dulu|sekarang|langsung)\b"
    r"|ขอ(?:ตรวจสอบ|ดู|อ่าน|ค้นหา|เปิด|เรียก|เช็ค)|เดี๋ยว[^.\n]{0,12}(?:ตรวจสอบ|ดู|อ่าน|ค้นหา|เปิด|เช็ค)"
    r"|\bθα (?:ελέγξω|ψάξω|ανοίξω|διαβάσω|εκτελέσω|αναζητήσω|τρέξω)\b|\bας (?:ελέγξω|δω|ψάξω)\b"
    r"|(?:אני (?:בודק|מחפש|פותח|מריץ)(?:ת|ה)?|אבדוק|אחפש|אפתח|אריץ)(?!\w)"
    r"|\bvoi (?:verifica|căuta|citi|deschide|rula|consulta|executa)\b|\b(?:lasă-mă|permite-mi) să\b"
    r"|^\W*(?:trimit|verific|caut|citesc|deschid|rulez|creez|șterg|actualizez|public|comand|rezerv|pornesc|opresc) (?:acum|imediat|chiar acum)\b"
    r"|^\W*(?:most|azonnal|máris) (?=[^.!?\n]*[áéíóöőúüű])(?!tudom|látom|értem|gondolom|mondom|hiszem|érzem|kérem|várom)\w{3,}(?:om|em|öm) (?:az?|ezt|azt)\b"
    r"|\b(?:megnézem|ellenőrzöm|megkeresem|elolvasom|megnyitom|lefuttatom|lekérdezem|létrehozom)\b"
    r"|(?:سأتحقق|سأقرأ|سأبحث|سأفتح|سأشغل|سأقوم ب|سأراجع|سأنفذ|سأستعلم|سأرسل|سأحجز|سألقي نظرة|دعني أ)|(?:देखता|देखती|जाँचता|जाँचती|पढ़ता|पढ़ती|खोलता|खोजता|खोजती|चलाता) हूँ",
    re.IGNORECASE,
)
# An auxiliary of the will and any infinitive, but for what one does with words or is.
_WORDS_ONLY = (
    r"(?!(?:\w+ )?(?:explic|explir|expliqu|dec|diz|dir\b|dire|ayud|ajud|aid|cont|dar|donn|resum|résum|respond|répond|ser\b|estar|être|avoir|"
    r"hab|ten|ter\b|poder|pouvoir|saber|savoir|erklär|sag|helf|geb|antwort|zusammenfass|förklar|svar|säg|uitleg|zegg|wart|wacht|onthou|merk|denk|esper|attend|lembr|record|souven|tent|nhớ|đợi|vänt|jelaskan|bantu|giải thích|giúp|nói|trả lời))"
)
WILL = re.compile(
    rf"\b(?:voy a|vou|je vais|vado a|sto per) {_WORDS_ONLY}(?:\w+ )?(?:l['’])?\w+(?:[aei]r|er|ir|re|are|ere|ire)(?:l[aeo]s?|te|me)?\b"
    rf"|\bich werde (?![^.!?\n]*\b(?:erklären|sagen|helfen|antworten|zusammenfassen|beschreiben|warten|merken|denken)\b)[^.!?\n]{{3,80}}\w{{2,}}(?:en|ern|eln)\W*$|\b(?:ik ga|ik zal) {_WORDS_ONLY}[^.!?\n]{{3,80}}\w{{2,}}en\W*$"
    rf"|\b(?:jag ska|jeg skal|jeg vil) {_WORDS_ONLY}\w+[ae]?\b|\bsaya akan (?!mem(?:bantu|beri)|menjelas|menjawab)me\w+|\btôi sẽ {_WORDS_ONLY}\w+"
    r"|\b(?:już|zaraz|teraz) \w+ę\b|\bзараз (?!наш|мо[єїю]|сво|тво|ваш|ці)\w+(?:ю|у)\b"
    # The present of doing, but for what one is, knows, sees or says.
    r"|\bik (?!(?:ben|zie|weet|begrijp|snap|denk|heb|kan|kon|wil|mag|moet|geef|leg|hoop|vind|zit|sta|ga|zal|zou|antwoord|vertel|schrijf|hoor|merk|voel|laat|ken|herinner)\b)\w{3,}\b"
    r"|\bjag (?!(?:är|ser|vet|förstår|tror|har|kan|vill|måste|ger|hoppas|sitter|står|svarar|berättar|skriver|ska|skulle|mår|känner|tycker|hör|märker|väntar|lämnar|förklarar)\b)\w{2,}r\b"
    r"|\b(?!anl|gör|bil|düşün|san|um|açıkl|anlat|söyl|yaz|bekl|hiss|ist|ver)\w{2,}(?:[ıiuü]yorum|acağım|eceğim)\b"
    r"|(?:कर|भेज|बना|खोल|चला|हटा|जोड़|लगा|जाँच|ढूँढ)(?:ता|ती) हूँ|(?:कर|भेज|बना|खोल|चला|हटा|जोड़|लगा)(?:ूँगा|ूंगा|ूँगी|ूंगी|ऊँगा|ऊंगा|ऊँगी)",
    re.IGNORECASE,
)
NOW = re.compile(
    r"\b(?:ahora(?: mismo)?|enseguida|de inmediato|agora(?: mesmo)?|imediatamente|maintenant|tout de suite|immédiatement|adesso|subito|"
    r"jetzt|sofort|gleich|nu|nå|meteen|direct|genast|sekarang|segera|ngay(?: bây giờ)?|bây giờ|już|zaraz|teraz|зараз|şimdi|hemen|derhal)\b|अभी|तुरंत",
    re.IGNORECASE,
)
# What takes such a promise back, or hangs it on something.
UNLESS = re.compile(
    r"\b(?:no|não|non|ne|pas|nicht|nichts|kein\w*|nie|inte|ikke|niet|không|tidak|değil|eğer|si|se|s['’]il|jeśli|als|om|hvis|jika|nếu)\b",
    re.IGNORECASE,
)
