"""BM25 of children and of whole pages, and its fusion with similarities; it runs no statement."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from webrag.lexical.analysis import term_weight
from webrag.lexical.postings import PostingBlock

K1 = 1.2  # the usual pair; k1 1.5 measured the same, 0.9/0.4 worse on short technical sections
B = 0.75
_ORDINAL_BITS = 16
_SAMPLED = 16


class CorpusTotals(NamedTuple):
    """Size of what term weights and average lengths are counted over; `terms` of all children."""

    documents: int = 0
    children: int = 0
    terms: int = 0
    tokens: int = 0
    parents: int = 0


class LexicalScores(NamedTuple):
    """BM25 of pages, > 0, by ascending row number without duplicates."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float64]

    def at(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Scores of `ids`, 0.0 where an id holds no query term."""
        if not len(self.ids):
            return np.zeros(len(ids))
        slots = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[slots] == ids, self.scores[slots], 0.0)


class ChildScores(NamedTuple):
    """BM25 of children, 0.0 without a query term: one slot for each place on the pages read.

    `pages` are row numbers in the order of their slots, `ends` the slot behind each page's last;
    `ranks` the places in `pages` of those that count, by ascending row number.
    """

    pages: NDArray[np.int64]
    ends: NDArray[np.int64]
    ranks: NDArray[np.int64]
    scores: NDArray[np.float64]

    def at(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """Scores of children by key, 0.0 where one holds no query term."""
        if not len(self.ranks):
            return np.zeros(len(keys))
        ids = self.pages[self.ranks]
        found = np.minimum(np.searchsorted(ids, keys >> _ORDINAL_BITS), len(ids) - 1)
        ranks = self.ranks[found]
        slots = _starts(self.ends)[ranks] + (keys & ((1 << _ORDINAL_BITS) - 1))
        is_known = (ids[found] == keys >> _ORDINAL_BITS) & (slots < self.ends[ranks])
        return np.where(is_known, self.scores[np.where(is_known, slots, 0)], 0.0)

    def best(self, limit: int | None = None) -> NDArray[np.int64]:
        """Keys of the `limit` best children that hold a term, best first; ties by ascending key."""
        slots = _candidates(self.scores, len(self.scores) if limit is None else limit)
        ranks = np.searchsorted(self.ends, slots, side="right")
        keys = (self.pages[ranks] << _ORDINAL_BITS) | (slots - _starts(self.ends)[ranks])
        found: NDArray[np.int64] = keys[np.lexsort((keys, -self.scores[slots]))[:limit]]
        return found


class WordScores(NamedTuple):
    """The BM25 of chunks, of pages relative to the best page, and the weight of each term."""

    children: ChildScores
    pages: LexicalScores
    idf: dict[str, float]


def _starts(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], ends[:-1]])


def _candidates(scores: NDArray[np.float64], limit: int) -> NDArray[np.int64]:
    """Ascending places of scores above 0, the `limit` largest and few others."""
    # What is among the best of a part at least that good must be looked at; little else is.
    part = scores[::_SAMPLED]
    part = part[part > 0]  # finding a place among thousands of equal numbers takes 8 ms
    if limit >= len(part):
        return np.flatnonzero(scores)
    return np.flatnonzero(scores >= np.partition(part, len(part) - limit)[len(part) - limit])


def child_key(document: int, ordinal: int) -> int:
    """One number for a child: its page's row number and its place within the page."""
    return (document << _ORDINAL_BITS) | ordinal


def split_key(key: int) -> tuple[int, int]:
    """Page row number and ordinal of a child key."""
    return key >> _ORDINAL_BITS, key & ((1 << _ORDINAL_BITS) - 1)


def inverse_document_frequency(frequency: int, total: int) -> float:
    """The BM25 weight of a term in `frequency` of `total` units; positive, even when in all."""
    return float(np.log1p((total - frequency + 0.5) / (frequency + 0.5)))


def score_words(
    terms: Sequence[str],
    blocks: Sequence[PostingBlock],
    totals: CorpusTotals,
) -> WordScores:
    """Give BM25 of every child and every whole page that holds one of some distinct terms."""
    idf = {
        term: inverse_document_frequency(
            sum(_held(block, term) for block in blocks), totals.children
        )
        for term in terms
    }
    average = totals.terms / max(totals.children, 1) or 1.0
    # A child's length is one of few numbers, and gathering is cheaper than dividing.
    norms = _norm(np.arange(_LENGTHS), average)
    weights = [idf[term] * term_weight(term) * (K1 + 1) for term in terms]
    scores = np.zeros(sum(len(block.layout.lengths) for block in blocks))
    slot = 0
    for block in blocks:
        next_slot = slot + len(block.layout.lengths)
        _score_block(block, terms, weights, norms, scores[slot:next_slot])
        slot = next_slot
    by_page = _score_pages(terms, blocks, totals)
    return WordScores(_child_scores(blocks, scores), by_page, idf)


def _held(block: PostingBlock, term: str) -> int:
    found = block.terms.get(term)
    if found is None:
        return 0
    if not len(block.left):
        return len(found.slots)
    return int(np.count_nonzero(_counts(block).take(block.layout.owners.take(found.slots))))


def _counts(block: PostingBlock) -> NDArray[np.bool_]:
    counts = np.ones(len(block.layout.pages), bool)
    counts[block.left] = False
    return counts


def _score_block(
    block: PostingBlock,
    terms: Sequence[str],
    weights: Sequence[float],
    norms: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> None:
    layout = block.layout
    held = sum(len(block.terms[term].slots) for term in terms if term in block.terms)
    slot_norms = norms.take(layout.lengths) if held > len(layout.lengths) else None
    for term, weight in zip(terms, weights, strict=True):
        found = block.terms.get(term)
        if found is None:
            continue
        slots = found.slots.astype(np.intp)
        counts = found.counts.astype(np.float64)
        # In place, and by `take`: a tenth faster than `w * tf / (tf + norms[length])`.
        if slot_norms is None:
            divisor = norms.take(layout.lengths.take(slots))
        else:
            divisor = slot_norms.take(slots)
        divisor += counts
        counts *= weight
        counts /= divisor
        counts += scores.take(slots)
        scores[slots] = counts
    if len(block.left):
        scores[~_counts(block).take(layout.owners)] = 0.0


def _child_scores(blocks: Sequence[PostingBlock], scores: NDArray[np.float64]) -> ChildScores:
    pages = [block.layout.pages for block in blocks]
    sizes = [np.diff(block.layout.ends, prepend=0) for block in blocks]
    every = np.concatenate([_NO_NUMBERS, *pages])
    ranks = np.flatnonzero(np.concatenate([_NO_NUMBERS.astype(bool), *map(_counts, blocks)]))
    ranks = ranks[np.argsort(every[ranks], kind="stable")]
    return ChildScores(every, np.cumsum(np.concatenate([_NO_NUMBERS, *sizes])), ranks, scores)


_NO_NUMBERS = np.empty(0, np.int64)


def _score_pages(
    terms: Sequence[str], blocks: Sequence[PostingBlock], totals: CorpusTotals
) -> LexicalScores:
    average = totals.terms / max(totals.documents, 1) or 1.0
    page_terms = [block.layout.page_terms for block in blocks]
    norms = _norm(np.concatenate([_NO_NUMBERS, *page_terms]), average)
    scores = np.zeros(len(norms))
    for term in terms:  # one at a time: a question may have hundreds
        counts = _page_counts(blocks, term)
        held = int(np.count_nonzero(counts))
        weight = inverse_document_frequency(held, totals.documents) * term_weight(term)
        scores += weight * (K1 + 1) * counts / (counts + norms)
    places = np.flatnonzero(scores)
    ids = np.concatenate([_NO_NUMBERS, *(block.layout.pages for block in blocks)])[places]
    order = np.argsort(ids, kind="stable")
    return LexicalScores(ids[order], _relative(scores[places][order]))


def _page_counts(blocks: Sequence[PostingBlock], term: str) -> NDArray[np.float64]:
    """Count a term on each page of the blocks, 0 where a page does not count."""
    counts = np.zeros(sum(len(block.layout.pages) for block in blocks))
    page = 0
    for block in blocks:
        found, next_page = block.terms.get(term), page + len(block.layout.pages)
        if found is not None:
            own = counts[page:next_page]
            own[found.pages] = found.page_counts
            own[block.left] = 0.0
        page = next_page
    return counts


_LENGTHS = 1 << 16


def _norm(length: NDArray[np.int64], average: float) -> NDArray[np.float64]:
    return K1 * (1 - B + B * length.astype(np.float64) / average)


# The constant of reciprocal rank fusion as published; smaller values trust rank 1 more.
_RRF_CONSTANT = 60


def fuse_scores(
    lexical: Sequence[float] | NDArray[np.float64],
    similarity: Sequence[float] | NDArray[np.float64],
    page: Sequence[float] | NDArray[np.float64],
    *,
    lexical_weight: float = 0.4,
    page_weight: float = 0.2,
) -> NDArray[np.float64]:
    """Give one score per candidate from the values themselves, each divided by the best one's.

    BM25 counts by its weight, the cosine, shifted by one so that it is positive, by the rest, and
    the page's BM25 on top. The best possible score is `1 + page_weight`.
    """
    dense = np.asarray(similarity, dtype=float) + 1.0
    return (
        lexical_weight * _relative(np.asarray(lexical, dtype=float))
        + (1.0 - lexical_weight) * _relative(dense)
        + page_weight * np.asarray(page, dtype=float)
    )


def fuse_ranks(
    lexical: Sequence[float] | NDArray[np.float64],
    similarity: Sequence[float] | NDArray[np.float64],
) -> NDArray[np.float64]:
    """Sum `1 / (60 + rank)` over both legs; without a query term there is no lexical share."""
    words = np.asarray(lexical, dtype=float)
    dense = np.asarray(similarity, dtype=float)
    lexical_share = np.where(words > 0, 1.0 / (_RRF_CONSTANT + _ranks(words)), 0.0)
    return lexical_share + 1.0 / (_RRF_CONSTANT + _ranks(dense))


def _relative(values: NDArray[np.float64]) -> NDArray[np.float64]:
    best = values.max() if len(values) else 0.0
    return values / best if best > 0 else np.zeros_like(values)


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    better = len(values) - np.searchsorted(np.sort(values), values, side="right")
    return np.asarray(better + 1, dtype=np.float64)
