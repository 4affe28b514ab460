"""Examines a collection without changing it: server, tables, indexes, rows, offsets."""

from collections.abc import Callable
from typing import Any

from psycopg import AsyncConnection, sql
from psycopg.rows import dict_row

from webrag.errors import ConfigurationError, StorageError
from webrag.indexing.corpus_findings import (
    LOADING,
    Check,
    CorpusCheck,
    absent_check,
    model_check,
    obstacle_check,
    page_checks,
    row_checks,
    schema_check,
    tables_check,
)
from webrag.indexing.database import Database
from webrag.indexing.page_check import check_pages
from webrag.indexing.reembedding_table import unfinished_model
from webrag.indexing.schema import SCHEMA_VERSION, CorpusMeta, read_meta, table
from webrag.indexing.tables import FIRST_TABLES, TABLES, VECTOR_INDEX, index_statements
from webrag.indexing.timeouts import lift_timeouts

__all__ = ["check_corpus"]

_Connection = AsyncConnection[Any]

_VERSIONS = """
select current_setting('server_version') as postgres,
       (select extversion from pg_extension where extname = 'vector') as pgvector,
       (select default_version from pg_available_extensions where name = 'vector') as offered
"""
_INDEXES = """
select c.relname as name, i.indisvalid and i.indisready as valid
from pg_index i join pg_class c on c.oid = i.indexrelid join pg_class t on t.oid = i.indrelid
join pg_namespace n on n.oid = t.relnamespace
where n.nspname = %s and t.relname = any(%s)
"""
_ROWS = """
select (select count(*) from {documents}) as documents,
       (select count(*) from {parents}) as parents,
       (select count(*) from {children}) as children,
       (select count(*) from {children} where embedding is null) as unembedded,
       (select count(*) from {children} c
        where not exists (select from {parents} p where p.id = c.parent_id)) as orphans,
       (select count(*) from {parents} p
        where not exists (select from {children} c where c.parent_id = p.id)) as childless,
       (select count(*) from {documents} d where child_count <>
        (select count(*) from {children} c where c.document = d.id)) as miscounted,
       (select count(*) from {documents} d where term_count > 0
        and not exists (select from {postings} p where p.document = d.id)) as wordless,
       (select count(*) from {children} c
        where not exists (select from {documents} d where d.id = c.document))
       + (select count(*) from {parents} p
          where not exists (select from {documents} d where d.id = p.document))
       + (select count(*) from {postings} p
          where not exists (select from {documents} d where d.id = p.document))
       + (select count(*) from {links} l
          where not exists (select from {documents} d where d.id = l.source_document)) as pageless,
       (select atttypmod from pg_attribute
        where attrelid = %s::regclass and attname = 'embedding') as dimensions
"""


async def check_corpus(
    database: Database,
    *,
    wanted: tuple[str, int] | None = None,
    sample: int | None = 100,
    on_progress: Callable[[int, int], None] | None = None,
) -> CorpusCheck:
    """Examine the collection; what stands in the way of the examination is a finding too.

    Args:
        database: The collection.
        wanted: Model and dimensions the settings ask for; None when they leave it to the corpus.
        sample: Pages, taken at random, of which every offset and posting is verified; None for
            all.
        on_progress: Told how many pages are verified, and how many there are to verify.
    """
    checks: list[Check] = []
    collection = database.config.collection

    async def examine(connection: _Connection) -> list[Check]:
        await lift_timeouts(connection)
        meta = await read_meta(connection, collection)
        found = [await _server(connection, database)]
        if meta is None:
            return [*found, absent_check(collection)]
        embedding = meta.embedding
        found.append(schema_check(meta))
        missing = await _missing_tables(connection, collection, meta.version)
        if missing:
            return [*found, tables_check(missing)]
        found += await _indexes(connection, collection, meta)
        found += await _rows(connection, collection, embedding)
        faults = await check_pages(connection, collection, sample, on_progress)
        found += page_checks(faults)
        found.append(model_check(embedding, wanted, await unfinished_model(connection, collection)))
        return found

    try:
        await database.open()
        checks = await database.run(examine, snapshot=True)
    except (ConfigurationError, StorageError) as error:
        checks.append(obstacle_check(error))
    return CorpusCheck(checks=tuple(checks))


async def _server(connection: _Connection, database: Database) -> Check:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(sql.SQL(_VERSIONS))
        row = await cursor.fetchone()
    assert row is not None
    found = f"{database.description}, pgvector {row['pgvector']}."
    if row["offered"] is not None and row["offered"] != row["pgvector"]:
        remedy = f"Run `alter extension vector update` for version {row['offered']}."
        return Check(name="server", level="warn", found=found, remedy=remedy)
    return Check(name="server", level="ok", found=found)


async def _missing_tables(connection: _Connection, collection: str, version: int) -> list[str]:
    cursor = await connection.execute(
        "select tablename::text from pg_tables where schemaname = %s", (collection,)
    )
    expected = TABLES if version == SCHEMA_VERSION else FIRST_TABLES
    return sorted(set(expected) - {name for (name,) in await cursor.fetchall()})


async def _indexes(connection: _Connection, collection: str, meta: CorpusMeta) -> list[Check]:
    cursor = await connection.execute(sql.SQL(_INDEXES), (collection, list(TABLES)))
    valid: dict[str, bool] = dict(await cursor.fetchall())
    expected = index_statements(collection, meta.embedding[1], meta.version)
    checks = [
        Check(
            name="indexes",
            level="fail",
            found=f"The index {name} is missing.",
            remedy=f"Run in the database: {_one_line(statement.as_string(connection))}",
        )
        for name, statement in expected.items()
        if name not in valid and not (meta.is_loading and name == VECTOR_INDEX)
    ]
    checks += [
        Check(
            name="indexes",
            level="fail",
            found=f"The index {name} is not valid.",
            remedy=f'Run in the database: reindex index "{collection}"."{name}"',
        )
        for name, is_valid in valid.items()
        if not is_valid
    ]
    if meta.is_loading:
        checks.append(LOADING)
    return checks or [
        Check(name="indexes", level="ok", found=f"All {len(valid)} exist and are valid.")
    ]


def _one_line(statement: str) -> str:
    return " ".join(statement.split())


async def _rows(
    connection: _Connection, collection: str, embedding: tuple[str, int]
) -> list[Check]:
    names = {name: table(collection, name) for name in ("documents", "parents", "postings")}
    statement = sql.SQL(_ROWS).format(
        **names,
        children=table(collection, "data_children"),
        links=table(collection, "link_candidates"),
    )
    async with connection.cursor(row_factory=dict_row) as cursor:
        children = table(collection, "data_children").as_string(connection)
        await cursor.execute(statement, (children,))
        row = await cursor.fetchone()
    assert row is not None
    return row_checks(row, embedding)
