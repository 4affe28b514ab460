"""How often the quotations of a brief hold the sentence that answers, over many sources.

Usage: python benchmarks/quotations.py SITES [--questions FOLDER] [--part fit] [--source NAME]...
       [--runs FOLDER]
       python benchmarks/quotations.py --deal [--questions FOLDER]

SITES is what `fetch_sites.py benchmarks/questions/units/sources.jsonl SITES` has brought. Each
source is served on loopback and ingested whole into a collection of its own; each of its questions
is searched for alone and with its wordings. What came back is kept below --runs, one run file a
source as `webrag eval` writes them; a source that has one is not asked again. Printed are shares:

    first, three   the first quotation holds the answer, one of the first three does
    words          the reference, in place of `first`: the sentence of the first passage with most
                   words of the question and its wordings, weighted by how rare each is
    @1, @5         the first passage holds the answer, one of the first five does
    high, right    how many are called high, and for which share of them `three` is true
    lost           `three` is true, but the confidence is called none
    claimed        of the questions that the source does not answer, called medium or high

A quotation holds the answer when the gold or an alternative is in it, or when it is part of one and
at least half as long; letters and digits are compared. A question of two parts needs one of them
where one place counts, and both where several do. The parts `fit` and `choose` are for work on the
product, `end` for one measurement after it; the first figures of `later` and `latest` were blind.
--deal gives new sources a part.
"""

import argparse
import asyncio
import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, TextIO
from urllib.parse import quote, urlsplit

from webrag.app import WebRAG
from webrag.demo import serve_static_site
from webrag.evaluation.metrics import comparison_key
from webrag.evaluation.questions import Gold, Question, RunRecord, read_run
from webrag.evaluation.runner import Evaluation, Site
from webrag.settings import load_settings

UNITS = Path(__file__).parent / "questions/units"
# To five neighbours in the order of language and kind.
DEALT = ("fit", "choose", "fit", "end", "fit")
WORDED = " with wordings"
FIGURES = ("first", "three", "words", "@1", "@5")


class Asked(Question):
    """A question with what the figures are given by; its `type` is its kind."""

    asked: str
    language: str
    source_kind: str


class Judged(NamedTuple):
    """What came back for a question: which of the figures are met, and the confidence."""

    question: Asked
    met: Mapping[str, bool]
    band: str


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def read_questions(folder: Path, kinds: Mapping[str, str]) -> list[Asked]:
    """The questions of all groups, with their wordings; `kinds` are those of the sources."""
    rows = [row for path in sorted(folder.glob("*.jsonl")) for row in lines(path)]
    wordings = {row["id"]: row["phrasings"] for row in rows if "phrasings" in row}
    questions = []
    for row in rows:
        if "query" in row:
            gold = [{**each, "alts": each.get("alternatives", [])} for each in row["gold"]]
            renamed = {"site": row["source"], "type": row["kind"], "gold": gold}
            added = {"wordings": wordings[row["id"]], "source_kind": kinds[row["source"]]}
            questions.append(Asked.model_validate({**row, **renamed, **added}))
    return questions


def deal(sources: Iterable[Mapping[str, Any]], dealt: Mapping[str, str]) -> dict[str, str]:
    """Give sources without a part one each, spread over languages and kinds."""
    new = [each for each in sources if each["source"] not in dealt]
    digest = {name: hashlib.sha256(name.encode()).digest() for name in (s["source"] for s in new)}
    new.sort(key=lambda each: (each["language"], each["kind"], digest[each["source"]]))
    given = {each["source"]: DEALT[place % len(DEALT)] for place, each in enumerate(new)}
    return {**dealt, **given}


def ask_source(questions: Sequence[Asked], folder: Path, out: Path) -> None:
    """Ingest a source and write what each question finds, alone and with its wordings."""
    pages = sorted(quote(path.relative_to(folder).as_posix()) for path in folder.rglob("*.*"))
    alone = [each.model_copy(update={"wordings": ()}) for each in questions]
    worded = [
        each.model_copy(update={"id": each.id + WORDED}) for each in questions if each.wordings
    ]
    partial = out.with_suffix(".partial")
    with serve_static_site(folder) as address, partial.open("w", encoding="utf-8") as file:
        site = Site(base_url=address, pages=tuple(pages))
        asyncio.run(ask([*alone, *worded], site, file))
    partial.replace(out)


@asynccontextmanager
async def opened(address: str, **parts: Any) -> AsyncIterator[WebRAG]:
    """Open a collection for one source, with parts of WebRAG, and drop it at the end."""
    settings = load_settings().allowing([urlsplit(address).netloc])
    own = settings.model_copy(update={"collection": f"webrag_quotations_{os.getpid()}"})
    async with WebRAG(own, **parts) as rag:
        try:
            yield rag
        finally:
            await rag.drop_collection()


async def ask(questions: Sequence[Question], site: Site, out: TextIO) -> None:
    """Ask questions about one source."""
    async with opened(site.base_url) as rag:
        run = Evaluation({questions[0].site: site}, rag, out=out, on_progress=lambda *_: None)
        await run.run_whole(questions)
    print(*run.warnings, sep="\n", end="\n" if run.warnings else "", flush=True)


