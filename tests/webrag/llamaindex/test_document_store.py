"""Parents and chunks of the corpus by id, and LlamaIndex's own parts over them."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.retrievers import AutoMergingRetriever, RecursiveRetriever
from llama_index.core.schema import IndexNode, NodeRelationship, NodeWithScore, QueryBundle

from tests.kept_collections import KeptCollections
from tests.webrag.llamaindex.made_nodes import node
from webrag import WebRAG, load_settings

QUESTION = "When does the ferry leave the island?"
PART = (
    "The ferry leaves the island at noon, unless the tide is too low for it. " * 29
    + "Ask the keeper."
)
TEXT = "# Tides\n\n" + "\n\n".join(f"## Pier {each}\n\n{PART}" for each in range(4))


@pytest.fixture
async def rag(
    postgres_dir: Path, kept_collections: KeptCollections, tmp_path: Path
) -> AsyncIterator[WebRAG]:
    """WebRAG, open on one stored file of four sections."""
    page = tmp_path / "tides.md"
    page.write_text(TEXT)
    name = f"test_{uuid.uuid4().hex[:16]}"
    async with WebRAG(load_settings(data_dir=postgres_dir, collection=name)) as opened:
        await opened.ingest(page)
        yield opened
        await kept_collections.take_back_from(opened)


class Given(BaseRetriever):
    """Retrieves the same nodes, whatever is asked."""

    def __init__(self, nodes: list[NodeWithScore]) -> None:
        super().__init__()
        self._nodes = nodes

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._nodes


def merging(rag: WebRAG, retriever: Any, **options: Any) -> AutoMergingRetriever:
    return AutoMergingRetriever(retriever, rag.vector_index().storage_context, **options)


async def test_stock_merging_gives_parents_of_the_corpus(rag: WebRAG) -> None:
    retriever = rag.vector_index().as_retriever(similarity_top_k=20)

    found = merging(rag, retriever).retrieve(QUESTION)

    assert {item.node.metadata["chunk_level"] for item in found} == {"parent"}
    for item in found:
        start, end = item.node.start_char_idx, item.node.end_char_idx  # type: ignore[attr-defined]
        assert TEXT[start:end] == item.node.get_content()


async def test_stock_merging_of_the_same_chunks_equals_our_own(rag: WebRAG) -> None:
    result = await rag.search(QUESTION)
    own = {str(each.chunk.chunk_id): each.chunk for each in result.chunks if each.chunk.matches}
    ids = [match.node_id for chunk in own.values() for match in chunk.matches]
    nodes = await rag.vector_store().aget_nodes(ids)
    retriever = Given([NodeWithScore(node=each, score=0.5) for each in nodes])

    found = merging(rag, retriever, simple_ratio_thresh=0.0).retrieve(QUESTION)

    assert {item.node.node_id: item.node.get_content() for item in found} == {
        each: chunk.text for each, chunk in own.items()
    }


async def test_recursive_retriever_follows_a_reference_to_a_parent(rag: WebRAG) -> None:
    index = rag.vector_index()
    chunk = (await index.as_retriever(similarity_top_k=1).aretrieve(QUESTION))[0].node
    assert chunk.parent_node is not None
    parent = chunk.parent_node.node_id
    reference = NodeWithScore(node=IndexNode(text="Ferries", index_id=parent), score=0.5)
    recursive = RecursiveRetriever(
        "root",
        retriever_dict={"root": Given([reference])},
        node_dict=index.docstore.get_node_dict({0: parent})
        and {parent: index.docstore.get_node(parent)},
    )

    found = recursive.retrieve(QUESTION)

    assert chunk.get_content() in found[0].node.get_content()


async def test_vector_store_gives_parents_by_id(rag: WebRAG) -> None:
    store = rag.vector_store()
    chunks = await store.aget_nodes()
    ids = list(dict.fromkeys(each.parent_node.node_id for each in chunks if each.parent_node))

    parents = await store.aget_nodes(ids)

    assert [each.node_id for each in parents] == ids
    told = [child.node_id for each in parents for child in each.child_nodes or []]
    assert told == [each.node_id for each in chunks]
    following = [each.next_node and each.next_node.node_id for each in parents]
    assert following == [*ids[1:], None]


async def test_parents_of_another_parser_keep_their_ids(rag: WebRAG) -> None:
    store = rag.vector_store()
    size = store.embed_dim
    parent = node("section 1", "Cats purr. They sleep.", source_url="https://cats.test/")
    child = node("cat 1", "Cats purr.", source_url="https://cats.test/")
    child.embedding = [1.0] * size
    parent.relationships[NodeRelationship.CHILD] = [child.as_related_node_info()]
    child.relationships[NodeRelationship.PARENT] = parent.as_related_node_info()
    await store.async_add([parent, child])

    docstore = rag.vector_index().docstore

    assert docstore.get_node("section 1").get_content() == "Cats purr. They sleep."
    assert [each.node_id for each in docstore.get_nodes(["cat 1", "section 1"])] == [
        "cat 1",
        "section 1",
    ]


async def test_parent_that_was_read_is_stored_on_its_page_again(rag: WebRAG) -> None:
    store = rag.vector_store()
    child, parent = node("cat 2", "Cats purr."), node("section 2", "Cats purr. They sleep.")
    child.embedding = [1.0] * store.embed_dim
    for each in (child, parent):
        each.metadata["source_url"] = "cats"
    parent.relationships[NodeRelationship.CHILD] = [child.as_related_node_info()]
    child.relationships[NodeRelationship.PARENT] = parent.as_related_node_info()
    await store.async_add([parent, child])
    read = (await store.aget_nodes(["section 2"]))[0]

    await store.async_add([read])

    assert [each.url for each in (await rag.status()).pages if each.url.startswith("d")] == [
        "document:cats"
    ]


async def test_chunk_without_a_parent_is_no_parent_of_itself(rag: WebRAG) -> None:
    lonely = node("lonely", "Dogs bark.")
    lonely.embedding = [1.0] * rag.vector_store().embed_dim
    await rag.vector_store().async_add([lonely])

    found = rag.vector_index().docstore.get_node("lonely")

    assert not found.child_nodes
    assert found.parent_node is None


async def test_unknown_ids_are_told_as_stock_stores_tell_them(rag: WebRAG) -> None:
    docstore = rag.vector_index().docstore

    assert docstore.get_document("none", raise_error=False) is None
    assert not docstore.document_exists("none")
    with pytest.raises(ValueError, match="doc_id none not found"):
        docstore.get_node("none")


async def test_all_documents_are_every_chunk_and_every_parent(rag: WebRAG) -> None:
    docs = rag.vector_index().docstore.docs

    levels = [each.metadata["chunk_level"] for each in docs.values()]
    assert levels.count("parent") == 4
    assert levels.count("child") == len(await rag.vector_store().aget_nodes())


async def test_stock_index_still_knows_which_documents_it_was_given(rag: WebRAG) -> None:
    index = rag.vector_index()
    document = Document(text="Gulls eat fish.", id_="gulls")

    assert index.refresh_ref_docs([document]) == [True]
    assert index.refresh_ref_docs([document]) == [False]
