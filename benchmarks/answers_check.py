"""Asks every question of a docsqa set in extractive mode and judges the answers.

.venv/bin/python benchmarks/answers_check.py QUESTIONS SITE_ROOT [--data-dir DIR] [--show N]
    [--wordings [FILE]] [--json OUT] [--before OUT]

QUESTIONS is a JSON Lines file as for `webrag eval`, SITE_ROOT a folder with one folder of pages per
site. Each site is ingested whole into a collection of its own, once per data folder. For
questions/manuals.jsonl unpack Debian 12's cmake-doc, ffmpeg-doc, gnuplot-doc, postfix-doc and
borgbackup-doc into one folder (`dpkg-deb -x`) and give its usr/share/doc.

With --wordings each question is asked with its own wordings, or with those of a file. Printed are:
how many answers of each band are right (all of the gold evidence), half right (some of it) or
wrong, the share of citations that hold a gold quote or stand on a gold page, and what became of
the questions that the sites do not answer; with --before also those of an earlier --json file.
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
from webrag.evaluation.questions import Question, load_questions, with_wordings
from webrag.static_site import serve_static_site

BANDS = {
    "high": "confidence_high",
    "medium": "confidence_medium_caveated",
    "low": "confidence_low_partial",
    "none": "confidence_too_low_clarify",
}
VERDICTS = ("right", "half", "wrong")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("questions", type=Path)
    parser.add_argument("site_root", type=Path)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--show", type=int, default=0, help="print this many answers")
    parser.add_argument("--only", default="", help="only questions whose id begins so")
    parser.add_argument("--wordings", nargs="?", const="", help="file of wordings; none: their own")
    parser.add_argument("--json", type=Path, help="write one line per answer")
    parser.add_argument("--before", type=Path, help="such a file, to compare with")
    args = parser.parse_args()
    questions = [q for q in load_questions(args.questions) if q.id.startswith(args.only)]
    if args.wordings:
        questions = with_wordings(questions, Path(args.wordings))
    elif args.wordings is None:
        questions = [q.model_copy(update={"wordings": ()}) for q in questions]
    with tempfile.TemporaryDirectory() as folder:
        answers = await ask_all(questions, args.site_root, args.data_dir or Path(folder))
    if args.json:
        lines = [json.dumps({"id": q.id, **a.model_dump(mode="json")}) for q, a in answers]
        args.json.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for question, answer in answers[: args.show]:
        print(f"--- {question.id}: {question.query}\n{answer.confidence:.2f} {answer.final_reason}")
        print(answer.answer, "\n")
    if args.before:
        print("before:")
        report(earlier(questions, args.before))
        print("now:")
    report(answers)


def earlier(questions: list[Question], path: Path) -> list[tuple[Question, ManagerResult]]:
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    known = {line.pop("id"): ManagerResult.model_validate(line) for line in lines}
    return [(question, known[question.id]) for question in questions if question.id in known]


async def ask_all(
    questions: list[Question], root: Path, data_dir: Path
) -> list[tuple[Question, ManagerResult]]:
    answers = []
    for site in dict.fromkeys(question.site for question in questions):
        settings = load_settings(data_dir=data_dir, collection=collection_of(site))
        with serve_static_site(root / site) as base:
            async with WebRAG(settings.allowing([urlsplit(base).netloc])) as rag:
                await ingest(rag, root / site, base)
                mine = [question for question in questions if question.site == site]
                answers.extend([(question, await checked(rag, question)) for question in mine])
    return answers


def collection_of(site: str) -> str:
    return "docsqa_" + "".join(char if char.isalnum() else "_" for char in site)


async def ingest(rag: WebRAG, folder: Path, base: str) -> None:
    if (await rag.status(include_urls=False)).documents:
        return
    paths = folder.rglob("*.html")  # noqa: ASYNC240  nothing else runs
    # FFmpeg's `-all` pages hold all others once more.
    pages = sorted(
        each.relative_to(folder).as_posix() for each in paths if "-all." not in each.name
    )
    await rag.ingest([base + page for page in pages])


async def checked(rag: WebRAG, question: Question) -> ManagerResult:
    answer = await rag.ask(question.query, wordings=question.wordings)
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


def verdict(share: float) -> str:
    return "right" if share == 1 else "half" if share else "wrong"


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
    print("band     answers  right  half  wrong  gold in it  first on a gold page  unanswerable")
    for name, reason in BANDS.items():
        here = [(q, a) for q, a in judged if a.final_reason == reason]
        counts = [sum(verdict(gold_share(q, a)) == each for q, a in here) for each in VERDICTS]
        lost = sum(a.final_reason == reason for q, a in answers if not q.gold)
        held = mean(gold_share(q, a) > 0 for q, a in here)
        page = mean(any(on_gold(q, a)[:1]) for q, a in here)
        row = f"{counts[0]:7}{counts[1]:6}{counts[2]:7}{held:12.2f}{page:22.2f}{lost:14}"
        print(f"{name:8}{len(here):8}{row}")
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
