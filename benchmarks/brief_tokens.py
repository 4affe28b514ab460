"""What a brief costs its reader, and what it holds for that: tokens, evidence, citations.

Usage: python benchmarks/brief_tokens.py QUESTIONS SITE_ROOT [--limit N]
           [--setting whole|seed|page] [--wordings FILE] [--max-tokens N] [--keep FILE]
           [--kept FILE] [--uncut] [--print ID]

QUESTIONS has one question a line, SITE_ROOT one folder of HTML files per site, as for
`webrag eval`. Each question is asked as a model asks it: with a search of its whole site, with a
deep answer from its seed page, and with an answer from the page that holds its gold, each from an
empty corpus. Prints for each setting the tokens of the brief (median, p90, apart for questions
without an answer), which share of the gold quotations stands in its evidence, and which share of
those among its first three citations. With --uncut it adds which share of the gold that
the same evidence holds when nothing is left out for being less relevant, within the ceiling of any
response, is still there, and each site apart. With --keep the
results are written down, with --kept they are read instead of asking again: what is measured then
is the presentation alone. --print shows the briefs of one question.
"""

import argparse
import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any

from webrag import WebRAG
from webrag.evaluation.metrics import comparison_key
from webrag.evaluation.questions import Gold, Question, load_questions, with_wordings
from webrag.evaluation.runner import Evaluation, Site
from webrag.orchestration.models import OrchestrationResult
from webrag.presentation.brief.sections import cited_quotes
from webrag.settings import load_settings
from webrag.static_site import serve_static_site

NONCE = "5f3a9c01"
FIRST_CITATIONS = 3
SETTINGS = {"whole": "search", "seed": "deep answer", "page": "answer on the page"}

Kept = dict[tuple[str, str], OrchestrationResult]


class Keeping(WebRAG):
    """Keeps every result whose evidence is asked for, in order."""

    results: list[OrchestrationResult]

    def evidence(self, result: OrchestrationResult, **options: Any) -> Any:
        if not options.get("every_passage"):
            self.results.append(result)
        return super().evidence(result, **options)


@dataclass
class Judged:
    """One brief.

    Attributes:
        shown: For each gold quotation, whether its evidence holds it.
        cited: Whether one of its first citations does.
        first: Whether its first citation does.
        uncut: Whether the evidence holds it when only the ceiling of a response ends it.
    """

    question: Question
    tokens: int
    text: str
    shown: list[bool]
    cited: list[bool]
    first: list[bool]
    uncut: list[bool]


async def ask(
    questions: Sequence[Question], sites: Mapping[str, Site], rag: Keeping, setting: str
) -> Kept:
    @asynccontextmanager
    async def open_fresh() -> AsyncIterator[WebRAG]:
        await rag.clear()
        yield rag

    run = Evaluation(sites, open_fresh=open_fresh, out=StringIO(), on_progress=lambda *_: None)
    rag.results = []
    if setting == "whole":
        records = await run.run_whole(questions)
    elif setting == "seed":
        records = await run.run_seed(questions, deep=True)
    else:
        records = await run.run_seed([_on_its_page(each) for each in questions], deep=False)
    answered = [record.id for record in records if record.error is None]
    return {(setting, id): result for id, result in zip(answered, rag.results, strict=True)}


def _on_its_page(question: Question) -> Question:
    pages = [gold.page for gold in question.gold or ()]
    return question.model_copy(update={"seed_url": pages[0]}) if pages else question


def judge(
    rag: WebRAG,
    question: Question,
    result: OrchestrationResult,
    most: int | None,
    *,
    with_uncut: bool = False,
) -> Judged:
    options: dict[str, Any] = {} if most is None else {"max_tokens": most}
    text = rag.brief(result, include_guide=True, nonce=NONCE, **options)
    blocks = rag.evidence(result, include_guide=True, **options)
    shown = [comparison_key(block.text) for block in blocks]
    uncut = rag.evidence(result, every_passage=True) if with_uncut else []
    everything = [comparison_key(block.text) for block in uncut]
    cited = [comparison_key(each.citation.verbatim_text) for each in cited_quotes(blocks)]
    gold = question.gold or ()
    return Judged(
        question,
        rag.count_tokens(text),
        text,
        [_held(each, shown) for each in gold],
        [_held(each, cited[:FIRST_CITATIONS]) for each in gold],
        [_held(each, cited[:1]) for each in gold],
        [_held(each, everything) for each in gold],
    )


