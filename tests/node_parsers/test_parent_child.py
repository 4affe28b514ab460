import asyncio
import threading
import uuid
from collections.abc import Sequence
from itertools import pairwise

import llama_index.node_parser.webrag as package
import pyromark
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import get_leaf_nodes
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.schema import (
    BaseNode,
    Document,
    MetadataMode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.utils import get_tokenizer
from llama_index.node_parser.webrag import FLAG_KEYS, ParentChildNodeParser

COMBINED = ["e\u0301te\u0301", "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\u00a0", "\x0b"]
FOREIGN = ["\u0394\u03ad\u03bb\u03c4\u03b1", "na\u00efve", "\u65e5\u672c\u8a9e\u3067\u3059\u3002"]
SYNTAX = ["$x$", "`a b`", "**b**", "[l](http://x)", "<b>", "|", "1.", "#", "e.g.", ":", "\\(", "\\"]
WORDS = st.sampled_from([*COMBINED, *FOREIGN, *SYNTAX, "alpha", "Beta", "gamma.", "end!"])
LINE = st.lists(WORDS, min_size=1, max_size=12).map(" ".join)
PROSE = st.lists(LINE, min_size=1, max_size=4).map("\n".join)


def fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def table(rows: Sequence[str]) -> str:
    body = "\n".join(f"| {row.replace('|', ' ')} | cell |" for row in rows)
    return f"| a | b |\n|---|---|\n{body}"


BLOCK = st.one_of(
    PROSE,
    st.tuples(st.integers(1, 6), LINE).map(lambda pair: "#" * pair[0] + " " + pair[1]),
    LINE.map(lambda line: f"{line}\n==="),
    st.lists(LINE, min_size=1, max_size=40).map("\n    \n".join).map(fenced),
    st.lists(LINE, min_size=1, max_size=30).map(table),
    st.lists(LINE, min_size=1, max_size=20).map(lambda items: "- " + "\n- ".join(items)),
    st.lists(PROSE, min_size=1, max_size=6).map(
        lambda items: "\n".join(f"{n}. {item}" for n, item in enumerate(items, 1))
    ),
    st.tuples(LINE, PROSE).map(lambda pair: f"{pair[0]}\n: {pair[1]}\n: second"),
    PROSE.map(lambda prose: "> [!NOTE]\n> " + prose.replace("\n", "\n> ")),
    st.tuples(st.integers(1, 60), LINE).map(
        lambda pair: "".join("  " * depth + f"- {pair[1]}\n" for depth in range(pair[0]))
    ),
    PROSE.map(lambda prose: f"<div>\n{prose}\n</div>"),
    st.integers(1, 1500).map("x".__mul__),
    st.integers(1, 300).map("👍🏽é".__mul__),
    st.integers(1, 100).map("One sentence here. ".__mul__),
    LINE.map(lambda line: line + ":"),
    st.just("[ref]: http://example.org 'A title'"),
    st.just("$$\na = b\n$$"),
    st.just("***"),
    st.just("> # quoted heading\n> text"),
    st.just("- ## heading in an item\n  text"),
    st.text(max_size=60),
)
MARKDOWN = st.builds(
    lambda blocks, gap, end: gap.join(blocks).replace("\n", end),
    st.lists(BLOCK, max_size=9),
    st.sampled_from(["\n\n", "\n", "\n\n\n"]),
    st.sampled_from(["\n", "\r\n", "\n", "\r"]),
)
SIZES = st.sampled_from([(1000, 256), (120, 40), (60, 60), (50, 20)])
FIXED = {
    "empty": "",
    "blank": " \n\t\n\u00a0",
    "no heading": "Just a line.",
    "headings only": "# A\n\n## B\n\n## C\n\n# D\n",
    "repeated": "# A\n\nsame text\n\n# A\n\nsame text\n\nsame text\n",
    "line without spaces": "0123456789" * 3000,
    "one long line": "lorem ipsum dolor sit amet, " * 3000,
    "white space": "a" + " " * 20_000 + "b" + "\n" * 20_000 + "c",
    "marks only": "\u0301" * 3000,
    "NUL": "# a\x00b\n\nc\x00d",
    "skipped levels": "### deep\n\na\n\n# top\n\nb\n\n#### deeper\n\nc\n\n## mid\n\nd\n",
    "definition list before setext": "Term\n: one\n\n: two\n\nSetext\n===\n\ntext",
    "unclosed fence": "# A\n\n```\n# not a heading\n\nx",
    "byte order mark": "\ufeff# A\n\ntext",
    "big table": table([f"row {n} with some words" for n in range(400)]),
    "nested quotes": "> " * 80 + "deep",
}


def by_level(nodes: Sequence[BaseNode], level: str) -> list[TextNode]:
    return [
        node for node in nodes
        if isinstance(node, TextNode) and node.metadata["chunk_level"] == level
    ]  # fmt: skip


def spans(nodes: Sequence[TextNode]) -> list[tuple[int, int]]:
    return [(node.start_char_idx or 0, node.end_char_idx or 0) for node in nodes]


def assert_covered(text: str, begin: int, end: int, ranges: Sequence[tuple[int, int]]) -> None:
    place = begin
    for start, stop in ranges:
        assert place <= start < stop
        assert not text[place:start].strip()
        place = stop
    assert place <= end
    assert not text[place:end].strip()


def is_one_character(text: str) -> bool:
    """Whether a text is one base character with all that combines with it."""
    return len(text) < 40 and not any(char.isalnum() or char.isspace() for char in text[1:])


def headings_of(text: str) -> list[tuple[int, int]]:
    data = text.encode()
    return [
        (len(data[: place["start"]].decode()), int(event["Start"]["Heading"]["level"][1]))
        for event, place in pyromark.events_with_range(text, options=pyromark.Options(1 << 12))
        if isinstance(event, dict) and isinstance(event.get("Start"), dict)
        and "Heading" in event["Start"]
    ]  # fmt: skip


def parse(text: str, sizes: tuple[int, int] = (1000, 256), **metadata: object) -> list[BaseNode]:
    parser = ParentChildNodeParser(parent_tokens=sizes[0], child_tokens=sizes[1])
    return parser.get_nodes_from_documents([Document(text=text, id_="doc", metadata=metadata)])


def assert_invariants(text: str, nodes: Sequence[BaseNode], sizes: tuple[int, int]) -> None:
    parents, children = by_level(nodes, "parent"), by_level(nodes, "child")
    by_id = {node.node_id: node for node in nodes}
    assert len(by_id) == len(nodes) == len(parents) + len(children)
    for node in [*parents, *children]:
        assert text[node.start_char_idx : node.end_char_idx] == node.text
    assert_covered(text, 0, len(text), spans(parents))
    for parent in parents:
        family = [by_id[child.node_id] for child in parent.child_nodes or []]
        assert all(child.parent_node.node_id == parent.node_id for child in family)
        assert_covered(text, *spans([parent])[0], spans(family))
    for nodes_of_level, limit in ((parents, sizes[0]), (children, sizes[1])):
        for node in nodes_of_level:
            assert len(get_tokenizer()(node.text)) <= limit or is_one_character(node.text)
        assert [node.metadata["chunk_index"] for node in nodes_of_level] == list(
            range(len(nodes_of_level))
        )
        for before, after in pairwise(nodes_of_level):
            assert before.next_node.node_id == after.node_id
            assert after.prev_node.node_id == before.node_id
            assert before.metadata["token_end"] <= after.metadata["token_start"]


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=MARKDOWN, sizes=SIZES)
def test_every_invariant_holds_for_generated_markdown(text: str, sizes: tuple[int, int]) -> None:
    assert_invariants(text, parse(text, sizes), sizes)


