"""BM25 of children and of whole pages, summed in numpy; it runs no statement."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from webrag.lexical.analysis import term_weight
from webrag.lexical.postings import POSTING, unpack_postings

__all__ = [
    "K1",
    "B",
    "CorpusTotals",
    "LexicalScores",
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


class TermPostings(NamedTuple):
    """Where one query term occurs: parallel arrays, one entry per child that holds it.

    Attributes:
        term: The index term.
        keys: Child keys, see `child_key`.
        frequency: Occurrences in the child, >= 1.
        length: Index terms of the child, >= 1.
    """

    term: str
    keys: NDArray[np.int64]
    frequency: NDArray[np.float64]
    length: NDArray[np.float64]


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
    """BM25 by ascending id.

    Attributes:
        ids: Child keys or page ids, ascending, no duplicates.
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
        return self.ids[np.argsort(-self.scores, kind="stable")[:limit]]


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
    terms: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> tuple[list[TermPostings], dict[int, int]]:
    """Postings of each term, also of those that occur nowhere, and the terms of each page.

    Args:
        terms: Distinct index terms.
        rows: Per term that occurs: the term, its pages as big-endian (id, terms of the page, bytes
            of postings), and the packed postings of those pages in the same order.
    """
    found: Mapping[str, tuple[bytes, bytes]] = {term: (head, body) for term, head, body in rows}
    lengths: dict[int, int] = {}
    postings = []
    for term in terms:
        head, body = found.get(term, (b"", b""))
        headers = np.frombuffer(head, _PAGE_HEADER)
        entries = unpack_postings(body)
        documents = headers["document"].astype(np.int64)
        lengths.update(zip(documents.tolist(), headers["terms"].tolist(), strict=True))
        owners = np.repeat(documents, headers["bytes"] // POSTING.itemsize)
        postings.append(
            TermPostings(
                term,
                (owners << _ORDINAL_BITS) | entries["ordinal"].astype(np.int64),
                entries["tf"].astype(np.float64),
                entries["length"].astype(np.float64),
            )
        )
    return postings, lengths


def score_children(
    postings: Sequence[TermPostings],
    totals: CorpusTotals,
    frequencies: Mapping[str, int] | None = None,
) -> tuple[LexicalScores, dict[str, float]]:
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
            len(entry.keys) if frequencies is None else frequencies.get(entry.term, 0),
            totals.children,
        )
        for entry in postings
    }
    parts = [
        (
            entry.keys,
            _saturate(entry.frequency, entry.length, average)
            * (idf[entry.term] * term_weight(entry.term)),
        )
        for entry in postings
    ]
    return _sum_by_id(parts), idf


def score_pages(
    postings: Sequence[TermPostings],
    lengths: Mapping[int, int],
    totals: CorpusTotals,
    frequencies: Mapping[str, int] | None = None,
) -> LexicalScores:
    """BM25 of every whole page that holds a query term, divided by the best page's: (0, 1].

    Args:
        postings: As for `score_children`.
        lengths: Index terms of each page that occurs in the postings.
        totals: As for `score_children`.
        frequencies: As for `score_children`, of pages.
    """
    average = totals.terms / max(totals.documents, 1) or 1.0
    parts = []
    for entry in postings:
        pages, frequency = _sum_by_id([(entry.keys >> _ORDINAL_BITS, entry.frequency)])
        length = np.array([lengths.get(page, average) for page in pages.tolist()], dtype=float)
        held = len(pages) if frequencies is None else frequencies.get(entry.term, 0)
        weight = inverse_document_frequency(held, totals.documents) * term_weight(entry.term)
        parts.append((pages, _saturate(frequency, length, average) * weight))
    pages, scores = _sum_by_id(parts)
    return LexicalScores(pages, scores / scores.max() if len(scores) else scores)


def _saturate(
    frequency: NDArray[np.float64], length: NDArray[np.float64], average: float
) -> NDArray[np.float64]:
    return frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * length / average))


def _sum_by_id(
    parts: Sequence[tuple[NDArray[np.int64], NDArray[np.float64]]],
) -> LexicalScores:
    ids = np.concatenate([np.empty(0, np.int64), *(part[0] for part in parts)])
    values = np.concatenate([np.empty(0, np.float64), *(part[1] for part in parts)])
    if not len(ids):
        return LexicalScores(ids, values)
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
    return LexicalScores(ids[starts], np.add.reduceat(values[order], starts))
