"""What Postgres takes in no text costs a batch nothing: it is replaced wherever it stands."""

from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.schema import (
    BaseNode,
    IndexNode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from webrag.corpus.rows import storable_node
from webrag.ingestion.characters import storable_values
from webrag.llamaindex.store import CorpusVectorStore
from webrag.postgres.database import Database

from .made_nodes import DIMENSIONS, node, vector

BAD = {"NUL": "\0", "high half": "\ud83d", "low half": "\udfff"}
EMBEDDING = vector("any")


def related(bad: str) -> dict[NodeRelationship, Any]:
    """A document, a parent and a neighbour with bad ids."""
    kinds = (NodeRelationship.SOURCE, NodeRelationship.PARENT, NodeRelationship.NEXT)
    return {
        kind: RelatedNodeInfo(node_id=f"{kind.name}{bad}", metadata={bad: bad}) for kind in kinds
    }


# In a place of its own each.
NODES: dict[str, Callable[[str], BaseNode]] = {
    "text": lambda bad: TextNode(text=f"The {bad} pump."),
    "value": lambda bad: TextNode(text="x", metadata={"made": f"v{bad}"}),
    "key": lambda bad: TextNode(text="x", metadata={f"k{bad}": "v"}),
    "depth": lambda bad: TextNode(text="x", metadata={"made": {"in": [1, {bad: [bad]}]}}),
    "id": lambda bad: TextNode(text="x", id_=f"i{bad}"),
    "relationships": lambda bad: TextNode(text="x", relationships=related(bad)),
    "address": lambda bad: TextNode(text="x", metadata={"source_url": f"https://a.test/{bad}"}),
    "file": lambda bad: TextNode(text="x", metadata={"file_path": f"/a/{bad}", "title": bad}),
    "parser's own": lambda bad: TextNode(
        text="x", metadata={"heading": bad, "heading_path": [bad], "images": [{"alt": bad}]}
    ),
    "template": lambda bad: TextNode(
        text="x", text_template=bad, metadata_separator=bad, excluded_llm_metadata_keys=[bad]
    ),
    "index": lambda bad: IndexNode(text="x", index_id=f"q{bad}", obj=TextNode(text="behind")),
    "node behind": lambda bad: IndexNode(text="x", index_id="q", obj=TextNode(text=bad)),
    "text behind": lambda bad: IndexNode(text="x", index_id="q", obj=bad),
    "model behind": lambda bad: IndexNode(
        text="x", index_id="q", obj=MetadataFilter(key=bad, value=bad)
    ),
    "parent": lambda bad: TextNode(
        text=f"parent {bad}",
        id_=f"p{bad}",
        relationships={NodeRelationship.CHILD: [RelatedNodeInfo(node_id=f"c{bad}")]},
    ),
}


@pytest.fixture
def store(database: Database) -> Any:
    return CorpusVectorStore(database=database, embed_dim=DIMENSIONS)


@pytest.mark.parametrize("bad", BAD.values(), ids=list(BAD))
async def test_bad_characters_lose_no_node_of_their_batch(
    store: CorpusVectorStore, bad: str
) -> None:
    made = [make(bad) for make in NODES.values()]
    for each in made:
        each.embedding = EMBEDDING

    given = await store.async_add([node("good", "A good pump."), *made])

    stored = {each.node_id: each.to_dict() for each in await store.aget_nodes()}
    # A parent is no searched node.
    assert {each for each in given if not each.startswith("p")} == set(stored)
    assert storable_values(stored) == stored


@pytest.mark.parametrize("bad", BAD.values(), ids=list(BAD))
def test_what_was_replaced_is_found_and_deleted_by_what_was_given(
    store: CorpusVectorStore, bad: str
) -> None:
    made = TextNode(
        text="A pump.",
        id_=f"i{bad}",
        metadata={f"k{bad}": f"v{bad}"},
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"d{bad}")},
        embedding=EMBEDDING,
    )
    same = MetadataFilter(key=f"k{bad}", value=f"v{bad}")
    among = MetadataFilter(key=f"k{bad}", value=["x", f"v{bad}"], operator=FilterOperator.IN)
    ways: list[dict[str, Any]] = [
        {"node_ids": [f"i{bad}"]},
        {"filters": MetadataFilters(filters=[same])},
        {"filters": MetadataFilters(filters=[among])},
    ]

    for way in ways:
        store.add([made])
        assert [each.node_id for each in store.get_nodes(**way)] == ["i\ufffd"]
        store.delete_nodes(**way)
        assert store.get_nodes() == []
    store.add([made])
    store.delete(f"d{bad}")
    assert store.get_nodes() == []


@pytest.mark.parametrize("mode", ["default", "sparse", "text_search", "hybrid", "mmr"])
@pytest.mark.parametrize("bad", BAD.values(), ids=list(BAD))
def test_question_with_bad_characters_is_answered(
    store: CorpusVectorStore, mode: str, bad: str
) -> None:
    store.add([TextNode(text="A pump.", id_="a", embedding=EMBEDDING)])
    question = VectorStoreQuery(
        query_str=f"pump {bad}",
        query_embedding=EMBEDDING,
        node_ids=["a", bad],
        mode=VectorStoreQueryMode(mode),
    )

    assert store.query(question).ids == ["a"]


def test_node_without_bad_characters_is_not_copied() -> None:
    given = TextNode(text="A pump.", metadata={"a": [1, {"b": None}]}, embedding=EMBEDDING)

    assert storable_node(given) is given


def test_copy_keeps_the_vector_and_the_object_behind_a_node() -> None:
    behind = TextNode(text="behind")
    given = IndexNode(text="\0", index_id="q", obj=behind, embedding=EMBEDDING)

    kept = storable_node(given)

    assert (kept.text, kept.embedding, kept.obj) == ("\ufffd", EMBEDDING, behind)
