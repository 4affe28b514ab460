import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index.vector_stores.postgres import PGVectorStore
from psycopg import AsyncConnection

from webrag.concurrency import run_blocking
from webrag.corpus.indexer import Indexer
from webrag.corpus.pages import Corpus
from webrag.errors import ConfigurationError, InputError
from webrag.ingestion.models import NormalizedDocument
from webrag.llamaindex.store import CorpusVectorStore
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database

from .made_nodes import DIMENSIONS, URL, node, read, vector

MakeDocument = Callable[..., NormalizedDocument]


def nearest(text: str, top_k: Any = 3, **kwargs: Any) -> Any:
    return VectorStoreQuery(query_embedding=vector(text), similarity_top_k=top_k, **kwargs)


@pytest.fixture
def store(database: Database) -> Any:
    return CorpusVectorStore(database=database, embed_dim=DIMENSIONS)


@pytest.fixture
def server_url(postgres_dir: Path) -> Iterator[Any]:
    """A URL of the test server, as a user of one's own would write it."""
    database = Database(DatabaseConfig(data_dir=postgres_dir))

    async def url(connection: AsyncConnection[Any]) -> str:
        info = connection.info
        return f"postgresql+psycopg2://{info.user}@/{info.dbname}?host={info.host}&port={info.port}"

    yield run_blocking(database.run(url))
    asyncio.run(database.close())


async def test_store_finds_what_was_added(store: CorpusVectorStore) -> None:
    await store.async_add([node("a"), node("b"), node("c")])

    result = await store.aquery(nearest("b", top_k=2))

    assert result.ids[0] == "b"
    assert result.nodes[0].text == "Text of b."
    assert result.similarities[0] == pytest.approx(1, abs=1e-3)
    assert result.similarities == sorted(result.similarities, reverse=True)


async def test_synchronous_methods_give_the_same_inside_a_running_loop(
    store: CorpusVectorStore,
) -> None:
    store.add([node(str(n)) for n in range(20)])

    synchronous = store.query(nearest("7", top_k=5))
    asynchronous = await store.aquery(nearest("7", top_k=5))

    assert synchronous.ids == asynchronous.ids
    assert synchronous.nodes == asynchronous.nodes


def test_store_works_without_any_event_loop(server_url: str) -> None:
    store = CorpusVectorStore.from_params(
        connection_string=server_url, schema_name="test_without_loop", embed_dim=DIMENSIONS
    )
    try:
        store.add([node("a"), node("b")])

        assert isinstance(store, CorpusVectorStore)
        assert store.query(nearest("a", top_k=1)).ids == ["a"]
    finally:
        drop = "drop schema test_without_loop cascade"
        run_blocking(store.client.run(lambda connection: connection.execute(drop)))
        asyncio.run(store.close())


async def test_index_over_the_store_retrieves(
    store: CorpusVectorStore,
    counting_embedding: BaseEmbedding,
    indexer: Indexer,
    make_document: MakeDocument,
) -> None:
    page = await indexer.index(make_document())
    index = VectorStoreIndex.from_vector_store(store, embed_model=counting_embedding)

    found = await index.as_retriever(similarity_top_k=3).aretrieve("snapshots")
    again = index.as_retriever(similarity_top_k=3).retrieve("snapshots")

    assert len(found) == min(3, page.chunk_count)
    assert [each.node_id for each in found] == [each.node_id for each in again]
    assert all(each.node.metadata["source_url"] == URL for each in found)


async def test_retrieved_nodes_are_cut_out_of_the_stored_page(
    store: CorpusVectorStore,
    corpus: Corpus,
    counting_embedding: BaseEmbedding,
    indexer: Indexer,
    make_document: MakeDocument,
) -> None:
    await indexer.index(make_document())
    index = VectorStoreIndex.from_vector_store(store, embed_model=counting_embedding)

    found = await index.as_retriever(similarity_top_k=10).aretrieve("replicas")

    markdown = await corpus.markdown(URL)
    assert all(
        markdown[each.node.start_char_idx : each.node.end_char_idx] == each.node.text
        for each in found
    )


async def test_stock_store_on_the_same_table_finds_the_same_neighbours(
    store: CorpusVectorStore, database: Database, server_url: str
) -> None:
    await store.async_add([node(f"n{n}", title=f"T{n}") for n in range(60)])
    url = server_url
    stock = PGVectorStore(
        connection_string=url,
        async_connection_string=url.replace("psycopg2", "asyncpg"),
        table_name="children",
        schema_name=database.config.collection,
        embed_dim=DIMENSIONS,
        use_halfvec=True,
        use_jsonb=True,
        perform_setup=False,
    )
    queries = [nearest(f"question {n}", top_k=10) for n in range(10)]

    ours = [await store.aquery(query) for query in queries]
    theirs = [await asyncio.to_thread(stock.query, query) for query in queries]
    await stock.close()

    assert [result.ids for result in ours] == [result.ids for result in theirs]
    assert [result.nodes for result in ours] == [result.nodes for result in theirs]


async def test_filter_on_urls_returns_as_many_rows_as_asked_for(store: CorpusVectorStore) -> None:
    urls = [f"https://docs.test/{n}" for n in range(4)]
    await store.async_add([node(f"{url} {n}", source_url=url) for url in urls for n in range(20)])
    wanted = MetadataFilters(
        filters=[MetadataFilter(key="source_url", value=urls[:2], operator=FilterOperator.IN)]
    )

    result = await store.aquery(nearest("x", top_k=30, filters=wanted))

    assert len(result.ids) == 30
    assert {each.metadata["source_url"] for each in result.nodes} == set(urls[:2])


