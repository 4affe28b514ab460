"""How often the quotations of a brief hold the sentence that answers, over many sources.

Usage: python benchmarks/quotations.py SITES [--questions FOLDER] [--part fit] [--source NAME]...
       [--runs FOLDER]
       python benchmarks/quotations.py --deal [--questions FOLDER]

SITES is what `fetch_sites.py benchmarks/questions/units/sources.jsonl SITES` has brought. Each source
is served on loopback and ingested whole into a collection of its own; each of its questions is
searched for alone and with its wordings. What came back is kept in a run file a source below --runs,
as `webrag eval` writes them; a source that has one is not asked again. Printed are shares:

    first, three   the first quotation holds the answer, one of the first three does
    words          the reference, in place of `first`: the sentence of the first passage with most
                   words of the question and its wordings, each weighted by how rare it is
    @1, @5         the first passage holds the answer, one of the first five does
    high, right    how many are called high, and for which share of them `three` is true
    lost           `three` is true, but the confidence is called none
    claimed        of the questions that the source does not answer, called medium or high

A quotation holds the answer when the gold text or an accepted alternative is in it, or when it is
part of one and at least half as long; letters and digits are compared. A question of two parts
needs one of them in a first place and both where several places count. The parts `fit` and
`choose` are for work on the product; `end` is for one measurement when that is done. --deal gives
sources without a part one and leaves the others as they are.
"""

import argparse
import asyncio
import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any
from urllib.parse import urlsplit

from webrag.app import WebRAG
from webrag.evaluation.metrics import comparison_key
from webrag.evaluation.questions import Gold, Question
from webrag.evaluation.runner import Evaluation, Site
from webrag.evaluation.runs import RunRecord, read_run
from webrag.settings import Settings, load_settings
from webrag.static_site import serve_static_site

UNITS = Path(__file__).parent / "questions/units"
PARTS = ("fit", "choose", "end")
# To five neighbours in the order of language and kind.
DEALT = ("fit", "choose", "fit", "end", "fit")
WORDED = " with wordings"


class Asked(Question):
    """A question with what the figures are given by; its `type` is its kind."""

    asked: str
    language: str
    source_kind: str


@dataclass(frozen=True)
class Judged:
    """What came back for a question, held against its gold."""

    question: Asked
    band: str
    first: bool
    three: bool
    words: bool
    passage_1: bool
    passage_5: bool


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def question_files(folder: Path) -> list[Path]:
    """The files of questions in a folder, without those of wordings and sources."""
    named = (path for path in sorted(folder.glob("*.jsonl")) if path.name != "sources.jsonl")
    return [path for path in named if not path.stem.endswith("_wordings")]


def served_page(page: str) -> str:
    """Where a page of a source is served: unpacked, and plain text under a name that says so."""
    name = page.removesuffix(".gz")
    return name if re.search(r"\.(html?|xhtml|txt|md|pdf|odt|docx|csv)$", name) else f"{name}.txt"


def read_questions(folder: Path, kinds: Mapping[str, str]) -> list[Asked]:
    """The questions of all groups, with their wordings.

    Args:
        folder: Files of questions and of wordings.
        kinds: Source to its kind.
    """
    questions = []
    for path in question_files(folder):
        worded = path.with_name(f"{path.stem}_wordings.jsonl")
        wordings = {each["id"]: each["phrasings"] for each in lines(worded)}
        for row in lines(path):
            gold = [{**each, "alts": each.get("alternatives", [])} for each in row["gold"]]
            renamed = {"site": row["source"], "type": row["kind"], "gold": gold}
            added = {"wordings": wordings[row["id"]], "source_kind": kinds[row["source"]]}
            questions.append(Asked.model_validate({**row, **renamed, **added}))
    return questions


def deal(sources: Iterable[Mapping[str, Any]], dealt: Mapping[str, str]) -> dict[str, str]:
    """Give each source a part of the set, spread over kinds and languages.

    Args:
        sources: Those in `dealt` keep their part.
        dealt: Source to its part.
    """

    def order(source: Mapping[str, Any]) -> tuple[str, str, str]:
        digest = hashlib.sha256(source["source"].encode()).hexdigest()
        return source["language"], source["kind"], digest

    new = sorted((each for each in sources if each["source"] not in dealt), key=order)
    given = {each["source"]: DEALT[place % len(DEALT)] for place, each in enumerate(new)}
    return {**dealt, **given}


