"""Asks every question of a docsqa set in extractive mode and judges the answers.

.venv/bin/python benchmarks/answers_check.py QUESTIONS SITE_ROOT [--data-dir DIR] [--show N]

QUESTIONS is a JSON Lines file as for `webrag eval`, SITE_ROOT a folder with one folder of pages per
site. Each site is ingested whole into a collection of its own, once per data folder. Printed are:
the share of answers that hold the gold evidence, the share of citations that hold a gold quote or
stand on a gold page, how often answers of each confidence are right, and what became of the
questions that the sites do not answer.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path
from urllib.parse import unquote, urlsplit

from webrag import WebRAG, load_settings
from webrag.answering.models import ManagerResult
from webrag.evaluation.metrics import comparison_key
from webrag.evaluation.questions import Question, load_questions
from webrag.static_site import serve_static_site


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("questions", type=Path)
    parser.add_argument("site_root", type=Path)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--show", type=int, default=0, help="print this many answers")
    parser.add_argument("--only", default="", help="only questions whose id begins so")
    parser.add_argument("--json", type=Path, help="write one line per answer")
    args = parser.parse_args()
    questions = [q for q in load_questions(args.questions) if q.id.startswith(args.only)]
    with tempfile.TemporaryDirectory() as folder:
        answers = await ask_all(questions, args.site_root, args.data_dir or Path(folder))
    if args.json:
        lines = [json.dumps({"id": q.id, **a.model_dump(mode="json")}) for q, a in answers]
        args.json.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for question, answer in answers[: args.show]:
        print(f"--- {question.id}: {question.query}\n{answer.confidence:.2f} {answer.final_reason}")
        print(answer.answer, "\n")
    report(answers)


async def ask_all(
    questions: list[Question], root: Path, data_dir: Path
) -> list[tuple[Question, ManagerResult]]:
    answers = []
    for site in dict.fromkeys(question.site for question in questions):
        settings = load_settings(data_dir=data_dir, collection=f"docsqa_{site}")
        with serve_static_site(root / site) as base:
            async with WebRAG(settings.allowing([urlsplit(base).netloc])) as rag:
                await ingest(rag, root / site, base)
                mine = [question for question in questions if question.site == site]
                answers.extend([(question, await checked(rag, question)) for question in mine])
    return answers


async def ingest(rag: WebRAG, folder: Path, base: str) -> None:
    if (await rag.status(include_urls=False)).documents:
        return
    pages = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.html"))  # noqa: ASYNC240  nothing else runs
    await rag.ingest([base + page for page in pages])


async def checked(rag: WebRAG, question: Question) -> ManagerResult:
    answer = await rag.ask(question.query)
    for citation in answer.citations:
        stored = await rag.markdown(citation.source_url) or ""
        assert stored[citation.char_start : citation.char_end] == citation.verbatim_text
    assert all(part.citations for part in answer.parts)
    return answer


def gold_share(question: Question, answer: ManagerResult) -> float:
    said = [comparison_key(part.text) for part in answer.parts]
    found = [
        any(comparison_key(p.quote) in text for p in gold.passages for text in said)
        for gold in question.gold or ()
    ]
    return sum(found) / len(found)


def on_gold(question: Question, answer: ManagerResult) -> list[bool]:
    """Of each citation: whether it holds a gold quote or stands on a gold page."""
    passages = [p for gold in question.gold or () for p in gold.passages]
    return [
        any(
            unquote(urlsplit(c.source_url).path).lstrip("/") == p.page
            or comparison_key(p.quote) in comparison_key(c.verbatim_text)
            for p in passages
        )
        for c in answer.citations
    ]


def report(answers: list[tuple[Question, ManagerResult]]) -> None:
    judged = [(q, a) for q, a in answers if q.gold]
    shares = [gold_share(q, a) for q, a in judged]
    precise = [hit for q, a in judged for hit in on_gold(q, a)]
    firsts = [on_gold(q, a)[0] for q, a in judged if a.citations]
    words = [sum(len(p.text.split()) for p in a.parts) for _, a in judged]
    print(f"answerable questions                    {len(judged)}")
    print(f"gold evidence in the answer, mean       {statistics.fmean(shares):.3f}")
    print(f"  all of it                             {mean(s == 1 for s in shares):.3f}")
    print(f"citations on a gold page or quote       {mean(precise):.3f} of {len(precise)}")
    print(f"  the first one of each answer          {mean(firsts):.3f}")
    print(f"words of an answer, median              {statistics.median(words):.0f}")
    print(f"milliseconds, median                    {median_ms(answers):.0f}")
    print("by type      " + by_type(judged, shares))
    print("confidence        answers  gold in it  first citation on a gold page  unanswerable")
    for low, high in ((0.8, 1.01), (0.7, 0.8), (0.5, 0.7), (0.3, 0.5), (0.0, 0.3)):
        here = [(q, a) for q, a in judged if low <= a.confidence < high]
        lost = sum(low <= a.confidence < high for q, a in answers if not q.gold)
        held = mean(gold_share(q, a) > 0 for q, a in here)
        page = mean(any(on_gold(q, a)[:1]) for q, a in here)
        print(f"{low:.1f} to {min(high, 1):.1f} {len(here):14} {held:11.2f} {page:20.2f} {lost:22}")
    print("unanswerable: " + outcomes(answers))


def by_type(judged: list[tuple[Question, ManagerResult]], shares: list[float]) -> str:
    groups: dict[str, list[float]] = defaultdict(list)
    for (question, _), share in zip(judged, shares, strict=True):
        groups[question.type].append(share)
    return ", ".join(f"{name} {statistics.fmean(each):.2f}" for name, each in groups.items())


def outcomes(answers: list[tuple[Question, ManagerResult]]) -> str:
    counts: dict[str, int] = defaultdict(int)
    for question, answer in answers:
        if not question.gold:
            counts[answer.final_reason] += 1
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none asked"


def mean(values: object) -> float:
    listed = [float(value) for value in values]  # type: ignore[attr-defined]
    return statistics.fmean(listed) if listed else float("nan")


def median_ms(answers: list[tuple[Question, ManagerResult]]) -> float:
    return statistics.median(answer.total_ms for _, answer in answers)


if __name__ == "__main__":
    asyncio.run(main())
