"""What following links finds, beside no expansion, the whole site, and breadth-first crawling.

Usage: python benchmarks/expansion_comparison.py QUESTIONS SITE_ROOT [--limit N] [--ablation]

Every page below SITE_ROOT is fetched and indexed once, into a temporary collection. Each question
then starts from its seed page; a page is searched only once the run has fetched it, and links to
pages that are not there fail, as on the web. Breadth first gets as many pages for each question as
the loop took for it. With --ablation the loop is run once more without each link signal. Times are
those of the loop without network and conversion; `webrag eval --setting seed --deep` includes both.
"""

import argparse
import asyncio
import os
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import fmean
from urllib.parse import urljoin

from site_replay import SEEN, ReplayAcquirer, ReplayCorpus, ReplaySearcher

from webrag.corpus.schema import drop_collection
from webrag.embedding.bundled import BundledEmbedding
from webrag.embedding.embedder import Embedder
from webrag.errors import WebRAGError
from webrag.evaluation.metrics import QuestionScore, score_question, summarise
from webrag.evaluation.questions import Question, load_questions
from webrag.evaluation.runs import ResultRecord, RunRecord
from webrag.ingestion.addresses import site_of
from webrag.ingestion.files.access import FileAccess
from webrag.orchestration.config import ExpansionConfig
from webrag.orchestration.engine import OrchestratorEngine
from webrag.orchestration.models import OrchestrationResult
from webrag.orchestration.question.analyzer import QueryAnalyzer
from webrag.orchestration.ranking.reranker import ChunkReranker
from webrag.presentation.brief.brief import evidence_blocks
from webrag.presentation.brief.models import BriefConfig
from webrag.settings import Settings, load_settings
from webrag.static_site import serve_static_site
from webrag.wiring.assembly import Parts, assemble
from webrag.wiring.rerankers import choose_reranker

Run = list[tuple[QuestionScore, RunRecord]]


class Bench:
    """The stored sites and the ways to ask them."""

    def __init__(self, settings: Settings, parts: Parts, bases: dict[str, str]) -> None:
        self._settings = settings
        self._parts = parts
        self._bases = bases
        self._bundled = BundledEmbedding()
        self._corpus = ReplayCorpus(parts.database)

    def engine(self, weights: dict[str, float] | None = None) -> OrchestratorEngine:
        reranker, profile = choose_reranker(self._settings, self._bundled)
        config = self._settings.orchestration_config()
        if weights is not None:
            expansion = config.expansion.model_copy(update={"signal_weights": weights})
            config = config.model_copy(update={"expansion": expansion})
        embedder = Embedder(self._bundled, self._bundled.dimensions)
        return OrchestratorEngine(
            acquirer=ReplayAcquirer(self._parts.corpus),
            corpus=self._corpus,
            searcher=ReplaySearcher(
                self._parts.database, embedder, self._settings.retrieval_config()
            ),
            reranker=ChunkReranker(
                reranker,
                self._settings.thresholds(profile),
                top_n=self._settings.reranker_top_n,
            ),
            analyzer=QueryAnalyzer(mode="rule_based"),
            encoder=self._bundled,
            config=config,
        )

    async def loop(
        self, questions: Sequence[Question], *, deep: bool, weights: dict[str, float] | None = None
    ) -> Run:
        engine, run = self.engine(weights), []
        for question in questions:
            SEEN.set({})
            result = await engine.run(
                self._seed(question), question.query, research_mode="deep" if deep else "fast"
            )
            run.append(self._scored(question, result))
        return run

    async def whole(self, questions: Sequence[Question]) -> Run:
        engine, run = self.engine(), []
        for question in questions:
            site = site_of(self._bases[question.site])
            SEEN.set(dict.fromkeys((await self._parts.corpus.urls_in_scope([site]))[0], 0))
            run.append(self._scored(question, await engine.search(question.query)))
        return run

    async def breadth_first(self, questions: Sequence[Question], pages: Sequence[int]) -> Run:
        engine, run = self.engine(), []
        for question, count in zip(questions, pages, strict=True):
            seen = await self._nearest(question, count)
            SEEN.set(dict.fromkeys(seen, 0))
            run.append(self._scored(question, await engine.search(question.query), seen))
        return run

    async def _nearest(self, question: Question, count: int) -> list[str]:
        seen: dict[str, None] = {}
        waiting = deque([self._seed(question)])
        while waiting and len(seen) < count:
            page = await self._parts.corpus.page(waiting.popleft())
            if page is None or page.url in seen:
                continue
            seen[page.url] = None
            waiting += [link.url for link in await self._parts.corpus.links([page.url])]
        return list(seen)

    def _seed(self, question: Question) -> str:
        return urljoin(self._bases[question.site], question.seed_url)

    def _scored(
        self, question: Question, result: OrchestrationResult, fetched: Sequence[str] | None = None
    ) -> tuple[QuestionScore, RunRecord]:
        blocks = evidence_blocks(result, BriefConfig(), count_tokens=self._parts.count_tokens)
        record = RunRecord(
            id=question.id,
            retrieved=tuple(ResultRecord(url=block.url, text=block.text) for block in blocks),
            urls_fetched=tuple(result.urls_fetched if fetched is None else fetched),
            urls_failed={
                url: reason
                for step in result.expansion_steps
                for url, reason in step.candidates_failed.items()
            },
            ms=result.timing.total_ms,
            abstained=result.confidence_band == "none",
            confidence=result.confidence,
            confidence_band=result.confidence_band,
            stop_rule=result.final_decision.rule,
        )
        return score_question(question, record), record


