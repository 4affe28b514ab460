"""Writes a collection into an export file, and reads such a file into a collection."""

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any

from psycopg.rows import dict_row
from pydantic import BaseModel, Field

from webrag.concurrency import all_of
from webrag.corpus.acquirer import unexpected_failure
from webrag.corpus.indexer import Indexer
from webrag.corpus.maintenance.portable import (
    PortableHeader,
    PortableLink,
    PortablePage,
    open_for_reading,
    open_for_writing,
    read_header,
    read_pages,
)
from webrag.corpus.pages import Corpus
from webrag.corpus.schema import read_embedding, update_schema
from webrag.errors import DatabaseUnavailableError, InputError, ProviderError, WebRAGError
from webrag.frozen import FrozenModel
from webrag.postgres.database import Database
from webrag.postgres.execution import Connection, compose

_PAGES_READ_AT_ONCE = 8  # a page and its HTML may have megabytes

_COUNTS = """
select count(*) filter (where site <> ''), count(*) filter (where site = ''),
       (select count(*) from {link_candidates} l join {documents} d on d.id = l.source_document
        where d.site <> '' and l.origin = 'page' and (%(all)s or not d.with_login)),
       count(*) filter (where site <> '' and with_login)
from {documents}
"""
_DOCUMENTS = (
    "select id, {} from {{documents}} where site <> '' and (%(all)s or not with_login) order by id"
).format(", ".join(name for name in PortablePage.model_fields if name != "links"))
_LINKS = """
select source_document, url, title as anchor_text, description as sentence, heading, rel,
       char_start, char_end
from {link_candidates} where source_document = any(%s) and origin = 'page'
order by source_document, ordinal
"""


class ExportReport(FrozenModel):
    """What was written.

    Attributes:
        documents: Pages in the file.
        left_out: Documents that have no web address, as LlamaIndex pipelines may add them.
        private: Pages that were read with a login and are left out.
        bytes: Size of the file.
    """

    path: str
    documents: int
    left_out: int
    private: int = 0
    bytes: int


