"""The list of benchmarks/store_behaviour.py, and hostile filters, on WebRAG's store."""

import asyncio
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters
from psycopg import sql

from webrag.concurrency import run_blocking
from webrag.corpus.schema import drop_collection
from webrag.llamaindex.store import CorpusVectorStore
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database

LIST = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks/store_behaviour.py"))

PAYLOADS = [
    "'", "''", '"', '""', "`", "\\", "\\'", "\\\\", ";", "--", "/*", "*/", "%", "%%", "%s",
    "%(name)s", "%b", ":name", "::text", ":", "$1", "$$", "?", "{}", "{children}", "\x00",
    "a\x00b", "\n", "\t", "\u2018", "\u2019", "\u201c\u201d", "\u02bc", "\uff07", "\ud83d",
    "x' OR 1=1 --", "x') OR ('1'='1", "'; drop schema public cascade; --",
    "' || pg_sleep(5) || '", "x'; delete from data_children; --",
]  # fmt: skip
STORABLE = [each for each in PAYLOADS if "\x00" not in each and each != "\ud83d"]


@pytest.fixture(scope="module")
def database(postgres_dir: Path) -> Iterator[Database]:
    """One collection for all; each behaviour starts by emptying it."""
    name = f"test_{uuid4().hex[:16]}"
    made = Database(DatabaseConfig(data_dir=postgres_dir, collection=name))
    yield made
    asyncio.run(drop(made))


@pytest.fixture(scope="module")
def hostile(postgres_dir: Path) -> Iterator[CorpusVectorStore]:
    """Nodes whose keys and values are the payloads, and one without."""
    name = f"test_{uuid4().hex[:16]}"
    made = Database(DatabaseConfig(data_dir=postgres_dir, collection=name))
    store = CorpusVectorStore(database=made, embed_dim=2)
    kept = [{"value": each, each: "here"} for each in STORABLE]
    store.add(
        [
            TextNode(id_=f"n{number}", text="t", metadata=metadata, embedding=[1.0, number])
            for number, metadata in enumerate([*kept, {"other": "x"}])
        ]
    )
    yield store
    asyncio.run(drop(made))


async def drop(database: Database) -> None:
    await drop_collection(database)
    await database.close()


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
@pytest.mark.parametrize("sentence", LIST["BEHAVIOURS"])
async def test_store_behaves_as_llama_index_expects(
    database: Database, sentence: str, is_async: bool
) -> None:
    store = CorpusVectorStore(database=database, embed_dim=LIST["DIMENSIONS"])

    reason = await LIST["attempt"](
        LIST["BEHAVIOURS"][sentence], LIST["Subject"](store, is_async=is_async)
    )

    assert reason is None


@pytest.mark.parametrize("payload", PAYLOADS, ids=ascii)
def test_hostile_filter_finds_what_bound_values_find_and_changes_nothing(
    hostile: CorpusVectorStore, payload: str
) -> None:
    everything = oracle(hostile, "true", "")

    as_value = found(hostile, "value", "==", payload)
    as_key = found(hostile, payload, "==", "here")
    in_list = found(hostile, "value", "in", [payload, "none"])
    excluded = found(hostile, "value", "!=", payload)

    equal = oracle(hostile, "metadata_->>'value' = %s", payload)
    assert as_value == in_list == equal
    assert as_key == oracle(hostile, "metadata_->>%s = 'here'", payload)
    assert excluded == [each for each in everything if each not in equal]
    assert len(oracle(hostile, "true", "")) == len(STORABLE) + 1


def found(store: CorpusVectorStore, key: str, operator: str, value: Any) -> list[str]:
    one = MetadataFilter(key=key, value=value, operator=FilterOperator(operator))
    return sorted(each.node_id for each in store.get_nodes(filters=MetadataFilters(filters=[one])))


def oracle(store: CorpusVectorStore, condition: str, value: str) -> list[str]:
    """What Postgres itself finds; a text it cannot hold is nowhere."""
    if value not in ("", *STORABLE):
        return []
    statement = sql.SQL(f"select node_id from {{}} where {condition} order by 1").format(
        sql.Identifier(store.schema_name, "data_children")
    )
    bound = (value,) if "%s" in condition else ()
    rows = run_blocking(store.client.run(lambda each: each.fetch(statement, bound)))
    return sorted(node_id for (node_id,) in rows)
