from typing import Any
from uuid import uuid4

import pytest
from starlette.datastructures import QueryParams

from webrag.answering.models import AnswerCitation, ManagerResult
from webrag.errors import InputError
from webrag.question import Question
from webrag.web.asking import address_of, asked_question, follow_ups, understood_in, where_to_look
from webrag.web.questions import Turn


def result(**values: Any) -> ManagerResult:
    given: dict[str, Any] = {
        "state": "success",
        "states": ("execute_plan", "success"),
        "query": "q",
        "answer": "a",
        "confidence": 0.5,
        "final_reason": "confidence_medium_caveated",
    }
    return ManagerResult(**given | values)


def test_address_of_a_question_asks_the_same_again() -> None:
    asked = Question.of(
        "Größe & more?",
        urls="http://a.test/?x=1",
        sites="a.test",
        years=(2024, 2025),
        wordings="w",
        research_mode="deep",
        expansion_budget=3,
    )

    values = QueryParams(address_of(asked, "r7").partition("?")[2])

    assert asked_question(values) == asked
    assert values["after"] == "r7"


def test_several_addresses_may_stand_in_one_field() -> None:
    asked = asked_question(QueryParams({"q": " Why? ", "url": "http://a.test/\n http://b.test/ "}))

    assert asked == Question.of("Why?", urls=("http://a.test/", "http://b.test/"))


@pytest.mark.parametrize("year", ["x", "20255", "-1", "٢٠٢٥"])
def test_year_that_is_no_number_is_refused_with_what_is_allowed(year: str) -> None:
    with pytest.raises(InputError, match=r"The year is .*; give one from 1 to 9,999"):
        asked_question(QueryParams({"q": "Why?", "year": year}))


@pytest.mark.parametrize("rounds", ["x", "0", "-1", "21", "0000000012"])
def test_rounds_that_are_no_number_are_refused_with_what_is_allowed(rounds: str) -> None:
    with pytest.raises(InputError, match="give one from 1 to 20"):
        asked_question(QueryParams({"q": "Why?", "deep": "1", "rounds": rounds}))


def test_unsure_answer_from_a_page_offers_to_look_further() -> None:
    offered = dict(follow_ups(Question.of("q", urls="http://a.test/", years=2024), result()))

    assert offered["Follow the links of the page too"].is_deep
    assert offered["Ask in pages of every year"].years is None
    assert offered["Ask everything that is stored"] == Question(text="q")


def test_part_that_was_not_found_can_be_asked_alone() -> None:
    offered = dict(follow_ups(Question(text="q"), result(missing=("its price",))))

    assert offered == {"Ask only: its price": Question(text="its price")}


@pytest.mark.parametrize(
    "values", [{"final_reason": "confidence_high"}, {"state": "fail"}], ids=["sure", "refused"]
)
def test_sure_or_refused_answer_offers_nothing_else(values: dict[str, Any]) -> None:
    assert follow_ups(Question.of("q", urls="http://a.test/"), result(**values)) == []


def test_what_limits_a_question_is_said_in_a_few_words() -> None:
    asked = Question.of(
        "q", urls="http://a.test/", sites="b.test", research_mode="deep", years=2024
    )

    assert where_to_look(asked) == "1 page and what it links to, b.test, 2024"


def test_this_page_is_the_one_that_was_cited_last() -> None:
    cited = AnswerCitation(
        number=1, verbatim_text="a", plain_text="a", link="", source_url="http://a.test/",
        section_heading=None, char_start=0, char_end=1, token_start=0, token_end=1, title=None,
        chunk_id=uuid4(), document_id=uuid4(),
    )  # fmt: skip
    turns = [Turn("What is a kettle?", result(citations=(cited,)))]

    understood = understood_in(Question(text="Summarise this page"), turns)

    assert (understood.text, understood.source_urls) == ("Summarise this page", ("http://a.test/",))


@pytest.mark.parametrize(
    ("typed", "text", "url"),
    [
        ("a.test/guide what is the limit?", "what is the limit?", "https://a.test/guide"),
        ("what is the limit? http://a.test/", "what is the limit?", "http://a.test/"),
        ("127.0.0.1:8/x what is it", "what is it", "http://127.0.0.1:8/x"),
    ],
)
def test_address_beside_a_question_is_the_page_to_answer_from(
    typed: str, text: str, url: str
) -> None:
    asked = asked_question(QueryParams({"q": typed}))

    assert (asked.text, asked.urls) == (text, (url,))


def test_host_beside_a_question_is_the_site_to_search_as_on_the_terminal() -> None:
    asked = asked_question(
        QueryParams({"q": "127.0.0.1:8933 what is a heartbeat", "site": "a.test"})
    )

    assert (asked.text, asked.sites) == ("what is a heartbeat", ("127.0.0.1:8933", "a.test"))


def test_host_without_a_scheme_is_an_address_in_its_field() -> None:
    asked = asked_question(QueryParams({"q": "Why?", "url": "a.test/guide"}))

    assert asked.urls == ("https://a.test/guide",)


def test_path_in_its_field_is_the_address_of_a_file() -> None:
    assert asked_question(QueryParams({"q": "Why?", "url": "/a/b.md"})).urls == ("file:///a/b.md",)


def test_words_of_a_question_stay_as_they_were_typed() -> None:
    typed = "what does\nasyncio.run/1 do"

    assert asked_question(QueryParams({"q": typed})).text == typed