async def ingest(parts: Parts, base: str, pages: Sequence[str]) -> None:
    slots = asyncio.Semaphore(4)

    async def one(url: str) -> None:
        async with slots:
            try:
                await parts.acquirer.acquire(url)
            except WebRAGError as error:
                print(f"{url}: {error}")

    await asyncio.gather(*(one(urljoin(base, page)) for page in pages))


def pages_below(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.htm*"))]


def is_gold(question: Question, url: str) -> bool:
    wanted = [each.page for gold in question.gold or () for each in gold.passages]
    return any(url.endswith("/" + page) for page in wanted)


def report(name: str, questions: Sequence[Question], run: Run, *, whole: Run | None = None) -> None:
    scores, records = [score for score, _ in run], [record for _, record in run]
    summary = summarise(scores)
    multi = [s.all_evidence[10] for s in scores if s.answerable and s.type == "multi"]
    line = (
        f"{name:22} @5 {summary.evidence[5]:.3f}  @10 {summary.evidence[10]:.3f}  "
        f"all@10 of multi {fmean(multi) if multi else 0:.3f}  "
        f"abstained {summary.abstained_unanswerable:.3f} / {summary.abstained_answerable:.3f}"
    )
    if whole is not None:
        best = summarise([score for score, _ in whole]).evidence[10]
        line += f"  = {summary.evidence[10] / best:.0%} of the whole site's @10"
    print(line, flush=True)
    fetched = [len(set(record.urls_fetched)) - 1 for record in records]
    if not any(count > 0 for count in fetched):
        return
    pairs = zip(questions, records, strict=True)
    useful = sum(is_gold(q, url) for q, record in pairs for url in set(record.urls_fetched))
    found = [
        any(url.endswith("/" + each.page) for url in record.urls_fetched for each in gold.passages)
        for question, record in zip(questions, records, strict=True)
        for gold in question.gold or ()
    ]
    print(
        f"{'':22} pages after the seed {fmean(fetched):.1f} (max {max(fetched)}), failed fetches "
        f"{fmean(len(record.urls_failed) for record in records):.1f}, gold pages fetched "
        f"{fmean(found):.3f}, not gold {1 - useful / sum(count + 1 for count in fetched):.3f}, "
        f"p50 {summary.ms_p50:.0f} ms, p95 {summary.ms_p95:.0f} ms",
        flush=True,
    )


def report_stops(questions: Sequence[Question], run: Run) -> None:
    rules = Counter(record.stop_rule for _, record in run)
    print("stopped by", dict(rules.most_common()))
    for question, (_, record) in zip(questions, run, strict=True):
        if question.gold is not None and not question.gold:
            band, pages = record.confidence_band, len(record.urls_fetched)
            print(f"  unanswerable {question.id}: {band} ({record.confidence:.2f}), {pages} pages")


async def compare(
    questions: Sequence[Question], root: Path, settings: Settings, *, ablation: bool
) -> None:
    async with AsyncExitStack() as stack:
        parts = await assemble(settings, stack, soft_deadline_s=None, files=FileAccess())
        bases = {}
        for name in dict.fromkeys(question.site for question in questions):
            bases[name] = stack.enter_context(serve_static_site(root / name))
            await ingest(parts, bases[name], pages_below(root / name))
        bench = Bench(settings, parts, bases)
        try:
            await show(bench, questions, ablation=ablation)
        finally:
            await drop_collection(parts.database)


async def show(bench: Bench, questions: Sequence[Question], *, ablation: bool) -> None:
    whole = await bench.whole(questions)
    report("whole site", questions, whole)
    report("seed only", questions, await bench.loop(questions, deep=False), whole=whole)
    loop = await bench.loop(questions, deep=True)
    report("the loop", questions, loop, whole=whole)
    report_stops(questions, loop)
    pages = [len(set(record.urls_fetched)) for _, record in loop]
    crawled = await bench.breadth_first(questions, pages)
    report("breadth first", questions, crawled, whole=whole)
    if not ablation:
        return
    weights = ExpansionConfig().signal_weights
    for signal in weights:
        without = await bench.loop(questions, deep=True, weights={**weights, signal: 0.0})
        report(f"without {signal}", questions, without, whole=whole)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("questions", type=Path)
    parser.add_argument("site_root", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--ablation", action="store_true")
    arguments = parser.parse_args()
    settings = load_settings(None, embedding_provider="bundled").allowing(["127.0.0.1"])
    settings = settings.model_copy(update={"collection": f"webrag_expansion_{os.getpid()}"})
    questions = load_questions(arguments.questions, limit=arguments.limit)
    asyncio.run(compare(questions, arguments.site_root, settings, ablation=arguments.ablation))


if __name__ == "__main__":
    main()
