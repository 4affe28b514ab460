"""Packs the terms of a page's chunks into one small row per term, and unpacks such rows.

Does no scoring and no SQL. One posting is five bytes, big endian: `ordinal` u2 (the chunk's
position within its page), `tf` u1 (occurrences, capped at 255, where BM25 is saturated) and
`length` u2 (the chunk's exact number of terms). Document frequency and average length can
therefore be computed exactly from what is stored.
"""

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from webrag.lexical.analysis import analyze

POSTING = np.dtype([("ordinal", ">u2"), ("tf", "u1"), ("length", ">u2")])

SEGMENT_POSTINGS = 450
"""Postings per row: 2250 bytes and the longest term stay below a btree tuple's 2704."""

MAX_TERMS = 300_000
"""Different terms of one page at most: each is a row of its own. A language has fewer words."""

_PACK = struct.Struct(">HBH")
_MAX_TF = 255
_MAX_U2 = 65_535


class TooManyPostingsError(ValueError):
    """A page has more than can be indexed; the message says what, as a sentence."""


class PostingRow(NamedTuple):
    """Postings of one term within one page, by ascending ordinal; segments are numbered from 0."""

    term: str
    segment: int
    packed: bytes


def pack_texts(texts: Iterable[str]) -> tuple[list[PostingRow], int]:
    """Pack the words of a page's chunks, and count them with repetitions."""
    chunks = list(map(analyze, texts))
    return pack_postings(chunks), sum(map(len, chunks))


def pack_postings(chunks: Sequence[Sequence[str]]) -> list[PostingRow]:
    """Pack the terms, with repetitions, of a page's chunks into rows by term and segment.

    More than 65,536 chunks, 65,535 terms in one or `MAX_TERMS` different ones are refused.
    """
    if len(chunks) > _MAX_U2 + 1:
        raise TooManyPostingsError(
            f"It has {len(chunks):,} chunks; at most {_MAX_U2 + 1:,} can be indexed."
        )
    packed: defaultdict[str, bytearray] = defaultdict(bytearray)
    for ordinal, terms in enumerate(chunks):
        if len(terms) > _MAX_U2:
            raise TooManyPostingsError(
                f"One of its chunks has {len(terms):,} terms; at most {_MAX_U2:,} can be indexed."
            )
        once = _PACK.pack(ordinal, 1, len(terms))  # as most occur
        for term, count in Counter(terms).items():
            many = count > 1 and _PACK.pack(ordinal, min(count, _MAX_TF), len(terms))
            packed[term] += many or once
        if len(packed) > MAX_TERMS:
            raise TooManyPostingsError(
                f"It has more than {MAX_TERMS:,} different words; that is the most of one page that"
                " can be indexed."
            )
    size = SEGMENT_POSTINGS * POSTING.itemsize
    return [
        PostingRow(term, start // size, bytes(packed[term][start : start + size]))
        for term in sorted(packed)
        for start in range(0, len(packed[term]), size)
    ]


_PAGE_HEADER = np.dtype([("document", ">i4"), ("terms", ">i4"), ("bytes", ">i4")])

# Numbers of pages that are spread wider than this are sorted; a table of them would not fit into
# the processor's cache.
_WIDEST_TABLE = 1 << 22


class SlotLayout(NamedTuple):
    """The pages of some postings by row number, each once, and the slots of their chunks.

    `ends` has the number of the slot behind each page's last; by slot, `owners` have the place of
    its page and `lengths` the index terms of its chunk.
    """

    pages: NDArray[np.int64]
    page_terms: NDArray[np.int64]
    ends: NDArray[np.int64]
    owners: NDArray[np.int32]
    lengths: NDArray[np.uint16]

    @classmethod
    def of_sizes(
        cls,
        pages: NDArray[np.int64],
        page_terms: NDArray[np.int64],
        sizes: NDArray[np.int64],
        lengths: NDArray[np.uint16],
    ) -> "SlotLayout":
        """The layout of pages with so many slots each."""
        owners = np.repeat(np.arange(len(pages), dtype=np.int32), sizes)
        return cls(pages, page_terms, np.cumsum(sizes), owners, lengths)


class TermSlots(NamedTuple):
    """The chunks and pages that hold a term, and how often."""

    slots: NDArray[np.int64]
    counts: NDArray[np.uint8]
    pages: NDArray[np.int64]
    page_counts: NDArray[np.int64]

    @classmethod
    def of_chunks(
        cls, slots: NDArray[np.int64], counts: NDArray[np.uint8], layout: SlotLayout
    ) -> "TermSlots":
        """The chunks, and their pages."""
        by_page = np.bincount(layout.owners[slots], counts, len(layout.pages)).astype(np.int64)
        pages = np.flatnonzero(by_page)
        return cls(slots, counts, pages, by_page[pages])


class Postings(NamedTuple):
    """The slots of some terms on the pages that hold any of them."""

    layout: SlotLayout
    terms: Mapping[str, TermSlots]


def unpack_rows(rows: Sequence[tuple[str, bytes, bytes]]) -> Postings:
    """Read the postings of each term in a row, of all pages that hold it.

    A row has a term, pages as big-endian (id, terms of the page, bytes of postings), and the packed
    postings in that order; a page may stand there several times.
    """
    headers = np.frombuffer(b"".join(head for _, head, _ in rows), _PAGE_HEADER)
    entries = np.frombuffer(b"".join(body for *_, body in rows), POSTING)
    pages, places = _distinct(headers["document"].astype(np.int64))
    page_terms = np.zeros(len(pages), np.int64)
    page_terms[places] = headers["terms"]
    counts = headers["bytes"].astype(np.int64) // POSTING.itemsize
    slots = entries["ordinal"].astype(np.int64)
    last = slots[np.cumsum(counts) - 1]  # chunks ascend within a row
    sizes = np.zeros(len(pages), np.int64)
    np.maximum.at(sizes, places, last + 1)
    slots += np.repeat((np.cumsum(sizes) - sizes)[places], counts)
    lengths = np.zeros(int(sizes.sum()), np.uint16)
    lengths[slots] = entries["length"]
    layout = SlotLayout.of_sizes(pages, page_terms, sizes, lengths)
    edges = np.cumsum([len(body) // POSTING.itemsize for *_, body in rows], dtype=np.int64)[:-1]
    occurrences = np.ascontiguousarray(entries["tf"])
    split = zip(rows, np.split(slots, edges), np.split(occurrences, edges), strict=False)
    return Postings(
        layout, {row[0]: TermSlots.of_chunks(held, tf, layout) for row, held, tf in split}
    )


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
