"""The tables of a collection: made, versioned, listed and dropped; rows are others' business."""

import logging
from contextlib import suppress
from typing import Any, NamedTuple

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from webrag.corpus.models import CollectionSize
from webrag.corpus.tables import (
    FORMER_TABLES,
    LOADING_KEY,
    NEXT_CHILDREN,
    OLDEST_VERSION,
    SCHEMA_VERSION,
    TABLES,
    create_statements,
    migrate_statements,
)
from webrag.errors import ConfigurationError, StorageError
from webrag.postgres.config import check_collection_name
from webrag.postgres.database import Connection, Database, table

logger = logging.getLogger(__name__)

LOCK_SEED = 41
"""Keeps locks on tables apart from other advisory locks on the same names."""

HOSTS_SCHEMA = "webrag$hosts"
"""Holds what all collections of a database agree on; no collection can have such a name."""


async def lock_tables(connection: Connection, collection: str) -> None:
    """Keep others from changing the tables; the transaction may then take as long as it needs."""
    await connection.lift_timeouts()
    await connection.take_lock(f"webrag {collection}", LOCK_SEED)


async def create_tables(connection: Connection, embedding: tuple[str, int]) -> None:
    """Make an empty collection for a model and its dimensions, in a transaction with the lock."""
    collection = connection.collection
    try:
        # `if not exists` asks for the right to create even when the schema is there.
        known = "select 1 from pg_namespace where nspname = %s"
        if not await connection.fetch(known, (collection,)):
            await connection.execute(sql.SQL("create schema {}").format(sql.Identifier(collection)))
        for statement in create_statements(collection, embedding[1]):
            await connection.execute(statement)
        for statement in migrate_statements(collection, OLDEST_VERSION):
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
    await record_meta(connection, embedding)


async def record_meta(connection: Connection, embedding: tuple[str, int]) -> None:
    """Write into a new collection which version and model it was made with."""
    model, dimensions = embedding
    meta = {
        "schema_version": SCHEMA_VERSION,
        "embedding_model": model,
        "embedding_dimensions": dimensions,
    }
    await connection.change(
        "insert into {corpus_meta} (key, value) select * from jsonb_each(%s)", (Jsonb(meta),)
    )


async def migrate_tables(connection: Connection, version: int) -> None:
    """Bring the tables of a collection to the current version, in a transaction with the lock."""
    collection = connection.collection
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
    update = "update {corpus_meta} set value = %s where key = 'schema_version'"
    await connection.change(update, (Jsonb(SCHEMA_VERSION),))
    logger.info(
        "Brought the collection %s from schema version %d to %d.",
        *(collection, version, SCHEMA_VERSION),
    )


# pgvector's limit for an HNSW index on halfvec.
_MOST_DIMENSIONS = 4000


class CorpusMeta(NamedTuple):
    """A collection's version, model and dimensions; no vector index while it `is_loading`."""

    version: int
    embedding: tuple[str, int]
    is_loading: bool = False

    @property
    def is_current(self) -> bool:
        """No table and no column is missing."""
        return self.version == SCHEMA_VERSION


def queue_schema(collection: str) -> str:
    """Name of the schema of a collection's job queue; no collection can have such a name."""
    return f"{check_collection_name(collection)}$jobs"


async def ensure_schema(
    database: Database, *, embedding_model: str, embedding_dimensions: int
) -> None:
    """Make sure that the collection exists, is current and was made with this embedding model.

    Repeating it costs one read; one of an earlier version gets what it lacks.
    """
    if not 1 <= embedding_dimensions <= _MOST_DIMENSIONS:
        raise ConfigurationError(
            f"EMBEDDING_DIMENSIONS is {embedding_dimensions}; allowed are 1 to {_MOST_DIMENSIONS}."
        )
    wanted = (embedding_model, embedding_dimensions)

    async def work(connection: Connection) -> None:
        found = await _locked_meta(connection)
        if found is None:
            if database.config.url is not None:
                info = connection.info
                logger.warning(
                    "Creating the schema %s in the database %s on %s.",
                    *(connection.collection, info.dbname, info.host),
                )
            await create_tables(connection, wanted)
        elif found.embedding != wanted:
            model, dimensions = found.embedding
            raise ConfigurationError(
                f"The collection {connection.collection!r} was made with the embedding model"
                f" {model} ({dimensions} dimensions); the settings ask for {wanted[0]}"
                f" ({wanted[1]} dimensions).",
                hint="Run `webrag reindex` to embed the stored text again, or go back to the first"
                " model, or set WEBRAG_COLLECTION to another name.",
            )
        elif not found.is_current:
            await migrate_tables(connection, found.version)

    await database.run(work)


async def update_schema(database: Database) -> tuple[str, int] | None:
    """Bring the collection to the current version, and give its model; None when there is none."""

    async def work(connection: Connection) -> tuple[str, int] | None:
        found = await read_meta(connection)
        if found is not None and not found.is_current:
            found = await _locked_meta(connection)
        if found is not None and not found.is_current:
            await migrate_tables(connection, found.version)
        return found and found.embedding

    return await database.run(work)


