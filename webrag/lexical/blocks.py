"""Postings of many pages in one place: slots number their chunks, one page after another.

Does no scoring and no SQL. A posting in a block is three bytes: the chunk's slot (u2) and how often
the term occurs (u1); what is the same for all terms, the pages and the lengths of their chunks, is
kept once, in the block's layout. All numbers are little endian.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from webrag.lexical.postings import POSTING

__all__ = [
    "BLOCK_CHUNKS",
    "PackedBlock",
    "PostingBlock",
    "SlotLayout",
    "TermSlots",
    "block_of_rows",
    "pack_block",
    "unpack_layout",
    "unpack_slots",
]

BLOCK_CHUNKS = 1 << 16
"""Chunks that numbers of two bytes tell apart; a block of more uses numbers of four."""

_PAGE_HEADER = np.dtype([("document", ">i4"), ("terms", ">i4"), ("bytes", ">i4")])
_LAYOUT_PAGE = np.dtype([("document", "<i4"), ("terms", "<i4"), ("chunks", "<i4")])

# Numbers of pages that are spread wider than this are sorted; a table of them would not fit into
# the processor's cache.
_WIDEST_TABLE = 1 << 22


class SlotLayout(NamedTuple):
    """The pages of a block, and the slots of their chunks.

    Attributes:
        pages: Row numbers, no duplicates.
        page_terms: Index terms of each page.
        ends: Number of the slot behind each page's last.
        owners: By slot, the place of its page in `pages`.
        lengths: By slot, index terms of the chunk.
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
    """The chunks of a block that hold a term.

    Attributes:
        slots: Their slots, no duplicates.
        counts: How often each holds it, >= 1.
    """

    slots: NDArray[Any]
    counts: NDArray[np.uint8]


class PostingBlock(NamedTuple):
    """Postings of some terms on some pages.

    Attributes:
        layout: The pages.
        terms: Where each term occurs; one that occurs nowhere is not there.
        left: Places of pages that do not count, whatever is said of them here.
    """

    layout: SlotLayout
    terms: Mapping[str, TermSlots]
    left: NDArray[np.int64]


class PackedBlock(NamedTuple):
    """A block as it is stored.

    Attributes:
        layout: What `unpack_layout` reads.
        terms: Each term, ascending, and what `unpack_slots` reads of it.
    """

    layout: bytes
    terms: list[tuple[str, bytes]]


def pack_block(rows: Sequence[tuple[str, bytes, bytes]]) -> PackedBlock:
    """Pack the postings of pages, as `block_of_rows` reads them; no page or chunk is missing one.

    Args:
        rows: As for `block_of_rows`, one for each term.
    """
    ordered = sorted(rows)
    block = block_of_rows(ordered)
    layout = block.layout
    pages = np.zeros(len(layout.pages), _LAYOUT_PAGE)
    pages["document"], pages["terms"] = layout.pages, layout.page_terms
    pages["chunks"] = np.diff(layout.ends, prepend=0)
    head = np.array([len(pages)], "<i4").tobytes()
    number = _slot_type(len(layout.lengths))
    return PackedBlock(
        head + pages.tobytes() + layout.lengths.astype("<u2").tobytes(),
        [(term, _pack_slots(block.terms[term], number)) for term, *_ in ordered],
    )


def _pack_slots(found: TermSlots, number: np.dtype[Any]) -> bytes:
    order = np.argsort(found.slots)
    return found.slots[order].astype(number).tobytes() + found.counts[order].tobytes()


def _slot_type(count: int) -> np.dtype[Any]:
    return np.dtype("<u2" if count <= BLOCK_CHUNKS else "<u4")


def unpack_layout(packed: bytes) -> SlotLayout:
    """Give the layout of a packed block."""
    (count,) = np.frombuffer(packed, "<i4", 1)
    pages = np.frombuffer(packed, _LAYOUT_PAGE, count, offset=4)
    lengths = np.frombuffer(packed, "<u2", offset=4 + pages.nbytes)
    return SlotLayout.of_sizes(
        pages["document"].astype(np.int64),
        pages["terms"].astype(np.int64),
        pages["chunks"].astype(np.int64),
        lengths,
    )


def unpack_slots(packed: bytes, layout: SlotLayout) -> TermSlots:
    """Give the postings of a term in a packed block, by ascending slot."""
    number = _slot_type(len(layout.lengths))
    count = len(packed) // (number.itemsize + 1)
    return TermSlots(
        np.frombuffer(packed, number, count),
        np.frombuffer(packed, np.uint8, count, offset=count * number.itemsize),
    )


def block_of_rows(rows: Iterable[tuple[str, bytes, bytes]]) -> PostingBlock:
    """The postings that are stored page by page, as a block of the pages that hold any.

    Args:
        rows: The term, pages that hold it as big-endian (id, terms of the page, bytes of
            postings), and the packed postings of those pages in the same order. A term may have
            several rows, and a page be several times in one, with different chunks.
    """
    found: dict[str, list[tuple[bytes, bytes]]] = {}
    for term, head, body in rows:
        found.setdefault(term, []).append((head, body))
    parts = [part for each in found.values() for part in each]
    headers = np.frombuffer(b"".join(head for head, _ in parts), _PAGE_HEADER)
    entries = np.frombuffer(b"".join(body for _, body in parts), POSTING)
    pages, places = _distinct(headers["document"].astype(np.int64))
    page_terms = np.zeros(len(pages), np.int64)
    page_terms[places] = headers["terms"]
    counts = headers["bytes"].astype(np.int64) // POSTING.itemsize
    owners = np.repeat(places, counts)
    sizes = np.zeros(len(pages), np.int64)
    ordinals = entries["ordinal"].astype(np.int64)
    last = np.maximum.reduceat(ordinals, np.cumsum(counts) - counts) if len(counts) else counts
    np.maximum.at(sizes, places, last + 1)
    slots = ordinals
    slots += (np.cumsum(sizes) - sizes).take(owners)
    lengths = np.zeros(int(sizes.sum()), np.uint16)
    lengths[slots] = entries["length"]
    sizes_of_terms = [sum(len(body) for _, body in each) for each in found.values()]
    edges = np.cumsum(np.array(sizes_of_terms, np.int64))[:-1] // POSTING.itemsize
    terms = {
        term: TermSlots(*both)
        for term, *both in zip(
            found, np.split(slots, edges), np.split(entries["tf"], edges), strict=False
        )
    }
    layout = SlotLayout.of_sizes(pages, page_terms, sizes, lengths)
    return PostingBlock(layout, terms, np.empty(0, np.int64))


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
