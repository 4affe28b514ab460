"""BM25 of children and of whole pages, and its fusion with similarities; it runs no statement."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from webrag.lexical.analysis import meaning_share, term_weight
from webrag.lexical.postings import Postings

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

    `pages` are row numbers, ascending, and `ends` the slot behind each page's last.
    """

    pages: NDArray[np.int64]
    ends: NDArray[np.int64]
    scores: NDArray[np.float64]

    def at(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """Scores of children by key, 0.0 where one holds no query term."""
        if not len(self.pages):
            return np.zeros(len(keys))
        documents = keys >> _ORDINAL_BITS
        ranks = np.minimum(np.searchsorted(self.pages, documents), len(self.pages) - 1)
        slots = _starts(self.ends)[ranks] + (keys & ((1 << _ORDINAL_BITS) - 1))
        is_known = (self.pages[ranks] == documents) & (slots < self.ends[ranks])
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


def score_words(terms: Sequence[str], postings: Postings, totals: CorpusTotals) -> WordScores:
    """Give BM25 of every child and every whole page that holds one of some distinct terms."""
    layout = postings.layout
    held = {term: len(found.slots) for term, found in postings.terms.items()}
    rarity = {t: inverse_document_frequency(held.get(t, 0), totals.children) for t in terms}
    idf = {term: weight * meaning_share(term) for term, weight in rarity.items()}
    average = totals.terms / max(totals.children, 1) or 1.0
    # A child's length is one of few numbers, and gathering is cheaper than dividing.
    norms = _norm(np.arange(_LENGTHS), average)
    asked = sum(held.get(term, 0) for term in terms)
    slot_norms = norms.take(layout.lengths) if asked > len(layout.lengths) else None
    scores = np.zeros(len(layout.lengths))
    for term in terms:
        found = postings.terms.get(term)
        if found is None:
            continue
        slots = found.slots
        counts = found.counts.astype(np.float64)
        # In place, and by `take`: a tenth faster than `w * tf / (tf + norms[length])`.
        if slot_norms is None:
            divisor = norms.take(layout.lengths.take(slots))
        else:
            divisor = slot_norms.take(slots)
        divisor += counts
        counts *= idf[term] * term_weight(term) * (K1 + 1)
        counts /= divisor
        counts += scores.take(slots)
        scores[slots] = counts
    children = ChildScores(layout.pages, layout.ends, scores)
    return WordScores(children, _score_pages(terms, postings, totals), idf)


def _score_pages(terms: Sequence[str], postings: Postings, totals: CorpusTotals) -> LexicalScores:
    average = totals.terms / max(totals.documents, 1) or 1.0
    norms = _norm(postings.layout.page_terms, average)
    scores = np.zeros(len(norms))
    for term in terms:  # one at a time: a question may have hundreds
        found = postings.terms.get(term)
        if found is None:
            continue
        weight = inverse_document_frequency(len(found.pages), totals.documents)
        weight *= meaning_share(term)
        counts = found.page_counts
        added = weight * term_weight(term) * (K1 + 1) * counts / (counts + norms[found.pages])
        scores[found.pages] += added
    places = np.flatnonzero(scores)
    return LexicalScores(postings.layout.pages[places], _relative(scores[places]))


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