async def ask(questions: Sequence[Asked], folder: Path, out: Path, settings: Settings) -> None:
    """Ingest a source and write what each question finds, alone and with its wordings."""
    pages = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))
    alone = [each.model_copy(update={"wordings": ()}) for each in questions]
    worded = [each.model_copy(update={"id": each.id + WORDED}) for each in questions]
    partial = out.with_suffix(".partial")
    with serve_static_site(folder) as address, partial.open("w", encoding="utf-8") as file:
        own = settings.allowing([urlsplit(address).netloc])
        own = own.model_copy(update={"collection": f"webrag_quotations_{os.getpid()}"})
        async with WebRAG(own) as rag:

            @asynccontextmanager
            async def open_fresh() -> AsyncIterator[WebRAG]:
                await rag.clear()
                yield rag

            site = Site(base_url=address, pages=tuple(pages))
            run = Evaluation(
                {folder.name: site}, open_fresh=open_fresh, out=file, on_progress=lambda *_: None
            )
            try:
                await run.run_whole([*alone, *worded])
            finally:
                await rag.drop_collection()
    for warning in run.warnings:
        print(f"{folder.name}: {warning}", flush=True)
    partial.replace(out)


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


def telling_sentence(question: Question, passage: str, weight: Callable[[str], float]) -> str:
    """The sentence of a passage with most words of the question, weighted."""
    wanted = terms(" ".join([question.query, *question.wordings]))
    sentences = re.split(r"(?<=[.!?。])\s+|\n+", passage)
    return max(sentences, key=lambda each: sum(map(weight, sorted(terms(each) & wanted))))


def judge(questions: Sequence[Asked], records: Mapping[str, RunRecord]) -> list[Judged]:
    """Hold what one source's questions found against their gold."""
    passages = {result.text for record in records.values() for result in record.retrieved}
    frequency = Counter(term for passage in passages for term in terms(passage))
    judged = []
    for question in questions:
        record = records[question.id]
        quotations = [each.verbatim_text for each in record.citations[:3]]
        texts = [each.text for each in record.retrieved[:5]]
        telling = telling_sentence(
            question, texts[0] if texts else "", lambda t: math.log(1 + len(passages) / frequency[t])
        )
        judged.append(
            Judged(
                question=question,
                band=record.confidence_band,
                first=begun(question, quotations),
                three=found(question, quotations),
                words=begun(question, [telling]),
                passage_1=begun(question, texts),
                passage_5=found(question, texts),
            )
        )
    return judged


def share(values: Iterable[bool]) -> str:
    known = list(values)
    return f"{fmean(known):.2f}" if known else "-"


def row(name: str, judged: Sequence[Judged]) -> str:
    answerable = [each for each in judged if each.question.gold]
    high = [each for each in answerable if each.band == "high"]
    claims = [each.band in ("medium", "high") for each in judged if not each.question.gold]
    columns = [
        *(share(getattr(e, name) for e in answerable) for name in ("first", "three", "words")),
        *(share(getattr(e, name) for e in answerable) for name in ("passage_1", "passage_5")),
        f"{len(high)}",
        share(each.three for each in high),
        share(each.three and each.band == "none" for each in answerable),
        f"{sum(claims)}/{len(claims)}",
    ]
    return f"{name:<24}{len(answerable):>5}" + "".join(f"{each:>8}" for each in columns)


def table(title: str, judged: Sequence[Judged]) -> None:
    names = ("first", "three", "words", "@1", "@5", "high", "right", "lost", "claimed")
    print(f"\n{title:<24}{'n':>5}" + "".join(f"{each:>8}" for each in names))
    print(row("all", judged))
    for field in ("source_kind", "type", "asked", "language", "site"):
        values = Counter(getattr(each.question, field) for each in judged)
        print(f"by {field.removeprefix('source_')}")
        for value in sorted(values):
            chosen = [each for each in judged if getattr(each.question, field) == value]
            print(row(f"  {value}", chosen))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sites", type=Path, nargs="?")
    parser.add_argument("--questions", type=Path, default=UNITS)
    parser.add_argument("--part", action="append", choices=PARTS)
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
    wanted = [name for name, part in parts.items() if part in (given.part or ("fit",))]
    given.runs.mkdir(parents=True, exist_ok=True)
    alone: list[Judged] = []
    worded: list[Judged] = []
    for name in (each for each in wanted if each in (given.source or wanted)):
        asked = [each for each in questions if each.site == name]
        out = given.runs / f"{name}.jsonl"
        if not out.is_file():
            asyncio.run(ask(asked, given.sites / name, out, load_settings()))
        records = read_run(out)
        alone += judge([each.model_copy(update={"wordings": ()}) for each in asked], records)
        told = {each.id: records[each.id + WORDED] for each in asked}
        worded += judge(asked, told)
        print(f"{name}: {len(asked)} questions", flush=True)
    table("alone", alone)
    table("with wordings", worded)


if __name__ == "__main__":
    main()
