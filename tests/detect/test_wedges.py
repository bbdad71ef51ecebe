"""Foreign words glued into a sentence where nobody glues."""

# Long lines: tables of cases, a row each.
# ruff: noqa: E501

from __future__ import annotations

import time

import pytest
from builders_detect import labels, reply

FIRES = {
    "a token after a word": "The pool is full, and the scheduler realised造成 motives before it ran.",
    "a token between two": "Nothing waits here. sola廉价Slide clung to the lease of the worker.",
    "a token before a word": "Rows are kept 恢复identify until the lease of the worker ends.",
    "hung on a stroke": "It is a pseudo手工-random number that the worker hands to the queue.",
    "a capital after a word": "Castle wardens decidesВсе added rows to the table of the pool.",
    "an Arabic word after a word": "The broker keeps protectsون the lease of each worker in a row.",
    "an ending with no sentence": "Open the pictorialող Controvers of the worker and wait for it.",
    "a token at the end of a row": "The worker folds a strange reco商业化\nand hands it to the queue.",
    "a token at the head of a row": "The queue is full.\n路易ulse clung to one row of the table.",
    "a syllable before a word": "Nothing waits at the continent 몇buttons of the lease any more.",
    "in another language": "Je moet onmiddellijk je wachtwoord mocking手工 relegated wijzigen.",
}
QUIET = {
    "names with brackets": "WeChat (微信) and Alipay (支付宝) are in the list of apps.",
    "names in a row": "Pick Baidu 百度 or Sogou 搜狗 from the list of search engines.",
    "a sentence with foreign names": "Run it.\n通过方法的方式配置umi能带来更好的 typescript 体验和TypeScript提示",
    "a comment behind code": "border: 1px; //因为每个cell的border使用before元素left",
    "a heading that ran together": "The Debian handbook.\nDownload the ebook前一頁Debian 14.7. Debian has more.",
    "a quotation": 'print("Textualは framework of ours")',
    "a name at the end": "The app is called Thunderbird電子メール\nand the queue is full.",
    "formats of dates": 'full: "y年M月d日EEEE", long: "y年M月d日", medium: "MMM年dd日 EEE"',
    "abbreviations": "Der PCエンジン ROM steht im Regal.",
    "Korean endings": "결과.\nThe token의 list is what we get.\n그 목록은 다음과 같습니다.",
    "a Russian ending": "Отправь. Many SMSки wait in the queue of the worker.",
    "a Hebrew article": "The word הzip stands there.",
    "look-alikes": "They wrote ignоre and prevіous with letters of another alphabet.",
    "units": "It takes 3 µs, 5 μm and 7 kΩ at 20 °C; Δt is small and λmax large.",
    "a word that is named": "The Chinese character in foo中bar is written with four strokes.",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_a_word_glued_where_nobody_glues_fires(text: str) -> None:
    assert labels(reply(text, prompt="Please go on.")) == ["token_salad"]


@pytest.mark.parametrize("text", QUIET.values(), ids=QUIET)
def test_what_people_glue_stays_quiet(text: str) -> None:
    assert "token_salad" not in labels(reply(text, prompt="Please go on."))


def test_a_request_that_knows_the_script_excuses_it() -> None:
    text = FIRES["a token after a word"]
    assert labels(reply(text, prompt="Why does 造成 matter?")) == ["clean"]
    assert labels(reply(text, prompt=None)) == ["clean"]


@pytest.mark.parametrize("unit", ["ab廉价cd ", "廉价ab ", "ab廉 cd价"])
def test_a_megabyte_is_read_in_linear_time(unit: str) -> None:
    def seconds(size: int) -> float:
        made = reply(unit * (size // len(unit)), prompt="Please go on.")
        begin = time.perf_counter()
        labels(made)
        return time.perf_counter() - begin

    seconds(1000)
    assert seconds(200_000) < 30 * max(seconds(20_000), 0.02)