async def test_query_can_be_restricted_to_nodes_and_documents(store: CorpusVectorStore) -> None:
    one, two = node("a"), node("b")
    one.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="doc")
    await store.async_add([one, two])

    by_node = await store.aquery(nearest("x", node_ids=["b"]))
    by_document = await store.aquery(nearest("x", doc_ids=["doc"]))

    assert (by_node.ids, by_document.ids) == (["b"], ["a"])


async def test_gone_pages_are_not_found(
    store: CorpusVectorStore, corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    document = make_document()
    await indexer.index(document)
    await corpus.mark_gone(URL, document.fetched_at)

    assert (await store.aquery(nearest("x"))).ids == []


async def test_nodes_added_to_a_gone_page_are_found(
    store: CorpusVectorStore, corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    document = make_document()
    await indexer.index(document)
    await corpus.mark_gone(URL, document.fetched_at)

    await store.async_add([node("late", source_url=URL)])

    assert "late" in (await store.aquery(nearest("late"))).ids


async def test_clear_empties_the_collection(store: CorpusVectorStore, database: Database) -> None:
    await store.async_add([node("a"), node("b")])

    await store.aclear()

    assert await read(database, "select count(*) from {}", "documents") == [(0,)]


async def test_nodes_come_back_in_page_order(store: CorpusVectorStore) -> None:
    await store.async_add([node(name, source_url=URL) for name in ("c", "a", "b")])

    assert [each.node_id for each in store.get_nodes()] == ["c", "a", "b"]
    assert [each.node_id for each in store.get_nodes(node_ids=["a", "c"])] == ["c", "a"]


async def test_storage_context_builds_an_index_from_nodes(
    store: CorpusVectorStore, counting_embedding: BaseEmbedding
) -> None:
    index = VectorStoreIndex(
        [TextNode(text="One."), TextNode(text="Two.")],
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=counting_embedding,
    )

    assert len(index.as_retriever(similarity_top_k=5).retrieve("one")) == 2


async def test_modes_not_offered_are_refused_by_name(store: CorpusVectorStore) -> None:
    with pytest.raises(InputError, match=r"'svm' is not offered .* default, sparse"):
        await store.aquery(nearest("x", mode=VectorStoreQueryMode.SVM))


async def test_node_without_an_embedding_is_refused(store: CorpusVectorStore) -> None:
    with pytest.raises(InputError, match="Node a has no embedding"):
        await store.async_add([TextNode(id_="a", text="x")])


async def test_embedding_of_another_size_is_refused(store: CorpusVectorStore) -> None:
    with pytest.raises(InputError, match="has 3 dimensions; the collection has 16"):
        await store.aquery(VectorStoreQuery(query_embedding=[1.0, 0.0, 0.0]))


async def test_collection_of_another_size_is_refused(
    store: CorpusVectorStore, database: Database
) -> None:
    await store.async_add([node("a")])
    other = CorpusVectorStore(database=database, embed_dim=8)

    with pytest.raises(ConfigurationError, match="vectors of 16 dimensions"):
        await other.aget_nodes()


def test_another_table_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="always 'children'"):
        CorpusVectorStore("postgresql://localhost/x", table_name="other")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "needs host and database, or a connection_string"),
        ({"host": "localhost"}, "needs database, or"),
        ({"host": "h", "database": "d", "port": "abc"}, "port is 'abc'; it must be a number"),
        ({"hots": "localhost"}, "no argument 'hots'; it takes .*host, "),
        ({"connection_string": "secret"}, "^connection_string is no PostgreSQL URL; it looks"),
        ({"connection_string": "mysql://h/x"}, "^connection_string is no PostgreSQL URL; it looks"),
        ({"connection_string": "postgresql://h:x/d"}, "^connection_string is no PostgreSQL URL"),
    ],
)
def test_parameters_that_name_no_server_are_refused_in_a_sentence(
    given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        CorpusVectorStore.from_params(**given)


def test_store_of_a_server_is_made_again_from_what_it_tells() -> None:
    store = CorpusVectorStore("postgresql://me@h/d", schema_name="notes", embed_dim=8)

    again = CorpusVectorStore.from_dict(json.loads(json.dumps(store.to_dict())))

    assert again.client.config == store.client.config
    assert (again.class_name(), again.embed_dim) == ("CorpusVectorStore", 8)


def test_parameters_need_no_quoting_and_no_port() -> None:
    store = CorpusVectorStore.from_params("h", database="d", user="me", password="p@ss/word")

    assert store.client.config.url == "postgresql://me:p%40ss%2Fword@h:5432/d"
    assert store.client.config.collection == "webrag"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"connection_string": "postgresql://h/x", "hots": 1},
            "no argument 'hots'; it takes .*database, .*embedding_model, ",
        ),
        ({"database": "x"}, "database is str, not a webrag Database"),
    ],
)
def test_wrong_arguments_of_the_store_are_refused_in_a_sentence(
    given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        CorpusVectorStore(**given)


async def test_zero_vector_is_found_last_with_similarity_zero(store: CorpusVectorStore) -> None:
    blank = node("blank")
    blank.embedding = [0.0] * DIMENSIONS
    await store.async_add([blank, node("a")])
    only = MetadataFilters(
        filters=[MetadataFilter(key="node_id", value=["blank", "a"], operator=FilterOperator.IN)]
    )

    result = await store.aquery(nearest("a", filters=only))

    assert (result.ids, result.similarities[1]) == (["a", "blank"], 0.0)