@settings(max_examples=120, deadline=None)
@given(text=st.text(max_size=2000), sizes=SIZES)
def test_every_invariant_holds_for_arbitrary_text(text: str, sizes: tuple[int, int]) -> None:
    assert_invariants(text, parse(text, sizes), sizes)


@pytest.mark.parametrize("sizes", [(1000, 256), (50, 20)])
@pytest.mark.parametrize("text", FIXED.values(), ids=FIXED.keys())
def test_every_invariant_holds_for_awkward_text(text: str, sizes: tuple[int, int]) -> None:
    assert_invariants(text, parse(text, sizes), sizes)


def test_spaces_of_a_hard_line_break_are_no_node() -> None:
    text = f"One sentence.  \n{'long' * 30} ends.  \nAnother one."

    nodes = parse(text, (8, 2))

    assert all(node.text.strip() for node in nodes)
    assert_invariants(text, nodes, (8, 2))


def test_line_of_a_megabyte_keeps_every_invariant() -> None:
    text = "Replicas follow the primary, e.g. node\u0301 7; 日本語です。 " * 20_000

    nodes = parse(text)

    assert len(text.encode()) > 1_000_000
    assert "\n" not in text
    parents, children = by_level(nodes, "parent"), by_level(nodes, "child")
    assert all(text[n.start_char_idx : n.end_char_idx] == n.text for n in [*parents, *children])
    assert_covered(text, 0, len(text), spans(parents))
    assert_covered(text, 0, len(text), spans(children))


