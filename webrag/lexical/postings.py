"""Packs the terms of a page's chunks into one small row per term, and unpacks such rows.

Does no scoring and no SQL. One posting is five bytes, big endian: `ordinal` u2 (the chunk's
position within its page), `tf` u1 (occurrences, capped at 255, where BM25 is saturated) and
`length` u2 (the chunk's exact number of terms). Document frequency and average length can
therefore be computed exactly from what is stored.
"""

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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


def pack_postings(chunks: Sequence[Sequence[str]]) -> list[PostingRow]:
    """Pack the terms, with repetitions, of a page's chunks into rows by term and segment.

    More than 65,536 chunks, 65,535 terms in one or `MAX_TERMS` different ones are refused.
    """
    check_chunk_count(len(chunks))
    packed: defaultdict[str, bytearray] = defaultdict(bytearray)
    for ordinal, terms in enumerate(chunks):
        if len(terms) > _MAX_U2:
            raise TooManyPostingsError(
                f"One of its chunks has {len(terms):,} terms; at most {_MAX_U2:,} can be indexed."
            )
        for term, count in Counter(terms).items():
            packed[term] += _PACK.pack(ordinal, min(count, _MAX_TF), len(terms))
        check_term_count(len(packed))
    return [row for term in sorted(packed) for row in segments(term, bytes(packed[term]))]


def check_chunk_count(count: int) -> None:
    """Refuse a page of more chunks than postings can tell apart."""
    if count > _MAX_U2 + 1:
        raise TooManyPostingsError(
            f"It has {count:,} chunks; at most {_MAX_U2 + 1:,} can be indexed."
        )


def check_term_count(count: int) -> None:
    """Refuse a page of more than `MAX_TERMS` different terms."""
    if count > MAX_TERMS:
        raise TooManyPostingsError(
            f"It has more than {MAX_TERMS:,} different words; that is the most of one page that can"
            " be indexed."
        )


def unpack_postings(packed: bytes) -> NDArray[Any]:
    """Give the postings of one or more concatenated rows as a structured array of `POSTING`."""
    return np.frombuffer(packed, POSTING)


def segments(term: str, packed: bytes, first: int = 0) -> list[PostingRow]:
    """Cut the postings of a term on a page into rows, numbered from `first`."""
    size = SEGMENT_POSTINGS * POSTING.itemsize
    if len(packed) <= size:  # nearly always
        return [PostingRow(term, first, packed)] if packed else []
    return [
        PostingRow(term, number, packed[start : start + size])
        for number, start in enumerate(range(0, len(packed), size), first)
    ]


BLOCK_CHUNKS = 1 << 16
"""Chunks that numbers of two bytes tell apart; a block of more uses numbers of four."""

_PAGE_HEADER = np.dtype([("document", ">i4"), ("terms", ">i4"), ("bytes", ">i4")])
_LAYOUT_PAGE = np.dtype([("document", "<i4"), ("terms", "<i4"), ("chunks", "<i4")])

_MOST_COUNTED = 0xFFFF  # of a word on one page: fits two bytes, and is rare enough to be no matter

# Numbers of pages that are spread wider than this are sorted; a table of them would not fit into
# the processor's cache.
_WIDEST_TABLE = 1 << 22


class SlotLayout(NamedTuple):
    """The pages of a block by row number, each once, and the slots of their chunks.

    `ends` has the number of the slot behind each page's last; by slot, `owners` have the place of
    its page and `lengths` the index terms of its chunk.
    """

    pages: NDArray[np.int64]
    page_terms: NDArray[np.int64]
    ends: NDArray[np.int64]
    owners: NDArray[np.int32]
    lengths: NDArray[np.uint16]

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        return sum(part.nbytes for part in self)

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
    """The chunks and pages of a block that hold a term, and how often, 65,535 times at most."""

    slots: NDArray[Any]
    counts: NDArray[np.uint8]
    pages: NDArray[Any]
    page_counts: NDArray[Any]

    @classmethod
    def of_chunks(
        cls, slots: NDArray[Any], counts: NDArray[np.uint8], layout: SlotLayout
    ) -> "TermSlots":
        """The chunks, and their pages."""
        by_page = np.bincount(layout.owners[slots], counts, len(layout.pages)).astype(np.int64)
        pages = np.flatnonzero(by_page)
        return cls(slots, counts, pages, np.minimum(by_page[pages], _MOST_COUNTED))


class PostingBlock(NamedTuple):
    """The slots of terms on some pages; places of pages in `left` do not count."""

    layout: SlotLayout
    terms: Mapping[str, TermSlots]
    left: NDArray[np.int64]


class PackedBlock(NamedTuple):
    """A block as it is stored: for `unpack_layout`, and by ascending term for `unpack_slots`."""

    layout: bytes
    terms: list[tuple[str, bytes]]


def pack_block(rows: Sequence[tuple[str, bytes, bytes]]) -> PackedBlock:
    """Pack rows as `block_of_rows` takes them, one a term, by ascending page and place on it."""
    found = _flatten([(term, [(head, body)]) for term, head, body in sorted(rows)])
    layout = found.layout
    pages = np.zeros(len(layout.pages), _LAYOUT_PAGE)
    pages["document"], pages["terms"] = layout.pages, layout.page_terms
    pages["chunks"] = np.diff(layout.ends, prepend=0)
    head = np.array([len(pages)], "<i4").tobytes()
    return PackedBlock(
        head + pages.tobytes() + layout.lengths.astype("<u2").tobytes(), list(_pack_slots(found))
    )


