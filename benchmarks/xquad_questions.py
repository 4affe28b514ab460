"""Writes XQuAD's questions, the same in twelve languages, as `quotations.py` reads them.

Usage: python benchmarks/xquad_questions.py XQUAD OUT [--every 10]
       python benchmarks/quotations.py OUT/sites --questions OUT/questions --runs OUT/runs

XQUAD holds `xquad.de.json` and its like, of the public repository google-deepmind/xquad
(CC-BY-SA 4.0). Each language is a source and each article a page; every tenth question is taken.
Gold are the words of the answer's sentence around it: a number alone stands in many sentences.
"""

import argparse
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SENTENCE_END = re.compile(r"(?<=[.!?؟।])\s+|(?<=。)")
AROUND = 20  # characters on either side of an answer


def around(context: str, start: int, answer: str) -> str:
    """The answer, with what stands beside it in its sentence."""
    end = start + len(answer)
    ends = [0, *(found.end() for found in SENTENCE_END.finditer(context)), len(context)]
    first = max((each for each in ends if each <= start), default=0)
    last = min((each for each in ends if each >= end), default=len(context))
    return context[max(first, start - AROUND) : min(last, end + AROUND)].strip()


def page(title: str, language: str, paragraphs: list[dict[str, Any]]) -> str:
    texts = "".join(f"<p>{html.escape(each['context'])}</p>" for each in paragraphs)
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title>'
    return f'<html lang="{language}"><head>{head}</head><body><main>{texts}</main></body></html>'


def questions(articles: list[dict[str, Any]], language: str) -> Iterator[dict[str, Any]]:
    for number, article in enumerate(articles):
        for paragraph in article["paragraphs"]:
            for each in paragraph["qas"]:
                answer = each["answers"][0]
                gold = around(paragraph["context"], answer["answer_start"], answer["text"])
                yield {
                    "id": f"{language}-{each['id']}",
                    "source": f"xquad-{language}",
                    "query": each["question"],
                    "asked": "page",
                    "kind": "value",
                    "language": language,
                    "gold": [{"page": f"{number}.html", "quote": gold}],
                    "answer": answer["text"],
                }


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    text = "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in rows)
    path.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("xquad", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--every", type=int, default=10)
    given = parser.parse_args()
    files = sorted(given.xquad.glob("xquad.*.json"))
    if not files:
        parser.error(f"{given.xquad} holds no file xquad.LANGUAGE.json")
    asked: list[dict[str, Any]] = []
    sources = []
    for file in files:
        language = file.name.split(".")[1]
        articles = json.loads(file.read_text("utf-8"))["data"]
        folder = given.out / "sites" / f"xquad-{language}"
        folder.mkdir(parents=True, exist_ok=True)
        for number, article in enumerate(articles):
            text = page(f"Article {number}", language, article["paragraphs"])
            (folder / f"{number}.html").write_text(text, encoding="utf-8")
        asked += list(questions(articles, language))[:: given.every]
        sources.append({"source": folder.name, "kind": "wiki", "language": language})
    written = given.out / "questions"
    written.mkdir(parents=True, exist_ok=True)
    write_lines(written / "sources.jsonl", sources)
    write_lines(written / "xquad.jsonl", asked)
    write_lines(
        written / "xquad_wordings.jsonl", [{"id": each["id"], "phrasings": []} for each in asked]
    )
    parts = {each["source"]: "fit" for each in sources}
    (written / "split.json").write_text(json.dumps(parts), encoding="utf-8")
    print(f"{len(asked)} questions in {len(sources)} languages")


if __name__ == "__main__":
    main()
