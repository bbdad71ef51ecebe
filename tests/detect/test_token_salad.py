"""Salad of scripts, bytes, symbols and word pieces; never code-switching, glossaries or
mathematics."""

# Long lines: tables of cases, a row each.
# ruff: noqa: E501

from __future__ import annotations

import time

import pytest
from builders_detect import call, labels, reply

from dsv4doctor.exchange import Exchange

FIRES = {
    "five scripts in a sentence": reply(
        "Raise the предел of the 接続 pool, then சேவை restarts and the εξυπηρετητής waits for 서버 input."
    ),
    "single words in long prose": reply(
        "Each shard keeps a log. When the log is full the shard seals it and starts a नया new one; "
        "sealed ones are بسرعة compacted by a worker, which merges 조각 ranges and drops old ones."
    ),
    "two scripts into russian": reply(
        "Сначала 检查 настройки сервера, затем перезапустите שירות и 等待 минуту.", prompt="Что делать?"
    ),
    "foreign words into german": reply(
        "Der Dienst wird неё neu gestartet und danach снова geprüft, bis der Zähler ещё steigt.",
        prompt="Warum startet der Dienst neu?",
    ),
    "english pieces among ideographs": reply("好的，我们 the 先 which 检查 of 网络 tion 设置。"),
    "glued scripts in an argument": reply(
        None, call("write_file", {"path": "a", "content": "limit снова= 6的0 шаг; the δ"}), prompt="set it"
    ),
    "replacement characters": reply("请先检查��务是否启动"),
    "one replacement character": reply("The caf� is open."),
    "replacement character in an argument": reply(None, call("run_shell", {"command": "echo 完��"})),
    "mojibake of umlauts": reply("Die TÃ¼r schlieÃŸt nach Ã¼ber drei Sekunden."),
    "mojibake of quotes": reply("Itâ€™s done, and theyâ€™re fine."),
    "mojibake of cyrillic": reply("РџСЂРёРІРµС‚, РјРёСЂ"),
    "mojibake of chinese": reply("ä½ å¥½ï¼Œä¸–ç•Œ"),
    "gbk debris": reply("结果是锟斤拷锟斤拷，请重试。"),
    "byte-level pieces": reply("HelloĠworldĠhowĠareĠyouĊ"),
    "sentencepiece pieces": reply("▁The▁answer▁is▁here"),
    "control characters": reply("The answer\x00\x01 is 42."),
    "lone surrogate": reply("All done \ud83d now."),
    "unassigned code point": reply("The key is \u0378\u0379 here."),
    "symbols": reply("°°ﬁ¶ ⌂⌂ ✱ §§ ⌐ ‡ ﬂ ◊◊ ¬ ⌂ µ"),
    "symbols in prose": reply("The answer is ¶§°¬µ¤¦¨¯´ and so on."),
    "word pieces": reply("ing the of_ and,-s tion return=> else 12 wh . a); the un-able to to,ly ization - which re the a the : not of"),
    "german into english": reply(
        "Then restart the Dienst mit three rows und the socket became of) nicht the pool und was the of it."
    ),
    "french and german by turns": reply("Le service est und nicht pour les auf eine dans der avec und sont."),
    "broken table": reply("## Keys Keys\n| Name | Na\n)-- of | | |\n| | then-- | were | | row\n| set-- | ) | and of"),
    "table skeleton": reply("| Wert | N\n|)-- of |\n| | | sind-- the |\n## ## Wert\n| ( und | lamp |"),
    "endings hung on marks": reply("tion);\n and_the ##ing } ,ity then 0x )->ers ment( with"),
    "lone marks beside small words": reply("The worker waits ,- and the ); was of"),
    "torn brackets and words": reply("Madrid});unset RowHandlerivent\n\n jaszcz //[[urelock 2-handed ~ poller($qux"),
    "letters before numbers in code": reply("```python\nfor k in range(木7):\n    y = д2 * k + ก9\n```"),
    "symbols of many blocks": reply("⌘ ¤ ¦¦ ∎ ⟂ ⎋ ░ ▚▚ ¬ ⌁ ¶ ⍟"),
    "mojibake with bytes lost": reply("è¯·å…ˆæ£€æŸ¥é…ç½®æ–‡ä»¶ï¼Œç„¶åŽé‡å¯æœåŠ¡ã€‚"),
    "a private-use character in a word": reply("The wor\ue0b0ker takes the next job."),
    "the last two letters swapped": reply(
        None, call("run_shell", {"command": "cd /opt/services && ./gralde buidl --rleease"}),
        prompt="cd to /opt/services and run ./gradle build --release",
    ),
    "pieces of hindi": reply("सर्वर िप ुन ाकर ्यव खोल ें तिक ाइ फ", prompt="सर्वर क्यों रुका?"),
    "pieces of thai": reply("เปิด ิก์ ัล ่อง ไฟล ์บริ ุณ", prompt="ทำไมหยุด"),
    "pieces of hebrew": reply("קובץםפתח שירותשוב נתיבךאת הגדרוףלך", prompt="למה נעצר?"),
    "single letters of korean": reply("서버ㅏㅣㄱ를 재ㅅㅗ시작 하ㄴ면 됩ㄴㅏ니다", prompt="재시작?"),
    "identifier pieces in prose": reply(
        "The lease ends at IndexOuterwidgetparse }}> setTimeoffby ___ newt ]); BACKwalk monthlyamento.", prompt="lease?"
    ),
    "two ideographic words glued into english": reply("The queue watts从未boarding搬迁 holds until noon.", prompt="Why?"),
    "pieces of greek": reply("δίσκοςαρχ θύρ σειράςλεπτ του καςμε", prompt="Γιατί σταμάτησε;"),
    "in the reasoning": reply(None, reasoning="Ports are обычно 22 さらに 443 と the αρχείο, wait 端口 y luego छोड़ the 설정", finish="length"),
    "name in two scripts": reply(None, call("的read_file", {"path": "a"})),
    "words of the request misspelt": reply(
        None, call("run_shell", {"command": "cd /opt/servces/gatway && make delpoy"}),
        prompt="cd to /opt/services/gateway and run make deploy",
    ),
}  # fmt: skip