async def _locked_meta(connection: Connection) -> CorpusMeta | None:
    """Read what a collection records, again under the lock where something is to be made."""
    found = await read_meta(connection)
    if found is not None and found.is_current:
        return found
    await lock_tables(connection, connection.collection)
    return await read_meta(connection)


async def corpus_embedding(database: Database) -> tuple[str, int] | None:
    """Model and dimension the collection was made with, None when it does not exist."""
    return await database.run(read_embedding, autocommit=True)


async def list_collections(database: Database) -> list[str]:
    """Names of the collections in this database, in alphabetical order."""
    return await database.run(_list)


# A schema that has all of these is a collection, whatever its version.
_OWN_TABLES = ("corpus_meta", "documents", "parents", "data_children", "postings")


async def _list(connection: Connection) -> list[str]:
    rows = await connection.fetch(
        "select schemaname from pg_tables where tablename = any(%s)"
        " group by schemaname having count(*) = %s order by schemaname",
        (list(_OWN_TABLES), len(_OWN_TABLES)),
    )
    return [name for (name,) in rows]


async def drop_collection(database: Database, collection: str | None = None) -> bool:
    """Remove a collection, this one by default, but for others' tables; False for none."""
    name = check_collection_name(collection or database.config.collection)

    async def work(connection: Connection) -> bool:
        await lock_tables(connection, name)
        if "corpus_meta" not in await table_names(connection, name):
            return False
        names = (NEXT_CHILDREN, *FORMER_TABLES, *TABLES)
        tables = sql.SQL(", ").join(table(name, known) for known in names)
        await connection.execute(sql.SQL("drop table if exists {}").format(tables))
        await connection.execute(
            sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(queue_schema(name)))
        )
        try:
            async with connection.transaction():
                await connection.execute(
                    sql.SQL("drop schema {} restrict").format(sql.Identifier(name))
                )
        except psycopg.errors.DependentObjectsStillExist:
            logger.info("The schema %s holds other tables and was kept.", name)
        owned = "select 1 from pg_tables where schemaname = %s and tableowner = current_user"
        # No names of hosts are left behind; processes that know the table may go on.
        if not await _list(connection) and await connection.fetch(owned, (HOSTS_SCHEMA,)):
            delete = sql.SQL("delete from {}").format(sql.Identifier(HOSTS_SCHEMA, "host_turns"))
            await connection.execute(delete)
        return True

    return await database.run(work)


async def table_names(connection: Connection, collection: str) -> set[str]:
    """Give the names of the tables in a collection's schema; none where there is no collection."""
    # Not to_regclass: it reads no table, so it does not notice what another process committed
    # while this one waited for the advisory lock.
    named = "select tablename::text from pg_tables where schemaname = %s"
    return {name for (name,) in await connection.fetch(named, (collection,))}


async def read_embedding(connection: Connection) -> tuple[str, int] | None:
    """As `corpus_embedding`, within a transaction."""
    found = await read_meta(connection)
    return None if found is None else found.embedding


async def read_meta(connection: Connection) -> CorpusMeta | None:
    """Read the collection's own record, within a transaction; None when it does not exist."""
    collection = connection.collection
    if "corpus_meta" not in await table_names(connection, collection):
        return None
    rows = await connection.fetch("select key, value from {corpus_meta}")
    meta: dict[str, Any] = dict(rows)
    version = meta.get("schema_version")
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise ConfigurationError(
            f"The collection {collection!r} has schema version {version};"
            f" this WebRAG knows versions up to {SCHEMA_VERSION}.",
            hint="Upgrade WebRAG, or set WEBRAG_COLLECTION to another name.",
        )
    if version < OLDEST_VERSION:
        raise ConfigurationError(
            f"The collection {collection!r} has schema version {version};"
            f" this WebRAG opens versions from {OLDEST_VERSION}.",
            hint="Export it by `webrag corpus export` of the WebRAG that made it, or fetch its"
            " pages again, with WEBRAG_COLLECTION set to another name.",
        )
    embedding = (str(meta["embedding_model"]), int(meta["embedding_dimensions"]))
    return CorpusMeta(version, embedding, LOADING_KEY in meta)


async def collection_sizes(database: Database, only: str | None = None) -> list[CollectionSize]:
    """Every collection, or one, with its number of pages, in alphabetical order."""
    names = await list_collections(database) if only is None else [only]

    async def work(connection: Connection) -> list[CollectionSize]:
        sizes = []
        for name in names:
            # Another process may have dropped it since it was listed.
            with suppress(psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
                async with connection.transaction():
                    sizes.append(await _size(connection, name))
        return sizes

    return await database.run(work)


async def _size(connection: Connection, name: str) -> CollectionSize:
    documents = table(name, "documents")
    ((allowed,),) = await connection.fetch(
        "select has_schema_privilege(%s, 'usage')"
        " and has_table_privilege(to_regclass(%s), 'select')",
        (name, documents.as_string(connection)),
    )
    if not allowed:
        return CollectionSize(name=name, documents=None)
    ((count,),) = await connection.fetch(sql.SQL("select count(*) from {}").format(documents))
    return CollectionSize(name=name, documents=count)