def _held(gold: Gold, texts: Sequence[str]) -> bool:
    keys = [comparison_key(passage.quote) for passage in gold.passages]
    return any(key in text for key in keys for text in texts)


def report(name: str, judged: Sequence[Judged]) -> None:
    tokens = sorted(each.tokens for each in judged)
    if not tokens:
        return
    pairs = [
        pair for each in judged for pair in zip(each.shown, each.cited, each.first, strict=True)
    ]
    p90 = tokens[max(0, round(len(tokens) * 0.9) - 1)]
    line = f"{name:24} n {len(tokens):3}  tokens {median(tokens):7,.0f}  p90 {p90:7,}"
    if pairs:
        held = [pair for pair in pairs if pair[0]]
        cited, first = sum(pair[1] for pair in held), sum(pair[2] for pair in held)
        line += (
            f"  gold in evidence {len(held)} of {len(pairs)} ({len(held) / len(pairs):.3f})"
            f"  of these cited among the first three {cited} ({cited / max(1, len(held)):.3f}),"
            f" first {first}"
        )
    uncut = [here for each in judged for here in zip(each.uncut, each.shown, strict=True)]
    if held := [shown for whole, shown in uncut if whole]:
        line += f"  kept of the uncut {sum(held)} of {len(held)} ({sum(held) / len(held):.3f})"
    print(line, flush=True)


def show(setting: str, judged: Sequence[Judged]) -> None:
    # A question counts as answerable where nobody said that it is not.
    hopeless = [each for each in judged if each.question.gold is not None and not each.shown]
    hopeful = [each for each in judged if each not in hopeless]
    report(setting, hopeful)
    if any(each.uncut and any(each.uncut) for each in judged):
        for site in dict.fromkeys(each.question.site for each in judged):
            report(f"  {site}", [each for each in hopeful if each.question.site == site])
    report(f"{setting}, unanswerable", hopeless)


async def measure(arguments: argparse.Namespace) -> None:
    questions = load_questions(arguments.questions, limit=arguments.limit)
    if arguments.wordings is not None:
        questions = with_wordings(questions, arguments.wordings)
    settings = load_settings(None, embedding_provider="bundled").allowing(["127.0.0.1"])
    collection = f"webrag_brief_tokens_{os.getpid()}"
    settings = settings.model_copy(update={"collection": collection})
    kept = _read(arguments.kept) if arguments.kept else {}
    with ExitStack() as stack:
        sites = {}
        for name in dict.fromkeys(question.site for question in questions):
            folder = arguments.site_root / name
            pages = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.htm*"))
            base = stack.enter_context(serve_static_site(folder))
            sites[name] = Site(base_url=base, pages=tuple(pages))
        async with Keeping(settings) as rag:
            rag.results = []
            try:
                for setting in arguments.setting:
                    found = kept or await ask(questions, sites, rag, setting)
                    if arguments.keep:
                        _write(arguments.keep, found)
                    judged = [
                        judge(
                            rag,
                            question,
                            found[setting, question.id],
                            arguments.max_tokens,
                            with_uncut=arguments.uncut,
                        )
                        for question in questions
                        if (setting, question.id) in found
                    ]
                    show(SETTINGS[setting], judged)
                    for each in judged:
                        if each.question.id in arguments.print:
                            print(each.text)
            finally:
                await rag.drop_collection()


def _write(path: Path, found: Kept) -> None:
    with path.open("a", encoding="utf-8") as file:
        for (setting, name), result in found.items():
            line = {"setting": setting, "id": name, "result": result.model_dump(mode="json")}
            file.write(json.dumps(line) + "\n")


def _read(path: Path) -> Kept:
    lines = map(json.loads, path.read_text("utf-8").splitlines())
    return {
        (line["setting"], line["id"]): OrchestrationResult.model_validate(line["result"])
        for line in lines
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("questions", type=Path)
    parser.add_argument("site_root", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--setting", action="append", choices=tuple(SETTINGS))
    parser.add_argument("--wordings", type=Path)
    parser.add_argument("--max-tokens", type=int)
    parser.add_argument("--uncut", action="store_true")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--print", action="append", default=[])
    arguments = parser.parse_args()
    arguments.setting = arguments.setting or list(SETTINGS)
    asyncio.run(measure(arguments))


if __name__ == "__main__":
    main()