STAYS_QUIET = {
    "arabic with a product": reply("افتح ملف docker-compose.yml ثم أعد تشغيل الخدمة nginx."),
    "hebrew with numbers": reply("הגדר את הזמן ל-60 שניות ואתחל את nginx."),
    "tamil": reply("முதலில் சேவையகத்தை நிறுத்தி, port 8080 என மாற்றவும்."),
    "amharic": reply("አገልግሎቱን እንደገና ያስጀምሩ።"),
    "georgian": reply("ჯერ გააჩერეთ სერვისი და შემდეგ შეცვალეთ პორტი."),
    "khmer": reply("សូមចាប់ផ្ដើមសេវាកម្មឡើងវិញ។"),
    "burmese": reply("ဝန်ဆောင်မှုကို ပြန်စပါ။"),
    "vietnamese": reply("Hãy khởi động lại dịch vụ rồi kiểm tra nhật ký."),
    "turkish": reply("Önce hizmeti durdurun, sonra bağlantı noktasını değiştirin."),
    "polish": reply("Najpierw zatrzymaj usługę, a następnie zmień port i uruchom ją ponownie."),
    "japanese with english terms": reply("まずnginxを停止し、configのportを8080にしてrestartしてください。"),
    "korean with han": reply("대한민국(大韓民國)의 首都는 서울이다."),
    "chinese with english": reply("请把 timeout 改成 60，然后 restart 服务，看 log 里有没有 error。"),
    "russian with latin terms": reply("Запустите docker compose up и откройте API-ключ в Settings."),
    "hinglish": reply("Bhai, pehle server band karo, phir port change karke restart kar dena."),
    "denglisch": reply("Der Build ist grün, bitte den Branch mergen und das Release deployen."),
    "spanglish": reply("Voy a hacer un rebase del branch y luego push al remote."),
    "greetings": reply("Hello, Привет, שלום, 你好, こんにちは, 안녕하세요, नमस्ते", prompt="Say hello in 7 languages"),
    "glossary": reply("| en | ru | zh |\n|--|--|--|\n| lock | замок | 锁 |\n| page | страница | 页 |"),
    "translation": reply("Greek: Η πόρτα. Russian: Дверь. Chinese: 门.", prompt="Translate 'door'"),
    "word explained": reply("The Japanese word 木 means tree, and the Russian дом means house."),
    "name in its own script": reply("Moscow (Москва) and Beijing (北京) signed the paper."),
    "formula": reply("∀ε>0 ∃δ>0: |x−a|<δ ⇒ |f(x)−f(a)|<ε, with Σ_{i} λ_i ≤ π²/6 and ∂u/∂t = Δu."),
    "physics": reply("With ħω = E and μ₀ε₀c² = 1, α ≈ 1/137; the rate is λ = 5 μm ± 2 %."),
    "ipa": reply("*Through* is /θɹuː/ and *nature* is /ˈneɪtʃə/."),
    "apl": reply("In APL `(+/÷≢)` is the mean; ⌽⍳5 reverses."),
    "box drawing": reply("├── src\n│   └── lib.rs\n└── Cargo.toml"),
    "emoji": reply("🎉🎉 Release day! 🚀 24 fixes 🐛, dark mode 🌗 and thanks 🙏💛"),
    "emoji only": reply("🐣➡️🐔➡️🥚➡️🐣"),
    "skin tones and flags": reply("👩🏽‍💻👨🏿‍🔬 🇯🇵 🇧🇷 🏴󠁧󠁢󠁳󠁣󠁴󠁿"),
    "legal marks": reply("© 2026 Foo® Inc.™, §§ 3–5, ¶ 2, 50 °C, † see note ‡."),
    "currencies": reply("Prices: 5 €, £4, ¥600, ₹300, ₩5000, ₿0.1"),
    "replacement character explained": reply("The character � (U+FFFD) stands for broken bytes."),
    "replacement character asked for": reply("It is �.", prompt="What does � mean?"),
    "cut in the middle of a character": reply("Das Ergebnis ist sch\ufffd", finish="length"),
    "mojibake quoted": reply("`Ã¼` means that UTF-8 was read as Latin-1."),
    "mojibake asked about": reply("Ã¼ is a broken ü.", prompt="Why does my file show Ã¼?"),
    "portuguese capitals": reply("SÃO PAULO E IRMÃ: ATENÇÃO, A SESSÃO É ÀS 9H."),
    "french capitals": reply("ÂGE, ÊTRE, GARÇON, NOËL, L'ÂME ET LE CŒUR"),
    "zalgo on request": reply("H̵e̷l̸l̶o̴", prompt="Write it in zalgo"),
    "nonsense on request": reply("ing tion the of a the to to of by of", prompt="Write gibberish"),
    "voucher codes": reply("kTz9-4Qm1, pX2w-88vB, zL0c-7NdR"),
    "nonsense verse": reply("Twas brillop and the mimble sroves did gargle in the wimbly glade"),
    "perl": reply("```perl\nmy %h = map { $_ => 1 } grep { !/^#/ } <$fh>;\n```"),
    "regex": reply(r"`^(?:(?:25[0-5]|2[0-4]\d)\.){3}$` matches it."),
    "unfenced c": reply("for (i = 0; i < n; i++) { if (a[i]) { b[i] = c(a[i], &d); } else { e(); } }"),
    "unfenced shell": reply("if [ -f x ]; then cat <<'EOF' | sed 's|a|b|' > y 2>&1; fi"),
    "unfenced diff": reply("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-the old\n+the new"),
    "latex": reply(r"$$\begin{pmatrix}1&0\\0&1\end{pmatrix}$$ so $AI=A$."),
    "typo": reply("This is the the only slip in an otherwise fine sentence of the report."),
    "keyword prose": reply("Use the for loop, the if statement and the in operator; the to field is empty."),
    "quotation of german": reply('He said "das ist nicht mein Bier" and left with the others.'),
    "names with particles": reply("Ludwig van Beethoven, Otto von Bismarck and Charles de Gaulle met the king."),
    "command in an argument": reply(None, call("run_shell", {"command": "find . -name '*.py' | xargs grep -n 'x y' || true"})),
    "paths copied well": reply(
        None, call("run_shell", {"command": "cd /opt/services/gateway && make deploy"}),
        prompt="cd to /opt/services/gateway and run make deploy",
    ),
    "the person's own typo mended": reply(
        None, call("run_shell", {"command": "make build"}), prompt="plese run make bulid"
    ),
    "man page": reply("ls [OPTION]... [FILE]...\n  -a, --all  do not ignore entries starting with .\n"),
    "numbered in two scripts": reply("文件1、文件2 и файл3 лежат рядом.", prompt="Что тут лежит?"),
    "brackets of code": reply("if (a) { b({c: [d]}) } else if (e) { f([g]);h() }\n});module.exports = x;"),
    "a bracket talked about": reply("Type a } and the block ends; the ) of the call is missing, and the ] too."),
    "hash with small words as keys": reply("my %o = (to => 'a', with => 'b', of => 'c', that => 'd');"),
    "formula of many blocks": reply("∀x∈ℝ: x² ≥ 0 ⇒ ⌊x⌋ ≤ x ⟹ ¬(x > ∞) ∎"),
    "icons of a font": reply("\uf015 Home \uf0c9 Menu \ue0a0 main"),
    "esperanto": reply("Agordi ĉi tion kiel VERA por ke oni vidu ĉi tion kiel bildon. Pri tion kaj ĉi tion."),
    "laughter in korean": reply("ㅋㅋㅋ 재시작ㅋㅋ하면 됩니다 ㅠㅠ", prompt="재시작?"),
    "one slip in marathi": reply("न सीडी राॅम अधिक माहिती साठी ही फाईल पहा.", prompt="काय झाले?"),
    "vowel signs named": reply("In Devanagari ◌ि and ◌ु are vowel signs; 'ा' is the long one.", prompt="Which are vowel signs?"),
    "hebrew drawn from right to left": reply("נקת טלק ץורע ןורכזה םיצבקה ןיב", prompt="x"),
    "names of a land": reply(
        "Have 海鮮丼 at Tsukiji market in Tokyo, ramen at 一蘭 and then 天丼 near 浅草 before the train.",
        prompt="Where should I eat?",
    ),
    "dishes of a land asked about": reply(
        "Try पानी पूरी on the beach, வடை with சாம்பார் near the station and রসগোল্লা for dessert.",
        prompt="What street food is there in India?",
    ),
    "faces of signs": reply("Cheer up (ง •̀_•́)ง or be stern ಠ_ಠ ლ(ಠ_ಠლ) Д: whatever.", prompt="ok?"),
    "phonetic spelling of arabic": reply("بكتيريا /lˈam jtʔθθr bilbaktˈiːriːˌaː/\nخطبة /ʔalχˈut̪ba/ a speech", prompt="ok?"),
    "letters of czech that look like torn bytes": reply(
        "Pratchett napsal knihu Úžasný Mauric. Může každý, kdo ji čte, žít též úžasně? Úžasný nápad, žádné žerty."
    ),
    "capitals before a mark": reply("DÉCONSEILLÉ\xa0: cette clé est DÉCONSEILLÉ\xa0: voir plus bas. Roura je PŘEDVINUTA… PŘEDVINUTÍ…"),
    "a noun that is a small word elsewhere": reply(
        "Emitir som quando uma tecla é aceite\nEmitir som quando uma tecla é rejeitada\nEmitir som quando uma função muda"
    ),
    "an english noun that is a small word elsewhere": reply(
        "| 0 | for system or well-known door services it would be beneficial |\n| 1 | to have a door call and a door return wrapper |"
    ),
    "marks explained with a small word": reply(
        "( ou \\( sem par\n) ou \\) sem par\n[, [^, [:, [., ou [= sem par\n\\{ sem par\nUso: sed [OPÇÃO]..."
    ),
    "codes of languages": reply("my %LocaleFile = map { ($_, $_) } qw(\n   af ar as az be bn ca cs cu cy da dsb ee eo es et fa\n);"),
    "marks named in a sentence": reply("Which { matches the\n} you typed. A missing ) and ; also cause extra indent. Thus look again."),
    "an arrow in code": reply("// for comparing nodes\nconst mismatch = (a, b) => a && b && a !== b\n\n// this.tree => the root node for the tree"),
    "variables that are small words": reply("my($dd,$di) = stat($1);\nif (defined $pd and defined $dd and $di ne $pi and $dd == $pd) {"),
    "one word written twice": reply("ctxt:a void * but the the XSLT transformation context actually"),
    "table of characters": reply("Sample: ÄÜö¿¡¢£¤¥¦§¨©ª«¬®¯°±²³´µ¶·¸¹º»¼½¾¿ is printed."),
    "symbols named": reply("These symbols are allowed too: § ¶ † ‡ ® ¬ ¤ ¦ © ° and µ."),
    "table of endings": reply("SFX 12 Y 1\nSFX 12 0 ිතුරු .\nSFX 13 Y 1\nSFX 13 0 ාව .\nSFX 14 0 ෙන් .", prompt="ok?"),
    "function words in a lesson": reply(
        "The articles der, die, das and the plural die are all \"the\" in English; compare French le, la, les; "
        "Spanish el, la, los; Portuguese o, a, os, as; Dutch de and het; Swedish en and ett."
    ),
    "a sentence corrected": reply('Your sentence: "I went to the the store of by bus." Corrected: "I went by bus."'),
    "stop words in order": reply(
        'e.stop = filter("gli ha hai hanno ho i il in io l la le lei li lo loro lui ma mi mia mie miei ne negl noi non un una".split(" "))'
    ),
    "a word a line": reply("been\nhas\nwhen\nwho\nwill\nmore\nno\nif\nout\nso\nup\nto\nof\nthe\nwas\ndu\ndi\nde\ndo"),
    "dictionary of small words": reply("dove | where\nche  | who, that\nla   | the, her\nque  | who, that\nel   | the\nen   | in\n"),
    "names of letters": reply("a med grav\na med akut\ne med grav\ni med akut\no med tilde\nstort a med dieresis\na med ring"),
    "a word that looks like an ending": reply("Gambar ing kiwa, gambar ing tengah, gambar ing tengen lan gambar ing ngisor."),
    "brackets after numbers of notes": reply(
        "1) first (a note) and the rest 2) second (of the two) was kept 3) third (by us) to the end of (it) and the rest."
    ),
    "parameters called a": reply("fn eq( a : vec2f, b : vec2f ) -> bool { return f( a.x == b.x ); }\nfn ne( a : vec3f, b : vec3f ) -> bool;"),
    "banner of a comment": reply("    # Frees it with the VSIFree routine.\n\n# ### DataSource, Layer error codes ###\ndef check(x): ..."),
    "places of digits": reply("The formats are 01### ##### and 016977 #### or 02# #### #### and then ### of them."),
    "ranges of characters": reply('stem.wordCharacters="\u0cbe-\u0ccc\u0cbc-\u0cbd\u0cd5-\u0cd6\u0cdd-\u0cde" is used.'),
    "abbreviations in greek": reply("ευ\nλ\nεβ\nθρ\nν\nαδσ\nολ\nμ\nκ\nδηλ\nσ\nαδσ\nδισ\nεκατ", prompt="ok?"),
    "formats of dates": reply('{\n  full: "y年M月d日EEEE",\n  long: "y年M月d日",\n  time: "H時mm分ss秒 zzzz",\n}', prompt="ok?"),
    "articles of a korean law": reply(
        "제44조제1항제7호 중 “자녀”를 “아이”로 한다. 교육공무원법 일부를 다음과 같이 개정한다. 휴직의 기간은 자녀 한 명에 대하여 "
        "삼 년 이내로 하되 나누어 쓸 수 있다. 임용권자는 휴직을 이유로 인사에 불리한 처우를 하여서는 아니 되며 그 기간은 근속기간에 "
        "들어간다. 제45조제1항 중 第3 항을 삭제하고 이 법은 공포한 날부터 시행한다. 부칙에서 정한 경과조치는 그대로 적용한다."
    ),
    "icons behind headings": reply("Comment\uf0c1Multiple formats are supported.\nBlock\uf0c1Blocks are containers."),
    "a turn of phrase": reply("Bugfixes came in, some from NetBSD, some from OpenBSD, some from other contributors by now."),
    "rows of endings": reply("SFX J e ings [eoy]e\nSFX J 0 ing [^e]r\nSFX J y ment [^b]y\nREP ness ity\nREP leness ility\nREP tion sion"),
    "numbered things": reply("U acts on qubits i1, …, im of a state of n qubits, where i1, …, im are different integers."),
    "picture in signs": reply('\n'.join(f'"{row}",' for row in ["@ @ @ @ @ @ @ ,,", "# # $ $ % & * )(", "- = ; > , ) ~ 1 ", "@ , ; # % = - } "])),
    "english nouns that other languages have as small words": reply(
        "He parked the van and the hat of the man was in the den with a para about it; we use a combination of jest and mocha."
    ),
    "names in an import": reply("import { a5 as R, af as Bt, a6 as ii, a7 as Ti, im as we, as as hi } from './a.js';\nimport './b.js';"),
    "letters of a keyboard without two": reply("Выигpай сyпеpпpиз! Собеpи 15 чyгyнных кpышек с бyквой M и полyчи пpиз."),
    "blanks that do not break behind a letter": reply("aptituden käyttö komentoriviltä\xa0\xa0\xa0aptituden käyttö sisältää sisältöä."),
    "vowel signs in a lesson of typing": reply('<text x="80">ൌ</text>\n<text x="120">ൈ</text>\n<text x="165">ാ</text>', prompt="ok?"),
    "table of characters with arrows": reply("U+0D02→ം; # SIGN ANUSVARA\nU+0D03→ഃ; # SIGN VISARGA\nU+0D3E→ാ; # SIGN AA", prompt="ok?"),
    "pixels": reply('"k k a a b $ ! 7 6 6 0 a a a b k 0 a a E 9 & x ~ z",\n"c b a a k a a D 6 v a a w Y O > a a c c",'),
    "belarusian typed with a latin letter": reply("кiя якiя цi яны былi тут, калi iх нiхто не бачыў, i нiчога не сказалi."),
    "tatar typed with a latin letter": reply("Тонgа, таш нgа, суннgан, янgа Зеландия, түнgәк кенgуру һәм манgал бар."),
    "burmese with its vowel typed first": reply("ညာ\nေအာက်ခြေမှ ထိပ်၊ ဘယ်မှ ညာ\nေအာက်ခြေမှ ထိပ်၊ ညာမှ ဘယ်", prompt="ok?"),
    "letters drawn with strokes": reply("  _  @\n ( ) @\n/ __|@\n\\_  \\@\n(___/@\n |_| @@\n _  _ @\n(_)/ )@\n  / / @\n / 1_ @\n/_/(_)@\n ,, @@\n)(   @ ! ? ;"),
    "letters of czech that make one of korean": reply("Pořadí je od nejvyšší do nejnížší.\nDescription[cs]=Úžasně roztomilé\nName[cs]=Úžasně"),
    "a quotation mark before blanks that do not break": reply("Se on ”valinta käyttäjistä”\xa0\xa0aptituden haku ja ”haku”."),
    "the full stop of oriya at its old place": reply("Comment[or]=ପିଲାମାନଙ୍କ ପାଇଁ ଏକ ଡ୍ରଇଂ ପ୍ରୋଗ୍ରାମ \u0b64", prompt="ok?"),
    "kazakh typed with a latin letter among its own": reply(
        "Ондық санды екiлiк санға түрлендiредi\nТаңдалған өрiстiң құрамасы тізімде көрсетіледі.\nкөрсетiлген мезгiлдер"
    ),
    "russian with two letters of latin": reply(
        "Приходит программист к пианисту - посмотpеть на новый pояль. Долго ходит вокpyг, хмыкает. - Клава неyдобная."
    ),
    "chinese comments behind code": reply(
        None, call("write_file", {"path": "a.py", "content": "def run(rsp):\n    name, rsp = rsp.split()\n    return rsp  # 只需回复SAVE或PASS，不需要带上name名\n"}),
        prompt="Write the file.",
    ),
    "formats of a locale": reply(
        'relativeTime:{future:"در %s",past:"%s پیش",s:"چند ثانیه",ss:"%d ثانیه"},o:{future:"через %s",past:"%s назад",s:"%d 秒"}', prompt="ok?"
    ),
    "patterns of dates in khmer": reply('Gy:"y នៃ G",GyMMM:"MMM y នៃ G",GyMMMd:"d MMM y នៃ G",GyMMMEd:"E d MMM y នៃ G"', prompt="ok?"),
    "parameters that are described": reply(
        "/**\n * @param {*} el the target element or the selector\n * @param {*} content the content to be rendered as HTML\n */"
    ),
    "variables of two letters": reply("if sys.argv[3] == 'ppm' and (im and version >= 0x060305 or gm):\n    run(x)\nif (im or gm) and not im and y:"),
    "dutch lessons": reply("Elk hiervan kan een les zijn, of een verzameling lessen, en om de les in het bestand te draaien."),
    "years in azerbaijani": reply("bir saat əvvəl\nbundan sonra bir saat\nbir il əvvəl\nbundan sonra bir il\nbir saniyə əvvəl"),
    "low german": reply(
        "un liekers mit en Öven anfangen.</p>\n<qt>Dat gifft al en Datei mit den Naam<p><b>%1</b></p>Wullt Du ehr överschrieven?</qt>\n"
        "De Spraakinstellen sünd leeg, oder för de Datei"
    ),
    "one written twice near a gap": reply("Some can follow with with possible answers\n# All tasks end with ____(x).\n# We must thus remove ___ and extract it"),
    "a step behind a condition": reply("if (e.which == 38 && index > 0)                 index--         // up\nif (e.which == 40 && index < n) index++         // down"),
    "what a test prints with arrows": reply(
        ">>> for k, v in sorted(pairs.items()):\n...     print(k, '=>', v)\nfiller => of messages to their own\nlcon => it\nsubjclass => the one"
    ),
    "rows of letters between strokes": reply("SHUFFLE: cdefg / dcfeg / cijke / ceijg, dfh\nSUBST: onqpr / ntuvp / nptur, oqs\nSUBST: nps"),
    "greek words with how often they are": reply("ιδιωτικοποιηση\t4\nοικογενειακό\t34\nαουσβιτς\t4\nπικρανα\t4\nκοινοχρηστοσ\t4", prompt="ok?"),
    "letters of thai listed": reply('_TYPE = {\n    "ะาำิีืึุู": "v",\n    "เแโใไ": "w",\n    "่้๊๋": "t",\n}', prompt="ok?"),
    "ranges of tamil": reply('"\u0bb9\u0bba-ிீ-\u0bc9ொ-\u0bcfௐ-\u0bd9\u0bda-\u0bdf\u0be0-௩௪-௯௰-௹௺-\u0bffa-zA-Z"', prompt="ok?"),
    "entities with their signs": reply(
        'uhblk:"▀",ulcorn:"⌜",ulcorner:"⌜",ulcrop:"⌏",ultri:"◸",Umacr:"Ū",umacr:"ū",uml:"¨",UnderBar:"_",UnderBrace:"⏟",UnderBracket:"⎵"'
    ),
    "names of characters": reply("0x6B63 正 CJK UNIFIED IDEOGRAPH-6B63\n0x4E0A 上 CJK UNIFIED IDEOGRAPH-4E0A\n0x4E2D 中 CJK UNIFIED IDEOGRAPH-4E2D", prompt="ok?"),
    "esperanto behind other words": reply("Ripetilo ĉe teksta signo enigas ĝin.\n\n>> Provu tion nun -- tajpu \"C-u 8 *\" por enigi \"********\"."),
    "spanish with words of dutch and french": reply("cuando a los grandes de este mundo les da por amaros es que van a\nconvertiros en carne de cañón..."),
    "a danish town": reply("Tillykke; du har fået en by til at vokse til størrelse 13. En by på\ndenne størrelse kan yde imponerende mængder."),
    "a dutch sum": reply("Bij twee of meer wordt er gepauzeerd gedurende een tijd die de som is van de waarden."),
    "bad pictures in portuguese": reply("Todas as más imagens são primeiras tentativas\nTodos os números assinalados partilham uma propriedade."),
    "marks named in a comment": reply("func (t *T) _(...interface {\n\tm()\n}) // no extra comma between } and )\n}) // no extra comma between } and )\n"),
    "a slip copied": reply(
        "- name: a\n  description: Fraction of instances where the the output was terminated because of the max tokens limit.\n"
        "- name: b\n  description: Fraction of instances where the the output was terminated because of something else."
    ),
    "letters of greek in order": reply(
        'label 21 "Left  ^{centered} ƒ(αβγδεζ)" left\nset label 22 at 0.5, -.2\nlabel 22 "Right ^{centered} ƒ(αβγδεζ)" right\n'
        'set label 23 at 0.5, -.3\nset label 23 "Center^{centered} ƒ(αβγδεζ)" center', prompt="ok?"
    ),
    "letters of arabic listed": reply("  ar: /^[ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىي]+$/i,\n  fa: /^[ءآأؤإئابةتثجح]+$/i", prompt="ok?"),
    "endings of greek in a list": reply('o=[["σκαγια",-1,2],["φαγια",-1,1],["ολογια",-1,3],["σογια",-1,4],["τατογια",-1,5],["κρεατα",-1,6],["περατα",-1,7],["τερατα",-1,8],["γεγονοτα",-1,11],["καθεστωτα",-1,10]]', prompt="ok?"),
    "letters drawn out": reply("Megtalálod a vezért\nKereshhhétek... öljhhhétek... vághhhjátok... őhhhket...\nÖt társam még mindig"),
    "columns parted by tabs": reply("dentistry\t牙醫學\thealth\ntraditional medicine\t中醫臨床醫學\thealth\nreal estate\t不動產經營\tother", prompt="ok?"),
    "one word of another script in a text of two": reply(
        "მარცხენა Win ღილაკი ცვლის ჯგუფს დაჭერის დროს.\nLogitech Internet Navigator Keyboard\nLogitech Cordless Desktop Optical\n"
        "გამოიყენე CapsLock როგორც დამატებითი Ctrl კლავიში.\nMicrosoft Wireless Multimedia Keyboard\nMicrosoft Natural Keyboard Pro OEM\n"
        "Menu ღილაკი შეესაბამება Compose-ის ღილაკს.\nМета შეესაბამება მარცხენა Win ღილაკს.\nPowerPC PS/2 keyboard of the old model\n"
        "Logitech Ultra-X Keyboard with some more keys\nმრავალენოვანი, პირველი ნაწილი",
        prompt="ok?",
    ),
    "two languages beside a bar": reply(
        "they are denied| * les joueurs peuvent écrire des sorts qu'ils ne peuvent lancer\n"
        " * players can't write spells they are denied| * les joueurs ne peuvent pas écrire de sort qu'ils ne peuvent pas lancer"
    ),
    "an ending with its sound": reply("th //-θ// <suffix>\n, , 目\nused to form the ordinal numeral\ntion //-tʃən// //-ʃən// <suffix>\n化\nproducing a noun", prompt="ok?"),
    "a caption in chinese": reply(
        '<div class="figure">\n  <p class="title">\n    <strong>图\xa06.11.\xa0以RGBA的模式打开图片Wilber</strong>\n  </p>\n</div>', prompt="ok?"
    ),
    "strings in chinese": reply(
        "locale_dict = {\n  'merge_lora': {'label': {'zh': '合并LoRA', 'en': 'Merge LoRA'}},\n  'info': {'zh': 'LoRA合并的路径在填入的checkpoint同级目录，"
        "请查看运行时log获取更具体的信息'},\n  'target': {'zh': 'Target模块参数', 'en': 'Tuner modules params'},\n}", prompt="ok?"
    ),
    "greek misspelt once and copied": reply("Δε βεθηκαν kvtml αρχεία.\nΔε βεθηκαν αρχεία θεμάτων.\nΝορβηγικά αρχεία δεδομένων", prompt="ok?"),
    "interlingua": reply("Iste modulo permitte te de seliger ubi in le systema de file le files sur tu scriptorio deberea esser immagazinate."),
    "points behind a blank that does not break": reply("Sádde vástádusa čujuhussii\xa0…\nVástit &siterenkeahttá\xa0…\nVástit &buohkaide\xa0…\n", prompt="ok?"),
    "a step on a line of its own": reply("if (line ~ /}/) {\n\t    indent--\n\n\t    if (indent == 0) {\n\t\tif (0) {\n\t\t    printf \"shift '\" shift   \"' ='\"\n"),
    "a class of characters": reply(
        None, call("write_file", {"path": "a.js", "content": 'e=[new RegExp("[A-Za-zªµºÀ-ÖØ-öա-ևא-תװ-׳ؠ-يٮٯٱ-ۓەۥۦۮۯۺ-ۼۿܐܒ-ܯݍ-ޥޱߊ-ߪߴߵߺࠀ-ࠕࠚࠤࠨࡀ-ࡘऄ-हऽॐक़-ॡॱ-ॷ]")]'}),
        prompt="Write the file.",
    ),
    "brackets named in a comment": reply("    # But I made sure that it does not include ), ] and } in the URL.\n    flags=re.UNICODE | re.IGNORECASE,\n)\n"),
    "variables of a loop": reply("def strip_strings(els: list[str]) -> list[str]:\n    return [el.strip() for el in els if len(el.strip()) > 0]\n\n"),
    "spanish that has turkish words": reply("Si no ve el correo electrónico en los próximos minutos, ¡revise su bandeja de entrada!"),
    "the map in dutch": reply("het\ntijdstip date find de naam van het bestand van de map las en de tijd dat\nhet het bestand probeert te lezen, dan wordt geen foutmelding\ngegeven."),
    "a variable that is set": reply("\t// Create element\n\tvar el = $( this ),\n\t\toptions = $.extend( true, {}, o ),\n\t\tmode = $.effects.setMode( el, o.mode )"),
    "a variable that is asked about": reply('    te = te.lower()\n    te = re.sub(r"[\\t ]*", ",", te)\n    if te not in CODINGS:\n        raise ValueError(f"unknown")'),
    "a row gone through": reply("assert len(set(est.random_state for est in clf.estimators_)) == len(clf.estimators_)\nassert len(set(est.state for est in reg.estimators_))"),
    "a command in braces": reply("      if { case $cc_basename in ifort*) true;; *) test \"$GCC\" = yes;; esac; }; then\n        :\n      else\n        ld_shlibs=no"),
    "a call behind an arrow": reply(" * const seed = 0;\n * const count$ = one$.pipe(\n *   mergeScan((acc, one) => of(acc + one), seed),\n * );"),
    "value as the prompt gave it": reply(
        None, call("write_file", {"path": "a", "content": "北の港 три שלום नमस्ते"}),
        prompt="store `北の港 три שלום नमस्ते` in a",
    ),
}  # fmt: skip


