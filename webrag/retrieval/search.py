"""Retrieves evidence for a question from the stored corpus."""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from itertools import chain, groupby
from typing import Literal, TypeVar
from uuid import UUID

from webrag.argument_checks import check_choice, checked_count
from webrag.concurrency import all_of, in_background
from webrag.corpus.models import StoredVersion
from webrag.corpus.queries import stored_versions
from webrag.embedding.embedder import Embedder
from webrag.errors import InputError
from webrag.instrumentation import span, tell_retrieved, tell_retrieving
from webrag.lexical.analysis import analyze, content_words
from webrag.lexical.spelling import Respelling, doubtful_words, respelled
from webrag.postgres.database import Connection, Database
from webrag.retrieval.chunk_search import (
    Found,
    SearchText,
    parents_of,
    read_everything,
    search_chunks,
)
from webrag.retrieval.filters import (
    NO_FILTERS,
    Scope,
    SearchFilters,
    VersionChoice,
    choose_versions,
)
from webrag.retrieval.models import (
    RETRIEVAL_MODES,
    CorpusStats,
    RetrievalConfig,
    RetrievalMode,
    RetrievalResult,
    RetrievedChunk,
    TimingInfo,
    passages,
)
from webrag.retrieval.statements import Queries

logger = logging.getLogger(__name__)

T = TypeVar("T")


TellsWord = Callable[[str], bool]
"""Tells something of a word; may block."""


# The first of a question; each is some five hundred look-ups in an index.
_MOST_WORDS = 4


@dataclass(frozen=True, slots=True)
class Doubts:
    """Words of a question, and index terms of them, that no chunk holds as the question has them.

    Of the absent no chunk holds anything.
    """

    words: Mapping[str, str]
    absent: Sequence[str] = ()


async def find_doubts(connection: Connection, queries: Queries, text: str) -> Doubts:
    """Find the words that the pages in scope lack; one statement, nearly always without a find."""
    words, content = doubtful_words(text), content_words(text)
    terms = sorted({*words.values(), *chain.from_iterable(content.values())})
    rows = await queries.held_terms(terms).fetch(connection) if terms else []
    held = {term for (term,) in rows}
    absent = [(word, term) for word, term in words.items() if term not in held]
    nowhere = [word for word, terms in content.items() if not held.intersection(terms)]
    return Doubts(dict(absent[:_MOST_WORDS]), nowhere)


async def find_compounds(
    connection: Connection,
    queries: Queries,
    words: Sequence[Respelling],
    chunks: Mapping[str, int],
) -> dict[str, str]:
    """Find the compounds that the pages write in two words, and these."""
    found: dict[str, str] = {}
    for each in words:
        for first, second in each.splits(chunks):
            if await _is_phrase(connection, queries, first, second):
                found[each.word] = f"{first} {second}"
                break
    return found


async def _is_phrase(connection: Connection, queries: Queries, first: str, second: str) -> bool:
    terms = [*analyze(first), *analyze(second)]
    return bool(await queries.phrase(terms, rf"\m{first}[\s_-]+{second}").fetch(connection))


@dataclass(frozen=True, slots=True)
class RetrievalRequest:
    """A question within limits, and what is known of its search so far.

    Notes tell by library the version that is searched unasked; replaced words go with theirs.
    """

    question: SearchText
    wordings: tuple[SearchText, ...]
    queries: Queries
    mode: RetrievalMode
    warnings: tuple[str, ...]
    started: float
    version_notes: Mapping[str, str] = field(default_factory=dict)
    also_searched: Mapping[str, str] = field(default_factory=dict)
    absent_words: tuple[str, ...] = ()