def holds(gold: Gold, text: str) -> bool:
    """Tell whether a text has the gold or one of its alternatives, or at least half of it."""
    key = comparison_key(text)
    for passage in gold.passages:
        wanted = comparison_key(passage.quote)
        if wanted in key or (key in wanted and 2 * len(key) >= len(wanted)):
            return True
    return False


def found(question: Question, texts: Sequence[str]) -> bool:
    """Tell whether some texts together hold all parts of the answer."""
    gold = question.gold or ()
    return bool(gold) and all(any(holds(part, text) for text in texts) for part in gold)


def begun(question: Question, texts: Sequence[str]) -> bool:
    """Tell whether the first of some texts holds a part of the answer."""
    return any(holds(part, text) for part in question.gold or () for text in texts[:1])


def terms(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def telling_sentence(question: Question, passage: str, rarity: Mapping[str, float]) -> str:
    """The sentence of a passage with most words of the question, weighted."""
    wanted = terms(" ".join([question.query, *question.wordings]))
    sentences = re.split(r"(?<=[.!?。])\s+|\n+", passage)
    return max(sentences, key=lambda each: math.fsum(rarity[t] for t in terms(each) & wanted))


def judge(questions: Sequence[Asked], records: Mapping[str, RunRecord]) -> list[Judged]:
    """Hold what the questions about one source found against their gold."""
    passages = {result.text for record in records.values() for result in record.retrieved}
    frequency = Counter(term for passage in passages for term in terms(passage))
    rarity = {term: math.log(1 + len(passages) / count) for term, count in frequency.items()}
    judged = []
    for question in questions:
        record = records[question.id + (WORDED if question.wordings else "")]
        quotations = [each.verbatim_text for each in record.citations[:3]]
        texts = [each.text for each in record.retrieved[:5]]
        met = {
            "first": begun(question, quotations),
            "three": found(question, quotations),
            "words": begun(
                question, [telling_sentence(question, each, rarity) for each in texts[:1]]
            ),
            "@1": begun(question, texts),
            "@5": found(question, texts),
        }
        judged.append(Judged(question, met, record.confidence_band))
    return judged


def share(values: Iterable[bool]) -> str:
    return f"{fmean(known):.2f}" if (known := list(values)) else "-"


def row(name: str, judged: Sequence[Judged]) -> str:
    answerable = [each for each in judged if each.question.gold]
    high = [each.met["three"] for each in answerable if each.band == "high"]
    claimed = [each.band in ("medium", "high") for each in judged if not each.question.gold]
    columns = [
        *(share(each.met[figure] for each in answerable) for figure in FIGURES),
        str(len(high)),
        share(high),
        share(each.met["three"] and each.band == "none" for each in answerable),
        f"{sum(claimed)}/{len(claimed)}",
    ]
    return f"{name:<24}{len(answerable):>5}" + "".join(f"{each:>8}" for each in columns)


def table(title: str, judged: Sequence[Judged]) -> None:
    names = (*FIGURES, "high", "right", "lost", "claimed")
    print(f"\n{title:<24}{'n':>5}" + "".join(f"{each:>8}" for each in names))
    print(row("all", judged))
    for field in ("source_kind", "type", "asked", "language", "site"):
        print(f"by {field}")
        for value in sorted({getattr(each.question, field) for each in judged}):
            chosen = [each for each in judged if getattr(each.question, field) == value]
            print(row(f"  {value}", chosen))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sites", type=Path, nargs="?")
    parser.add_argument("--questions", type=Path, default=UNITS)
    parser.add_argument("--part", action="append", choices=sorted({*DEALT, "later", "latest"}))
    parser.add_argument("--source", action="append")
    parser.add_argument("--runs", type=Path, default=Path("quotations"))
    parser.add_argument("--deal", action="store_true")
    given = parser.parse_args()
    sources = lines(given.questions / "sources.jsonl")
    split = given.questions / "split.json"
    parts = json.loads(split.read_text("utf-8")) if split.is_file() else {}
    if given.deal:
        split.write_text(json.dumps(deal(sources, parts), indent=1) + "\n", encoding="utf-8")
        return
    if given.sites is None:
        parser.error("name the folder of sites.")
    questions = read_questions(given.questions, {each["source"]: each["kind"] for each in sources})
    chosen = {name for name, part in parts.items() if part in (given.part or ("fit",))}
    given.runs.mkdir(parents=True, exist_ok=True)
    alone: list[Judged] = []
    worded: list[Judged] = []
    for name in sorted(chosen & set(given.source or chosen)):
        asked = [each for each in questions if each.site == name]
        run = given.runs / f"{name}.jsonl"
        if not run.is_file():
            ask_source(asked, given.sites / name, run)
        records = read_run(run)
        alone += judge([each.model_copy(update={"wordings": ()}) for each in asked], records)
        worded += judge(asked, records)
        print(f"{name}: {len(asked)} questions", flush=True)
    table("alone", alone)
    table("with wordings", worded)


if __name__ == "__main__":
    main()
