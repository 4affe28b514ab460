import uuid

import pytest
from llama_index.core.schema import (
    Document,
)
from llama_index.core.utils import get_tokenizer
from llama_index.node_parser.webrag import ParentChildNodeParser

from .parsed_pages import by_level, fenced, parse, section, table


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
