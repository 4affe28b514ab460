"""Writes a collection into an export file, and reads such a file into a collection."""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row
from pydantic import BaseModel, Field

from webrag.corpus.acquirer import unexpected_failure
from webrag.corpus.indexer import Indexer, PreparedPage
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
from webrag.corpus.schema import compose, read_embedding, update_schema
from webrag.errors import DatabaseUnavailableError, InputError, ProviderError, WebRAGError
from webrag.frozen import FrozenModel
from webrag.postgres.database import Database, lift_timeouts
from webrag.postgres.execution import fetch, fetch_as

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

    Args:
        database: The collection.
        path: Compressed when its name ends with `.gz`.
        overwrite: Replace a file of that name.
        with_logins: Write pages that were read with a login, too.
        on_progress: Told how many pages are written, and how many there are.

    Raises:
        InputError: The file exists, cannot be written, or there is no such collection.
        StorageError: The database failed.
    """
    if not overwrite and await asyncio.to_thread(path.exists):
        raise InputError(
            f"The file {path} exists already; name another one, or replace it with --overwrite"
            " (overwrite=True).",
        )
    await update_schema(database)
    collection = database.config.collection
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")

    async def work(connection: AsyncConnection[Any]) -> tuple[int, int, int]:
        await lift_timeouts(connection)
        with open_for_writing(partial, compress=path.suffix == ".gz") as file:
            return await _write(connection, collection, file, on_progress, with_logins=with_logins)

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
    connection: AsyncConnection[Any],
    collection: str,
    file: IO[bytes],
    on_progress: Callable[[int, int], None] | None,
    *,
    with_logins: bool,
) -> tuple[int, int, int]:
    embedding = await read_embedding(connection, collection)
    if embedding is None:
        raise InputError(f"The collection {collection!r} does not exist yet.")
    which = {"all": with_logins}
    counts = await fetch(connection, compose(collection, _COUNTS), which)
    ((total, left_out, links, private),) = counts
    private = 0 if with_logins else private
    total -= private
    header = PortableHeader(
        collection=collection,
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
        await cursor.execute(compose(collection, _DOCUMENTS), which)
        while rows := await cursor.fetchmany(_PAGES_READ_AT_ONCE):
            pages = await _with_links(connection, collection, rows)
            await asyncio.to_thread(_write_lines, file, pages)
            written += len(pages)
            if on_progress is not None:
                on_progress(written, total)
    return written, left_out, private


async def _with_links(
    connection: AsyncConnection[Any], collection: str, rows: Sequence[dict[str, Any]]
) -> list[PortablePage]:
    links: dict[int, list[PortableLink]] = {row["id"]: [] for row in rows}
    found = await fetch_as(connection, dict, compose(collection, _LINKS), (list(links),))
    for link in found:
        links[link.pop("source_document")].append(PortableLink.model_validate(link))
    return [PortablePage(**row, links=tuple(links[row["id"]])) for row in rows]


def _write_lines(file: IO[bytes], lines: Sequence[BaseModel]) -> None:
    for line in lines:
        file.write(line.model_dump_json(exclude_none=True).encode() + b"\n")


_LINES_AT_ONCE = 8
_CHARS_AT_ONCE = 4_000_000
# One transaction for 96 pages loads a tenth faster than three for 32; large pages come in fewer.
_PAGES_WRITTEN_AT_ONCE = 96
_CHUNKS_AT_ONCE = 2_000

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

    Args:
        corpus: Where to.
        indexer: Chunks, embeds and stores.
        path: What `export` wrote; compression is recognised.
        on_progress: Told how many lines are done, and how many the header promises.

    Raises:
        InputError: The file cannot be read or is no export.
        ProviderError: Embedding failed; what was stored before is kept.
        DatabaseUnavailableError: The database cannot be reached; the same holds.
    """
    with await asyncio.to_thread(open_for_reading, path) as file:
        header = await asyncio.to_thread(read_header, file, path)
        lines = read_pages(file)
        tally = _Tally(header.documents, on_progress)
        loader = _Loader(corpus, indexer, tally)
        async with corpus.index_deferred(header.documents):
            while batch := await asyncio.to_thread(_next_lines, lines):
                for number, page in batch:
                    await loader.add(number, page)
            await loader.flush()
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


