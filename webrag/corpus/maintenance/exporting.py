"""Writes a corpus to a portable file: one snapshot, page by page. Reads no such file."""

import asyncio
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from psycopg import AsyncConnection, sql
from psycopg.rows import dict_row
from pydantic import BaseModel, ConfigDict

from webrag.corpus.maintenance.portable import (
    PortableHeader,
    PortableLink,
    PortablePage,
    open_for_writing,
)
from webrag.corpus.schema import read_embedding, table, update_schema
from webrag.errors import InputError
from webrag.postgres.database import Database, lift_timeouts

_PAGES_AT_ONCE = 8  # a page and its HTML may have megabytes

_COUNTS = """
select count(*) filter (where site <> ''), count(*) filter (where site = ''),
       (select count(*) from {links} l join {documents} d on d.id = l.source_document
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
from {links} where source_document = any(%s) and origin = 'page'
order by source_document, ordinal
"""


class ExportReport(BaseModel):
    """What was written.

    Attributes:
        documents: Pages in the file.
        left_out: Documents that have no web address, as LlamaIndex pipelines may add them.
        private: Pages that were read with a login and are left out.
        bytes: Size of the file.
    """

    model_config = ConfigDict(frozen=True)

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
        size = await asyncio.to_thread(_put_in_place, partial, path)
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
    counts = await (await connection.execute(_compose(collection, _COUNTS), which)).fetchone()
    assert counts is not None
    total, left_out, links, private = counts
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
        await cursor.execute(_compose(collection, _DOCUMENTS), which)
        while rows := await cursor.fetchmany(_PAGES_AT_ONCE):
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
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_compose(collection, _LINKS), (list(links),))
        for link in await cursor.fetchall():
            links[link.pop("source_document")].append(PortableLink.model_validate(link))
    return [PortablePage(**row, links=tuple(links[row["id"]])) for row in rows]


def _put_in_place(partial: Path, path: Path) -> int:
    partial.replace(path)
    return path.stat().st_size


def _write_lines(file: IO[bytes], lines: Sequence[BaseModel]) -> None:
    for line in lines:
        file.write(line.model_dump_json(exclude_none=True).encode() + b"\n")


def _compose(collection: str, statement: str) -> sql.Composed:
    return sql.SQL(statement).format(
        documents=table(collection, "documents"), links=table(collection, "link_candidates")
    )