def _pack_slots(found: "_Flat") -> Iterator[tuple[str, bytes]]:
    """Each term and its slots; all of them at once, as there are some 50,000."""
    number = _slot_type(len(found.layout.lengths))
    is_first = np.diff(found.places, prepend=-1) != 0
    is_first[found.row_ends[:-1]] = True
    first_rows = np.flatnonzero(is_first)
    starts = (np.cumsum(found.row_sizes) - found.row_sizes)[first_rows]
    by_page = np.add.reduceat(found.counts, starts, dtype=np.int64) if len(starts) else starts
    slots = found.slots.astype(number).tobytes()
    pages = found.places[first_rows].astype(number).tobytes()
    page_counts = np.minimum(by_page, _MOST_COUNTED).astype("<u2").tobytes()
    counts = found.counts.tobytes()
    ends = found.ends.tolist()
    page_ends = np.searchsorted(first_rows, found.row_ends).tolist()
    start, page, size = 0, 0, number.itemsize
    for term, end, page_end in zip(found.terms, ends, page_ends, strict=True):
        yield (
            term,
            b"".join((
                (end - start).to_bytes(4, "little"),
                slots[start * size : end * size],
                pages[page * size : page_end * size],
                page_counts[page * 2 : page_end * 2],
                counts[start:end],
            )),
        )  # fmt: skip
        start, page = end, page_end


def _slot_type(count: int) -> np.dtype[Any]:
    return np.dtype("<u2" if count <= BLOCK_CHUNKS else "<u4")


def unpack_layout(packed: bytes) -> SlotLayout:
    """Give the layout of a packed block."""
    (count,) = np.frombuffer(packed, "<i4", 1)
    pages = np.frombuffer(packed, _LAYOUT_PAGE, count, offset=4)
    lengths = np.frombuffer(packed, "<u2", offset=4 + pages.nbytes).copy()
    return SlotLayout.of_sizes(
        pages["document"].astype(np.int64),
        pages["terms"].astype(np.int64),
        pages["chunks"].astype(np.int64),
        lengths,
    )


def unpack_slots(packed: bytes, layout: SlotLayout) -> TermSlots:
    """Give the postings of a term in a packed block, by ascending slot."""
    number = _slot_type(len(layout.lengths))
    (count,) = np.frombuffer(packed, "<u4", 1).tolist()
    pages = (len(packed) - 4 - count * (number.itemsize + 1)) // (number.itemsize + 2)
    at_pages = 4 + count * number.itemsize
    at_counts = at_pages + pages * number.itemsize
    return TermSlots(
        np.frombuffer(packed, number, count, offset=4),
        np.frombuffer(packed, np.uint8, count, offset=at_counts + 2 * pages),
        np.frombuffer(packed, number, pages, offset=at_pages),
        np.frombuffer(packed, "<u2", pages, offset=at_counts),
    )


def block_of_rows(rows: Iterable[tuple[str, bytes, bytes]]) -> PostingBlock:
    """Read the postings that are stored page by page, as a block of the pages that hold any.

    A row has a term, pages as big-endian (id, terms of the page, bytes of postings), and the packed
    postings in that order. Terms may have several rows, and pages be in several of them.
    """
    by_term: dict[str, list[tuple[bytes, bytes]]] = {}
    for term, head, body in rows:
        by_term.setdefault(term, []).append((head, body))
    found = _flatten(list(by_term.items()))
    edges = found.ends[:-1]
    split = zip(
        found.terms, np.split(found.slots, edges), np.split(found.counts, edges), strict=False
    )
    terms = {
        term: TermSlots.of_chunks(slots, counts, found.layout) for term, slots, counts in split
    }
    return PostingBlock(found.layout, terms, np.empty(0, np.int64))


class _Flat(NamedTuple):
    """Postings of all terms, one term after another, as SQL gives them.

    By term, `ends` have the number of the posting behind its last, and `row_ends` that of the row;
    by row, `row_sizes` have its postings and `places` its page.
    """

    layout: SlotLayout
    terms: Sequence[str]
    ends: NDArray[np.int64]
    slots: NDArray[np.int64]
    counts: NDArray[np.uint8]
    row_ends: NDArray[np.int64]
    row_sizes: NDArray[np.int64]
    places: NDArray[np.int64]


def _flatten(terms: Sequence[tuple[str, Sequence[tuple[bytes, bytes]]]]) -> _Flat:
    headers = np.frombuffer(b"".join(head for _, each in terms for head, _ in each), _PAGE_HEADER)
    entries = np.frombuffer(b"".join(body for _, each in terms for _, body in each), POSTING)
    pages, places = _distinct(headers["document"].astype(np.int64))
    page_terms = np.zeros(len(pages), np.int64)
    page_terms[places] = headers["terms"]
    row_sizes = headers["bytes"].astype(np.int64) // POSTING.itemsize
    slots = entries["ordinal"].astype(np.int64)
    starts = np.cumsum(row_sizes) - row_sizes
    last = np.maximum.reduceat(slots, starts) if len(starts) else starts
    sizes = np.zeros(len(pages), np.int64)
    np.maximum.at(sizes, places, last + 1)
    slots += np.repeat((np.cumsum(sizes) - sizes)[places], row_sizes)
    lengths = np.zeros(int(sizes.sum()), np.uint16)
    lengths[slots] = entries["length"]
    return _Flat(
        SlotLayout.of_sizes(pages, page_terms, sizes, lengths),
        [term for term, _ in terms],
        _ends([len(body) for _, body in each] for _, each in terms) // POSTING.itemsize,
        slots,
        np.ascontiguousarray(entries["tf"]),
        _ends([len(head) for head, _ in each] for _, each in terms) // _PAGE_HEADER.itemsize,
        row_sizes,
        places,
    )


def _ends(sizes: Iterable[Sequence[int]]) -> NDArray[np.int64]:
    return np.cumsum(np.array([sum(each) for each in sizes], np.int64))


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
