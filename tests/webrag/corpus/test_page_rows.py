from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.node_parser import HierarchicalNodeParser
from llama_index.core.schema import Document, TextNode
from llama_index.node_parser.webrag import ParentChildNodeParser

from tests.webrag.packed_postings import unpack_postings
from webrag.corpus.rows import build_page_rows, document_id_of, link_candidates
from webrag.errors import StorageError
from webrag.ingestion.addresses import content_hash
from webrag.ingestion.models import NormalizedDocument, OutgoingLink
from webrag.lexical.analysis import analyze

URL = "https://docs.test/guide"
PARSER = ParentChildNodeParser(parent_tokens=60, child_tokens=25)

GUIDE = """# Storage guide

Welcome to the storage guide.

## Snapshots

| option | default |
| --- | --- |
| max_connections | 100 |

## Replication

Error E0502 means that a replica lags behind.

```sh
replicate --from primary
```
"""

BLOCKS = st.lists(
    st.sampled_from(
        [
            "# Title",
            "## Part",
            "Repeated text.",
            "Repeated text.",
            "Emoji 🧪 and e\u0301 marks in a sentence. Another one follows it here.",
            "- one\n- two\n- three",
            "| a | b |\n| - | - |\n| 1 | 2 |",
            "```py\nprint('x')\n\nprint('y')\n```",
            "使用代码编写程序。另一个句子。",
            "word " * 80,
        ]
    ),
    max_size=12,
)


def parse(document: Any) -> Any:
    source = Document(
        id_=str(document_id_of(document.url)),
        text=document.markdown,
        metadata={"title": document.title, "source_url": document.url},
    )
    return PARSER.get_nodes_from_documents([source])


def a_document(markdown: str) -> Any:
    return NormalizedDocument(
        url=URL,
        requested_url=URL,
        title="Storage guide",
        fetched_at=datetime(2026, 5, 1, tzinfo=UTC),
        markdown=markdown,
        content_hash=content_hash(markdown),
        source="builtin",
    )


def build(markdown: str) -> Any:
    document = a_document(markdown)
    return build_page_rows(document, parse(document), depth=0)


@given(BLOCKS, st.sampled_from(["\n\n", "\r\n\r\n"]))
@settings(max_examples=60, deadline=None)
def test_every_row_is_cut_out_of_the_markdown_by_its_offsets(blocks: Any, separator: Any) -> None:
    document = a_document(separator.join(blocks) + separator)

    rows = build_page_rows(document, parse(document), depth=0)

    for row in (*rows.parents, *rows.children):
        assert document.markdown[row.char_start : row.char_end] == row.text


@given(BLOCKS)
@settings(max_examples=40, deadline=None)
def test_every_child_lies_inside_its_parent(blocks: Any) -> None:
    document = a_document("\n\n".join(blocks))

    rows = build_page_rows(document, parse(document), depth=0)

    parents = {row.chunk_id: row for row in rows.parents}
    for child in rows.children:
        parent = parents[child.parent_id]
        assert parent.char_start <= child.char_start <= child.char_end <= parent.char_end


@given(BLOCKS)
@settings(max_examples=40, deadline=None)
def test_postings_hold_the_exact_length_of_every_child(blocks: Any) -> None:
    document = a_document("\n\n".join(blocks))

    rows = build_page_rows(document, parse(document), depth=0)

    stored = {
        int(posting["ordinal"]): int(posting["length"])
        for row in rows.postings
        for posting in unpack_postings(row.packed)
    }
    lengths = [len(analyze(child.indexed_text)) for child in rows.children]
    assert stored == {ordinal: length for ordinal, length in enumerate(lengths) if length}
    assert rows.term_count == sum(lengths)


def test_rows_are_numbered_in_page_order() -> None:
    rows = build(GUIDE)

    assert [row.chunk_index for row in rows.parents] == list(range(len(rows.parents)))
    assert [row.ordinal for row in rows.children] == list(range(len(rows.children)))
    assert [row.char_start for row in rows.children] == sorted(r.char_start for r in rows.children)


def test_title_and_headings_can_be_found_by_their_words() -> None:
    child = next(row for row in build(GUIDE).children if "lags behind" in row.text)

    assert {"storag", "guid", "replic", "e0502"} <= set(analyze(child.indexed_text))


def test_captions_of_images_can_be_found_although_the_text_lacks_them() -> None:
    node = TextNode(text="Text.", start_char_idx=0, end_char_idx=5)
    node.metadata["images"] = [{"url": "https://a.test/i.png", "alt": "Heron", "caption": "A bird"}]
    node.excluded_embed_metadata_keys = ["images"]

    (child,) = build_page_rows(a_document("Text."), [node], depth=0).children

    assert child.indexed_text == "Text.\nHeron\nA bird"


