from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from webrag.answering.models import AnswerCitation
from webrag.corpus.models import PageText
from webrag.web.reading import changed_words, marks_of, named_mark

PAGE_ID = UUID(int=7)


def page(markdown: str) -> PageText:
    return PageText(PAGE_ID, "http://a.test/", "A", markdown, datetime.now(UTC), None)


def citation(number: int, text: str, start: int, document_id: UUID = PAGE_ID) -> AnswerCitation:
    return AnswerCitation(
        number=number,
        document_id=document_id,
        source_url="http://a.test/",
        title="A",
        section_heading=None,
        verbatim_text=text,
        plain_text=text,
        token_start=0,
        token_end=1,
        char_start=start,
        char_end=start + len(text),
        chunk_id=uuid4(),
        link="http://a.test/",
    )


def test_words_that_stayed_went_and_came_are_told_apart() -> None:
    found = changed_words("It costs ten euros  a day", "It costs twelve euros a day now")

    assert list(found) == [
        ("same", "It costs"),
        ("removed", "ten"),
        ("added", "twelve"),
        ("same", "euros a day"),
        ("added", "now"),
    ]


def test_mark_that_ends_the_sentence_is_no_change() -> None:
    assert {kind for kind, _ in changed_words("It costs ten.", "It costs ten")} == {"same"}


def test_citations_are_marked_in_page_order_and_those_of_other_pages_are_not() -> None:
    cited = [citation(1, "two", 4), citation(2, "one", 0), citation(3, "one", 0, uuid4())]

    marks, lost = marks_of(cited, page("one two"))

    assert [(mark.number, mark.start, mark.end) for mark in marks] == [(2, 0, 3), (1, 4, 7)]
    assert lost == []


def test_citation_whose_words_stand_elsewhere_now_is_not_marked_but_named() -> None:
    marks, lost = marks_of([citation(1, "two", 4)], page("new one two"))

    assert (marks, lost) == ([], [1])


def test_quotation_that_an_address_names_is_marked_where_it_stands() -> None:
    marks, lost = named_mark({"n": "3", "start": "4", "quote": "two"}, page("one two"))

    assert [(mark.number, mark.start, mark.end) for mark in marks] == [(3, 4, 7)]
    assert lost == []


def test_quotation_that_an_address_names_and_is_gone_is_named() -> None:
    assert named_mark({"n": "3", "start": "4", "quote": "two"}, page("new one two")) == ([], [3])


@pytest.mark.parametrize(
    "values", [{}, {"quote": "two"}, {"n": "x", "start": "4", "quote": "two"}, {"n": "1"}]
)
def test_address_without_a_whole_quotation_marks_nothing(values: dict[str, str]) -> None:
    assert named_mark(values, page("one two")) == ([], [])
