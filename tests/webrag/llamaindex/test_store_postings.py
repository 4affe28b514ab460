import asyncio
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
from webrag.lexical.postings import (
    MAX_TERMS,
    SEGMENT_POSTINGS,
    PostingRow,
    TooManyPostingsError,
    pack_postings,
)
from webrag.llamaindex.store import CorpusVectorStore
from webrag.llamaindex.store_rows import (
    add_nodes,
    add_postings,
    appended,
    pages_of_nodes,
    recount,
    remaining,
)
from webrag.postgres.database import Connection, Database, table

from .made_nodes import DIMENSIONS, URL, node, vector
from .watched import Watched

ELSEWHERE = "https://docs.test/elsewhere"
WORDS = st.lists(st.sampled_from(["heron", "Herons", "fish", "C++", "--no-ff", "the"]), max_size=6)
# Many alike, so that some terms need several segments.
CHUNKS = st.lists(
    st.tuples(st.lists(st.sampled_from("abc"), max_size=3), st.integers(1, SEGMENT_POSTINGS)),
    max_size=5,
).map(lambda runs: [terms for terms, times in runs for _ in range(times)])


class Indexed(NamedTuple):
    """What the lexical index holds of a page."""

    rows: list[tuple[str, int, bytes]]
    term_count: int
    child_count: int


@pytest.fixture
def store(database: Database) -> CorpusVectorStore:
    return CorpusVectorStore.from_database(database, embed_dim=DIMENSIONS)


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


@given(CHUNKS, CHUNKS)
def test_chunks_that_come_later_are_packed_as_if_they_had_been_there_at_once(
    before: list[list[str]], after: list[list[str]]
) -> None:
    held = {(row.term, row.segment): row for row in pack_postings(before)}
    last = {row.term: row for row in held.values()}

    new = appended(last.values(), pack_postings(after), len(before))

    held |= {(row.term, row.segment): row for row in new}
    assert sorted(held.values()) == pack_postings([*before, *after])


@given(CHUNKS, st.data())
def test_taking_chunks_out_leaves_what_the_others_are_packed_into(
    chunks: list[list[str]], data: st.DataObject
) -> None:
    gone = data.draw(st.sets(st.integers(0, max(len(chunks) - 1, 0)), max_size=20))
    rows = pack_postings(chunks)

    left, terms = remaining(rows, gone)

    kept = [row for row in rows if row.term not in left]
    kept += [row for of_term in left.values() for row in of_term]
    others = [[] if at in gone else each for at, each in enumerate(chunks)]
    assert sorted(kept) == pack_postings(others)
    assert terms == sum(map(len, chunks)) - sum(map(len, others))


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


async def test_adding_a_node_reads_as_much_of_a_long_page_as_of_a_short_one(
    store: CorpusVectorStore, database: Database
) -> None:
    async def rows_read(added: Any) -> int:
        read = 0

        async def count(cursor: AsyncCursor[Any]) -> None:
            nonlocal read
            read += cursor.rowcount if cursor.description else 0

        async def work(connection: Connection) -> None:
            watched: Any = Watched(connection, count)
            await add_nodes(watched, pages_of_nodes(added))

        await database.run(work)
        return read

    store.add([one("short", ["heron"])])
    of_short = await rows_read([one("first", ["heron"])])
    store.add([one(str(at), ["heron", "fish"]) for at in range(200)])

    assert await rows_read([one("last", ["heron"])]) == of_short


async def test_page_takes_no_more_chunks_than_their_numbers_reach(database: Database) -> None:
    rows = [PostingRow("heron", 0, b"")]
    with pytest.raises(TooManyPostingsError, match="65,540 chunks"):
        await database.run(lambda each: add_postings(each, 1, rows, 65_530, 10))


async def test_page_takes_no_more_words_than_can_be_indexed_however_they_come(
    store: CorpusVectorStore, database: Database
) -> None:
    collection = database.config.collection
    await store.async_add([one("a", ["heron"])])
    ((page_id,),) = fetched(database, "select id from {documents}")
    fill = sql.SQL(
        "insert into {} (document, term, segment, packed)"
        " select %s, 'word' || n, 0, '' from generate_series(1, %s) n"
    ).format(table(collection, "postings"))

    async def work(connection: Connection) -> None:
        # Without a look at the page for each of the rows.
        await connection.execute("set local session_replication_role = replica")
        await connection.execute(fill, (page_id, MAX_TERMS))
        await recount(connection, page_id, MAX_TERMS)

    with pytest.raises(TooManyPostingsError, match="different words"):
        await database.run(work)
