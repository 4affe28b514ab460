import asyncio
import pickle
import threading

import llama_index.node_parser.webrag as package
import pytest
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import get_leaf_nodes
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.schema import (
    Document,
    MetadataMode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.node_parser.webrag import FLAG_KEYS, ParentChildNodeParser

from webrag.embedding.bundled import BundledEmbedding

from .parsed_pages import by_level, parse, section


def test_id_function_of_the_caller_is_used() -> None:
    parser = ParentChildNodeParser(id_func=lambda number, document: f"{document.node_id}-{number}")

    nodes = parser.get_nodes_from_documents([Document(text="# A\n\ntext", id_="d")])

    assert [node.node_id for node in nodes] == ["d-0", "d-1"]


def test_embedding_text_is_title_headings_and_text() -> None:
    child = by_level(parse("# A\n\n## {B}\n\ntext", title="Page"), "child")[0]

    assert child.get_content(MetadataMode.EMBED) == "Page\nA > {B}\n\n# A\n\n## {B}\n\ntext"


def test_title_is_not_repeated_as_first_heading() -> None:
    child = by_level(parse("# Page\n\n## B\n\ntext", title="Page"), "child")[0]

    assert child.get_content(MetadataMode.EMBED).startswith("Page\nB\n\n")


@pytest.mark.parametrize("mode", [MetadataMode.NONE, MetadataMode.LLM])
def test_other_modes_give_the_text_alone(mode: MetadataMode) -> None:
    child = by_level(parse("# A\n\ntext", title="Page", source_url="http://x"), "child")[0]

    assert child.get_content(mode) == child.text == "# A\n\ntext"


def test_document_metadata_is_kept_but_for_the_html() -> None:
    nodes = parse("# A\n\ntext", title="T", file_name="a.md", html="<p>x</p>", stars=3)

    kept = {"title": "T", "file_name": "a.md", "stars": 3}
    assert all(kept.items() <= node.metadata.items() for node in nodes)
    assert all("html" not in node.metadata for node in nodes)


def test_kept_metadata_is_in_no_text() -> None:
    child = by_level(parse("# A\n\ntext", file_name="a.md"), "child")[0]

    for mode in (MetadataMode.EMBED, MetadataMode.LLM, MetadataMode.NONE):
        assert "a.md" not in child.get_content(mode)


def test_only_listed_document_metadata_is_copied() -> None:
    parser = ParentChildNodeParser(metadata_keys=["title"])
    document = Document(text="# A\n\ntext", metadata={"title": "T", "secret": "s"})
    nodes = parser.get_nodes_from_documents([document])

    assert all(node.metadata["title"] == "T" for node in nodes)
    assert all("secret" not in node.to_json() for node in nodes)


@pytest.mark.parametrize(
    "front", ["---\ntitle: Guide\nlayout: page\n---", '+++\n# of the site\ntitle = "Guide"\n+++']
)
def test_front_matter_is_no_heading(front: str) -> None:
    nodes = parse(f"{front}\n\n# A\n\ntext")

    assert {node.metadata["heading"] for node in nodes} == {None, "A"}
    assert not any(node.metadata["has_code"] for node in nodes)


def test_a_rule_at_the_start_is_no_front_matter() -> None:
    nodes = parse("---\n\nA heading\n---\n\ntext")

    assert "A heading" in {node.metadata["heading"] for node in nodes}


def test_nodes_of_a_document_without_an_address_know_their_line() -> None:
    nodes = parse("intro\n\n# A\n\na\n\n# B\n\nb")

    assert [node.metadata["line"] for node in by_level(nodes, "child")] == [1, 3, 7]


def test_nodes_of_a_page_of_the_web_have_no_line() -> None:
    assert all("line" not in node.metadata for node in parse("# A", source_url="http://x"))


def test_a_pickled_parser_cuts_alike() -> None:
    parser = ParentChildNodeParser(parent_tokens=300)
    document = Document(text="# A\n\n" + section("B", "Words"), id_="d")

    copied = pickle.loads(pickle.dumps(parser))

    assert copied.get_nodes_from_documents([document]) == parser.get_nodes_from_documents(
        [document]
    )


def test_a_pipeline_of_several_processes_cuts_and_embeds_alike() -> None:
    documents = [Document(text=f"# {n}\n\ntext", id_=str(n)) for n in range(2)]
    steps = [ParentChildNodeParser(), BundledEmbedding()]
    pipeline = IngestionPipeline(transformations=steps, disable_cache=True)

    nodes = pipeline.run(documents=documents, num_workers=2)

    assert [(node.node_id, node.embedding) for node in nodes] == [
        (node.node_id, node.embedding) for node in pipeline.run(documents=documents)
    ]


def test_document_metadata_is_left_out_on_request() -> None:
    parser = ParentChildNodeParser(include_metadata=False)
    document = Document(text="# A\n\ntext", metadata={"title": "T"})

    assert all("title" not in node.metadata for node in parser.get_nodes_from_documents([document]))


def test_parsing_leaves_the_document_unchanged() -> None:
    document = Document(text="# A\n\ntext", metadata={"title": "T", "html": "<h1>A</h1>"})
    before = document.to_dict()

    ParentChildNodeParser().get_nodes_from_documents([document])

    assert document.to_dict() == before


def test_nodes_point_to_their_document() -> None:
    assert {node.ref_doc_id for node in parse("# A\n\ntext")} == {"doc"}


def test_document_made_from_a_node_passes_its_origin_on() -> None:
    origin = RelatedNodeInfo(node_id="file")
    document = Document(
        text="text", id_="part", relationships={NodeRelationship.SOURCE: origin}
    )  # fmt: skip

    nodes = ParentChildNodeParser().get_nodes_from_documents([document])

    assert {node.ref_doc_id for node in nodes} == {"file"}


def test_neighbours_are_left_out_on_request() -> None:
    parser = ParentChildNodeParser(include_prev_next_rel=False)

    nodes = parser.get_nodes_from_documents([Document(text="# A\n\na\n\n# B\n\nb")])

    assert all(node.next_node is None and node.prev_node is None for node in nodes)


def test_children_larger_than_parents_are_refused() -> None:
    with pytest.raises(ValueError, match=r"child_tokens \(300\) must not exceed parent_tokens"):
        ParentChildNodeParser(parent_tokens=200, child_tokens=300)


def test_tokenizer_of_the_caller_decides_sizes() -> None:
    parser = ParentChildNodeParser(parent_tokens=40, child_tokens=10, tokenizer=str.split)

    nodes = parser.get_nodes_from_documents([Document(text="one two three four five. " * 40)])

    assert max(len(child.text.split()) for child in by_level(nodes, "child")) in (9, 10)


async def test_async_parsing_gives_the_same_nodes() -> None:
    document = Document(text="# A\n\n" + section("B", "Words"), id_="d")
    parser = ParentChildNodeParser()

    nodes = await parser.aget_nodes_from_documents([document])

    assert nodes == parser.get_nodes_from_documents([document])


async def test_async_parsing_does_not_run_on_the_event_loop() -> None:
    threads: set[int] = set()

    def tokenizer(text: str) -> list[str]:
        threads.add(threading.get_ident())
        return text.split()

    await ParentChildNodeParser(tokenizer=tokenizer).aget_nodes_from_documents([Document(text="a")])

    assert threads
    assert threading.get_ident() not in threads


def test_parser_works_in_an_ingestion_pipeline() -> None:
    pipeline = IngestionPipeline(
        transformations=[ParentChildNodeParser(), MockEmbedding(embed_dim=4)]
    )

    nodes = pipeline.run(documents=[Document(text="# A\n\ntext", metadata={"title": "T"})])

    assert [len(node.embedding or []) for node in nodes] == [4, 4]


def test_parser_works_in_an_async_ingestion_pipeline() -> None:
    pipeline = IngestionPipeline(
        transformations=[ParentChildNodeParser(), MockEmbedding(embed_dim=4)]
    )

    nodes = asyncio.run(pipeline.arun(documents=[Document(text="# A\n\ntext")]))

    assert len(nodes) == 2


def test_auto_merging_retriever_merges_children_into_their_parent() -> None:
    nodes = parse("# A\n\n" + "This is one short sentence. " * 120)
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    context = StorageContext.from_defaults(docstore=docstore)
    index = VectorStoreIndex(
        get_leaf_nodes(nodes), storage_context=context, embed_model=MockEmbedding(embed_dim=4)
    )
    retriever = AutoMergingRetriever(index.as_retriever(similarity_top_k=10), context)

    found = retriever.retrieve("sentence")

    assert [result.node.metadata["chunk_level"] for result in found] == ["parent"]


def test_nodes_survive_serialisation() -> None:
    nodes = parse("# A\n\n![alt](http://x/a.png)\n\n| a |\n|---|\n| b |", title="T")

    assert [TextNode.from_json(node.to_json()) for node in nodes] == nodes


def test_public_names_resolve() -> None:
    assert all(hasattr(package, name) for name in package.__all__)


def test_every_flag_is_on_every_node() -> None:
    assert all(set(FLAG_KEYS) <= set(node.metadata) for node in parse("text"))
