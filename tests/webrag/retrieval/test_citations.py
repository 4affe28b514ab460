from datetime import UTC, datetime
from urllib.parse import unquote
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.ingestion.models import Anchor
from webrag.retrieval.citations import extract_citation, passage_link
from webrag.retrieval.models import RetrievedChunk

TEXT = "Set **listen_port** in the file. Then `restart` the server."


def chunk(text: str = TEXT, char_start: int = 100) -> RetrievedChunk:
    return RetrievedChunk(
        chunk_id=uuid4(),
        document_id=uuid4(),
        source_url="https://docs.test/ports",
        site="docs.test",
        title="Ports",
        text=text,
        section_heading="Changing the port",
        chunk_index=3,
        char_start=char_start,
        char_end=char_start + len(text),
        token_start=20,
        token_end=35,
        score=0.5,
        raw_similarity=0.4,
        depth=0,
        fetched_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def test_a_citation_is_taken_from_the_markdown() -> None:
    citation = extract_citation(chunk(), 100, 132)

    assert citation is not None
    assert citation.verbatim_text == "Set **listen_port** in the file."
    assert citation.plain_text == "Set listen_port in the file."


@pytest.mark.parametrize(("start", "page"), [(100, 1), (131, 1), (132, 3), (140, 3)])
def test_a_citation_of_a_pdf_opens_the_page_it_begins_on(start: int, page: int) -> None:
    places = ((60, 1), (132, 2), (132, 3), (170, 4))  # page 2 is blank
    anchors = tuple(Anchor(char_start=at, fragment=f"page={number}") for at, number in places)

    citation = extract_citation(chunk().model_copy(update={"anchors": anchors}), start, 150)

    assert citation is not None
    assert citation.link == f"https://docs.test/ports#page={page}"


def test_a_citation_says_where_it_comes_from() -> None:
    source = chunk()

    citation = extract_citation(source, 104, 119)

    assert citation is not None
    assert citation.model_dump(exclude={"verbatim_text", "plain_text", "link"}) == {
        "source_url": "https://docs.test/ports",
        "section_heading": "Changing the port",
        "char_start": 104,
        "char_end": 119,
        "token_start": 20,
        "token_end": 35,
        "title": "Ports",
        "chunk_id": source.chunk_id,
        "as_of": None,
    }


def test_a_citation_links_to_its_passage() -> None:
    citation = extract_citation(chunk(), 100, 132)

    assert citation is not None
    assert citation.link == "https://docs.test/ports#:~:text=Set%20listen_port%20in%20the%20file."


@pytest.mark.parametrize(
    ("start", "end"),
    [(99, 110), (110, 100 + len(TEXT) + 1), (110, 110), (120, 110), (0, 5)],
    ids=["before", "after", "empty", "reversed", "elsewhere"],
)
def test_offsets_outside_the_chunk_give_no_citation(start: int, end: int) -> None:
    assert extract_citation(chunk(), start, end) is None


@given(st.data(), st.integers(0, 1000))
def test_every_citation_is_the_exact_slice_of_the_page(
    markdown: st.SearchStrategy[str], data: st.DataObject, before: int
) -> None:
    text = data.draw(markdown)
    page = " " * before + text
    start = data.draw(st.integers(before, len(page)))
    end = data.draw(st.integers(before, len(page)))

    citation = extract_citation(chunk(text, before), start, end)

    assert (citation is None) == (start >= end)
    assert citation is None or citation.verbatim_text == page[start:end]


@pytest.mark.parametrize(
    ("plain", "directive"),
    [
        pytest.param("a-b, c & d", "a%2Db%2C%20c%20%26%20d", id="delimiters-are-encoded"),
        pytest.param("50% of #1 é", "50%25%20of%20%231%20%C3%A9", id="others-are-encoded"),
        pytest.param("  two\u00a0words ", "two%20words", id="hard-space"),
        pytest.param("left cell\tright cell", "left%20cell-,right%20cell", id="cells"),
        pytest.param("line one\nline two", "line%20one", id="lines-of-equal-length"),
        pytest.param("port\t80\tthe port", "port-,80", id="cell-after-its-name"),
        pytest.param("port\t|\tthe port it uses", "the%20port%20it%20uses", id="cell-of-signs"),
        pytest.param("fn main() {\n  let x = f(1);\n}", "let%20x%20%3D%20f%281%29%3B", id="code"),
        pytest.param("one two three    four", "one%20two%20three", id="columns-of-code"),
        pytest.param(
            "run () \u2192 int Gives the next id", "int%20Gives%20the%20next%20id", id="signs"
        ),
        pytest.param("ls | wc", "ls%20%7C%20wc", id="only-signs-between"),
    ],
)
def test_a_passage_link_names_the_passage(plain: str, directive: str) -> None:
    assert passage_link("https://a.test/x", plain) == f"https://a.test/x#:~:text={directive}"


def test_a_long_passage_is_named_by_its_ends() -> None:
    link = passage_link("https://a.test/x", " ".join(map(str, range(40))))

    assert link == "https://a.test/x#:~:text=0%201%202%203%204,35%2036%2037%2038%2039"


def test_an_end_with_what_was_markup_is_named_by_the_words_before_it() -> None:
    link = passage_link("https://a.test/x", " ".join(map(str, range(40))) + " x`y`. \u2026")

    assert link.endswith("35%2036%2037%2038%2039")


def test_a_passage_without_words_links_to_the_page() -> None:
    assert passage_link("https://a.test/x", " \n") == "https://a.test/x"


def test_a_fragment_of_the_address_is_kept() -> None:
    assert passage_link("https://a.test/#!x", "word") == "https://a.test/#!x:~:text=word"


@given(st.text(min_size=1).filter(lambda text: bool(text.split())))
def test_a_passage_link_holds_words_of_the_passage_and_no_other_delimiter(plain: str) -> None:
    directive = passage_link("https://a.test/x", plain).partition("#:~:text=")[2]

    assert directive.isascii()
    assert not set(directive.replace("-,", ",")) & set("&-# ")
    parts = directive.replace("-,", ",").split(",")
    words = [word for part in parts for word in unquote(part).split()]
    assert words
    assert set(words) <= set(plain.split())


def test_a_citation_keeps_angle_brackets_and_its_link_avoids_them() -> None:
    text = "Give a <pathspec> to limit the paths that this command will show."

    citation = extract_citation(chunk(text), 100, 100 + len(text))

    assert citation is not None
    assert citation.plain_text == citation.verbatim_text == text
    assert unquote(citation.link).endswith(
        "#:~:text=to limit the paths that,that this command will show."
    )