@pytest.mark.parametrize(
    "images", ["a.png", ["a.png"], {"url": "a.png"}, [{"url": 7, "position": "here"}], [None], 7]
)
def test_images_of_another_parsers_form_do_not_stop_a_page(images: Any) -> None:
    node = TextNode(text="Text.", start_char_idx=0, end_char_idx=5, metadata={"images": images})
    node.excluded_embed_metadata_keys = ["images"]

    (child,) = build_page_rows(a_document("Text."), [node], depth=0).children

    assert child.indexed_text == "Text."


def test_equal_text_under_another_heading_has_another_hash() -> None:
    rows = build("# A\n\nSame text here.\n\n# B\n\nSame text here.\n")

    assert len({row.text_hash for row in rows.children}) == len(rows.children)


def test_flags_of_the_parser_reach_the_parents() -> None:
    rows = build(GUIDE)

    assert any(row.has_table for row in rows.parents)
    assert any(row.has_code for row in rows.parents)


def test_wrong_offsets_are_refused_with_the_page_named() -> None:
    node = TextNode(text="Text.", start_char_idx=1, end_char_idx=6)

    with pytest.raises(StorageError, match=r"https://docs\.test/guide was not stored"):
        build_page_rows(a_document("Text. More."), [node], depth=0)


def test_nodes_of_a_flat_parser_are_their_own_parents() -> None:
    document = a_document("First part. Second part.")
    nodes = [
        TextNode(id_="one", text="First part.", start_char_idx=0, end_char_idx=11),
        TextNode(id_="two", text="Second part.", start_char_idx=12, end_char_idx=24),
    ]

    rows = build_page_rows(document, nodes, depth=0)

    assert [row.text for row in rows.parents] == ["First part.", "Second part."]
    assert [row.parent_id for row in rows.children] == [row.chunk_id for row in rows.parents]


@pytest.mark.parametrize("sentence", ["The same again. ", "The same again, in part {}. "])
def test_offsets_of_a_parser_that_counts_from_the_parent_are_added_up(sentence: str) -> None:
    document = a_document("".join(sentence.format(n // 40) for n in range(400)))
    parser = HierarchicalNodeParser.from_defaults(chunk_sizes=[256, 128, 64], chunk_overlap=0)
    nodes: Any = parser.get_nodes_from_documents([Document(text=document.markdown)])
    starts: dict[str, int] = {}
    for node in nodes:
        above = starts[node.parent_node.node_id] if node.parent_node else 0
        starts[node.node_id] = above + node.start_char_idx

    rows = build_page_rows(document, nodes, depth=0)

    stored = {row.node_id: row.char_start for row in rows.children}
    assert stored == {key: starts[key] for key in stored}
    parents = {row.chunk_id: row for row in rows.parents}
    for child in rows.children:
        assert parents[child.parent_id].char_start <= child.char_start
        assert child.char_end <= parents[child.parent_id].char_end


def test_blank_page_has_no_chunks() -> None:
    rows = build("  \n\n ")

    assert (rows.parents, rows.children, rows.postings, rows.token_count) == ([], [], [], 0)


def test_page_counts_its_tokens() -> None:
    rows = build(GUIDE)

    assert rows.token_count == max(row.token_end for row in rows.parents) > 50


def test_document_id_depends_on_the_url_alone() -> None:
    assert document_id_of(URL) == document_id_of(URL) != document_id_of(URL + "/")
    assert isinstance(document_id_of(URL), UUID)


@pytest.mark.parametrize(
    ("anchor", "title_attribute", "expected"),
    [
        pytest.param("Snapshots", "About them", "Snapshots", id="anchor-says-enough"),
        pytest.param("here", "Snapshots", "Snapshots", id="generic-anchor"),
        pytest.param("This link", "Snapshots", "Snapshots", id="another-generic-anchor"),
        pytest.param("Continue reading", "Snapshots", "Snapshots", id="generic-words"),
        pytest.param("Next", "Chapter 2", "Chapter 2", id="navigation"),
        pytest.param("\u2192", "Chapter 2", "Chapter 2", id="arrow"),
        pytest.param("", "Snapshots", "Snapshots", id="image-link"),
        pytest.param("here", None, "here", id="nothing-better"),
    ],
)
def test_link_title_is_the_most_telling_text(
    anchor: Any, title_attribute: Any, expected: Any
) -> None:
    link = OutgoingLink(url="https://docs.test/x", anchor_text=anchor, title=title_attribute)

    (row,) = link_candidates(URL, [link])

    assert row.title == expected


def test_links_of_a_page_to_itself_are_left_out() -> None:
    links = [OutgoingLink(url=url, anchor_text="x") for url in (URL, "https://docs.test/b", URL)]

    rows = link_candidates(URL, links)

    assert [row.url for row in rows] == ["https://docs.test/b"]
