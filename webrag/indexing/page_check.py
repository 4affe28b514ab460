"""Verifies stored pages: offsets cut the text out, hashes and postings fit. Changes nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg import AsyncConnection, sql

from webrag.indexing.lexical import analyze
from webrag.indexing.node_metadata import node_from_row
from webrag.indexing.page_rows import child_row
from webrag.indexing.postings import pack_postings
from webrag.indexing.schema import table
from webrag.ingestion.links import content_hash

__all__ = ["PageFaults", "check_pages"]

_PAGES_AT_ONCE = 16

_IDS = "select id from {documents} order by random() limit %s"
_DOCUMENTS = "select id, url, markdown, content_hash from {documents} where id = any(%s)"
_PARENTS = "select document, char_start, char_end, text from {parents} where document = any(%s)"
_CHILDREN = """
select document, char_start, char_end, text, ordinal, node_id, metadata_
from {children} where document = any(%s) order by document, ordinal
"""
_POSTINGS = "select document, term, segment, packed from {postings} where document = any(%s)"


@dataclass
class PageFaults:
    """What was wrong, by the URLs of the pages.

    Attributes:
        total: Pages of the collection.
        pages: Pages that were verified.
        offsets: A chunk's text is not at its offsets.
        hashes: The text does not have the recorded hash.
        postings: The lexical index does not hold the terms of the chunks.
    """

    total: int = 0
    pages: int = 0
    offsets: list[str] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)
    postings: list[str] = field(default_factory=list)


async def check_pages(
    connection: AsyncConnection[Any],
    collection: str,
    sample: int | None,
    on_progress: Callable[[int, int], None] | None = None,
) -> PageFaults:
    """Verify pages taken at random, or all; memory does not grow with their number.

    Args:
        connection: One snapshot.
        collection: Which collection.
        sample: How many pages; None for all.
        on_progress: Told how many are verified, and how many there are to verify.
    """
    names = {name: table(collection, name) for name in ("documents", "parents", "postings")}
    names["children"] = table(collection, "data_children")

    async def read(statement: str, value: Any) -> list[tuple[Any, ...]]:
        composed = sql.SQL(statement).format(**names)
        return await (await connection.execute(composed, (value,))).fetchall()

    ids = [page_id for (page_id,) in await read(_IDS, sample)]
    ((total,),) = await read("select count(*) from {documents} where %s", True)
    faults = PageFaults(total=total)
    for start in range(0, len(ids), _PAGES_AT_ONCE):
        batch = ids[start : start + _PAGES_AT_ONCE]
        parents, children = await read(_PARENTS, batch), await read(_CHILDREN, batch)
        postings = await read(_POSTINGS, batch)
        for page_id, url, markdown, recorded in await read(_DOCUMENTS, batch):
            own = [row for row in children if row[0] == page_id]
            chunks = [row for row in parents if row[0] == page_id] + own
            if any(markdown[row[1] : row[2]] != row[3] for row in chunks):
                faults.offsets.append(url)
            if content_hash(markdown) != recorded:
                faults.hashes.append(url)
            if _terms(own) != {row[1:3]: bytes(row[3]) for row in postings if row[0] == page_id}:
                faults.postings.append(url)
        faults.pages += len(batch)
        if on_progress is not None:
            on_progress(faults.pages, len(ids))
    return faults


def _terms(children: Sequence[tuple[Any, ...]]) -> dict[tuple[str, int], bytes]:
    """Packed postings that the chunks of a page ought to have, by term and segment."""
    terms: list[list[str]] = [[] for _ in range(children[-1][4] + 1 if children else 0)]
    for _, _, _, text, ordinal, node_id, metadata in children:
        node = node_from_row(node_id, text, metadata)
        terms[ordinal] = analyze(child_row(node, ordinal).indexed_text)
    return {(row.term, row.segment): row.packed for row in pack_postings(terms)}
