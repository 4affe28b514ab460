"""Collections: made once, versioned, tied to their embedding model."""

import asyncio
from pathlib import Path

import pytest
from psycopg import AsyncConnection, sql
from psycopg.rows import TupleRow

from webrag.corpus.pages import Corpus
from webrag.corpus.schema import (
    SCHEMA_VERSION,
    corpus_embedding,
    drop_collection,
    ensure_schema,
    list_collections,
    table,
)
from webrag.corpus.tables import OLDEST_VERSION, create_statements
from webrag.errors import ConfigurationError
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database


async def _ensure(database: Database, model: str = "bundled/x", dimensions: int = 8) -> None:
    await ensure_schema(database, embedding_model=model, embedding_dimensions=dimensions)


async def _execute(database: Database, statement: str) -> list[TupleRow]:
    """Run a statement in which {} stands for the collection."""
    composed = sql.SQL(statement).format(sql.Identifier(database.config.collection))

    async def work(connection: AsyncConnection[TupleRow]) -> list[TupleRow]:
        cursor = await connection.execute(composed)
        return await cursor.fetchall() if cursor.description else []

    return await database.run(work)


async def test_unknown_collection_has_no_model(database: Database) -> None:
    assert await corpus_embedding(database) is None


async def test_new_collection_records_its_model(database: Database) -> None:
    await _ensure(database)

    assert await corpus_embedding(database) == ("bundled/x", 8)


async def test_repeating_keeps_what_is_stored(database: Database) -> None:
    await _ensure(database)
    await _execute(database, "insert into {}.corpus_meta values ('mine', '1')")

    await _ensure(database)

    assert await _execute(database, "select value from {}.corpus_meta where key = 'mine'") == [(1,)]


async def test_concurrent_creators_make_one_collection(
    database: Database, postgres_dir: Path
) -> None:
    others = [
        Database(DatabaseConfig(data_dir=postgres_dir, collection=database.config.collection))
        for _ in range(3)
    ]

    await asyncio.gather(*(_ensure(each) for each in [database, *others]))

    assert await _execute(database, "select count(*) from {}.corpus_meta") == [(3,)]
    await asyncio.gather(*(each.close() for each in others))


async def test_another_model_is_refused_with_both_names_and_the_command(
    database: Database,
) -> None:
    await _ensure(database)

    with pytest.raises(ConfigurationError, match=r"bundled/x \(8 .*openai/y \(16 ") as caught:
        await _ensure(database, "openai/y", 16)
    assert "webrag reindex" in str(caught.value.hint)


async def test_newer_schema_is_refused(database: Database) -> None:
    await _ensure(database)
    await _execute(database, "update {}.corpus_meta set value = '99' where key = 'schema_version'")

    with pytest.raises(ConfigurationError, match=f"version 99.*up to {SCHEMA_VERSION}"):
        await _ensure(database)


async def test_schema_of_a_version_that_is_no_longer_opened_is_refused(
    database: Database,
) -> None:
    await _make_oldest(database)
    await _execute(database, "update {}.corpus_meta set value = '9' where key = 'schema_version'")

    with pytest.raises(ConfigurationError, match=r"version 9;.*opens versions from 10") as caught:
        await _ensure(database)
    assert "webrag corpus export" in str(caught.value.hint)


async def _make_oldest(database: Database) -> None:
    """A collection as the oldest version that is opened made it, with one page in it."""
    name = database.config.collection
    await _execute(database, "create schema {}")
    await database.run(lambda connection: _run_all(connection, create_statements(name, 8)))
    await _execute(
        database,
        f"insert into {{0}}.corpus_meta values ('schema_version', '{OLDEST_VERSION}'),"
        " ('embedding_model', '\"bundled/x\"'), ('embedding_dimensions', '8');"
        "insert into {0}.documents (document_id, url, requested_url, site, fetched_at, depth,"
        " markdown, html, content_hash, status, source, token_count, child_count, term_count)"
        " values (gen_random_uuid(), 'u', 'u', 's', now(), 0, 'x', '', '', 200, '', 1, 1, 1)",
    )


async def _run_all(connection: AsyncConnection[TupleRow], statements: list[sql.Composed]) -> None:
    for statement in statements:
        await connection.execute(statement)


async def test_collection_of_the_oldest_version_opens_and_keeps_its_pages(
    database: Database,
) -> None:
    await _make_oldest(database)

    await _ensure(database)

    status = await Corpus(database).status()
    assert [(page.url, page.outcome, page.checked_at) for page in status.pages] == [
        ("u", "indexed", None)
    ]
    assert await _execute(
        database, "select value from {}.corpus_meta where key = 'schema_version'"
    ) == [(SCHEMA_VERSION,)]


