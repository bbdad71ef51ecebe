"""Runs of ideographs and syllables that nobody writes."""

from __future__ import annotations

import random

import pytest

from dsv4doctor.detect.rare_characters import rare_run

# Long lines: a table of cases, a row each.
# ruff: noqa: E501

QUIET = {
    "simplified": "请先检查服务是否启动，然后查看日志中的错误信息，最后重新启动网关并确认连接数没有超过上限。",
    "traditional": "請先檢查服務是否啟動，然後查看日誌中的錯誤訊息，最後重新啟動閘道並確認連線數沒有超過上限。",
    "Cantonese": "你哋嘅檔案喺邊度呀？我搵咗好耐都搵唔到，唔該你哋幫我睇下係咪俾人刪咗。",
    "Japanese": "まずサービスが起動しているか確認し、次にログのエラーを調べ、最後にゲートウェイを再起動してください。",
    "a poem": "床前明月光，疑是地上霜。舉頭望明月，低頭思故鄉。白日依山盡，黃河入海流。",
    "Korean": "먼저 서비스가 실행 중인지 확인한 다음 로그의 오류를 살펴보고 게이트웨이를 다시 시작하세요.",
    "Korean as it is typed": "뷁! 아햏햏 뭥미 쀍 ㅋㅋㅋ 됬어요 할께요 어뜨케 해야 될찌 모르겟슴다",
    "characters in their order": "䨀 to 䨟: " + "".join(map(chr, range(0x9A00, 0x9A30))),
    "rare ones explained one by one": "犇 (three oxen), 猋 (three dogs), 羴 (three sheep), 鱻 (three fish), 麤 (three deer), 驫, 贔, 龘",
}


def _drawn(first: int, last: int, rng: random.Random) -> str:
    return "".join(chr(rng.randint(first, last)) + " " * (rng.random() < 0.15) for _ in range(40))


@pytest.mark.parametrize(("first", "last"), [(0x4E00, 0x9FA5), (0xAC00, 0xD7A3)])
def test_characters_drawn_evenly_fire(first: int, last: int) -> None:
    rng = random.Random(3)
    texts = ["The pool is full. " + _drawn(first, last, rng) for _ in range(100)]
    found = [where for text in texts if (where := rare_run(text, frozenset(text)))]
    assert len(found) >= 97
    assert min(start for start, _ in found) >= len("The pool is full. ")


@pytest.mark.parametrize("text", QUIET.values(), ids=QUIET)
def test_what_people_write_stays_quiet(text: str) -> None:
    assert rare_run(text, frozenset(text)) is None
