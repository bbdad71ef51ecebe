"""The lands and peoples of a script: where one is named, its words are names of places, dishes and
things, not damage."""

# Long lines: one list a script.
# ruff: noqa: E501

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

# By family of scripts (see `scripts.py`): countries, peoples, languages and the largest cities, in
# English; a name ends where the pattern does, or goes on ("japan", "japanese").
_LANDS = {
    "CJK": r"japan|tokyo|osaka|kyoto|anime|manga|kanji|kana\b|chin(?:a|ese)\b|mandarin|cantonese|"
    r"beijing|peking|great wall|shanghai|shenzhen|guangzhou|hangzhou|chengdu|hong ?kong|macau|taiwan|taipei|hanzi|"
    r"pinyin|singapore|\btang\b|\bqing\b|korean?\b|hanja",
    "Hangul": r"korean?\b|seoul|busan|k-?pop|hangul|hallyu",
    "Cyrillic": r"russia|moscow|petersburg|soviet|ukrain|kyiv|kiev|belarus|bulgaria|sofia|serbia|"
    r"belgrade|macedoni|montenegr|kazakh|kyrgyz|tajik|mongoli|uzbek|cyrillic|slavic",
    "Greek": r"gree(?:ce|k)\b|hellen|athens|athenian|cypr(?:us|iot)|byzanti|homer|plato\b|aristotle",
    "Arabic": r"arab|egypt|cairo|morocc|tunis|algeri|libya|leban|beirut|syria|damascus|iraq|baghdad|"
    r"saudi|mecca|dubai|emirat|qatar|kuwait|oman|yemen|jordan|palestin|sudan|iran|persia|tehran|farsi|"
    r"pakistan|urdu|karachi|lahore|afghan|uyghur|kurd|islam|muslim|qur'?an|koran",
    "Hebrew": r"hebrew|israel|jerusalem|tel[ -]aviv|jew(?:ish)?s?\b|yiddish|torah|talmud|bible|biblical",
    "Thai": r"thai|bangkok|phuket|siam",
    "Lao": r"lao(?:s|tian)?\b|vientiane",
    "Khmer": r"khmer|cambodia|angkor|phnom penh",
    "Myanmar": r"myanmar|burm(?:a|ese)|yangon",
    "Georgian": r"georgia|tbilisi",
    "Armenian": r"armenia|yerevan",
    "Ethiopic": r"ethiopia|eritrea|amharic|tigrinya|addis",
    "Tibetan": r"tibet|bhutan|dzongkha|lhasa",
    "Mongolian": r"mongol",
    "Sinhala": r"sinhal|sri lanka|colombo",
    "Thaana": r"maldiv|dhivehi",
}  # fmt: skip
_INDIA = (
    r"\bindian?\b|hindu|sanskrit|delhi|mumbai|bombay|kolkata|calcutta|chennai|madras|bengal|"
    r"bangladesh|dhaka|hindi|nepal|kathmandu|maratha|marathi|pune|gujarat|punjab|sikh|odia|oriya|odisha|"
    r"tamil|telugu|hyderabad|kannada|karnataka|bengaluru|bangalore|malayal|kerala|vedic|upanishad|yoga"
)
_INDIAN = (
    "Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya", "Tamil", "Telugu", "Kannada",
    "Malayalam",
)  # fmt: skip


@lru_cache(maxsize=64)
def _pattern(family: str) -> re.Pattern[str] | None:
    named = _INDIA if family in _INDIAN else _LANDS.get(family)
    return re.compile(rf"\b(?:{named})", re.IGNORECASE) if named else None


def named_lands(text: str, families: Iterable[str]) -> frozenset[str]:
    """Those of `families` of whose lands or peoples `text` speaks."""
    return frozenset(f for f in families if (named := _pattern(f)) and named.search(text))