async def test_migrated_collection_has_what_a_new_one_has(
    database: Database, postgres_dir: Path
) -> None:
    await _make_oldest(database)
    await _ensure(database)
    name = f"{database.config.collection}_new"
    fresh = Database(DatabaseConfig(data_dir=postgres_dir, collection=name))
    await _ensure(fresh)

    columns = [
        await _execute(
            each,
            "select table_name, column_name, data_type from information_schema.columns"
            f" where table_schema = '{each.config.collection}' order by 1, 2",
        )
        for each in (database, fresh)
    ]

    assert columns[0] == columns[1]
    await drop_collection(fresh)
    await fresh.close()


async def test_concurrent_processes_migrate_once(database: Database, postgres_dir: Path) -> None:
    await _make_oldest(database)
    config = DatabaseConfig(data_dir=postgres_dir, collection=database.config.collection)
    others = [Database(config) for _ in range(3)]

    await asyncio.gather(*(_ensure(each) for each in [database, *others]))

    assert (await Corpus(database).status()).documents == 1
    await asyncio.gather(*(each.close() for each in others))


async def test_migration_interrupted_half_way_can_be_repeated(database: Database) -> None:
    await _make_oldest(database)
    await _ensure(database)
    await _execute(
        database,
        f"update {{}}.corpus_meta set value = '{OLDEST_VERSION}' where key = 'schema_version'",
    )

    await _ensure(database)

    assert (await Corpus(database).status()).documents == 1


async def test_collection_of_the_oldest_version_is_listed_and_dropped(database: Database) -> None:
    await _make_oldest(database)

    assert database.config.collection in await list_collections(database)
    assert await drop_collection(database) is True
    assert database.config.collection not in await list_collections(database)


async def test_schema_with_tables_of_others_is_refused(database: Database) -> None:
    await _execute(database, "create schema {0}; create table {0}.documents ()")

    with pytest.raises(ConfigurationError, match="holds other tables"):
        await _ensure(database)
    await _execute(database, "drop schema {} cascade")


@pytest.mark.parametrize("dimensions", [0, 4001])
async def test_impossible_dimensions_are_refused(database: Database, dimensions: int) -> None:
    with pytest.raises(ConfigurationError, match="allowed are 1 to 4000"):
        await _ensure(database, dimensions=dimensions)


async def test_largest_vectors_can_be_stored(database: Database) -> None:
    await _ensure(database, dimensions=4000)

    rows = await _execute(
        database,
        "select format_type(atttypid, atttypmod) from pg_attribute"
        " where attrelid = '{}.data_children'::regclass and attname = 'embedding'",
    )

    assert rows == [("halfvec(4000)",)]


async def test_long_link_targets_fit(database: Database) -> None:
    await _ensure(database)
    await _execute(
        database,
        "insert into {}.documents (document_id, url, requested_url, site, fetched_at, depth,"
        " markdown, html, content_hash, status, source, token_count, child_count, term_count)"
        " values (gen_random_uuid(), 'u', 'u', 's', now(), 0, '', '', '', 200, '', 0, 0, 0)",
    )

    await _execute(
        database,
        "insert into {0}.link_candidates (source_document, ordinal, url, title, description, rel)"
        " select id, 0, (select string_agg(md5(i::text), '') from generate_series(1, 500) i),"
        " '', '', array[]::text[] from {0}.documents",
    )

    rows = await _execute(database, "select length(url) from {}.link_candidates")
    assert rows == [(16_000,)]


async def test_collections_are_listed_until_they_are_dropped(database: Database) -> None:
    await _ensure(database)
    listed = await list_collections(database)

    assert await drop_collection(database) is True

    assert database.config.collection in listed
    assert database.config.collection not in await list_collections(database)
    assert await drop_collection(database) is False


async def test_dropping_keeps_tables_of_others(database: Database) -> None:
    await _ensure(database)
    await _execute(database, "create table {}.mine as select 1 as n")

    await drop_collection(database)

    assert await _execute(database, "select n from {}.mine") == [(1,)]
    await _execute(database, "drop schema {} cascade")


@pytest.mark.parametrize(
    "name", ["", "Upper", "1st", "with-dash", 'quo"te', "a" * 49, "public", "pg_temp", "é"]
)
def test_bad_collection_names_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="WEBRAG_COLLECTION"):
        Database(DatabaseConfig(data_dir=tmp_path, collection=name))


def test_table_names_are_quoted() -> None:
    assert table("select", "documents").as_string() == '"select"."documents"'
