"""Gets pages, candidates and a ranking for one run; others judge it and decide what to do."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol

from webrag.concurrency import all_of, in_background, within
from webrag.corpus.acquirer import PageAcquirer
from webrag.corpus.models import AcquiredPage
from webrag.corpus.pages import Corpus
from webrag.errors import (
    DatabaseUnavailableError,
    DeadlineError,
    FetchError,
    ProviderError,
    StorageError,
    WebRAGError,
)
from webrag.ingestion.fetch_context import listening
from webrag.instrumentation import FoundPassage, span, tell_reranked, tell_reranking
from webrag.orchestration.links.rules import LinkScope
from webrag.orchestration.models import (
    OrchestrationConfig,
    RankedChunk,
    ScoreProfile,
    SubQueryResult,
)
from webrag.orchestration.question.analyzer import QueryAnalyzer
from webrag.orchestration.question.wishes import Wish, fulfilled, read_wishes
from webrag.orchestration.ranking.reranker import (
    ChunkReranker,
    Merged,
    merge,
    rank_parts,
)
from webrag.orchestration.state import RunState
from webrag.retrieval.models import RetrievalResult, passages
from webrag.retrieval.search import Searcher

if TYPE_CHECKING:
    from llama_index.postprocessor.webrag.local_scoring import PassageScorer
    from llama_index.postprocessor.webrag.token_vectors import TokenEncoder

    from webrag.orchestration.links.expander import LinkDiscovery, LinkExpander
    from webrag.orchestration.links.site_maps import SiteMaps

_log = logging.getLogger(__name__)

# A retrieval for more recall takes as many times more, and lowers the floor of cosines by the step.
_RECALL_FACTOR: Final = 2
_FLOOR_STEP: Final = 0.15
# Of 51 wordings of 17 questions of two parts, 48 came to every part that they fit, read one by one.
_ABOUT_EQUAL: Final = 0.8


@dataclass(frozen=True, slots=True)
class Seeds:
    """Outcome of getting the named pages, in the order they were named.

    Attributes:
        warnings: A sentence for each page that could not be used.
        is_complete: False when time ran out before every page was settled.
    """

    pages: tuple[AcquiredPage, ...]
    warnings: tuple[str, ...]
    is_complete: bool


async def acquire_seeds(
    acquirer: PageAcquirer,
    urls: Sequence[str],
    *,
    timeout_s: float | None = None,
    on_page: Callable[[AcquiredPage], None] | None = None,
) -> Seeds:
    """Get pages into the corpus, all at once, where any are named; nothing is left running.

    Pages not there within the timeout, if there is one, are given up; `on_page` is told each of the
    others as soon as it is there.

    Raises:
        WebRAGError: No page could be obtained, embedded or stored: the first page's error; of
            several that could not be fetched one FetchError for all.
        DatabaseUnavailableError: The database cannot be reached.
    """
    outcomes: dict[str, AcquiredPage | WebRAGError] = {
        url: DeadlineError(
            f"{url} did not arrive within {round(timeout_s or 0, 1):g} s.",
            hint="Ask again: what was stored by then is kept.",
        )
        for url in urls
    }

    async def one(url: str) -> None:
        try:
            page = outcomes[url] = await acquirer.acquire(url)
        except DatabaseUnavailableError:
            raise  # without a database no other can go on
        except (FetchError, ProviderError, StorageError) as error:
            outcomes[url] = error
        else:
            if on_page is not None:
                on_page(page)

    async with within(timeout_s):
        await all_of(one(url) for url in urls)
    pages: dict[str, AcquiredPage] = {}
    failures: dict[str, WebRAGError] = {}
    for url, outcome in outcomes.items():
        if isinstance(outcome, AcquiredPage):
            pages.setdefault(outcome.url, outcome)
        else:
            failures[url] = outcome
    if failures and not pages:
        raise _nothing_obtained(failures)
    warnings = tuple(
        str(error) if url in str(error) else f"{url} could not be used: {error}"
        for url, error in failures.items()
    )
    for warning in warnings:
        _log.warning("%s", warning)
    is_late = any(isinstance(error, DeadlineError) for error in failures.values())
    return Seeds(tuple(pages.values()), warnings, is_complete=not is_late)


def _nothing_obtained(failures: dict[str, WebRAGError]) -> WebRAGError:
    # What is late says less than what was answered.
    first = next((e for e in failures.values() if not isinstance(e, DeadlineError)), None)
    if len(failures) == 1 or not isinstance(first, FetchError):
        return first or next(iter(failures.values()))
    said = {url: str(error).rstrip(".") for url, error in failures.items()}
    reasons = "; ".join(text if url in text else f"{url}: {text}" for url, text in said.items())
    why = f"None of the {len(failures)} pages could be obtained: {reasons}."
    return FetchError(why, url=first.url, status=first.status, hint=first.hint)


class Report(Protocol):
    """Told what is being done; returns at once."""

    def __call__(
        self, phase: str, detail: str, *, iteration: int | None = None, total: int | None = None
    ) -> None:
        """Report a phase, and the round of expansion out of how many it belongs to."""


@dataclass(frozen=True)
class RunComponents:
    """The parts of WebRAG a run works with; shared by all runs.

    Attributes:
        reranker: Its profiles hold the thresholds of the loop.
        encoder: Compares meanings: of units and links with the question, of wordings with its
            parts; None to go by words alone, and to take a wording for each part.
        discovery: Makes what names more links where a mapping service is at hand; asked once, for
            the first run that follows links.
        site_maps: The same for sites that keep a map of themselves.
        scorer: Makes what reads the texts that such a map holds.
    """

    acquirer: PageAcquirer
    corpus: Corpus
    searcher: Searcher
    reranker: ChunkReranker
    analyzer: QueryAnalyzer
    encoder: "TokenEncoder | None"
    config: OrchestrationConfig
    discovery: "Callable[[], LinkDiscovery | None]" = lambda: None
    site_maps: "Callable[[], SiteMaps | None]" = lambda: None
    scorer: "Callable[[], PassageScorer | None]" = lambda: None

    @cached_property
    def expander(self) -> "LinkExpander":
        """Made for the first run that follows links."""
        from webrag.orchestration.links.expander import LinkExpander

        return LinkExpander(
            self.corpus,
            self.encoder,
            self.config.expansion,
            self.discovery(),
            self.site_maps(),
            self.scorer(),
        )


@dataclass(frozen=True)
class ResearchRun:
    """One run: its parts, its state and the steps that fill it, called one at a time."""

    components: RunComponents
    state: RunState
    report: Report

    @property
    def profile(self) -> ScoreProfile:
        """Thresholds of the scorer in use."""
        reranker = self.components.reranker
        return reranker.fallback_profile if self.state.scorer_failed else reranker.profile

    @property
    def wishes(self) -> tuple[Wish, ...]:
        """The caller's wishes for the evidence."""
        question = self.state.question
        return read_wishes(
            question.constraints, question.intent, named_sites=sorted(self.state.scope.sites)
        )

    @property
    def scale(self) -> int:
        """Factor on the configured candidates and tokens of a retrieval."""
        return _RECALL_FACTOR if self.state.wants_recall else 1

    async def prepare(self) -> None:
        """Get the named pages; nothing to do for a search."""
        state, question = self.state, self.state.question
        if question.is_search:
            return
        if question.as_of is not None:
            state.pages = dict.fromkeys((*question.urls, *question.stored))
            return

        def on_page(page: AcquiredPage) -> None:
            verb = "Already stored" if page.outcome == "stored" else "Indexed"
            counts = f"{page.chunk_count} chunks, {page.token_count} tokens"
            self.report("ingestion", f"{verb}: {page.url} ({counts})")

        for url in question.urls:
            self.report("ingestion", f"Checking if {url} is indexed...")
        with state.clock.timed("ingestion_ms"), listening(state.note_degraded):
            seeds = await acquire_seeds(
                self.components.acquirer,
                question.urls,
                timeout_s=state.clock.left_s,
                on_page=on_page,
            )
        state.pages = dict.fromkeys((*(page.url for page in seeds.pages), *question.stored))
        # A named page may have moved to another site.
        expansion = self.components.config.expansion
        state.scope = LinkScope.of(
            expansion.scope, (*question.urls, *state.pages), expansion.allowed_domains
        )
        state.fetched.update((p.url, p.source) for p in seeds.pages if p.outcome != "stored")
        state.warn(*seeds.warnings)
        state.partial = not seeds.is_complete

    async def analyse(self) -> None:
        """Find out what the question asks for."""
        state, question = self.state, self.state.question
        with state.clock.timed("query_analysis_ms"):
            state.analysis, degraded = await self.components.analyzer.analyze(
                question,
                use_model=not (question.is_search or state.clock.is_over),
                timeout_s=state.clock.left_s,
            )
            if len(state.parts) > 1 and state.wordings:
                state.wordings_by_part = await in_background(
                    wordings_by_part, state.parts, state.wordings, self.components.encoder
                )
        state.note_degraded(degraded)
        count = len(state.parts)
        parts = "one query" if count == 1 else f"decomposed into {count} sub-queries"
        self.report("analysis", f"Analyzing query: {parts}")

    async def search(self) -> None:
        """Rank what is found for every part, or do without when a part cannot be embedded.

        Raises:
            ProviderError: A search of stored pages could not be embedded.
            StorageError: The database failed.
        """
        state = self.state
        urls, sites = state.filters.source_urls, state.filters.sites
        where = "the whole corpus" if sites is None else f"what is stored of {', '.join(sites)}"
        self.report(
            "retrieval", f"Searching {where if urls is None else f'{len(urls)} documents'}..."
        )
        try:
            with state.clock.timed("retrieval_ms"):
                found = await all_of(self._retrieved(query) for query in state.queries)
        except ProviderError as error:
            if state.question.is_search:
                raise
            await self._do_without_search(str(error))
            return
        count = sum(len(result.chunks) for _, result in found)
        self.report("reranking", f"Reranking {count} chunks...")
        await self.rank(found)

    async def _retrieved(self, query: str) -> tuple[str, RetrievalResult]:
        """One part of the question with its candidates, from every page searched now."""
        state, config = self.state, self.components.config
        floor = config.similarity_floor - (_FLOOR_STEP if state.wants_recall else 0)
        return query, await self.components.searcher.retrieve(
            query,
            wordings=state.wordings_of(query),
            filters=state.filters,
            context_budget=config.context_budget * self.scale,
            children_limit=config.children_limit * self.scale,
            similarity_floor=floor,
        )

    async def _do_without_search(self, failure: str) -> None:
        """Stay with the last ranking, else take the named pages whole; nothing more is tried."""
        state, config = self.state, self.components.config
        state.blocked, state.partial = failure, True
        if state.merged.chunks:
            state.note_degraded(f"{failure} The evidence is what was found before.")
            return
        state.note_degraded(f"{failure} The named pages are given as they are, unranked.")
        query = state.question.text
        whole = await self.components.searcher.retrieve(
            query,
            filters=state.filters,
            mode="full_context",
            context_budget=config.context_budget,
        )
        if whole.truncated:
            state.warn(
                f"Not all of the pages fits into the budget of {config.context_budget} tokens; the"
                " rest was left out."
            )
        ranked = self.components.reranker.passthrough(whole)
        state.results = (SubQueryResult(sub_query=query, retrieval=whole, ranked=ranked),)
        state.merged = Merged(ranked)

    @span
    async def rank(self, retrieved: Sequence[tuple[str, RetrievalResult]]) -> None:
        """Rank every part's candidates with one scorer and merge them."""
        state, config = self.state, self.components.config
        for query, result in retrieved:
            tell_reranking(
                query,
                passages(result.chunks),
                top_n=config.reranker_top_n,
                model_name=self.profile.name,
            )
        with state.clock.timed("reranking_ms"):
            scored = await self._rank_all(retrieved)
            ranked = fulfilled(scored, self.wishes, datetime.now(UTC))
        for part in ranked:
            tell_reranked(
                FoundPassage(*each[:3], score=item.reranked_score)
                for item, each in zip(part, passages(item.chunk for item in part), strict=True)
            )
        state.results = tuple(
            SubQueryResult(sub_query=query, retrieval=result, ranked=chunks)
            for (query, result), chunks in zip(retrieved, ranked, strict=True)
        )
        state.warn(*(w for _, result in retrieved for w in result.warnings))
        with state.clock.timed("merge_ms"):
            state.merged = await in_background(
                merge,
                state.results,
                parts=state.parts if len(state.parts) > 1 else (),
                redundancy_ceiling=config.redundancy_ceiling,
                token_budget=config.context_budget * self.scale,
            )

    async def _rank_all(
        self, retrieved: Sequence[tuple[str, RetrievalResult]]
    ) -> list[tuple[RankedChunk, ...]]:
        state, reranker = self.state, self.components.reranker
        top_n = max(self.components.config.reranker_top_n, state.question.top_k or 0)
        top_n *= self.scale
        if state.scorer_failed:
            return await all_of(
                reranker.rank_by_fallback(query, result, top_n=top_n) for query, result in retrieved
            )
        # What the caller wants, for rerankers that take instructions.
        intent, constraints = state.question.intent, state.question.constraints
        wishes = [f"Looking for {intent.replace('_', '-')} content"] if intent else []
        instruction = ". ".join([*wishes, *constraints]) or None
        ranked, failure = await rank_parts(
            reranker, retrieved, instruction=instruction, top_n=top_n
        )
        if failure is not None:
            state.note_degraded(failure)
            # Nor may scores of two scorers meet in a comparison with the last ranking.
            state.scorer_failed, state.signals = True, None
        return ranked


def wordings_by_part(
    parts: Sequence[str], wordings: Sequence[str], encoder: "TokenEncoder | None"
) -> dict[str, tuple[str, ...]]:
    """Deal the wordings of a whole question to its parts; each part gets at least its nearest.

    A wording that fits several parts about equally well is one of each; without an encoder every
    wording is one of each part. There is at least one.
    """
    if encoder is None:
        return dict.fromkeys(parts, tuple(wordings))
    from webrag.orchestration.links.scoring import LinkQuestion, similarities

    asked = [LinkQuestion.of(part, encoder) for part in parts]
    rows = similarities(asked, wordings, encoder).T.tolist()
    dealt = {}
    for at, part in enumerate(parts):
        nearest = max(rows, key=lambda row: row[at])
        dealt[part] = tuple(
            each
            for each, row in zip(wordings, rows, strict=True)
            if row is nearest or row[at] >= _ABOUT_EQUAL * max(row)
        )
    return dealt
