import json
from typing import Any

import pytest
from llama_index.core.schema import MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.utils import metadata_dict_to_node

from webrag.corpus.rows import node_from_row, stored_metadata


@pytest.fixture
def node() -> Any:
    return TextNode(
        id_="n1",
        text="Some text.",
        metadata={"title": "T", "source_url": "https://a.test/", "has_code": True, "html": "<p>"},
        relationships={
            NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d", metadata={"html": "<p>big</p>"}),
            NodeRelationship.PARENT: RelatedNodeInfo(node_id="p"),
            NodeRelationship.CHILD: [RelatedNodeInfo(node_id="c")],
        },
        start_char_idx=5,
        end_char_idx=15,
        excluded_embed_metadata_keys=["source_url"],
        text_template="{metadata_str} | {content}",
    )


def test_rebuilt_node_has_the_same_identity_offsets_and_relations(node: Any) -> None:
    rebuilt = node_from_row("n1", "Some text.", stored_metadata(node))

    assert (rebuilt.node_id, rebuilt.text) == ("n1", "Some text.")
    assert (rebuilt.start_char_idx, rebuilt.end_char_idx) == (5, 15)
    assert rebuilt.ref_doc_id == "d"
    assert rebuilt.parent_node.node_id == "p"
    assert [child.node_id for child in rebuilt.child_nodes] == ["c"]


def test_rebuilt_node_gives_the_same_embedding_text(node: Any) -> None:
    del node.metadata["html"]

    rebuilt = node_from_row("n1", "Some text.", stored_metadata(node))

    assert rebuilt.get_content(MetadataMode.EMBED) == node.get_content(MetadataMode.EMBED)


def test_stock_loader_rebuilds_the_same_node(node: Any) -> None:
    stored = stored_metadata(node)

    stock = metadata_dict_to_node(stored)
    stock.set_content("Some text.")

    assert stock == node_from_row("n1", "Some text.", stored)


def test_page_html_is_not_repeated_in_every_chunk(node: Any) -> None:
    assert "<p>" not in json.dumps(stored_metadata(node))


def test_metadata_stand_at_the_top_level_for_filters(node: Any) -> None:
    stored = stored_metadata(node)

    assert (stored["title"], stored["has_code"], stored["ref_doc_id"]) == ("T", True, "d")


def test_storing_leaves_the_node_as_it_was(node: Any) -> None:
    before = node.model_copy(deep=True)

    stored_metadata(node)

    assert node == before


def test_row_written_without_node_content_becomes_a_plain_node() -> None:
    node = node_from_row("n1", "text", {"title": "T", "ref_doc_id": "d"})

    assert (node.node_id, node.text, node.metadata) == ("n1", "text", {"title": "T"})
