"""Retrieves evidence for a question from the stored corpus."""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar
from uuid import UUID

from llama_index.node_parser.webrag import LOSSY_FLAGS

from webrag.concurrency import all_of, in_background
from webrag.corpus.texts import StoredVersion, stored_versions
from webrag.embedding.embedder import Embedder
from webrag.errors import ProviderError
from webrag.lexical.spelling import Respelling
from webrag.postgres.database import Database
from webrag.postgres.steps import Steps, alone, run_steps, run_steps_sync
from webrag.redaction import redacted_failure, safe_cause
from webrag.retrieval.aggregation import (
    Candidate,
    ParentHit,
    in_reading_order,
    select_surface,
)
from webrag.retrieval.conditions import Scope
from webrag.retrieval.editions import (
    VersionChoice,
    choose_versions,
    read_near,
)
from webrag.retrieval.filters import NO_FILTERS, SearchFilters
from webrag.retrieval.models import (
    ChildMatch,
    CorpusStats,
    RetrievalConfig,
    RetrievalResult,
    RetrievedChunk,
    TimingInfo,
    Wording,
)
from webrag.retrieval.plans import (
    Asked,
    Found,
    find_chunks,
    parents_of,
    read_totals,
    read_whole,
)
from webrag.retrieval.request import RetrievalMode, RetrievalRequest, check_request
from webrag.retrieval.respelling import (
    IsCommon,
    find_compounds,
    find_doubts,
    find_spellings,
    respellings,
)
from webrag.retrieval.statements import Queries


def whole_result(found: Found, request: RetrievalRequest) -> RetrievalResult:
    """Every parent that was read, in reading order; nothing is scored, so all score 1.0."""
    as_of = request.queries.scope.as_of
    chunks = tuple(_chunk(row, score=1.0, as_of=as_of) for row in found.parents)
    elapsed = _elapsed_ms(request)
    return RetrievalResult(
        mode="full_context",
        chunks=chunks,
        truncated=found.is_cut,
        warnings=(*request.warnings, *_version_notes(request, chunks)),
        corpus_stats=_stats(found, chunks),
        timing=TimingInfo(search_ms=elapsed, total_ms=elapsed),
    )


def matched_result(
    found: Found,
    request: RetrievalRequest,
    embed_ms: float,
) -> RetrievalResult:
    """The parents that matched, grouped by page, each with its matching children.

    Args:
        found: Rows of the plan.
        request: What was asked.
        embed_ms: Time that the embedding of the question and its wordings took.
    """
    as_of = request.queries.scope.as_of
    wordings = zip(request.wordings, found.wording_idf, strict=True)
    chunks = in_reading_order(
        (
            _matched_chunk(row, found.hits[row["chunk_id"]], found.texts, as_of)
            for row in found.parents
        ),
        chunk=lambda chunk: chunk,
        score=lambda chunk: chunk.score,
    )
    elapsed = _elapsed_ms(request)
    return RetrievalResult(
        mode="chunk",
        chunks=chunks,
        term_idf=found.idf,
        wordings=tuple(Wording(text=each.text, term_idf=idf) for each, idf in wordings),
        also_searched=dict(request.also_searched),
        truncated=found.is_cut,
        warnings=(*request.warnings, *_version_notes(request, chunks)),
        corpus_stats=_stats(found, chunks),
        timing=TimingInfo(embed_ms=embed_ms, search_ms=elapsed - embed_ms, total_ms=elapsed),
    )


def _version_notes(request: RetrievalRequest, chunks: Sequence[RetrievedChunk]) -> list[str]:
    """Of the libraries that something was found of; where nothing was, of all."""
    libraries = {chunk.library for chunk in chunks} if chunks else set(request.version_notes)
    return [note for library, note in request.version_notes.items() if library in libraries]


def _matched_chunk(
    row: Mapping[str, Any],
    hit: ParentHit,
    texts: Mapping[int, tuple[Any, ...]],
    as_of: datetime | None,
) -> RetrievedChunk:
    return _chunk(
        row,
        as_of=as_of,
        score=hit.score,
        raw_similarity=max(match.similarity for match in hit.matches),
        matches=tuple(_match(match, texts[match.key]) for match in hit.matches),
    )