# One sample of ours for each construct that the CommonMark specification has a section on.
CONSTRUCTS = {
    "tabs": "\tcode by tab\n\n-\titem\n\n\t\tcode in it\n",
    "escapes": "\\# no heading \\*no stress\\* \\[none\\](/x) \\\\ end\\\nnext",
    "entities": "&copy; &#35; &#x22; &nbsp; &unknown; caf&eacute;",
    "precedence": "- `one\n- two`\n",
    "thematic breaks": "above\n\n***\n- - -\n____\n\nbelow\n",
    "ATX headings": "# one #\n####### none\n## two ##  \n#none\n###\n",
    "setext headings": "Title *of*\ntwo lines\n===\n\nlower\n---\nnone\n\n===\n",
    "indented code": "text\n\n    code\n\n      more\n    \n    end\ntext\n",
    "fenced code": "~~~ py x\n# no heading\n```\n~~~~\n\n````\n```\n````\n",
    "fence in a quote": "> ```\n> # code\n\nout\n",
    "HTML blocks": "<div>\n# no heading\n</div>\n\n<!-- # none\n\n-->\n<pre>\n\n# x\n</pre>\n",
    "reference definitions": "[a]: /x 'one\ntwo'\n[A]: <my url>\n\n[a] and [b][A]\n# [a]\n",
    "paragraphs": "one\n   two\n\n\n  three  \nfour\\\nfive\n",
    "tables": "| a | b |\n|:--|--:|\n| `x|` | \\| |\n| lone |\n\nafter\n",
    "quotes": "> # A\n> text\nlazy\n\n> > deep\n> - item\n",
    "bullet lists": "- one\n\n  more\n+ other\n* third\n  - inner\n\n\n    code\n",
    "ordered lists": "3. three\n4) four\n0. zero\n1234567890. none\n",
    "tasks": "- [ ] open\n- [x] done\n",
    "heading in a list": "- # A\n  - ## B\n    text\n- Setext\n  ---\n",
    "code spans": "`` a ` b `` `\nx\n` ` unclosed\n",
    "emphasis": "*a **b** c* __d_ e__ ***f*** intra*wor*d _no_t\n",
    "links": "[a](<b c> 'd') [e](f(g)h) [i][] [j]\n\n[i]: /i\n[j]: /j\n",
    "images": "![alt *x*](/a.png 'T') ![b][c] [![d](/e)](/f)\n\n[c]: /c.png\n",
    "autolinks": "<https://a.test/?b=c> <me@a.test> <not one> https://b.test\n",
    "raw HTML": "a <b class='x'>c</b> <!-- d --> <?e?> <![CDATA[f]]> <bad\n",
    "hard breaks": "one  \ntwo\\\nthree \nfour\n",
    "strikethrough": "~~gone~~ ~one~ ~~~no~~~\n",
    "footnotes": "text[^1] and[^2]\n\n[^1]: note\n    more\n[^2]: last\n",
    "front matter": "---\ntitle: x\n---\n\n# A\n",
}


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("text", CONSTRUCTS.values(), ids=CONSTRUCTS.keys())
def test_every_invariant_holds_for_each_construct(text: str, end: str) -> None:
    for repeated in (1, 12):
        document = (text * repeated).replace("\n", end)
        for sizes in ((1000, 256), (50, 20)):
            assert_invariants(document, parse(document, sizes), sizes)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=MARKDOWN, sizes=SIZES)
