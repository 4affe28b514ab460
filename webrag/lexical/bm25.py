"""BM25 of children and of whole pages, summed in numpy; it runs no statement."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from webrag.lexical.analysis import term_weight
from webrag.lexical.postings import POSTING, unpack_postings

__all__ = [
    "K1",
    "B",
    "ChildScores",
    "CorpusTotals",
    "LexicalScores",
    "PostingPages",
    "TermPostings",
    "child_key",
    "inverse_document_frequency",
    "score_children",
    "score_pages",
    "split_key",
    "term_postings",
]

K1 = 1.2  # the usual pair; k1 1.5 measured the same, 0.9/0.4 worse on short technical sections
B = 0.75
_ORDINAL_BITS = 16
_PAGE_HEADER = np.dtype([("document", ">i4"), ("terms", ">i4"), ("bytes", ">i4")])

# Numbers of pages that are spread wider than this are sorted; a table of them would not fit into
# the processor's cache.
_WIDEST_TABLE = 1 << 22


class TermPostings(NamedTuple):
    """Where one query term occurs: pages, and the children of each in parallel arrays.

    Attributes:
        term: The index term.
        pages: Row numbers; a page may be there twice, with different children.
        page_length: Index terms of each page.
        counts: Children of each page that follow in `entries`, >= 1.
        entries: Postings in the layout of `POSTING`.
    """

    term: str
    pages: NDArray[np.int64]
    page_length: NDArray[np.int64]
    counts: NDArray[np.int64]
    entries: NDArray[Any]


class CorpusTotals(NamedTuple):
    """Size of what term weights and average lengths are counted over.

    Attributes:
        documents: Pages.
        children: Child chunks.
        terms: Index terms of all children.
        tokens: Tokens of all pages.
        parents: Parent chunks.
    """

    documents: int = 0
    children: int = 0
    terms: int = 0
    tokens: int = 0
    parents: int = 0


class LexicalScores(NamedTuple):
    """BM25 of pages, by ascending row number.

    Attributes:
        ids: Row numbers, no duplicates.
        scores: BM25 of each, > 0.
    """

    ids: NDArray[np.int64]
    scores: NDArray[np.float64]

    def at(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Scores of `ids`, 0.0 where an id holds no query term."""
        if not len(self.ids):
            return np.zeros(len(ids))
        slots = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[slots] == ids, self.scores[slots], 0.0)

    def best(self, limit: int) -> NDArray[np.int64]:
        """The `limit` best ids, best first; ties by ascending id."""
        return self.ids[_best(self.scores, limit)]


