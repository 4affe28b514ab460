from typing import Any

from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from webrag.corpus.rows import row_id
from webrag.llamaindex.store_rows import PageEnd, pages_of_nodes, place_nodes

URL = "https://docs.test/guide"


def node(node_id: str, text: str, *, parent: str | None = None, **metadata: Any) -> TextNode:
    made = TextNode(id_=node_id, text=text, metadata=metadata, embedding=[1.0, 0.0])
    if parent is not None:
        made.relationships[NodeRelationship.PARENT] = RelatedNodeInfo(node_id=parent)
    return made


def parent_of(*children: TextNode, node_id: str, text: str, **metadata: Any) -> TextNode:
    made = TextNode(id_=node_id, text=text, metadata=metadata)
    related = [RelatedNodeInfo(node_id=child.node_id) for child in children]
    made.relationships[NodeRelationship.CHILD] = related
    return made


def test_nodes_are_gathered_by_the_canonical_address_of_their_page() -> None:
    nodes = [
        node("b", "B.", source_url="https://b.test/#part"),
        node("a", "A.", source_url="https://a.test/"),
        node("c", "C.", source_url="https://b.test/"),
    ]

    pages = pages_of_nodes(nodes)

    assert [(page.url, len(page.children)) for page in pages] == [
        ("https://a.test/", 1),
        ("https://b.test/", 2),
    ]


def test_node_without_a_page_gets_one_of_its_own() -> None:
    (page,) = pages_of_nodes([node("a", "A.")])

    assert page.url == "document:a"


def test_texts_follow_each_other_where_no_offset_fits() -> None:
    (page,) = pages_of_nodes([node(each, f"Text {each}.", source_url=URL) for each in "ab"])

    placed = place_nodes(page, PageEnd(), set())

    assert placed.markdown == "Text a.\n\nText b."
    assert [(each.char_start, each.char_end) for each in placed.children] == [(0, 7), (9, 16)]


def test_new_nodes_stand_behind_what_the_page_holds() -> None:
    (page,) = pages_of_nodes([node("b", "Text b.", source_url=URL)])

    placed = place_nodes(page, PageEnd("Text a.", 4, 3, 20), set())

    assert placed.markdown == "Text a.\n\nText b."
    assert [each.ordinal for each in placed.children] == [4]
    assert [(each.chunk_index, each.token_start) for each in placed.parents] == [(3, 20)]


def test_node_without_a_stored_parent_is_its_own() -> None:
    (page,) = pages_of_nodes([node("a", "Text a.", parent="elsewhere", source_url=URL)])

    placed = place_nodes(page, PageEnd(), set())

    assert [each.chunk_id for each in placed.parents] == [row_id("a")]
    assert [each.parent_id for each in placed.children] == [row_id("a")]


def test_node_keeps_a_parent_that_is_stored() -> None:
    (page,) = pages_of_nodes([node("a", "Text a.", parent="there", source_url=URL)])

    placed = place_nodes(page, PageEnd("Text a."), {row_id("there")})

    assert placed.parents == []
    assert [each.parent_id for each in placed.children] == [row_id("there")]


def test_child_is_looked_for_within_its_parent() -> None:
    child = node("c", "Same.", parent="p", source_url=URL)
    parent = parent_of(child, node_id="p", text="Other. Same.", source_url=URL)
    (page,) = pages_of_nodes([parent, child])

    placed = place_nodes(page, PageEnd("Same."), set())

    assert placed.markdown[placed.children[0].char_start :] == "Same."
    assert placed.children[0].char_start > placed.parents[0].char_start


def test_length_the_parser_noted_is_not_counted_again() -> None:
    noted = node("a", "Three words here.", source_url=URL, token_start=100, token_end=107)
    (page,) = pages_of_nodes([noted, node("b", "Three words here.", source_url=URL)])

    placed = place_nodes(page, PageEnd(), set())

    assert [(each.token_start, each.token_end) for each in placed.parents] == [(0, 7), (7, 11)]
    assert placed.token_count == 11
