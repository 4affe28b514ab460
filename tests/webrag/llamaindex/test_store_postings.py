import asyncio
from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from psycopg import AsyncCursor, sql

from webrag.concurrency import run_blocking
from webrag.corpus.rows import indexed_text
from webrag.lexical.analysis import analyze
from webrag.lexical.postings import pack_postings, pack_texts
from webrag.llamaindex.store import CorpusVectorStore
from webrag.llamaindex.store_rows import (
    add_nodes,
    pages_of_nodes,
)
from webrag.postgres.database import Connection, Database, table

from .made_nodes import DIMENSIONS, URL, node, vector
from .watched import Watched

ELSEWHERE = "https://docs.test/elsewhere"
WORDS = st.lists(st.sampled_from(["heron", "Herons", "fish", "C++", "--no-ff", "the"]), max_size=6)


class Indexed(NamedTuple):
    """What the lexical index holds of a page."""

    rows: list[tuple[str, int, bytes]]
    term_count: int
    child_count: int


@pytest.fixture
def store(database: Database) -> CorpusVectorStore:
    return CorpusVectorStore(database=database, embed_dim=DIMENSIONS)


def one(node_id: str, words: list[str], url: str = URL) -> TextNode:
    made: TextNode = node(node_id, " ".join(["words:", *words]), source_url=url)
    made.excluded_embed_metadata_keys = ["source_url"]
    return made


def fetched(database: Database, statement: str, *values: Any) -> list[Any]:
    names = ("documents", "data_children", "postings")
    collection = database.config.collection
    tables = {name: table(collection, name) for name in names}
    query = sql.SQL(statement).format(**tables)
    return run_blocking(database.run(lambda connection: connection.fetch(query, values)))


def indexed(database: Database, url: str) -> Indexed | None:
    rows = fetched(
        database,
        "select p.term, p.segment, p.packed from {postings} p join {documents} d"
        " on d.id = p.document where d.url = %s",
        url,
    )
    counts = fetched(
        database, "select term_count, child_count from {documents} where url = %s", url
    )
    return Indexed(sorted(rows), *counts[0]) if counts else None


def computed(database: Database, url: str) -> Indexed | None:
    """The same, made anew of what the page's chunks hold."""
    rows = fetched(
        database,
        "select c.ordinal, c.node_id, c.text, c.metadata_ from {data_children} c"
        " join {documents} d on d.id = c.document where d.url = %s",
        url,
    )
    if not rows:
        return None
    by_ordinal = {ordinal: analyze(indexed_text(*row)) for ordinal, *row in rows}
    terms = [by_ordinal.get(ordinal, []) for ordinal in range(max(by_ordinal) + 1)]
    return Indexed(sorted(map(tuple, pack_postings(terms))), sum(map(len, terms)), len(rows))


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(WORDS, min_size=1, max_size=4), min_size=1, max_size=5))
def test_nodes_added_in_batches_are_indexed_and_found_as_those_added_at_once(
    store: CorpusVectorStore, database: Database, batches: list[list[list[str]]]
) -> None:
    store.clear()
    texts = [words for batch in batches for words in batch]
    store.add([one(f"once {at}", words, ELSEWHERE) for at, words in enumerate(texts)])
    parts = iter(enumerate(texts))
    for batch in batches:
        store.add([one(f"parts {at}", words) for at, words in (next(parts) for _ in batch)])

    assert indexed(database, URL) == indexed(database, ELSEWHERE) == computed(database, URL)
    assert found(store, URL) == found(store, ELSEWHERE)


def test_chunks_added_to_a_stored_page_are_analysed_once(
    store: CorpusVectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add([one("first", ["heron"])])
    read: list[str] = []

    def packed(texts: Iterable[str]) -> Any:
        read.extend(taken := list(texts))
        return pack_texts(taken)

    monkeypatch.setattr("webrag.llamaindex.store_rows.pack_texts", packed)
    store.add([one("second", ["fish"])])

    assert sum("fish" in text for text in read) == 1


def found(store: CorpusVectorStore, url: str) -> list[tuple[str, float]]:
    only = MetadataFilters(filters=[MetadataFilter(key="source_url", value=url)])
    answer = store.query(
        VectorStoreQuery(
            query_str="Which herons use C++?",
            query_embedding=vector("any"),
            similarity_top_k=30,
            sparse_top_k=30,
            mode=VectorStoreQueryMode.SPARSE,
            filters=only,
        )
    )
    texts = [each.text for each in answer.nodes or []]
    return sorted(zip(texts, answer.similarities or [], strict=True))


NODE_IDS = st.integers(0, 7).map(str)
ADDED = st.dictionaries(
    NODE_IDS, st.tuples(WORDS, st.sampled_from([URL, ELSEWHERE])), min_size=1, max_size=5
)
DELETED = st.sets(NODE_IDS, min_size=1, max_size=5)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(ADDED, DELETED), min_size=2, max_size=8))
def test_index_is_that_of_the_stored_chunks_whatever_came_was_replaced_moved_and_went(
    store: CorpusVectorStore, database: Database, events: list[Any]
) -> None:
    store.clear()
    for event in events:
        if isinstance(event, set):
            store.delete_nodes(node_ids=sorted(event))
        else:
            store.add([one(each, *words) for each, words in event.items()])

    for url in (URL, ELSEWHERE):
        assert indexed(database, url) == computed(database, url)


def test_page_with_more_chunks_than_a_row_has_room_for_grows_as_it_is_stored_at_once(
    store: CorpusVectorStore, database: Database
) -> None:
    for start in range(0, 1_200, 400):
        store.add([one(str(at), ["heron"]) for at in range(start, start + 400)])

    assert indexed(database, URL) == computed(database, URL)


async def test_nodes_that_come_and_move_at_the_same_time_are_all_indexed(
    store: CorpusVectorStore, database: Database
) -> None:
    moving = [one(f"moving {at}", ["heron"]) for at in range(6)]
    await store.async_add([one("first", ["heron"]), *moving])

    await asyncio.gather(
        *(store.async_add([one(f"new {at}", ["heron", "fish"])]) for at in range(6)),
        *(store.async_add([one(each.node_id, ["C++"], ELSEWHERE)]) for each in moving),
    )

    assert indexed(database, URL) == computed(database, URL)
    assert indexed(database, ELSEWHERE) == computed(database, ELSEWHERE)


async def test_a_page_that_a_node_is_moved_to_meanwhile_is_locked_too(
    store: CorpusVectorStore, database: Database
) -> None:
    moved_to = "https://docs.test/meanwhile"
    store.add([one("moving", ["heron"]), one("there", ["fish"], moved_to)])
    beside = Database(database.config)
    locked = 0

    moving = [one("moving", ["heron"], moved_to)]

    async def move(cursor: AsyncCursor[Any]) -> None:
        if moving:  # the first statement asks which page holds the node
            await store.async_add([moving.pop()])

    async def work(connection: Connection) -> None:
        nonlocal locked
        added = pages_of_nodes([one("moving", ["heron"], ELSEWHERE)])
        watched: Any = Watched(connection, move)
        await add_nodes(watched, added)
        held = (
            "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
        )
        ((locked,),) = await (await connection.execute(held)).fetchall()

    try:
        await beside.run(work)
    finally:
        await beside.close()

    assert locked == 3  # where it was, where it is, and where it goes
    assert indexed(database, moved_to) == computed(database, moved_to)