def test_parents_never_cross_a_heading_of_their_own_or_a_higher_level(
    text: str, sizes: tuple[int, int]
) -> None:
    headings = headings_of(text)
    parents = by_level(parse(text, sizes), "parent")

    for start, end in spans(parents):
        levels = [level for place, level in headings if place < end]
        inside = [level for place, level in headings if start <= place < end]
        first = inside[0] if inside else 7
        opening = levels[len(levels) - len(inside) - 1] if len(levels) > len(inside) else 0
        # The first heading inside either opens the parent or lies below the one that is open.
        assert all(level > first for level in inside[1:]) or all(
            level > opening > 0 for level in inside
        )


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=MARKDOWN)
def test_parsing_twice_gives_the_same_nodes(text: str) -> None:
    first, second = parse(text), parse(text)

    assert [node.to_dict() for node in first] == [node.to_dict() for node in second]


def section(title: str, words: str, count: int = 60) -> str:
    return f"## {title}\n\n" + f"{words} sentence follows here. " * count + "\n\n"


def test_ids_survive_edits_in_other_sections() -> None:
    before = "# Page\n\n" + section("One", "First") + section("Two", "Second")
    after = "# Page\n\n" + section("One", "Changed entirely", 90) + section("Two", "Second")

    ids_before = {n.node_id for n in parse(before) if n.metadata["heading"] == "Two"}
    ids_after = {n.node_id for n in parse(after) if n.metadata["heading"] == "Two"}

    assert ids_before
    assert ids_before == ids_after


def test_ids_are_uuids_that_depend_on_the_document() -> None:
    document = Document(text="# A\n\ntext", id_="one")
    other = Document(text="# A\n\ntext", id_="two")

    nodes = ParentChildNodeParser().get_nodes_from_documents([document, other])

    assert len({str(uuid.UUID(node.node_id)) for node in nodes}) == 4


def test_repeated_sections_get_different_ids() -> None:
    nodes = parse("# A\n\nsame\n\n# A\n\nsame\n")

    assert len({node.node_id for node in nodes}) == len(nodes) == 4


def test_id_function_of_the_caller_is_used() -> None:
    parser = ParentChildNodeParser(id_func=lambda number, document: f"{document.node_id}-{number}")

    nodes = parser.get_nodes_from_documents([Document(text="# A\n\ntext", id_="d")])

    assert [node.node_id for node in nodes] == ["d-0", "d-1"]


def test_small_page_is_one_parent_with_its_subsections() -> None:
    parents = by_level(parse("# A\n\na\n\n## B\n\nb\n\n## C\n\nc\n"), "parent")

    assert [parent.metadata["heading_path"] for parent in parents] == [["A"]]


def test_sections_that_do_not_fit_together_are_parents_of_their_own() -> None:
    text = "# Page\n\nIntro.\n\n" + section("One", "First", 150) + section("Two", "Second", 150)

    parents = by_level(parse(text), "parent")

    assert [parent.metadata["heading_path"] for parent in parents] == [["Page"], ["Page", "Two"]]


