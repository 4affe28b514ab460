"""Adds the neighbours of strong chunks as context; it never touches what was matched."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from uuid import UUID

from webrag.concurrency import all_of
from webrag.indexing.corpus import Corpus, StoredParent
from webrag.ingestion.models import Anchor
from webrag.orchestration.models import RankedChunk
from webrag.retrieval.aggregation import HTML_PREFERRED_FLAGS, select_surface
from webrag.retrieval.models import RetrievedChunk

__all__ = ["in_reading_order", "neighbours"]

_FLAGS = (*HTML_PREFERRED_FLAGS, "has_steps")


async def neighbours(
    ranked: Sequence[RankedChunk],
    corpus: Corpus,
    *,
    radius: int,
    min_score: float,
    token_budget: int,
) -> tuple[RankedChunk, ...]:
    """Chunks next to strong ones on their pages, scored 0.0 and marked as adjacent.

    None of them is in `ranked`, none twice. Neighbours of better chunks come first and all
    together stay within the budget.

    Args:
        ranked: Matched chunks, best first.
        corpus: Where the pages are stored.
        radius: Neighbours on each side; 0 for none.
        min_score: Chunks below it get no neighbours.
        token_budget: Tokens of neighbours at most; 0 for none.
    """
    strong = [item for item in ranked if item.reranked_score >= min_score]
    wanted = _wanted(strong, ranked, radius)
    if not wanted or token_budget <= 0:
        return ()
    pages = list(wanted)
    found = await all_of(corpus.neighbours(page, wanted[page]) for page in pages)
    by_place = {(row.document_id, row.chunk_index): row for rows in found for row in rows}
    added: list[RankedChunk] = []
    for page, index in _by_strength(strong, wanted, radius):
        row = by_place.get((page, index))
        if row is None or row.token_end - row.token_start > token_budget:
            continue
        token_budget -= row.token_end - row.token_start
        added.append(RankedChunk(chunk=_chunk(row), reranked_score=0.0, is_locality_expanded=True))
    return tuple(added)


def in_reading_order(ranked: Iterable[RankedChunk]) -> tuple[RankedChunk, ...]:
    """One group per page, groups by best score, chunks of a page as they stand on it."""
    groups: defaultdict[str, list[RankedChunk]] = defaultdict(list)
    for item in ranked:
        groups[item.chunk.source_url].append(item)
    ordered = sorted(groups.values(), key=lambda group: -max(i.reranked_score for i in group))
    return tuple(
        item for group in ordered for item in sorted(group, key=lambda i: i.chunk.chunk_index)
    )


def _wanted(
    strong: Sequence[RankedChunk], ranked: Sequence[RankedChunk], radius: int
) -> dict[UUID, list[int]]:
    present = {(item.chunk.document_id, item.chunk.chunk_index) for item in ranked}
    wanted: defaultdict[UUID, list[int]] = defaultdict(list)
    for item in strong:
        page = item.chunk.document_id
        for index in _around(item.chunk, radius):
            if (page, index) not in present:
                present.add((page, index))
                wanted[page].append(index)
    return dict(wanted)


def _by_strength(
    strong: Sequence[RankedChunk], wanted: dict[UUID, list[int]], radius: int
) -> list[tuple[UUID, int]]:
    places = [
        (item.chunk.document_id, index)
        for item in strong
        for index in _around(item.chunk, radius)
        if index in wanted.get(item.chunk.document_id, ())
    ]
    return list(dict.fromkeys(places))


def _around(chunk: RetrievedChunk, radius: int) -> list[int]:
    distances = [side * distance for distance in range(1, radius + 1) for side in (-1, 1)]
    return [chunk.chunk_index + d for d in distances if chunk.chunk_index + d >= 0]


def _chunk(row: StoredParent) -> RetrievedChunk:
    flags = {name: getattr(row, name) for name in _FLAGS}
    is_lossy = any(flags[name] for name in HTML_PREFERRED_FLAGS)
    selected, surface = select_surface(row.text, row.html, is_lossy=is_lossy)
    return RetrievedChunk(
        chunk_id=row.id,
        document_id=row.document_id,
        source_url=row.url,
        site=row.site,
        title=row.title,
        text=row.text,
        selected_text=selected,
        surface=surface,
        section_heading=row.heading,
        heading_path=tuple(row.heading_path),
        chunk_index=row.chunk_index,
        char_start=row.char_start,
        char_end=row.char_end,
        token_start=row.token_start,
        token_end=row.token_end,
        score=0.0,
        raw_similarity=None,
        depth=row.depth,
        images=tuple(row.images),
        anchors=tuple(map(Anchor.model_validate, row.anchors)),
        published_at=row.published_at,
        fetched_at=row.fetched_at,
        **flags,
    )
