"""Finds the chunks of a scope that match a question best, by meaning and by words together."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import zip_longest
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
from llama_index.postprocessor.webrag.selection import depth_weight, within_budget
from llama_index.postprocessor.webrag.wordings import wordings_score
from numpy.typing import NDArray

from webrag.ingestion.characters import storable
from webrag.lexical.analysis import query_terms
from webrag.lexical.bm25 import (
    ChildScores,
    CorpusTotals,
    WordScores,
    child_key,
    fuse_ranks,
    fuse_scores,
    score_words,
    split_key,
)
from webrag.lexical.postings import unpack_rows
from webrag.postgres.database import Connection, Rows
from webrag.retrieval.models import ChildMatch, RetrievalConfig, RetrievedChunk, WordingScores
from webrag.retrieval.statements import (
    CHUNK_KEY,
    PARENT_COLUMNS,
    Queries,
    Statement,
    fetch_together,
)

# Looked up per wanted child, four times as many each round: nearly always one round, and never
# many where a kind of content is rare.
_FIRST_LOOK = 4

# Place of the question's cosine in a row of `Queries.candidates`; those of wordings follow.
_FIRST_COSINE = 6

# Of as many candidates as the question has, what its other wordings may add: every one of them is
# scored under every wording.
_ADDED_SHARE = 0.5

# What a question may cost: the later words of a pasted page change little, and embedding services
# limit their input.
_MAX_QUERY_CHARS = 8_000
_MAX_TERMS = 64

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SearchText:
    """A question or another wording of it, within limits, and its distinct terms.

    The vector is empty until it is made, all zeros where the model knows no meaning.
    """

    text: str
    terms: tuple[str, ...]
    vector: Sequence[float] = ()

    @classmethod
    def of(cls, text: str) -> "SearchText":
        """Bring a text within limits; it may be empty."""
        kept = storable(text.replace("\0", " "))[:_MAX_QUERY_CHARS].strip()
        return cls(kept, tuple(query_terms(kept)[:_MAX_TERMS]))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A child that matched, its scores under the question, then under each other wording of it.

    The hash is equal for equal texts under equal titles and headings.
    """

    key: int
    document: int
    parent_id: UUID
    parent_tokens: int
    text_hash: bytes | None
    depth_weight: float
    scores: tuple[WordingScores, ...]

    @property
    def fused(self) -> float:
        """Fused score under the question."""
        return self.scores[0].fused

    @property
    def merit(self) -> float:
        """Fused score, with other wordings the weighted mean of all."""
        return wordings_score(tuple(each.fused for each in self.scores))

    @property
    def score(self) -> float:
        """The merit times the depth multiplier: what parents are ordered by."""
        return self.merit * self.depth_weight


