from typing import Any

import pytest
from starlette.datastructures import QueryParams

from webrag.answering.models import ManagerResult
from webrag.errors import InputError
from webrag.web.asking import Asked, follow_ups, parse_asked


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
    asked = Asked(
        "Größe & more?", ("http://a.test/?x=1",), ("a.test",), (2024, 2025), ("w",), True, 3
    )

    assert parse_asked(QueryParams(asked.address.partition("?")[2])) == asked


def test_several_addresses_may_stand_in_one_field() -> None:
    asked = parse_asked(QueryParams({"q": " Why? ", "url": "http://a.test/\n http://b.test/ "}))

    assert asked == Asked("Why?", ("http://a.test/", "http://b.test/"))


@pytest.mark.parametrize("year", ["x", "20255", "-1", "٢٠٢٥"])
def test_year_that_is_no_number_is_refused_with_what_is_allowed(year: str) -> None:
    with pytest.raises(InputError, match="give a number such as 2025"):
        parse_asked(QueryParams({"q": "Why?", "year": year}))


@pytest.mark.parametrize("rounds", ["x", "0", "-1", "100"])
def test_rounds_that_are_no_number_are_refused_with_what_is_allowed(rounds: str) -> None:
    with pytest.raises(InputError, match="give one from 1 to 99"):
        parse_asked(QueryParams({"q": "Why?", "deep": "1", "rounds": rounds}))


def test_unsure_answer_from_a_page_offers_to_look_further() -> None:
    offered = dict(follow_ups(Asked("q", ("http://a.test/",), years=(2024,)), result()))

    assert offered["Follow the links of the page too"].deep
    assert offered["Ask in pages of every year"].years == ()
    assert offered["Ask everything that is stored"] == Asked("q")


def test_part_that_was_not_found_can_be_asked_alone() -> None:
    offered = dict(follow_ups(Asked("q"), result(missing=("its price",))))

    assert offered == {"Ask only: its price": Asked("its price")}


@pytest.mark.parametrize(
    "values", [{"final_reason": "confidence_high"}, {"state": "fail"}], ids=["sure", "refused"]
)
def test_sure_or_refused_answer_offers_nothing_else(values: dict[str, Any]) -> None:
    assert follow_ups(Asked("q", ("http://a.test/",)), result(**values)) == []