@dataclass(eq=False, repr=False)
class Searcher:
    """Finds the parents that hold the best evidence, by meaning and by words together.

    Safe to share between tasks and threads. The search sees one state of the corpus; its versions
    and spellings are read before. Within a filter, words that all pages share count little. Common
    words of the language are told, and words that may name a subject.
    """

    database: Database
    embedder: Embedder
    config: RetrievalConfig
    _: KW_ONLY
    is_common: TellsWord = lambda _: False
    may_name: TellsWord = lambda _: True

    @property
    def best_score(self) -> float:
        """Score of a chunk that nothing can beat, in the modes that rank."""
        return 1.0 + self.config.page_weight if self.config.fusion_method == "score" else 1.0

    @span
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
        tells: bool = True,
    ) -> RetrievalResult:
        """Give the best evidence for a question, or everything when that is little enough.

        Args:
            query: The question; only its beginning counts when it is very long.
            wordings: Other wordings of it, which add to what it finds; each scores every match.
            filters: Conditions of what may be returned.
            mode: `chunk` searches, `full_context` reads everything up to the budget, `auto` reads
                everything when it fits the full-context threshold.
            context_budget: Tokens of parents at most, at least 1; None as configured.
            children_limit: Candidates of each leg and in all, at least 1; None as configured.
            similarity_floor: Least cosine of a candidate without words; None as configured.
            tells: Tell listeners; False for callers that tell them, as LlamaIndex's retrievers do.
        """
        config = self._configured(
            context_budget=context_budget,
            children_limit=children_limit,
            similarity_floor=similarity_floor,
        )
        request = self._checked(query, mode, config, wordings)
        if tells:
            tell_retrieving(query)
        request, whole, doubts = await self._read(
            lambda connection: _prepared(connection, request, filters, config)
        )
        if whole is not None:
            result = _result(whole, request)
        else:
            result = await self._searched(await self._respelled(request, doubts), config)
        if tells:
            tell_retrieved(query, passages(result.chunks))
        return result

    async def _searched(
        self, request: RetrievalRequest, config: RetrievalConfig
    ) -> RetrievalResult:
        started = time.perf_counter()
        texts = [request.question, *request.wordings]
        vectors = await all_of(self.embedder.embed_query(each.text) for each in texts)
        embed_ms = (time.perf_counter() - started) * 1000
        variants = [
            replace(each, vector=vector.tolist())
            for each, vector in zip(texts, vectors, strict=True)
        ]
        found = await self._read(
            lambda connection: search_chunks(connection, request.queries, config, variants)
        )
        return _result(found, request, embed_ms)

    async def read_whole(
        self,
        query: str,
        *,
        filters: SearchFilters = NO_FILTERS,
        mode: Literal["full_context", "auto"] = "full_context",
        context_budget: int | None = None,
    ) -> RetrievalResult | None:
        """Give all that may be returned, unsearched; with `auto` None above the threshold."""
        config = self._configured(context_budget=context_budget)
        request = self._checked(query, mode, config)
        request, whole, _ = await self._read(
            lambda connection: _prepared(connection, request, filters, config, is_searched=False)
        )
        return None if whole is None else _result(whole, request)

    async def chunks_at(
        self, places: Sequence[tuple[UUID, int]], *, as_of: datetime | None = None
    ) -> list[RetrievedChunk]:
        """Give parents by the id of their page and their index on it, in order, if they exist."""
        queries = Queries(self.database.config.collection, Scope(as_of=as_of))
        rows = await self._read(queries.parents_at(places).fetch)
        return [RetrievedChunk(**row, score=0.0, as_of=as_of) for row in parents_of(rows)]

    def _configured(self, **numbers: float | None) -> RetrievalConfig:
        """Put what was given in place of what is configured."""
        given = {name: number for name, number in numbers.items() if number is not None}
        for name in ("context_budget", "children_limit"):
            if name in given:
                checked_count(name, given[name], minimum=1)
        return self.config.model_copy(update=given)

    def _checked(
        self,
        query: str,
        mode: RetrievalMode,
        config: RetrievalConfig,
        wordings: Sequence[str] = (),
    ) -> RetrievalRequest:
        started = time.perf_counter()
        check_choice("mode", mode, RETRIEVAL_MODES)
        question = SearchText.of(query)
        if not question.text:
            raise InputError("The query is empty; it must hold at least one visible character.")
        warnings = []
        if mode == "auto" and config.full_context_threshold > config.context_budget:
            warnings.append(
                f"The full-context threshold of {config.full_context_threshold} tokens exceeds the"
                f" context budget of {config.context_budget} tokens; the budget is used in its"
                " place."
            )
            logger.warning(warnings[0])
        texts = map(SearchText.of, wordings)
        return RetrievalRequest(
            question=question,
            wordings=tuple({each.text: each for each in texts if each.text}.values()),
            queries=Queries(self.database.config.collection),
            mode=mode,
            warnings=tuple(warnings),
            started=started,
        )

    async def _respelled(self, request: RetrievalRequest, doubts: Doubts) -> RetrievalRequest:
        """Replace words that the searched pages lack and have otherwise."""
        if doubts.absent:
            absent = await in_background(lambda: tuple(filter(self.may_name, doubts.absent)))
            request = replace(request, absent_words=absent)
        if not doubts.words:
            return request
        queries = request.queries
        # Spelling each word in other ways takes milliseconds.
        words = await in_background(
            lambda: [Respelling(*each, self.is_common) for each in doubts.words.items()]
        )
        terms = sorted(set(chain.from_iterable(each.terms for each in words)))
        rows = await self._read(queries.bounded_counts(terms).fetch) if terms else []
        chunks: dict[str, int] = dict(rows)
        best = await in_background(lambda: {each.word: each.best(chunks) for each in words})
        found = {word: text for word, text in best.items() if text is not None}
        others = [each for each in words if each.word not in found and each.splits(chunks)]
        if others:
            found |= await self._read(
                lambda connection: find_compounds(connection, queries, others, chunks)
            )
        question = SearchText.of(respelled(request.question.text, found))
        absent = tuple(word for word in request.absent_words if word not in found)
        return replace(request, question=question, also_searched=found, absent_words=absent)

    async def _read(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        return await self.database.run(work, snapshot=True)


async def read_choice(connection: Connection, filters: SearchFilters) -> VersionChoice:
    """Decide which of the stored versions a search reads, as `choose_versions` does."""
    if filters.as_of is not None:
        versions = Queries(connection.collection, Scope(as_of=filters.as_of)).versions()
        stored = [StoredVersion(*row) for row in await versions.fetch(connection)]
        return choose_versions(filters, stored)
    stored = await stored_versions(connection)
    near = await _read_near(connection, filters.near) if filters.near else {}
    return choose_versions(filters, stored, near)


async def _read_near(connection: Connection, urls: Sequence[str]) -> dict[str, set[str]]:
    statement = (
        "select library, edition from {documents} where version is not null and url = any(%s)"
    )
    rows = await connection.fetch(statement, (list(urls),))
    return {
        library: {edition for _, edition in group}
        for library, group in groupby(sorted(rows), key=lambda row: str(row[0]))
    }


async def _prepared(
    connection: Connection,
    request: RetrievalRequest,
    filters: SearchFilters,
    config: RetrievalConfig,
    *,
    is_searched: bool = True,
) -> tuple[RetrievalRequest, Found | None, Doubts]:
    """Read which versions the filters mean, then all in scope, if wanted, or doubtful words."""
    choice = await read_choice(connection, filters)
    queries = Queries(connection.collection, Scope.of(filters, choice))
    request = replace(request, queries=queries, version_notes=choice.notes)
    nothing = Doubts({})
    if request.mode != "chunk":
        budget = config.context_budget
        most = min(config.full_context_threshold, budget) if request.mode == "auto" else None
        whole = await read_everything(connection, queries, budget, most=most)
        if whole is not None:
            return request, whole, nothing
    if not is_searched:
        return request, None, nothing
    return request, None, await find_doubts(connection, queries, request.question.text)


def _result(
    found: Found, request: RetrievalRequest, embed_ms: float | None = None
) -> RetrievalResult:
    """Tell what was read whole or found, with what the user should know of the search."""
    elapsed = (time.perf_counter() - request.started) * 1000
    chunks = found.chunks
    wordings = zip(request.wordings, found.wording_idf, strict=False)
    # Of the libraries that something was found of; where nothing was, of all.
    libraries = {chunk.library for chunk in chunks} if chunks else set(request.version_notes)
    notes = (note for library, note in request.version_notes.items() if library in libraries)
    return RetrievalResult(
        mode="full_context" if embed_ms is None else "chunk",
        chunks=chunks,
        term_idf=found.idf,
        wordings={each.text: idf for each, idf in wordings},
        also_searched=dict(request.also_searched),
        absent_words=request.absent_words,
        truncated=found.is_cut,
        warnings=(*request.warnings, *notes),
        corpus_stats=CorpusStats(
            total_documents=found.totals.documents,
            total_parent_chunks=found.totals.parents,
            total_tokens=found.totals.tokens,
            documents_matched=tuple(dict.fromkeys(chunk.source_url for chunk in chunks)),
        ),
        timing=TimingInfo(
            embed_ms=embed_ms or 0.0, search_ms=elapsed - (embed_ms or 0.0), total_ms=elapsed
        ),
    )
