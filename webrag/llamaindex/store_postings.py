"""Keeps a page's postings and counts right while single nodes come and go, without the others.

Nothing is analysed here, and nothing that was: what the page's rows hold of its other chunks stays
as it is, so that a page that is stored node by node is indexed as one that is stored at once.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import compress, groupby
from operator import attrgetter

import numpy as np

from webrag.concurrency import in_background
from webrag.corpus.posting_blocks import mark_dirty
from webrag.corpus.writer import copy_postings
from webrag.lexical.postings import (
    MAX_TERMS,
    POSTING,
    PostingRow,
    check_chunk_count,
    check_term_count,
    segments,
    unpack_postings,
)
from webrag.postgres.execution import Connection


def appended(
    last: Iterable[PostingRow], added: Sequence[PostingRow], first: int
) -> list[PostingRow]:
    """The rows that take the place of a page's last ones when it gets further chunks.

    Of each term the page has, `last` is the row with the highest segment. The numbers of the new
    chunks begin at 0 and become those from `first` on.
    """
    ends = {row.term: row for row in last}
    rows: list[PostingRow] = []
    for term, own in groupby(_moved(added, first), key=attrgetter("term")):
        end = ends.get(term, PostingRow(term, 0, b""))
        packed = end.packed + b"".join(row.packed for row in own)
        rows += segments(term, packed, end.segment)
    return rows


def _moved(rows: Sequence[PostingRow], by: int) -> Iterator[PostingRow]:
    postings = unpack_postings(b"".join(row.packed for row in rows)).copy()
    postings["ordinal"] += by
    packed, start = postings.tobytes(), 0
    for row in rows:
        end = start + len(row.packed)
        yield row._replace(packed=packed[start:end])
        start = end


def remaining(
    rows: Sequence[PostingRow], ordinals: Collection[int]
) -> tuple[dict[str, list[PostingRow]], int]:
    """What is left of the terms that chunks of a page have, when these are taken out.

    Gives the new rows of each term that the chunks have, none where no other chunk has it; and how
    many terms the chunks have, repetitions counted.
    """
    postings = unpack_postings(b"".join(row.packed for row in rows))
    is_gone = np.isin(postings["ordinal"], list(ordinals))
    if not is_gone.any():
        return {}, 0
    ends = np.cumsum([len(row.packed) for row in rows]) // POSTING.itemsize
    starts = np.concatenate(([0], ends[:-1]))
    hit = np.logical_or.reduceat(is_gone, starts)
    left = {row.term: b"" for row in compress(rows, hit)}
    for row, start, end in zip(rows, starts, ends, strict=True):
        if row.term in left:
            left[row.term] += postings[start:end][~is_gone[start:end]].tobytes()
    taken = postings[is_gone]
    _, one_of_each = np.unique(taken["ordinal"], return_index=True)
    terms = int(taken["length"][one_of_each].sum())
    return {term: segments(term, packed) for term, packed in left.items()}, terms


_TAKE_LAST = """
delete from {postings} p using (
    select term, max(segment) as segment from {postings}
    where document = %(page)s and term = any(%(terms)s) group by term
) l where p.document = %(page)s and p.term = l.term and p.segment = l.segment
returning p.term, p.segment, p.packed
"""


async def add_postings(
    connection: Connection,
    page_id: int,
    rows: Sequence[PostingRow],
    first: int,
    chunks: int,
) -> None:
    """Index further chunks of a stored page."""
    check_chunk_count(first + chunks)
    last = await connection.fetch(
        _TAKE_LAST,
        {"page": page_id, "terms": [row.term for row in rows if row.segment == 0]},
        binary=True,
    )
    new = await in_background(appended, [*map(PostingRow._make, last)], rows, first)
    await copy_postings(connection, [(page_id, new)])


async def remove_postings(connection: Connection, page_id: int, ordinals: Collection[int]) -> int:
    """Take chunks of a page out of the index, and give how many terms they had.

    All rows of the page are read: which terms a chunk has, is known for certain only from them.
    """
    rows = await connection.fetch(
        "select term, segment, packed from {postings} where document = %s order by term, segment",
        (page_id,),
        binary=True,
    )
    left, terms = await in_background(remaining, [*map(PostingRow._make, rows)], ordinals)
    if not left:
        return 0
    await connection.change(
        "delete from {postings} where document = %s and term = any(%s)", (page_id, list(left))
    )
    new = [row for of_term in left.values() for row in of_term]
    await copy_postings(connection, [(page_id, new)])
    return terms


async def recount(connection: Connection, page_id: int, more_terms: int) -> None:
    """Bring a page's counts up to date, after its chunks and its postings have changed."""
    counts = await connection.fetch(
        """
            update {documents} set term_count = term_count + %(more)s,
                child_count = (select count(*) from {data_children} where document = %(page)s),
                token_count = (select coalesce(max(token_end), 0) from {parents}
                               where document = %(page)s)
            where id = %(page)s returning term_count
            """,
        {"page": page_id, "more": more_terms},
    )
    # As many different words only a page of as many words can have.
    if counts and counts[0][0] > MAX_TERMS:
        words = "select count(*) from {postings} where document = %s and segment = 0"
        check_term_count((await connection.fetch(words, (page_id,)))[0][0])
    await mark_dirty(connection, page_id)
