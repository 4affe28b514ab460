from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import Document, NodeRelationship, RelatedNodeInfo
from llama_index.node_parser.webrag import ParentChildNodeParser
from psycopg import AsyncConnection, AsyncCursor

from tests.webrag.packed_postings import unpack_postings
from webrag.corpus.indexer import Indexer
from webrag.corpus.pages import Corpus
from webrag.ingestion.models import NormalizedDocument
from webrag.llamaindex.store import CorpusVectorStore
from webrag.llamaindex.store_rows import add_nodes, pages_of_nodes
from webrag.postgres.database import Database

from .made_nodes import DIMENSIONS, URL, node, read
from .watched import Watched

MakeDocument = Callable[..., NormalizedDocument]


@pytest.fixture
def store(database: Database) -> Any:
    return CorpusVectorStore(database=database, embed_dim=DIMENSIONS)


async def test_adding_a_node_again_replaces_it(
    store: CorpusVectorStore, database: Database
) -> None:
    await store.async_add([node("a", "Old text.")])

    await store.async_add([node("a", "New text.")])

    assert [each.text for each in await store.aget_nodes()] == ["New text."]


async def test_changed_node_changes_its_own_parent_too(
    store: CorpusVectorStore, database: Database
) -> None:
    await store.async_add([node("a", "Old text.")])

    await store.async_add([node("a", "New text.")])

    assert await read(database, "select text from {}", "parents") == [("New text.",)]


async def test_nodes_of_many_pages_are_loaded_together(
    store: CorpusVectorStore, database: Database
) -> None:
    pages = [f"https://docs.test/{n}" for n in range(30)]
    nodes = [node(f"{url} {n}", source_url=url) for url in pages for n in range(2)]

    async def statements_for(added: Any) -> int:
        taken = 0

        async def count(cursor: AsyncCursor[Any]) -> None:
            nonlocal taken
            taken += 1

        async def work(connection: AsyncConnection[Any]) -> None:
            watched: Any = Watched(connection, count)
            await add_nodes(watched, pages_of_nodes(added))

        await database.run(work)
        return taken

    await store.aclear()

    assert await statements_for(nodes[:2]) == await statements_for(nodes[2:])


async def test_pipeline_output_fills_parents_and_children(
    store: CorpusVectorStore, database: Database, counting_embedding: BaseEmbedding
) -> None:
    markdown = "# Guide\n\nIntro text.\n\n## Part\n\nA first passage.\n\nA second passage here.\n"
    pipeline = IngestionPipeline(
        transformations=[
            ParentChildNodeParser(parent_tokens=30, child_tokens=10),
            counting_embedding,
        ],
        vector_store=store,
    )

    await pipeline.arun(
        documents=[Document(text=markdown, metadata={"source_url": URL, "title": "Guide"})]
    )

    orphans = await read(
        database, "select count(*) from {} where parent_id is null", "data_children"
    )
    parents = await read(database, "select id, text, char_start, char_end from {}", "parents")
    children = await read(
        database, "select parent_id, text, char_start, char_end from {}", "data_children"
    )
    ((stored,),) = await read(database, "select markdown from {}", "documents")
    assert orphans == [(0,)]
    assert {row[0] for row in children} == {row[0] for row in parents}
    assert all(stored[start:end] == text for _, text, start, end in parents + children)


async def test_nodes_of_one_document_added_in_parts_share_a_page(
    store: CorpusVectorStore, database: Database
) -> None:
    await store.async_add([node("a", source_url=URL), node("b", source_url=URL)])
    await store.async_add([node("c", source_url=URL)])

    ((markdown, count),) = await read(database, "select markdown, child_count from {}", "documents")
    assert markdown == "Text of a.\n\nText of b.\n\nText of c."
    assert count == 3


async def test_added_nodes_are_in_the_lexical_index(
    store: CorpusVectorStore, database: Database
) -> None:
    await store.async_add([node("a", "A heron flies.", source_url=URL)])
    await store.async_add([node("b", "Two herons fly.", source_url=URL)])

    ((packed,),) = await read(database, "select packed from {} where term = 'heron'", "postings")
    assert unpack_postings(packed)["ordinal"].tolist() == [0, 1]


async def test_deleted_nodes_leave_the_lexical_index(
    store: CorpusVectorStore, database: Database
) -> None:
    await store.async_add([node("a", "A heron.", source_url=URL), node("b", "x", source_url=URL)])

    await store.adelete_nodes(node_ids=["a"])

    assert await read(database, "select packed from {} where term = 'heron'", "postings") == []
    assert await read(database, "select child_count, term_count > 0 from {}", "documents") == [
        (1, True)
    ]


async def test_delete_removes_all_nodes_of_a_document_and_its_page(
    store: CorpusVectorStore,
    database: Database,
    corpus: Corpus,
    indexer: Indexer,
    make_document: MakeDocument,
) -> None:
    await indexer.index(make_document())
    page = await corpus.page(URL)

    await store.adelete(page.document_id)

    assert await corpus.page(URL) is None
    assert await store.aget_nodes() == []


async def test_delete_of_one_document_keeps_the_other_on_the_same_page(
    store: CorpusVectorStore,
) -> None:
    nodes = [node("a", source_url=URL), node("b", source_url=URL)]
    for number, each in enumerate(nodes):
        each.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=f"doc{number}")
    await store.async_add(nodes)

    store.delete("doc0")

    assert [each.node_id for each in store.get_nodes()] == ["b"]


async def test_delete_nodes_without_arguments_deletes_nothing(store: CorpusVectorStore) -> None:
    await store.async_add([node("a")])

    await store.adelete_nodes()
    store.delete_nodes()

    assert len(await store.aget_nodes()) == 1