class ChildScores(NamedTuple):
    """BM25 of children: one slot for each place on the pages that hold a query term.

    Attributes:
        pages: Row numbers, ascending, no duplicates.
        ends: Number of the slot behind each page's last.
        scores: BM25 by slot, 0.0 where a child holds no query term.
    """

    pages: NDArray[np.int64]
    ends: NDArray[np.int64]
    scores: NDArray[np.float64]

    def at(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """Scores of children by key, 0.0 where one holds no query term."""
        if not len(self.pages):
            return np.zeros(len(keys))
        ranks = np.minimum(np.searchsorted(self.pages, keys >> _ORDINAL_BITS), len(self.pages) - 1)
        starts = np.concatenate([[0], self.ends])[ranks]
        slots = starts + (keys & ((1 << _ORDINAL_BITS) - 1))
        is_known = (self.pages[ranks] == keys >> _ORDINAL_BITS) & (slots < self.ends[ranks])
        return np.where(is_known, self.scores[np.where(is_known, slots, 0)], 0.0)

    def best(self, limit: int | None = None) -> NDArray[np.int64]:
        """Keys of the `limit` best children that hold a term, best first; ties by ascending key."""
        slots = _best(self.scores, len(self.scores) if limit is None else limit)
        ranks = np.searchsorted(self.ends, slots, side="right")
        starts = np.concatenate([[0], self.ends])[ranks]
        keys: NDArray[np.int64] = (self.pages[ranks] << _ORDINAL_BITS) | (slots - starts)
        return keys


def _best(scores: NDArray[np.float64], limit: int) -> NDArray[np.int64]:
    """Places of the `limit` largest above 0, largest first; ties by ascending place."""
    # What is among the best of a part at least that good must be looked at; little else is.
    part = scores[::_SAMPLED]
    least = np.partition(part, len(part) - limit)[len(part) - limit] if limit < len(part) else 0.0
    places = np.flatnonzero(scores >= least if least > 0 else scores > 0)
    return places[np.argsort(-scores[places], kind="stable")[:limit]]


_SAMPLED = 16


def child_key(document: int, ordinal: int) -> int:
    """One number for a child: its page's row number and its place within the page."""
    return (document << _ORDINAL_BITS) | ordinal


def split_key(key: int) -> tuple[int, int]:
    """Page row number and ordinal of a child key."""
    return key >> _ORDINAL_BITS, key & ((1 << _ORDINAL_BITS) - 1)


def inverse_document_frequency(frequency: int, total: int) -> float:
    """The BM25 weight of a term in `frequency` of `total` units; positive, even when in all."""
    return float(np.log1p((total - frequency + 0.5) / (frequency + 0.5)))


def term_postings(
    terms: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
    left_out: Sequence[int] | NDArray[np.int64] = (),
    others: Sequence[tuple[Any, ...]] = (),
) -> list[TermPostings]:
    """Postings of each term, also of those that occur nowhere.

    Args:
        terms: Distinct index terms.
        rows: The term, pages that hold it as big-endian (id, terms of the page, bytes of
            postings), and the packed postings of those pages in the same order; a term may have
            several rows.
        left_out: Pages whose postings in `rows` do not count.
        others: More rows; all their pages count.
    """
    found: dict[str, list[tuple[bytes, bytes]]] = {}
    for term, head, body in rows:
        found.setdefault(term, []).append((head, body))
    counted = {term: sum(len(head) for head, _ in each) for term, each in found.items()}
    for term, head, body in others:
        found.setdefault(term, []).append((head, body))
    gone = np.asarray(left_out, np.int64)
    return [
        _unpacked(term, found.get(term, []), gone, counted.get(term, 0) // _PAGE_HEADER.itemsize)
        for term in terms
    ]


def _unpacked(
    term: str, rows: Sequence[tuple[bytes, bytes]], gone: NDArray[np.int64], among: int
) -> TermPostings:
    """Postings of the rows without those pages of the first `among` that are gone."""
    headers = np.frombuffer(b"".join(head for head, _ in rows), _PAGE_HEADER)
    pages = headers["document"].astype(np.int64)
    lengths = headers["terms"].astype(np.int64)
    sizes = headers["bytes"].astype(np.int64)
    left = np.flatnonzero(np.isin(pages[:among], gone)) if len(gone) else gone
    ends = np.cumsum(sizes)[left].tolist() if len(left) else []
    cuts = [(end - size, end) for end, size in zip(ends, sizes[left].tolist(), strict=True)]
    bodies = _without([body for _, body in rows], cuts)
    if len(left):
        pages, lengths, sizes = (np.delete(each, left) for each in (pages, lengths, sizes))
    return TermPostings(
        term, pages, lengths, sizes // POSTING.itemsize, unpack_postings(b"".join(bodies))
    )


def _without(
    parts: Sequence[bytes], cuts: Sequence[tuple[int, int]]
) -> Sequence[bytes | memoryview]:
    """The parts without some stretches of them, which ascend and none of which is in two parts.

    What is left is not copied: postings are too many to be copied twice.
    """
    if not cuts:
        return parts
    kept: list[memoryview] = []
    behind = iter([*cuts, (math.inf, math.inf)])
    start, end = next(behind)
    offset = 0
    for part in parts:
        view, first = memoryview(part), 0
        while start < offset + len(part):
            kept.append(view[first : int(start) - offset])
            first = int(end) - offset
            start, end = next(behind)
        kept.append(view[first:])
        offset += len(part)
    return kept


class PostingPages:
    """The pages that hold any of some terms, ascending, and where each term's pages stand in them.

    Attributes:
        pages: Row numbers, no duplicates.
        ranks: For each term, the place of each of its pages in `pages`.
    """

    def __init__(self, postings: Sequence[TermPostings]) -> None:
        every = np.concatenate([np.empty(0, np.int64), *(entry.pages for entry in postings)])
        edges = np.cumsum([len(entry.pages) for entry in postings])[:-1]
        self.pages, ranks = _distinct(every)
        self.ranks = np.split(ranks, edges) if len(postings) else []


def _distinct(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The values, ascending and each once, and the place of each value in them."""
    if not len(values):
        return values, values
    low = values.min()
    width = int(values.max() - low) + 1
    if width > _WIDEST_TABLE:
        found, places = np.unique(values, return_inverse=True)
        return found, places
    is_there = np.zeros(width, bool)
    is_there[values - low] = True
    table = np.cumsum(is_there) - 1
    return np.flatnonzero(is_there) + low, table[values - low]


def score_children(
    postings: Sequence[TermPostings],
    totals: CorpusTotals,
    frequencies: Mapping[str, int] | None = None,
) -> tuple[ChildScores, dict[str, float]]:
    """BM25 of every child that holds a query term, and the weight of each term.

    Args:
        postings: One entry per distinct query term, also for terms that occur nowhere.
        totals: Size of the part that statistics are counted over.
        frequencies: How many children of that part hold each term that occurs there; None when
            it is the part that the postings are restricted to.
    """
    average = totals.terms / max(totals.children, 1) or 1.0
    idf = {
        entry.term: inverse_document_frequency(
            len(entry.entries) if frequencies is None else frequencies.get(entry.term, 0),
            totals.children,
        )
        for entry in postings
    }
    found = PostingPages(postings)
    sizes = np.zeros(len(found.pages), np.int64)
    for entry, ranks in zip(postings, found.ranks, strict=True):
        last = entry.entries["ordinal"][np.cumsum(entry.counts) - 1]
        np.maximum.at(sizes, ranks, last.astype(np.int64) + 1)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    scores = np.zeros(int(ends[-1]) if len(ends) else 0)
    # A child's length is one of few numbers, and gathering is cheaper than dividing.
    norms = _norm(np.arange(_LENGTHS), average)
    for entry, ranks in zip(postings, found.ranks, strict=True):
        weight = idf[entry.term] * term_weight(entry.term) * (K1 + 1)
        edges = np.concatenate([[0], np.cumsum(entry.counts)])
        for first in range(0, len(ranks), _PAGES_AT_ONCE):
            end = min(first + _PAGES_AT_ONCE, len(ranks))
            part = entry.entries[edges[first] : edges[end]]
            slots = np.repeat(starts[ranks[first:end]], entry.counts[first:end])
            slots += part["ordinal"]
            # In place, and by `take`: a tenth faster than `w * tf / (tf + norms[length])`.
            score = part["tf"].astype(np.float64)
            divisor = norms.take(part["length"].astype(np.intp))
            divisor += score
            score *= weight
            score /= divisor
            score += scores.take(slots)
            scores[slots] = score
    return ChildScores(found.pages, ends, scores), idf


def score_pages(
    postings: Sequence[TermPostings],
    totals: CorpusTotals,
    frequencies: Mapping[str, int] | None = None,
) -> LexicalScores:
    """BM25 of every whole page that holds a query term, divided by the best page's: (0, 1].

    Args:
        postings: As for `score_children`.
        totals: As for `score_children`.
        frequencies: As for `score_children`, of pages.
    """
    average = totals.terms / max(totals.documents, 1) or 1.0
    found = PostingPages(postings)
    scores: NDArray[np.float64] = np.zeros(len(found.pages))
    norms = np.zeros(len(found.pages), np.float64)
    for entry, ranks in zip(postings, found.ranks, strict=True):
        norms[ranks] = _norm(entry.page_length, average)
    for entry, ranks in zip(postings, found.ranks, strict=True):
        if not len(ranks):
            continue
        starts = np.cumsum(entry.counts) - entry.counts
        within = np.add.reduceat(entry.entries["tf"], starts, dtype=np.float64)
        frequency = np.bincount(ranks, within, len(scores))
        held = int(np.count_nonzero(frequency))
        if frequencies is not None:
            held = frequencies.get(entry.term, 0)
        weight = inverse_document_frequency(held, totals.documents) * term_weight(entry.term)
        scores += weight * (K1 + 1) * frequency / (frequency + norms)
    if len(scores):
        np.divide(scores, scores.max(), out=scores)
    return LexicalScores(found.pages, scores)


_LENGTHS = 1 << 16

# Pages that are scored at once: what is computed of ten times as many does not stay in the
# processor's cache, which takes three times as long.
_PAGES_AT_ONCE = 2_048


def _norm(length: NDArray[np.int64], average: float) -> NDArray[np.float64]:
    return K1 * (1 - B + B * length.astype(np.float64) / average)
