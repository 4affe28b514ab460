import copy
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import (
    BaseNode,
    Document,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.node_parser.webrag import ParentChildNodeParser
from llama_index.postprocessor.webrag import AdjacentContext

from .conftest import texts


def page(count: int, name: str = "n") -> list[TextNode]:
    """Nodes in a row, each linked to the one before and the one after."""
    made = [TextNode(id_=f"{name}{at}", text=f"{name}{at} text") for at in range(count)]
    for left, right in pairwise(made):
        left.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id=right.node_id)
        right.relationships[NodeRelationship.PREVIOUS] = RelatedNodeInfo(node_id=left.node_id)
    return made


def store(nodes: Sequence[BaseNode]) -> SimpleDocumentStore:
    docstore = SimpleDocumentStore()
    docstore.add_documents(list(nodes))
    return docstore


def context(nodes: Sequence[BaseNode], **fields: Any) -> AdjacentContext:
    return AdjacentContext(**{"docstore": store(nodes), "tokenizer": str.split, **fields})


def matched(*nodes: TextNode, score: float = 0.8) -> list[NodeWithScore]:
    return [NodeWithScore(node=node, score=score) for node in nodes]


def ids(nodes: Sequence[NodeWithScore]) -> list[str]:
    return [item.node.node_id for item in nodes]


def test_neighbours_follow_the_matched_nodes() -> None:
    nodes = page(5)

    found = context(nodes).postprocess_nodes(matched(nodes[2], nodes[0]))

    assert ids(found) == ["n2", "n0", "n1", "n3"]
    assert [item.score for item in found] == [0.8, 0.8, 0.0, 0.0]


def test_added_nodes_are_marked_out_of_sight() -> None:
    nodes = page(2)

    found = context(nodes).postprocess_nodes(matched(nodes[0]))

    assert [item.metadata.get("is_adjacent") for item in found] == [None, True]
    assert "is_adjacent" not in found[1].node.get_content("llm")


def test_nearest_come_first_and_the_one_before_ahead() -> None:
    nodes = page(7)

    found = context(nodes, radius=2).postprocess_nodes(matched(nodes[3]))

    assert ids(found) == ["n3", "n2", "n4", "n1", "n5"]


def test_way_leads_on_past_matched_nodes() -> None:
    nodes = page(4)

    found = context(nodes, radius=2).postprocess_nodes(matched(nodes[0], nodes[1]))

    assert ids(found) == ["n0", "n1", "n2", "n3"]


def test_radius_of_zero_adds_nothing() -> None:
    nodes = page(3)

    assert ids(context(nodes, radius=0).postprocess_nodes(matched(nodes[1]))) == ["n1"]


def test_weak_nodes_get_no_neighbours() -> None:
    nodes, others = page(3), page(3, "m")
    given_nodes = matched(nodes[1]) + matched(others[1], score=0.2)
    given_nodes.append(NodeWithScore(node=TextNode(id_="unscored", text=""), score=None))

    found = context([*nodes, *others], min_score=0.5).postprocess_nodes(given_nodes)

    assert ids(found) == ["n1", "m1", "unscored", "n0", "n2"]


def test_neighbours_of_better_nodes_get_the_tokens_first() -> None:
    nodes = page(9)

    found = context(nodes, max_tokens=5).postprocess_nodes(matched(nodes[6], nodes[2]))

    assert ids(found) == ["n6", "n2", "n5", "n7"]


def test_missing_neighbour_ends_the_way() -> None:
    nodes = page(5)

    found = context([*nodes[:3], nodes[4]], radius=2).postprocess_nodes(matched(nodes[2]))

    assert ids(found) == ["n2", "n1", "n0"]


def test_circle_of_nodes_comes_to_an_end() -> None:
    nodes = page(3)
    nodes[2].relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id="n0")

    found = context(nodes, radius=50).postprocess_nodes(matched(nodes[2]))

    assert sorted(ids(found)) == ["n0", "n1", "n2"]


def test_one_lookup_is_made_for_each_step_away(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = page(20)
    asked: list[list[str]] = []
    look_up = SimpleDocumentStore.get_nodes

    def get_nodes(self: SimpleDocumentStore, wanted: list[str], **options: Any) -> list[BaseNode]:
        asked.append(wanted)
        return look_up(self, wanted, **options)

    monkeypatch.setattr(SimpleDocumentStore, "get_nodes", get_nodes)
    context(nodes, radius=2).postprocess_nodes(matched(nodes[5], nodes[15]))

    assert asked == [["n14", "n16", "n4", "n6"], ["n13", "n17", "n3", "n7"]]


def test_it_works_on_what_the_node_parser_makes() -> None:
    text = "\n\n".join(f"# Part {part}\n\n" + f"Sentence {part}. " * 80 for part in range(5))
    nodes = ParentChildNodeParser(parent_tokens=200, child_tokens=100).get_nodes_from_documents(
        [Document(text=text)]
    )
    parents = [node for node in nodes if node.metadata["chunk_level"] == "parent"]

    found = context(parents).postprocess_nodes([NodeWithScore(node=parents[1], score=0.9)])

    assert ids(found) == [parents[1].node_id, parents[0].node_id, parents[2].node_id]


PAGE = page(10)
CONTEXT_STORE = store(PAGE)
chosen = st.lists(st.integers(0, 9), unique=True, max_size=5)
scores = st.none() | st.floats(0, 1)


@given(chosen, st.integers(0, 4), st.none() | st.integers(0, 12), st.lists(scores, min_size=5))
async def test_matched_nodes_stay_first_and_nothing_comes_twice(
    places: list[int], radius: int, tokens: int | None, given_scores: list[Any]
) -> None:
    given_nodes = [
        NodeWithScore(node=PAGE[at], score=score)
        for at, score in zip(places, given_scores, strict=False)
    ]
    before = copy.deepcopy(given_nodes)
    add = AdjacentContext(
        docstore=CONTEXT_STORE, radius=radius, max_tokens=tokens, tokenizer=str.split
    )

    found = add.postprocess_nodes(given_nodes)

    assert given_nodes == before
    assert found == await add.apostprocess_nodes(given_nodes)
    assert found[: len(given_nodes)] == given_nodes
    assert len(set(ids(found))) == len(found)
    added = found[len(given_nodes) :]
    assert tokens is None or sum(len(text.split()) for text in texts(added)) <= tokens
    distances = [min(abs(int(n.node.node_id[1:]) - at) for at in places) for n in added]
    assert all(1 <= distance <= radius for distance in distances)