class _Loader:
    """Stores pages in batches, one transaction each."""

    def __init__(self, corpus: Corpus, indexer: Indexer, tally: _Tally) -> None:
        self._corpus = corpus
        self._indexer = indexer
        self._tally = tally
        self._pending: list[tuple[int, PortablePage, PreparedPage]] = []
        self._taken: set[str] = set()

    async def add(self, number: int, page: PortablePage | str) -> None:
        """Take a line; a page may be stored later."""
        if isinstance(page, str):
            self._tally.add(number, page)
            return
        names = {page.url, page.requested_url, *page.aliases, page.content_hash}
        if names & self._taken or self._is_full:
            await self.flush()
        try:
            prepared: PreparedPage | str = await self._prepare(page)
        except (DatabaseUnavailableError, ProviderError):
            raise
        except WebRAGError as error:
            prepared = str(error)
        except Exception as error:  # noqa: BLE001 - one line must not end the import
            prepared = str(unexpected_failure(page.url, error))
        if isinstance(prepared, str):
            self._tally.add(number, prepared)
            return
        self._pending.append((number, page, prepared))
        self._taken |= names

    @property
    def _is_full(self) -> bool:
        chunks = sum(len(prepared.rows.children) for _, _, prepared in self._pending)
        return len(self._pending) >= _PAGES_WRITTEN_AT_ONCE or chunks >= _CHUNKS_AT_ONCE

    async def flush(self) -> None:
        """Store what is waiting."""
        pending, self._pending, self._taken = self._pending, [], set()
        if not pending:
            return
        try:
            await self._store(pending)
        except (DatabaseUnavailableError, ProviderError):
            raise
        except WebRAGError as error:
            await self._one_by_one(pending, str(error))
        except Exception as error:  # noqa: BLE001 - one page must not end the import
            await self._one_by_one(pending, str(unexpected_failure(pending[0][1].url, error)))

    async def _one_by_one(
        self, pending: list[tuple[int, PortablePage, PreparedPage]], reason: str
    ) -> None:
        """So that one bad page keeps no other out."""
        if len(pending) == 1:
            self._tally.add(pending[0][0], reason)
            return
        for each in pending:
            self._pending = [each]
            await self.flush()

    async def _prepare(self, page: PortablePage) -> PreparedPage | str:
        stored = await self._corpus.page(page.url)
        if stored is not None and stored.url == page.url:
            seen = max(stored.fetched_at, stored.gone_at or stored.fetched_at)
            if seen >= page.last_seen:
                await self._complete(stored.url, page)
                return "unchanged" if stored.content_hash == page.content_hash else "kept"
        prepared = await self._indexer.prepare(page.document(), depth=page.depth)
        if isinstance(prepared, PreparedPage):
            return prepared
        await self._complete(prepared.url, page)
        await self._mark(prepared.url, page)
        return prepared.outcome

    async def _store(self, pending: list[tuple[int, PortablePage, PreparedPage]]) -> None:
        stored = await self._indexer.store([prepared for _, _, prepared in pending])
        for (number, page, _), result in zip(pending, stored, strict=True):
            if set(page.aliases) - {page.url, page.requested_url}:
                await self._corpus.add_aliases(result.url, page.aliases)
            await self._mark(result.url, page)
            self._tally.add(number, result.outcome)

    async def _mark(self, url: str, page: PortablePage) -> None:
        if page.gone_at is not None and url == page.url:
            await self._corpus.mark_gone(url, page.gone_at)

    async def _complete(self, url: str, page: PortablePage) -> None:
        await self._corpus.add_aliases(url, page.aliases)
        await self._corpus.lower_depth(url, page.depth)