async def export_corpus(
    database: Database,
    path: Path,
    *,
    overwrite: bool = False,
    with_logins: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> ExportReport:
    """Write every page of the collection, as of one moment, to a file that appears when complete.

    Memory does not grow with the corpus.

    As `WebRAG.export_corpus`.
    """
    if not overwrite and await asyncio.to_thread(path.exists):
        raise InputError(
            f"The file {path} exists already; name another one, or replace it with --overwrite"
            " (overwrite=True).",
        )
    await update_schema(database)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")

    async def work(connection: Connection) -> tuple[int, int, int]:
        await connection.lift_timeouts()
        with open_for_writing(partial, compress=path.suffix == ".gz") as file:
            return await _write(connection, file, on_progress, with_logins=with_logins)

    try:
        documents, left_out, private = await database.run(work, snapshot=True)
        size = (await asyncio.to_thread(partial.stat)).st_size
        await asyncio.to_thread(partial.replace, path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"The file {path} cannot be written: {reason}.") from error
    finally:
        partial.unlink(missing_ok=True)
    return ExportReport(
        path=str(path), documents=documents, left_out=left_out, private=private, bytes=size
    )


async def _write(
    connection: Connection,
    file: IO[bytes],
    on_progress: Callable[[int, int], None] | None,
    *,
    with_logins: bool,
) -> tuple[int, int, int]:
    embedding = await read_embedding(connection)
    if embedding is None:
        raise InputError(f"The collection {connection.collection!r} does not exist yet.")
    which = {"all": with_logins}
    counts = await connection.fetch(_COUNTS, which)
    ((total, left_out, links, private),) = counts
    private = 0 if with_logins else private
    total -= private
    header = PortableHeader(
        collection=connection.collection,
        embedding_model=embedding[0],
        embedding_dimensions=embedding[1],
        documents=total,
        links=links,
        exported_at=datetime.now(UTC),
    )
    await asyncio.to_thread(_write_lines, file, [header])
    written = 0
    # A cursor of the server's: the driver's own would hold the whole corpus.
    async with connection.cursor("webrag_export", row_factory=dict_row) as cursor:
        await cursor.execute(compose(connection.collection, _DOCUMENTS), which)
        while rows := await cursor.fetchmany(_PAGES_READ_AT_ONCE):
            pages = await _with_links(connection, rows)
            await asyncio.to_thread(_write_lines, file, pages)
            written += len(pages)
            if on_progress is not None:
                on_progress(written, total)
    return written, left_out, private


async def _with_links(connection: Connection, rows: Sequence[dict[str, Any]]) -> list[PortablePage]:
    links: dict[int, list[PortableLink]] = {row["id"]: [] for row in rows}
    found = await connection.fetch_as(dict, _LINKS, (list(links),))
    for link in found:
        links[link.pop("source_document")].append(PortableLink.model_validate(link))
    return [PortablePage(**row, links=tuple(links[row["id"]])) for row in rows]


def _write_lines(file: IO[bytes], lines: Sequence[BaseModel]) -> None:
    for line in lines:
        file.write(line.model_dump_json(exclude_none=True).encode() + b"\n")


# One transaction for 96 pages loads a tenth faster than three for 32; large pages come in fewer.
_LINES_AT_ONCE = 96
_CHARS_AT_ONCE = 4_000_000

_NumberedLine = tuple[int, PortablePage | str]


class ImportReport(FrozenModel):
    """What an import did.

    Attributes:
        indexed: Pages that are new.
        updated: Pages of which the file had a newer version.
        unchanged: Pages stored already with the same text.
        kept: Pages of which the corpus has a newer version, which was kept.
        failed: Line number to the reason it was left out.
    """

    indexed: int = 0
    updated: int = 0
    unchanged: int = 0
    kept: int = 0
    failed: dict[int, str] = Field(default_factory=dict)


async def import_corpus(
    corpus: Corpus,
    indexer: Indexer,
    path: Path,
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> ImportReport:
    """Store the pages of a file; each is stored completely or not at all.

    Of a large file, the vector index is built at the end. A few pages are in memory at a time. An
    unusable line is reported and the others go on. Repeating an import changes nothing.

    As `WebRAG.import_corpus`.
    """
    with await asyncio.to_thread(open_for_reading, path) as file:
        header = await asyncio.to_thread(read_header, file, path)
        lines = read_pages(file)
        tally = _Tally(header.documents, on_progress)
        async with corpus.index_deferred(header.documents):
            while batch := await asyncio.to_thread(_next_lines, lines):
                await _import_lines(corpus, indexer, batch, tally)
    return tally.report()


def _next_lines(lines: Iterator[_NumberedLine]) -> list[_NumberedLine]:
    """A few lines: reading each in a thread of its own takes longer than reading it."""
    found: list[_NumberedLine] = []
    size = 0
    for number, page in islice(lines, _LINES_AT_ONCE):
        found.append((number, page))
        size += 0 if isinstance(page, str) else len(page.markdown) + len(page.html)
        if size > _CHARS_AT_ONCE:
            break
    return found


class _Tally:
    """Counts what became of the lines."""

    def __init__(self, promised: int, on_progress: Callable[[int, int], None] | None) -> None:
        self._promised = promised
        self._on_progress = on_progress
        self._counts = dict.fromkeys(("indexed", "updated", "unchanged", "kept"), 0)
        self._failed: dict[int, str] = {}
        self._done = 0
        self._last = 1

    def add(self, number: int, outcome: str) -> None:
        self._done += 1
        self._last = max(self._last, number)
        if outcome in self._counts:
            self._counts[outcome] += 1
        else:
            self._failed[number] = outcome
        if self._on_progress is not None:
            self._on_progress(self._done, max(self._done, self._promised))

    def report(self) -> ImportReport:
        is_short = self._done < self._promised and self._last not in self._failed
        if is_short:
            self._failed[self._last + 1] = (
                f"The file ends after {self._done:,} of {self._promised:,} pages."
            )
        return ImportReport(**self._counts, failed=self._failed)


async def _import_lines(
    corpus: Corpus, indexer: Indexer, lines: Sequence[_NumberedLine], tally: _Tally
) -> None:
    # Lines of one page take turns, in their order.
    turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def one(number: int, page: PortablePage | str) -> None:
        if isinstance(page, str):
            tally.add(number, page)
            return
        async with turns[page.url]:
            tally.add(number, await _imported(corpus, indexer, page))

    await all_of(one(number, page) for number, page in lines)


async def _imported(corpus: Corpus, indexer: Indexer, page: PortablePage) -> str:
    """Store a page and tell what came of it, or why it was left out."""
    try:
        return await _stored(corpus, indexer, page)
    except (DatabaseUnavailableError, ProviderError):
        raise
    except WebRAGError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - one line must not end the import
        return str(unexpected_failure(page.url, error))


async def _stored(corpus: Corpus, indexer: Indexer, page: PortablePage) -> str:
    stored = await corpus.page(page.url)
    if stored is not None and stored.url == page.url:
        seen = max(stored.fetched_at, stored.gone_at or stored.fetched_at)
        if seen >= page.last_seen:
            await corpus.add_aliases(stored.url, page.aliases)
            await corpus.lower_depth(stored.url, page.depth)
            return "unchanged" if stored.content_hash == page.content_hash else "kept"
    result = await indexer.index(page.document(), depth=page.depth)
    if set(page.aliases) - {page.url, page.requested_url}:
        await corpus.add_aliases(result.url, page.aliases)
    if page.gone_at is not None and result.url == page.url:
        await corpus.mark_gone(result.url, page.gone_at)
    return result.outcome