@pytest.mark.parametrize("exchange", FIRES.values(), ids=FIRES)
def test_fires(exchange: Exchange) -> None:
    assert "token_salad" in labels(exchange)


@pytest.mark.parametrize("exchange", STAYS_QUIET.values(), ids=STAYS_QUIET)
def test_stays_quiet(exchange: Exchange) -> None:
    assert "token_salad" not in labels(exchange)


# Half a line of debris in a long sound text: told by how thick the oddities stand.
@pytest.mark.parametrize(
    "debris",
    [
        "of then-- the ,- ing und which =>",
        "mit the of ization ); was los",
        "pour was und nicht ___ ment |",
        "to of by the dans los which then",
    ],
)
@pytest.mark.parametrize("place", ["start", "middle", "end"])
def test_half_a_line_of_debris_is_told_anywhere(debris: str, place: str) -> None:
    sound = "The worker takes the next job from the queue and writes its result to the log. "
    text = {
        "start": debris + " " + sound * 12,
        "middle": sound * 6 + debris + " " + sound * 6,
        "end": sound * 12 + debris,
    }[place]
    assert "token_salad" in labels(reply(text))


@pytest.mark.parametrize(
    "text",
    [
        "if (a == b && (c)) return a; // a = the sum, b = the rest; then a == c => done",
        "Der Dienst ist auf dem Host, the one with the blue label, und wird nicht gestartet.",
        "She took care of the sheep, and till the very soil was tilled, they were at it.",
        "| the | of | and |\n|---|---|---|\n| 12 | 7 | 3 |",
        "Het hangt af van de gebruikte media; sluit anders af met de optie die u wilt.",
        "Você não está vendo uma das páginas; ela está disponível para todos os usuários.",
    ],
)
def test_words_side_by_side_that_are_no_debris(text: str) -> None:
    assert "token_salad" not in labels(reply(text * 3))


