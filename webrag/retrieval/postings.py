"""The postings that a search reads: of most pages from blocks, of the others page by page."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from webrag.lexical.bm25 import CorpusTotals
from webrag.lexical.postings import (
    PostingBlock,
    SlotLayout,
    block_of_rows,
    unpack_layout,
    unpack_slots,
)
from webrag.postgres.database import Connection, Rows
from webrag.retrieval.statements import Queries, Statement, fetch_together

_NOTHING = CorpusTotals()


@dataclass(frozen=True, slots=True)
class Blocks:
    """The pages whose postings are read from blocks, none with a higher number than `last`.

    Totals are without the pages `left`, ascending, which do not count there, any more or in the
    scope; the `stale` ones of them are stored all the same, with other postings.
    """

    layouts: Mapping[int, SlotLayout] = field(default_factory=dict)
    last: int = 0
    totals: CorpusTotals = _NOTHING
    left: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    stale: Sequence[int] = ()

    def with_others(self, others: CorpusTotals) -> CorpusTotals:
        """Totals of the pages in blocks and of others."""
        return CorpusTotals(*map(sum, zip(self.totals, others, strict=True)))

    def with_rows(self, block_rows: Rows, later_rows: Rows) -> list[PostingBlock]:
        """Make blocks of what `postings_of` reads: those that hold a term, one of other pages."""
        found: dict[int, dict[str, bytes]] = {}
        for number, term, packed in block_rows:
            found.setdefault(number, {})[term] = packed
        blocks = []
        for number, terms in found.items():
            layout = self.layouts[number]
            slots = {term: unpack_slots(packed, layout) for term, packed in terms.items()}
            blocks.append(PostingBlock(layout, slots, _places(self.left, layout.pages)))
        return [*blocks, block_of_rows(later_rows)] if later_rows else blocks


def _places(wanted: NDArray[np.int64], pages: NDArray[np.int64]) -> NDArray[np.int64]:
    first, end = np.searchsorted(wanted, [pages[0], pages[-1] + 1])  # both ascend
    within = wanted[first:end]
    places = np.searchsorted(pages, within)
    found: NDArray[np.int64] = places[pages[places] == within]
    return found


async def read_blocks(connection: Connection, queries: Queries) -> Blocks:
    """Read what the blocks hold for the search of a whole collection."""
    left_out = queries.scope.left_out
    if queries.scope.restricts_pages and not left_out:
        return Blocks()
    others = [queries.excluded_editions()] if left_out else []
    rows, left, *editions = await fetch_together(
        connection, queries.blocks(), queries.excluded_pages(), *others
    )
    layouts = await _read_layouts(connection, queries, {row[0]: row[1] for row in rows})
    without = [row[2:] for row in left] + [rows[0][1:] for rows in editions]
    pages = np.array([row[1] for row in left], np.int64)
    for edition_rows in editions:
        pages = np.concatenate([pages, np.frombuffer(edition_rows[0][0], ">i4").astype(np.int64)])
    sums = np.array([row[3:] for row in rows], np.int64).reshape(-1, len(_NOTHING)).sum(0)
    sums -= np.array(without, np.int64).reshape(-1, len(_NOTHING)).sum(0)
    return Blocks(
        layouts,
        max((row[2] for row in rows), default=0),
        CorpusTotals(*sums.tolist()),
        np.sort(pages),
        [row[1] for row in left if row[0]],
    )


def postings_of(queries: Queries, terms: Sequence[str], blocks: Blocks) -> list[Statement]:
    """Statements that read postings: those in blocks, and the others."""
    in_blocks = terms if blocks.last else ()
    return [
        queries.block_postings(in_blocks),
        queries.lexical(terms, blocks.last, blocks.stale),
    ]


async def read_postings(
    connection: Connection, queries: Queries, terms: Sequence[str]
) -> tuple[CorpusTotals, list[PostingBlock]]:
    """Pages of the whole collection, their children and terms, and the postings of some terms."""
    blocks = await read_blocks(connection, queries)
    sizes, block_rows, later_rows = await fetch_together(
        connection, queries.sizes(blocks.last, blocks.stale), *postings_of(queries, terms, blocks)
    )
    return blocks.with_others(totals_of(sizes)), blocks.with_rows(block_rows, later_rows)


def totals_of(rows: Rows) -> CorpusTotals:
    """Read what `Queries.totals` or `Queries.sizes` counted."""
    return CorpusTotals(*(int(value) for value in rows[0]))


class KnownLayouts:
    """Layouts that this process used last, which never change, up to so many bytes in all."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._lock = threading.Lock()
        self._known: OrderedDict[UUID, SlotLayout] = OrderedDict()
        self._bytes = 0

    def get(self, key: UUID) -> SlotLayout | None:
        """The layout of that name, if it is kept."""
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
            return found

    def keep(self, key: UUID, layout: SlotLayout) -> None:
        """Keep a layout for later, in place of those that have not been used for longest."""
        with self._lock:
            if key not in self._known:
                self._known[key] = layout
                self._bytes += layout.nbytes
            while self._bytes > self._most:
                _, dropped = self._known.popitem(last=False)
                self._bytes -= dropped.nbytes


_KNOWN = KnownLayouts(most_bytes=64_000_000)  # eight million chunks, 20 on a page


async def _read_layouts(
    connection: Connection, queries: Queries, keys: Mapping[int, UUID]
) -> dict[int, SlotLayout]:
    found = {number: _KNOWN.get(key) for number, key in keys.items()}
    layouts = {number: layout for number, layout in found.items() if layout is not None}
    unknown = [number for number in keys if number not in layouts]
    if unknown:
        for number, packed in await queries.block_layouts(unknown).fetch(connection):
            layouts[number] = unpack_layout(packed)
            _KNOWN.keep(keys[number], layouts[number])
    return layouts