def test_heading_without_text_stays_with_its_first_subsection() -> None:
    text = "# Page\n\n" + section("One", "First", 150) + section("Two", "Second", 150)

    first = by_level(parse(text), "parent")[0]

    assert first.text.startswith("# Page\n\n## One\n\nFirst")


def test_child_knows_the_subsection_it_is_in() -> None:
    text = "# Page\n\nintro\n\n" + section("One", "First") + section("Two", "Second")

    paths = [child.metadata["heading_path"] for child in by_level(parse(text), "child")]

    assert paths[-1] == ["Page", "Two"]
    assert {tuple(path) for path in paths} >= {("Page", "One"), ("Page", "Two")}


def test_children_of_a_long_paragraph_are_even_and_end_with_sentences() -> None:
    children = by_level(parse("This is one short sentence. " * 50), "child")
    sizes = [len(get_tokenizer()(child.text)) for child in children]

    assert max(sizes) - min(sizes) < 20
    assert all(child.text.endswith(".") for child in children)


def test_fenced_code_is_cut_between_lines_only() -> None:
    lines = [f"    value_{number} = compute({number}, 'text')" for number in range(120)]
    text = "# Code\n\n" + fenced("\n".join(lines))

    cut = {line for child in by_level(parse(text), "child") for line in child.text.splitlines()}

    assert cut - {""} == set(text.splitlines()) - {""}


def test_table_rows_are_cut_between_lines_only() -> None:
    text = table([f"row {number} of the table, second row" for number in range(200)])

    cut = [line for child in by_level(parse(text), "child") for line in child.text.splitlines()]

    assert cut == text.splitlines()


def test_header_of_a_table_is_not_cut_off() -> None:
    text = "word " * 240 + "\n\n" + table([f"row {number}" for number in range(100)])

    holder = next(c.text for c in by_level(parse(text), "child") if "|---|" in c.text)

    assert "| row 0 |" in holder


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param("Term {n}\n: Definition {n} " + "of words " * 20, id="definition list"),
        pytest.param("--option-{n}\n\nDefinition {n} " + "of words " * 20, id="flattened"),
        pytest.param("**Term {n}**\n\nDefinition {n} " + "of words " * 20, id="bold"),
        pytest.param("### Term {n}\n\nDefinition {n} " + "of words " * 20, id="heading"),
    ],
)
def test_term_stays_with_its_definition(entry: str) -> None:
    text = "# Options\n\n" + "\n\n".join(entry.format(n=number) for number in range(30))

    children = by_level(parse(text), "child")

    for number in range(30):
        term = entry.format(n=number).splitlines()[0]
        holder = next(child.text for child in children if term + "\n" in child.text)
        assert f"Definition {number} " in holder


def test_introduction_stays_with_its_list() -> None:
    text = "word " * 150 + ".\n\nDo the following:\n\n" + "- an item of the list\n" * 20

    holder = next(c.text for c in by_level(parse(text), "child") if "following:" in c.text)

    assert "- an item of the list" in holder


def test_combined_characters_are_not_cut_apart() -> None:
    text = "e\u0301" * 4000

    assert all(child.text.startswith("e") for child in by_level(parse(text), "child"))


def test_token_offsets_count_the_whole_document() -> None:
    text = "# Page\n\n" + section("One", "First", 150) + section("Two", "Second", 150)

    parents = by_level(parse(text), "parent")

    assert parents[0].metadata["token_start"] == 0
    assert parents[-1].metadata["token_end"] == len(get_tokenizer()(text))


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


def test_only_listed_document_metadata_is_copied() -> None:
    nodes = parse("# A\n\ntext", title="T", source_url="http://x", html="<p>x</p>", secret="s")

    assert all(node.metadata["title"] == "T" for node in nodes)
    assert all({"html", "secret"}.isdisjoint(node.metadata) for node in nodes)
    assert all("secret" not in node.to_json() for node in nodes)


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