def drop_repeated_texts(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Keep one of several children with the same text, in the order given.

    It is that of the page whose best child is best, then of the page nearer to the named ones.
    """
    best_of_page: dict[int, float] = {}
    for candidate in candidates:
        best = best_of_page.get(candidate.document, 0.0)
        best_of_page[candidate.document] = max(best, candidate.fused)
    owners: dict[bytes, Candidate] = {}

    def preference(candidate: Candidate) -> tuple[float, float, int]:
        best = best_of_page[candidate.document]
        return (best, candidate.depth_weight, -candidate.key)

    for candidate in candidates:
        if candidate.text_hash is not None:
            rival = owners.get(candidate.text_hash)
            if rival is None or preference(candidate) > preference(rival):
                owners[candidate.text_hash] = candidate
    return [c for c in candidates if c.text_hash is None or owners[c.text_hash] is c]


def group_by_parent(candidates: Iterable[Candidate]) -> list[tuple[Candidate, ...]]:
    """Group children by parent, each best first; a parent counts as its best child."""
    members: dict[UUID, list[Candidate]] = {}
    for candidate in candidates:
        members.setdefault(candidate.parent_id, []).append(candidate)
    hits = [tuple(sorted(each, key=lambda child: -child.merit)) for each in members.values()]
    return sorted(hits, key=lambda hit: -hit[0].score)


def fit_budget(items: Sequence[T], tokens: Callable[[T], int], budget: int) -> tuple[list[T], bool]:
    """Give the longest prefix within a token budget, at least one item, and whether it was cut."""
    kept = within_budget(map(tokens, items), budget)
    return list(items[:kept]), kept < len(items)


def in_reading_order(
    items: Iterable[T], chunk: Callable[[T], RetrievedChunk], score: Callable[[T], float]
) -> tuple[T, ...]:
    """One group per page, groups by best score, chunks of a page as they stand on it."""
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(chunk(item).source_url, []).append(item)
    ordered = sorted(groups.values(), key=lambda group: -max(map(score, group)))
    return tuple(
        item for group in ordered for item in sorted(group, key=lambda one: chunk(one).chunk_index)
    )


@dataclass(frozen=True, slots=True)
class Found:
    """The parents that were found or read whole, as they are shown, and the weight of each term."""

    totals: CorpusTotals
    chunks: tuple[RetrievedChunk, ...] = ()
    idf: dict[str, float] = field(default_factory=dict)
    wording_idf: tuple[dict[str, float], ...] = ()
    is_cut: bool = False


def totals_of(rows: Rows) -> CorpusTotals:
    """Read what `Queries.totals` or `Queries.sizes` counted."""
    return CorpusTotals(*(int(value) for value in rows[0]))


async def score_collection(
    connection: Connection, queries: Queries, terms: Sequence[str]
) -> WordScores:
    """Give BM25 of all chunks and pages in scope, counted over the whole collection."""
    sizes, rows = await fetch_together(connection, queries.sizes(), queries.postings(terms))
    return score_words(terms, unpack_rows(rows), totals_of(sizes))


async def read_everything(
    connection: Connection, queries: Queries, budget: int, *, most: int | None = None
) -> Found | None:
    """Read as many whole pages as fit the budget, in order; None above `most` tokens in scope."""
    totals = totals_of(await queries.totals().fetch(connection))
    if most is not None and totals.tokens > most:
        return None
    pages = await queries.pages_in_reading_order().fetch(connection)
    kept_pages, _ = fit_budget(pages, lambda page: int(page[1]), budget)
    if not kept_pages:
        return Found(totals)
    rows = await queries.parents_of_pages([page[0] for page in kept_pages]).fetch(connection)
    parents = parents_of(rows)
    kept, _ = fit_budget(parents, lambda row: int(row["token_end"] - row["token_start"]), budget)
    chunks = tuple(RetrievedChunk(**row, score=1.0, as_of=queries.scope.as_of) for row in kept)
    return Found(totals, chunks, is_cut=len(chunks) < totals.parents)


async def search_chunks(
    connection: Connection,
    queries: Queries,
    config: RetrievalConfig,
    variants: Sequence[SearchText],
) -> Found:
    """Find the parents of the children that match best by meaning and by words.

    The variants are the question, then other wordings of it, which add at most half as much again.
    The connection is in a snapshot.
    """
    limit = config.children_limit
    totals, legs = await _both_legs(connection, queries, config, variants)
    words = [each for each, _ in legs]
    idf = tuple(each.idf for each in words)
    found_keys = []
    for scores, nearest in legs:
        by_words = await best_by_words(connection, queries, scores.children, limit)
        found_keys.append(dict.fromkeys([*by_words, *nearest]))
    keys = list(dict.fromkeys(key for each in found_keys for key in each))
    if not keys:
        return Found(totals, idf=idf[0], wording_idf=idf[1:])

    rows = await queries.candidates(
        [split_key(key) for key in keys], [each.vector for each in variants]
    ).fetch(connection)
    candidates = _question_candidates(rows, found_keys[0], words[0], config)
    own: list[Candidate] = candidates[:limit]
    extra: list[Candidate] = []
    if len(variants) > 1:
        own, extra = _with_wordings(rows, words, found_keys, own, config)
    hits, is_trimmed = _hits(own, extra, config.context_budget)
    if not hits:
        return Found(totals, idf=idf[0], wording_idf=idf[1:])

    children = [split_key(match.key) for hit in hits for match in hit]
    text_rows, parent_rows = await fetch_together(
        connection, queries.texts(children), queries.parents([hit[0].parent_id for hit in hits])
    )
    texts = {child_key(row[0], row[1]): row[2:] for row in text_rows}
    hit_of = {hit[0].parent_id: hit for hit in hits}
    chunks = [
        _chunk(row, hit_of[row["chunk_id"]], texts, queries.scope.as_of)
        for row in parents_of(parent_rows)
    ]
    return Found(
        totals,
        in_reading_order(chunks, chunk=lambda chunk: chunk, score=lambda chunk: chunk.score),
        idf[0],
        idf[1:],
        is_cut=is_trimmed or len(candidates) > limit,
    )


def _chunk(
    row: Mapping[str, Any],
    hit: Sequence[Candidate],
    texts: Mapping[int, tuple[Any, ...]],
    as_of: datetime | None,
) -> RetrievedChunk:
    return RetrievedChunk(
        **row,
        as_of=as_of,
        score=hit[0].score,
        raw_similarity=max(match.scores[0].similarity for match in hit),
        matches=tuple(_match(match, texts[match.key]) for match in hit),
    )


def _match(candidate: Candidate, row: tuple[Any, ...]) -> ChildMatch:
    node_id, char_start, char_end, text, heading_path = row
    return ChildMatch(
        node_id=node_id,
        char_start=char_start,
        char_end=char_end,
        text=text,
        heading_path=tuple(heading_path or ()),
        wordings=candidate.scores[1:],
        **vars(candidate.scores[0]),  # `dict` asks a model for `keys`, which takes an error
    )


def _hits(
    own: Sequence[Candidate], extra: Sequence[Candidate], budget: int
) -> tuple[list[tuple[Candidate, ...]], bool]:
    """Give parents within the budget, and whether it cut some; wordings cost the question none."""
    kept, is_trimmed = fit_budget(group_by_parent(own), lambda hit: hit[0].parent_tokens, budget)
    if not extra:
        return kept, is_trimmed
    named = {hit[0].parent_id for hit in kept}
    grouped = group_by_parent([*own, *extra])
    others = [hit for hit in grouped if hit[0].parent_id not in named]
    added, _ = fit_budget(others, lambda hit: hit[0].parent_tokens, budget)
    return [hit for hit in grouped if hit[0].parent_id in named] + added, is_trimmed


async def _both_legs(
    connection: Connection,
    queries: Queries,
    config: RetrievalConfig,
    variants: Sequence[SearchText],
) -> tuple[CorpusTotals, list[tuple[WordScores, list[int]]]]:
    """Read the size of the scope, and each wording's BM25 and nearest keys, in one round trip."""
    few, limit = config.exact_scan_limit, config.children_limit
    terms = list(dict.fromkeys(term for each in variants for term in each.terms))
    vectors = [each.vector for each in variants if any(each.vector)]
    batch = [
        queries.totals(),
        queries.postings(terms),
        queries.search_settings(config.hnsw_ef_search),
    ]
    batch += [_first_try(queries, vector, limit, few) for vector in vectors]
    totals_rows, posting_rows, _, *nearest = await fetch_together(connection, *batch)
    totals = totals_of(totals_rows)
    if queries.scope.restricts and any(_are_too_many(rows, few) for rows in nearest):
        nearest = await fetch_together(
            connection, *(queries.nearest_in_graph(vector, limit) for vector in vectors)
        )
    by_vector = iter(nearest)
    postings = unpack_rows(posting_rows)
    legs = [
        (
            score_words(each.terms, postings, totals),
            [child_key(*row[:2]) for row in next(by_vector)] if any(each.vector) else [],
        )
        for each in variants
    ]
    return totals, legs


async def find_nearest(
    connection: Connection,
    queries: Queries,
    vector: Sequence[float],
    limit: int,
    *,
    most: int,
    columns: str,
) -> Rows:
    """Read the nearest chunks, in any order: columns of `data_children c`, and the distance.

    Up to `most` what the scope leaves is compared one by one, beyond the graph is searched.
    """
    if queries.scope.restricts:
        rows = await _first_try(queries, vector, limit, most, columns).fetch(connection)
        if not _are_too_many(rows, most):
            return [row[:-1] for row in rows]
    return await queries.nearest_in_graph(vector, limit, columns).fetch(connection)


def _first_try(
    queries: Queries, vector: Sequence[float], limit: int, most: int, columns: str = CHUNK_KEY
) -> Statement:
    if queries.scope.restricts:
        return queries.nearest_of_few(vector, limit, most, columns)
    return queries.nearest_in_graph(vector, limit, columns)


def _are_too_many(rows: Rows, most: int) -> bool:
    return bool(rows) and int(rows[0][-1]) > most


async def best_by_words(
    connection: Connection, queries: Queries, scores: ChildScores, limit: int
) -> list[int]:
    """Keys of the best chunks by BM25 among those in scope, best first."""
    if not queries.scope.restricts_chunks:
        return [int(key) for key in scores.best(limit)]
    ranked = [int(key) for key in scores.best()]
    kept: list[int] = []
    start, size = 0, limit * _FIRST_LOOK
    while start < len(ranked) and len(kept) < limit:
        block = ranked[start : start + size]
        rows = await queries.allowed([split_key(key) for key in block]).fetch(connection)
        allowed = {child_key(*row) for row in rows}
        kept += [key for key in block if key in allowed]
        start, size = start + size, size * _FIRST_LOOK
    return kept[:limit]


@dataclass(frozen=True, slots=True)
class _Columns:
    """The scores of each row under one wording."""

    similarity: NDArray[np.float64]
    lexical: NDArray[np.float64]
    pages: NDArray[np.float64]
    fused: NDArray[np.float64]
    is_eligible: NDArray[np.bool_]

    def at(self, place: int) -> WordingScores:
        return WordingScores(
            similarity=float(self.similarity[place]),
            lexical=float(self.lexical[place]),
            page_lexical=float(self.pages[place]),
            fused=float(self.fused[place]),
        )


def _columns(rows: Rows, words: WordScores, place: int, config: RetrievalConfig) -> _Columns:
    keys = np.array([_key(row) for row in rows], dtype=np.int64)
    lexical = words.children.at(keys)
    pages = words.pages.at(keys >> 16)
    # A vector without length has no direction: pgvector answers NaN.
    cosines = np.array([row[_FIRST_COSINE + place] for row in rows], dtype=np.float64)
    similarity = np.nan_to_num(cosines)
    eligible = (lexical > 0) | (similarity >= config.similarity_floor)
    fused = np.zeros(len(rows))
    found = lexical[eligible], similarity[eligible]
    fused[eligible] = (
        fuse_ranks(*found)
        if config.fusion_method == "rrf"
        else fuse_scores(
            *found,
            pages[eligible],
            lexical_weight=config.lexical_weight,
            page_weight=config.page_weight,
        )
    )
    return _Columns(similarity, lexical, pages, fused, eligible)


def _question_candidates(
    rows: Rows, found: Mapping[int, None], words: WordScores, config: RetrievalConfig
) -> list[Candidate]:
    """Scored candidates of the question itself, best first, each text once."""
    # What only another wording found must not change what the scores are relative to.
    own = [row for row in rows if _key(row) in found]
    columns = _columns(own, words, 0, config)
    scored = [
        _candidate(row, columns.at(place), config)
        for place, row in enumerate(own)
        if columns.is_eligible[place]
    ]
    return drop_repeated_texts(sorted(scored, key=lambda each: (-each.fused, each.key)))


def _candidate(row: Sequence[Any], scores: WordingScores, config: RetrievalConfig) -> Candidate:
    return Candidate(
        key=_key(row),
        document=row[0],
        parent_id=row[2],
        parent_tokens=row[5],
        text_hash=row[3],
        depth_weight=depth_weight(row[4], rate=config.depth_decay_rate, floor=config.depth_floor),
        scores=(scores,),
    )


def _with_wordings(
    rows: Rows,
    words: Sequence[WordScores],
    found: Sequence[Mapping[int, None]],
    own: Sequence[Candidate],
    config: RetrievalConfig,
) -> tuple[list[Candidate], list[Candidate]]:
    """Give the question's candidates, and those that wordings add in turns, half as many."""
    told = [_columns(rows, each, place, config) for place, each in enumerate(words)]
    places = {_key(row): place for place, row in enumerate(rows)}
    added: dict[int, None] = {}
    texts = {each.text_hash for each in own} - {None}
    known = {each.key for each in own}
    rankings = [
        sorted(
            (places[key] for key in keys if columns.is_eligible[places[key]]),
            key=lambda place: -columns.fused[place],
        )
        for columns, keys in zip(told[1:], found[1:], strict=True)
    ]
    for place in in_turn(rankings):
        key, text = _key(rows[place]), rows[place][3]
        if key in known or text in texts:
            continue
        if len(added) >= config.children_limit * _ADDED_SHARE:
            break
        added[place] = None
        known.add(key)
        texts |= {text} - {None}

    def complete(candidate: Candidate, place: int) -> Candidate:
        others = (each.at(place) for each in told[1:])
        return replace(candidate, scores=(*candidate.scores, *others))

    extra = (_candidate(rows[place], told[0].at(place), config) for place in added)
    return (
        [complete(each, places[each.key]) for each in own],
        [complete(each, place) for each, place in zip(extra, added, strict=True)],
    )


def in_turn(rankings: Sequence[Sequence[T]]) -> Iterator[T]:
    """The first of each ranking, then the second of each, and so on."""
    for group in zip_longest(*rankings, fillvalue=None):
        yield from (each for each in group if each is not None)


def _key(row: Sequence[Any]) -> int:
    return child_key(row[0], row[1])


def parents_of(rows: Rows) -> list[dict[str, Any]]:
    """Parents that a statement selected, column name to value."""
    return [dict(zip(PARENT_COLUMNS, row, strict=True)) for row in rows]
