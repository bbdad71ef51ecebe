"""Whether a change of `detect` or `scan` left every verdict as it was.

Usage: python benchmarks/scan_same.py keep FILE.jsonl.gz       (before the change)
       python benchmarks/scan_same.py compare FILE.jsonl.gz    (after it; exit code 1 if not)

`keep` judges some 13,000 responses and writes them with their verdicts: the corpus, where it is at
hand, the variants of the tests, clean texts as content and as arguments, every seeded injection,
and texts with random damage. `compare` judges the very same responses again. Primary, also,
corrupted and the evidence to the letter have to be equal.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "soak"))
sys.path.insert(0, str(ROOT))

from detect_injections import called, injections, record  # noqa: E402
from detect_texts import clean_pieces  # noqa: E402

from dsv4doctor.flows.scan_records import judgement_of, judgements_of  # noqa: E402
from dsv4doctor.label import Judgement  # noqa: E402

CLEAN, PER_INJECTION, DAMAGED = 3000, 45, 4000
_BATCH = 64
_SHOWN = 10
_SHARED = Path(os.environ.get("DSV4DOCTOR_SHARED", ROOT.parent / "shared"))
_SCORING = ("label", "also", "note", "difficulty")
# Characters that damage brings in: marks of every rule, several scripts, broken bytes.
_STRANGE = (
    "<>|｜`\"'{}[]()\\/&;:,.#$%~^=+-_ \n\t\0\x1b\ufffd\u200b\u2581ĠÃ©жд中文かな한ไทعربש😀①ﬁ∆\ud800"
)


def responses() -> Iterator[dict[str, Any]]:
    """Every response that is judged, as a record of the contract."""
    for path in (_SHARED / "corpus" / "cases.jsonl", ROOT / "tests" / "detect" / "variants.jsonl"):
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                case = json.loads(line)
                yield {key: value for key, value in case.items() if key not in _SCORING}
    texts = [piece.text for piece in clean_pieces(CLEAN, seed=3)]
    for text in texts:
        yield record(text)
        yield called({"path": "a.txt", "content": text})
    for injection in injections():
        rng = random.Random(injection.name)
        suited = [text for text in texts if injection.takes(text)]
        for _ in range(PER_INJECTION if suited else 0):
            yield injection.make(rng.choice(suited), rng)
    rng = random.Random(0)
    for _ in range(DAMAGED):
        text = damaged(rng.choice(texts), rng)
        finish = rng.choice(("stop", "stop", "length", None))
        if rng.random() < 0.3:
            yield called(
                {"path": "a.txt", "content": text}, finish=rng.choice(("tool_calls", "length"))
            )
        else:
            yield record(text, finish=finish)


def damaged(text: str, rng: random.Random) -> str:
    """The text with one to six pieces cut out, doubled, moved or overwritten."""
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.randint(1, 60))
        piece = text[at:end]
        change = rng.randrange(5)
        if change == 0:
            text = text[:at] + text[end:]
        elif change == 1:
            text = text[:end] + piece * rng.randint(1, 40) + text[end:]
        elif change == 2:
            text = text[:at] + "".join(rng.choices(_STRANGE, k=rng.randint(1, 12))) + text[at:]
        elif change == 3:
            words = piece.split(" ")
            rng.shuffle(words)
            text = text[:at] + " ".join(words) + text[end:]
        else:
            text = (
                text[:end]
                if rng.random() < 0.3
                else text + rng.choice("<`|-. ") * rng.randint(1, 80)
            )
        text = text or "-"
    return text


def verdict(judged: Judgement) -> list[Any]:
    """What is compared, as it reads back from JSON."""
    evidence = [[item.where, item.what] for item in judged.evidence]
    told = [
        judged.primary.value,
        [label.value for label in judged.also],
        judged.corrupted,
        evidence,
    ]
    return cast("list[Any]", json.loads(json.dumps(told)))


def keep(path: Path) -> int:
    count = 0
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as out:
        for response in responses():
            kept = {"response": response, "verdict": verdict(judgement_of(response))}
            out.write(json.dumps(kept) + "\n")
            count += 1
    print(f"{count} verdicts kept")
    return 0


def compare(path: Path) -> int:
    count = differ = 0
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        kept = map(json.loads, lines)
        # Some at a time, as `scan` judges them; `keep` took them one by one.
        while batch := list(islice(kept, _BATCH)):
            judged = judgements_of([item["response"] for item in batch])
            for item, now in zip(batch, map(verdict, judged), strict=True):
                count += 1
                if now != item["verdict"]:
                    differ += 1
                    if differ <= _SHOWN:
                        print(f"response {count}:\n  was {item['verdict']}\n  is  {now}")
    print(f"{count} verdicts, {differ} differ")
    return int(differ > 0)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=("keep", "compare"))
    parser.add_argument("file", type=Path)
    args = parser.parse_args()
    return (keep if args.action == "keep" else compare)(args.file)


if __name__ == "__main__":
    sys.exit(main())
