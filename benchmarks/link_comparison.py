"""Which pages each link signal finds: following links alone, without judging what they say.

Usage: python benchmarks/link_comparison.py QUESTIONS SITE_ROOT [--limit N]

Every page below SITE_ROOT is fetched and indexed once, into a temporary collection. From its seed
page each question then follows the best links in rounds as large as the loop's, but without
reranking and stop rules; links to pages that are not there are dropped beforehand. Printed is the
share of the evidence whose page, or one that says the same, is reached after each round, overall
and by site: with all signals, without each of them, and with other wordings of the question.
"""

import argparse
import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import fmean
from urllib.parse import urljoin

from expansion_comparison import ingest, pages_below
from site_replay import SEEN, ReplayAcquirer, ReplayCorpus
from typing_extensions import override

from webrag.corpus.models import LinkCandidate
from webrag.corpus.schema import drop_collection
from webrag.embedding.bundled import BundledEmbedding
from webrag.evaluation.questions import Question, load_questions
from webrag.ingestion.addresses import site_of
from webrag.ingestion.files.access import FileAccess
from webrag.orchestration.config import LINK_SIGNALS, ExpansionConfig
from webrag.orchestration.links.expander import LinkExpander
from webrag.orchestration.links.rules import LinkScope
from webrag.orchestration.question.analyzer import QueryAnalyzer
from webrag.settings import Settings, load_settings
from webrag.static_site import serve_static_site
from webrag.wiring.assembly import Parts, assemble

ROUNDS = (6, 4)
PAGES = sum(ROUNDS)
Reached = dict[int, float]


class LiveCorpus(ReplayCorpus):
    """Knows no link that leads nowhere."""

    alive: frozenset[str] = frozenset()

    @override
    async def links(self, urls: Sequence[str]) -> list[LinkCandidate]:
        return [link for link in await super().links(urls) if link.url in self.alive]


class Bench:
    """The stored sites and a way to follow their links."""

    def __init__(self, parts: Parts, bases: Mapping[str, str]) -> None:
        self._bases = bases
        self._encoder = BundledEmbedding()
        self._corpus = LiveCorpus(parts.database)
        self._acquirer = ReplayAcquirer(parts.corpus)
        self._analyzer = QueryAnalyzer(mode="rule_based")

    async def prepare(self) -> None:
        sites = [site_of(base) for base in self._bases.values()]
        SEEN.set({})
        stored = await super(ReplayCorpus, self._corpus).urls_in_scope(sites)
        LiveCorpus.alive = frozenset(stored[0])

    async def queries(self, question: Question, *, reworded: bool) -> list[str]:
        analysis, _ = await self._analyzer.analyze(question.query, use_model=False)
        queries = list(dict.fromkeys((*analysis.sub_queries, question.query)))
        if reworded:
            offered, _ = await self._analyzer.alternatives(
                question.query, analysis, tried=queries, reason=""
            )
            queries += offered
        return queries

    async def reached(
        self, question: Question, weights: Mapping[str, float], *, reworded: bool = False
    ) -> Reached:
        seed = urljoin(self._bases[question.site], question.seed_url)
        config = ExpansionConfig(signal_weights=dict(weights))
        expander = LinkExpander(self._acquirer, self._corpus, self._encoder, config)
        queries, fetched, found = await self.queries(question, reworded=reworded), [], {}
        SEEN.set({seed: 0})
        for size in ROUNDS:
            frontier = await expander.frontier(
                [seed, *fetched],
                queries,
                seeds=[seed],
                scope=LinkScope.of("same_site", [seed]),
                known=set(SEEN.get()),
            )
            chosen = [each for each in frontier.candidates if each.url in LiveCorpus.alive][:size]
            fetched += [candidate.url for candidate in chosen]
            SEEN.get().update((candidate.url, candidate.depth) for candidate in chosen)
            found[sum(ROUNDS[: len(found) + 1])] = gold_share(question, [seed, *fetched])
        return found


def gold_share(question: Question, urls: Sequence[str]) -> float:
    return fmean(
        any(url.endswith("/" + passage.page) for url in urls for passage in gold.passages)
        for gold in question.gold or ()
    )


def report(name: str, questions: Sequence[Question], reached: Sequence[Reached]) -> None:
    sites = dict.fromkeys(question.site for question in questions)
    shares = " ".join(
        f"{site} "
        f"{fmean(r[PAGES] for q, r in zip(questions, reached, strict=True) if q.site == site):.3f}"
        for site in sites
    )
    means = " ".join(f"{fmean(each[count] for each in reached):.3f}" for count in reached[0])
    print(f"{name:22} {means}   after {PAGES}: {shares}", flush=True)


async def show(bench: Bench, questions: Sequence[Question]) -> None:
    await bench.prepare()
    variants = {"all signals": dict(LINK_SIGNALS)}
    for signal in LINK_SIGNALS:
        variants[f"without {signal}"] = {**LINK_SIGNALS, signal: 0.0}
    for name, weights in variants.items():
        report(name, questions, [await bench.reached(each, weights) for each in questions])
    reworded = [await bench.reached(each, LINK_SIGNALS, reworded=True) for each in questions]
    report("with other wordings", questions, reworded)


async def compare(questions: Sequence[Question], root: Path, settings: Settings) -> None:
    async with AsyncExitStack() as stack:
        parts = await assemble(settings, stack, soft_deadline_s=None, files=FileAccess())
        bases = {}
        for name in dict.fromkeys(question.site for question in questions):
            bases[name] = stack.enter_context(serve_static_site(root / name))
            await ingest(parts, bases[name], pages_below(root / name))
        try:
            await show(Bench(parts, bases), questions)
        finally:
            await drop_collection(parts.database)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("questions", type=Path)
    parser.add_argument("site_root", type=Path)
    parser.add_argument("--limit", type=int)
    arguments = parser.parse_args()
    settings = load_settings(None, embedding_provider="bundled").allowing(["127.0.0.1"])
    settings = settings.model_copy(update={"collection": f"webrag_links_{os.getpid()}"})
    questions = [
        each for each in load_questions(arguments.questions, limit=arguments.limit) if each.gold
    ]
    asyncio.run(compare(questions, arguments.site_root, settings))


if __name__ == "__main__":
    main()
