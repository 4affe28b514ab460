"""Puts typing errors into the questions of a set, for `webrag eval`.

.venv/bin/python benchmarks/typing_errors.py QUESTIONS SEED > typos.jsonl

One or two words of each question get one error each: two letters swapped, one lost, added or
changed. Words that only make a question, names and code stay as they are.
"""

import argparse
import json
import random
import re
import string
from pathlib import Path

from webrag.lexical.analysis import QUESTION_STOPWORDS

WORD = re.compile(r"(?<![\w'-])[A-Za-z]{4,}(?![\w'-])")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("questions", type=Path)
    parser.add_argument("seed", type=int)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    for line in args.questions.read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        question["query"] = with_errors(question["query"], rng)
        print(json.dumps(question, ensure_ascii=False))


def with_errors(text: str, rng: random.Random) -> str:
    words = [m for m in WORD.finditer(text) if m[0].lower() not in QUESTION_STOPWORDS]
    chosen = rng.sample(words, min(len(words), rng.choice([1, 2])))
    for match in sorted(chosen, key=lambda each: -each.start()):
        text = text[: match.start()] + with_error(match[0], rng) + text[match.end() :]
    return text


def with_error(word: str, rng: random.Random) -> str:
    while True:
        kind, at = rng.choice(["swap", "drop", "add", "change"]), rng.randrange(len(word))
        head, tail = word[:at], word[at:]
        if kind == "swap":
            changed = head + tail[1:2] + tail[0] + tail[2:]
        elif kind == "drop":
            changed = head + tail[1:]
        else:
            letter = rng.choice(string.ascii_lowercase)
            changed = head + letter + (tail if kind == "add" else tail[1:])
        if changed != word:
            return changed


if __name__ == "__main__":
    main()
