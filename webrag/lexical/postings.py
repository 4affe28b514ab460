"""Packs the terms of a page's chunks into one small row per term, and unpacks such rows.

Does no scoring and no SQL. One posting is five bytes, big endian: `ordinal` u2 (the chunk's
position within its page), `tf` u1 (occurrences, capped at 255, where BM25 is saturated) and
`length` u2 (the chunk's exact number of terms). Document frequency and average length can
therefore be computed exactly from what is stored.
"""

import struct
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

POSTING = np.dtype([("ordinal", ">u2"), ("tf", "u1"), ("length", ">u2")])
"""Layout of one posting."""

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
    """Postings of one term within one page.

    Attributes:
        segment: 0, 1, ... when a page has more chunks with the term than one row holds.
        packed: Postings in the layout of `POSTING`, by ascending ordinal.
    """

    term: str
    segment: int
    packed: bytes


def pack_postings(chunks: Sequence[Sequence[str]]) -> list[PostingRow]:
    """Pack the terms of a page's chunks.

    Args:
        chunks: Terms of each chunk with repetitions, in page order; a chunk may have none.

    Returns:
        Rows ordered by term and segment, the order in which they are cheapest to load.

    Raises:
        TooManyPostingsError: More than 65,536 chunks, more than 65,535 terms in one chunk, or
            more than `MAX_TERMS` different terms.
    """
    check_chunk_count(len(chunks))
    packed: dict[str, bytearray] = {}
    for ordinal, terms in enumerate(chunks):
        if len(terms) > _MAX_U2:
            raise TooManyPostingsError(
                f"One of its chunks has {len(terms):,} terms; at most {_MAX_U2:,} can be indexed."
            )
        for term, count in Counter(terms).items():
            posting = _PACK.pack(ordinal, min(count, _MAX_TF), len(terms))
            packed.setdefault(term, bytearray()).extend(posting)
        check_term_count(len(packed))
    return [row for term in sorted(packed) for row in segments(term, bytes(packed[term]))]


def check_chunk_count(count: int) -> None:
    """Refuse a page of more chunks than postings can tell apart.

    Raises:
        TooManyPostingsError: It has.
    """
    if count > _MAX_U2 + 1:
        raise TooManyPostingsError(
            f"It has {count:,} chunks; at most {_MAX_U2 + 1:,} can be indexed."
        )


def check_term_count(count: int) -> None:
    """Refuse a page of more than `MAX_TERMS` different terms.

    Raises:
        TooManyPostingsError: It has.
    """
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