# The bare marker, U+FFFD and control characters among quotation marks of the salad's own.
DAMAGED = (
    ' work assign “"\ufffd p stack first ent\x04Attribute. comma O 10 work up--+()", matching one'
    ' "- imple elestelse liimp｜DSML｜*,\ufffdieque posi in else provide \'" strings common\n'
    + "The worker takes the next job from the queue and writes its result to the log.\n" * 30
    + ' runtime\x03 given step "\ufffd" were -- then\n'
)


def test_quotation_marks_of_salad_quote_nothing() -> None:
    assert "dsml_leak" in labels(reply(DAMAGED))
    assert "token_salad" in labels(reply(DAMAGED))


def test_a_short_quotation_of_damage_is_no_damage() -> None:
    text = 'The page shows "caf\ufffd" where it should show "café".'
    assert "token_salad" not in labels(reply(text, prompt="Why is the name broken on my page?"))


@pytest.mark.parametrize("unit", ["the Okay, 的user ", "\\frac f(ς"])
def test_a_long_text_of_many_oddities_costs_no_more_a_character(unit: str) -> None:
    def seconds(chars: int) -> float:
        begin = time.process_time()
        labels(reply("A " + unit * (chars // len(unit)), prompt="Say it."))
        return time.process_time() - begin

    seconds(1000)
    # Eight times the text: what reads all of it again for each find takes over twenty times as long.
    assert seconds(320_000) < 12 * seconds(40_000) + 0.5