def _match(candidate: Candidate, row: tuple[Any, ...]) -> ChildMatch:
    node_id, char_start, char_end, text, heading_path = row
    return ChildMatch(
        node_id=node_id,
        char_start=char_start,
        char_end=char_end,
        text=text,
        heading_path=tuple(heading_path or ()),
        similarity=candidate.similarity,
        lexical=candidate.lexical,
        page_lexical=candidate.page_lexical,
        fused=candidate.fused,
        wordings=candidate.wordings,
    )


def _chunk(
    row: Mapping[str, Any],
    *,
    score: float,
    raw_similarity: float | None = None,
    matches: tuple[ChildMatch, ...] = (),
    as_of: datetime | None = None,
) -> RetrievedChunk:
    values = dict(row)
    html = values.pop("html")
    is_lossy = any(values[flag] for flag in LOSSY_FLAGS)
    selected, surface = select_surface(values["text"], html, is_lossy=is_lossy)
    return RetrievedChunk(
        **values,
        selected_text=selected,
        surface=surface,
        score=score,
        raw_similarity=raw_similarity,
        matches=matches,
        as_of=as_of,
    )


def _stats(found: Found, chunks: Sequence[RetrievedChunk]) -> CorpusStats:
    return CorpusStats(
        total_documents=found.totals.documents,
        total_parent_chunks=found.totals.parents,
        total_tokens=found.totals.tokens,
        documents_matched=tuple(dict.fromkeys(chunk.source_url for chunk in chunks)),
    )


def _elapsed_ms(request: RetrievalRequest) -> float:
    return (time.perf_counter() - request.started) * 1000


logger = logging.getLogger(__name__)

T = TypeVar("T")


