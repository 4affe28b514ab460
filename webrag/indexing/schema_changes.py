"""Makes the tables of a collection, and brings older ones up to date, in a caller's transaction."""

import logging

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from webrag.errors import ConfigurationError, StorageError
from webrag.indexing.tables import SCHEMA_VERSION, create_statements, migrate_statements
from webrag.indexing.timeouts import lift_timeouts

__all__ = ["create_tables", "lock_tables", "migrate_tables"]

logger = logging.getLogger(__name__)


async def lock_tables(connection: AsyncConnection[TupleRow], collection: str) -> None:
    """Keep others from changing the tables; the transaction may then take as long as it needs."""
    await lift_timeouts(connection)
    await connection.execute(
        "select pg_advisory_xact_lock(hashtextextended(%s, 41))", (f"webrag {collection}",)
    )


async def create_tables(
    connection: AsyncConnection[TupleRow], collection: str, embedding: tuple[str, int]
) -> None:
    """Make an empty collection.

    Args:
        connection: In a transaction that holds the lock.
        collection: A checked name.
        embedding: Model and dimensions it is made with.

    Raises:
        ConfigurationError: Its schema holds somebody else's tables.
        StorageError: The user may not create it.
    """
    model, dimensions = embedding
    try:
        # `if not exists` asks for the right to create even when the schema is there.
        cursor = await connection.execute(
            "select from pg_namespace where nspname = %s", (collection,)
        )
        if await cursor.fetchone() is None:
            await connection.execute(sql.SQL("create schema {}").format(sql.Identifier(collection)))
        for statement in create_statements(collection, dimensions):
            await connection.execute(statement)
        for statement in migrate_statements(collection, 1):
            await connection.execute(statement)
    except psycopg.errors.DuplicateTable as error:
        raise ConfigurationError(
            f"The schema {collection!r} exists and holds other tables.",
            hint="Set WEBRAG_COLLECTION to another name.",
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        user, dbname = connection.info.user, connection.info.dbname
        raise StorageError(
            f"The user {user!r} may not create the schema {collection!r}.",
            hint=f"An administrator can run `GRANT CREATE ON DATABASE {dbname} TO {user}`.",
        ) from error
    meta = {
        "schema_version": SCHEMA_VERSION,
        "embedding_model": model,
        "embedding_dimensions": dimensions,
    }
    insert = sql.SQL("insert into {} (key, value) values (%s, %s)").format(_meta(collection))
    async with connection.cursor() as cursor:
        await cursor.executemany(insert, [(key, Jsonb(value)) for key, value in meta.items()])


async def migrate_tables(
    connection: AsyncConnection[TupleRow], collection: str, version: int
) -> None:
    """Bring the tables of a collection from a version to the current one.

    Args:
        connection: In a transaction that holds the lock.
        collection: A checked name.
        version: What it has.

    Raises:
        StorageError: The user may not change it.
    """
    try:
        for statement in migrate_statements(collection, version):
            await connection.execute(statement)
    except psycopg.errors.InsufficientPrivilege as error:
        user = connection.info.user
        raise StorageError(
            f"The user {user!r} may not bring the collection {collection!r} from schema version"
            f" {version} to {SCHEMA_VERSION}.",
            hint="Run WebRAG once as the owner of its schema.",
        ) from error
    update = sql.SQL("update {} set value = %s where key = 'schema_version'").format(
        _meta(collection)
    )
    await connection.execute(update, (Jsonb(SCHEMA_VERSION),))
    logger.info(
        "Brought the collection %s from schema version %d to %d.",
        *(collection, version, SCHEMA_VERSION),
    )


def _meta(collection: str) -> sql.Identifier:
    return sql.Identifier(collection, "corpus_meta")