class Searcher:
    """Finds the parents that hold the best evidence, by meaning and by words together.

    Stateless apart from its parts; safe to share between tasks and threads. The search itself
    sees one state of the corpus; which versions and spellings it has is read before. A
    filter changes scores: within one site, words that all its pages share count little.

    Args:
        database: Where the corpus is.
        embedder: The model the corpus was made with.
        config: Weights and limits.
        is_common: Tells a common word from one that may be misspelt; without it, each word that
            the searched pages lack may be.
    """

    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        config: RetrievalConfig,
        *,
        is_common: IsCommon | None = None,
    ) -> None:
        self._database = database
        self._embedder = embedder
        self._config = config
        self._is_common = is_common or _nothing_is_common

    @property
    def best_score(self) -> float:
        """What a chunk that nothing can beat scores, in the modes that rank."""
        return 1.0 + self._config.page_weight if self._config.fusion_method == "score" else 1.0

    async def retrieve(
        self,
        query: str,
        *,
        wordings: Sequence[str] = (),
        filters: SearchFilters = NO_FILTERS,
        mode: RetrievalMode = "chunk",
        context_budget: int | None = None,
        children_limit: int | None = None,
        similarity_floor: float | None = None,
    ) -> RetrievalResult:
        """Give the best evidence for a question, or everything when that is little enough.

        Args:
            query: The question; only its beginning counts when it is very long.
            wordings: Other wordings of it. What they find comes on top of what the question finds,
                and every match says how well it fits each; empty ones are left out.
            filters: What may be returned.
            mode: `chunk` searches, `full_context` reads everything up to the budget, `auto` reads
                everything when it fits the full-context threshold.
            context_budget: Tokens of parents at most, at least 1; None takes the configured one.
            children_limit: Candidates of each leg and in all, at least 1; None as configured.
            similarity_floor: Least cosine of a candidate that only the dense leg found; None as
                configured.

        Returns:
            Chunks grouped by page; empty when nothing matches or nothing is stored.

        Raises:
            InputError: The question is empty or a number is out of range.
            ProviderError: The question could not be embedded.
            StorageError: The database failed.
        """
        request = self._check(query, wordings, filters, mode, context_budget, children_limit)
        request = request.among(filters, await self._run(lambda: self._choice(filters)))
        whole = await self._whole(request)
        if whole is not None:
            return whole
        request = await self._respelled(request)
        started = time.perf_counter()
        texts = [each.text for each in (request.question, *request.wordings)]
        arrays = await all_of(self._embedder.embed_query(text) for text in texts)
        vectors = [array.tolist() for array in arrays]
        embed_ms = (time.perf_counter() - started) * 1000
        config = self._config
        if similarity_floor is not None:
            config = config.model_copy(update={"similarity_floor": similarity_floor})
        found = await self._run(lambda: _search(request, config, vectors))
        return matched_result(found, request, embed_ms)

    async def read_whole(
        self,
        query: str,
        *,
        filters: SearchFilters = NO_FILTERS,
        mode: Literal["full_context", "auto"] = "full_context",
        context_budget: int | None = None,
    ) -> RetrievalResult | None:
        """Everything that may be returned, as `retrieve` gives it; nothing is searched or embedded.

        Args:
            query: The question.
            filters: What may be returned.
            mode: `full_context` reads up to the budget, `auto` only what fits the full-context
                threshold.
            context_budget: Tokens of parents at most, at least 1; None takes the configured one.

        Returns:
            None when `auto` finds more than the threshold.

        Raises:
            InputError: The question is empty or a number is out of range.
            StorageError: The database failed.
        """
        request = self._check(query, (), filters, mode, context_budget, None)
        return await self._whole(
            request.among(filters, await self._run(lambda: self._choice(filters)))
        )

    async def chunks_at(
        self, places: Sequence[tuple[UUID, int]], *, as_of: datetime | None = None
    ) -> list[RetrievedChunk]:
        """Parents by the id of their page and their index on it, in that order, scored 0.0.

        Those that do not exist, or did not at the moment asked for, are absent.
        """
        queries = Queries(self._database.config.collection, Scope(as_of=as_of))
        rows = await self._run(lambda: alone(queries.parents_at(places)))
        return [_chunk(row, score=0.0, as_of=as_of) for row in parents_of(rows)]

    def retrieve_sync(
        self,
        query: str,
        *,
        wordings: Sequence[str] = (),
        filters: SearchFilters = NO_FILTERS,
        mode: RetrievalMode = "chunk",
        context_budget: int | None = None,
        children_limit: int | None = None,
    ) -> RetrievalResult:
        """As `retrieve`; needs no event loop and uses none, it blocks the calling thread."""
        request = self._check(query, wordings, filters, mode, context_budget, children_limit)
        request = request.among(filters, self._run_sync(lambda: self._choice(filters)))
        if request.mode != "chunk":
            whole = self._run_sync(lambda: _read_whole(request))
            if whole is not None:
                return whole_result(whole, request)
        request = self._respelled_sync(request)
        started = time.perf_counter()
        vectors = [self._embed_sync(each.text) for each in (request.question, *request.wordings)]
        embed_ms = (time.perf_counter() - started) * 1000
        found = self._run_sync(lambda: _search(request, self._config, vectors))
        return matched_result(found, request, embed_ms)

    def _choice(self, filters: SearchFilters) -> Steps[VersionChoice]:
        """Which versions the filters mean, in the state of the corpus that is read first."""
        collection = self._database.config.collection
        if filters.as_of is not None:
            queries = Queries(collection, Scope(as_of=filters.as_of))
            rows = yield from alone(queries.versions())
            return choose_versions(filters, [StoredVersion(*row) for row in rows])
        stored = yield from stored_versions(collection)
        near = (yield from read_near(collection, filters.near)) if filters.near else {}
        return choose_versions(filters, stored, near)

    def _check(
        self,
        query: str,
        wordings: Sequence[str],
        filters: SearchFilters,
        mode: RetrievalMode,
        context_budget: int | None,
        children_limit: int | None,
    ) -> RetrievalRequest:
        """What is asked; what cannot be used is refused before the database is asked."""
        request = check_request(
            query,
            wordings=wordings,
            collection=self._database.config.collection,
            config=self._config,
            filters=filters,
            mode=mode,
            context_budget=context_budget,
            children_limit=children_limit,
        )
        for warning in request.warnings:
            logger.warning(warning)
        return request

    async def _whole(self, request: RetrievalRequest) -> RetrievalResult | None:
        """Everything that may be returned, where the request wants that and it is little enough."""
        if request.mode == "chunk":
            return None
        found = await self._run(lambda: _read_whole(request))
        return None if found is None else whole_result(found, request)

    async def _respelled(self, request: RetrievalRequest) -> RetrievalRequest:
        """The request with words replaced that the searched pages lack and have otherwise."""
        queries = request.queries
        doubts = await self._run(lambda: find_doubts(queries, request.question.text))
        if not doubts:
            return request
        words = await in_background(respellings, doubts)
        chunks = await self._run(lambda: find_spellings(queries, words))
        found = await in_background(_chosen, words, chunks, self._is_common)
        others = [each for each in words if each.word not in found]
        found |= await self._run(lambda: find_compounds(queries, others, doubts.pairs, chunks))
        return request.respelled(found)

    def _respelled_sync(self, request: RetrievalRequest) -> RetrievalRequest:
        queries = request.queries
        doubts = self._run_sync(lambda: find_doubts(queries, request.question.text))
        if not doubts:
            return request
        words = respellings(doubts)
        chunks = self._run_sync(lambda: find_spellings(queries, words))
        found = _chosen(words, chunks, self._is_common)
        others = [each for each in words if each.word not in found]
        found |= self._run_sync(lambda: find_compounds(queries, others, doubts.pairs, chunks))
        return request.respelled(found)

    async def _run(self, start: Callable[[], Steps[T]]) -> T:
        return await self._database.run(lambda each: run_steps(each, start()), snapshot=True)

    def _run_sync(self, start: Callable[[], Steps[T]]) -> T:
        return self._database.run_sync(lambda each: run_steps_sync(each, start()), snapshot=True)

    def _embed_sync(self, text: str) -> list[float]:
        model = self._embedder.model_name
        try:
            vector = self._embedder.model.get_query_embedding(text)
        except Exception as error:  # noqa: BLE001 - foreign code
            said = redacted_failure(str(error)) or type(error).__name__
            raise ProviderError(
                f"The embedding model {model} failed: {said}", provider=model
            ) from safe_cause(error)
        if len(vector) != self._embedder.dimensions or not all(map(math.isfinite, vector)):
            raise ProviderError(
                f"The embedding model {model} returned {len(vector)} numbers, or some that are not"
                f" finite; the corpus has {self._embedder.dimensions} dimensions.",
                provider=model,
            )
        return [*map(float, vector)]


def _nothing_is_common(word: str) -> bool:
    del word
    return False


def _chosen(
    words: Sequence[Respelling], chunks: Mapping[str, int], is_common: IsCommon
) -> dict[str, str]:
    """Each word that has a likely spelling, and that spelling."""
    found = {each.word: each.best(chunks, is_common) for each in words}
    return {word: text for word, text in found.items() if text is not None}


def _read_whole(request: RetrievalRequest) -> Steps[Found | None]:
    """Everything in scope; None in `auto` mode when that is too much."""
    if request.mode == "auto":
        totals = yield from read_totals(request.queries)
        if totals.tokens > request.threshold:
            return None
    return (yield from read_whole(request.queries, request.budget))


def _search(
    request: RetrievalRequest, config: RetrievalConfig, vectors: Sequence[Sequence[float]]
) -> Steps[Found]:
    others = zip(request.wordings, vectors[1:], strict=True)
    return find_chunks(
        request.queries,
        config,
        terms=request.question.terms,
        vector=vectors[0],
        wordings=[Asked(each.terms, vector) for each, vector in others],
        budget=request.budget,
        limit=request.limit,
    )
