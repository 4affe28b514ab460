"""Values that no statement, table or answer can hold: each is refused in one sentence."""

from datetime import date
from typing import Any

import pytest
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from webrag.errors import InputError
from webrag.llamaindex.store_filters import filter_condition
from webrag.question import Question, check_question
from webrag.retrieval.citation_checks import Citation, check_citation
from webrag.retrieval.filters import SearchFilters
from webrag.tool_inputs import AnswerInput, ReadInput, SearchInput, ToolInput


def nested(depth: int) -> MetadataFilters:
    filters = MetadataFilters(filters=[MetadataFilter(key="a", value=1)])
    for _ in range(depth):
        outer = MetadataFilters(filters=[])
        outer.filters.append(filters)
        filters = outer
    return filters


@pytest.mark.parametrize(
    "given",
    [
        {"years": True},
        {"years": [2020, False]},
        {"years": "2020"},
        {"years": 10**5000},
        {"sites": "a\x00.test"},
        {"sites": "\ud800.test"},
        {"sites": 5},
        {"source_urls": "http://a.test/\x00"},
        {"source_urls": "http://a.test/\udfff"},
        {"source_urls": [5]},
        {"has": "\ud800"},
        {"has": 10**5000},
        {"fetched_since": date(2026, 1, 1)},
    ],
)
def test_a_filter_that_cannot_be_used_is_refused_in_a_sentence(given: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        SearchFilters.of(**given)

    assert str(caught.value).isprintable()


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b", "\udfff", b"a", 5, None])
def test_a_question_that_is_no_text_is_refused(text: Any) -> None:
    with pytest.raises(InputError, match="The question"):
        check_question(text)
    with pytest.raises(InputError, match="The question"):
        Question.of(text)


@pytest.mark.parametrize("years", [True, [True], [10**5000], ["2020"]])
def test_years_of_an_answer_that_are_none_are_refused(years: Any) -> None:
    with pytest.raises(InputError, match="year"):
        Question.of("What?", years=years)


@pytest.mark.parametrize("quote", ["a\x00", "\ud800", "x" * 10_001])
def test_a_quotation_that_cannot_be_looked_up_is_refused(quote: str) -> None:
    with pytest.raises(InputError, match="quote"):
        check_citation(Citation(quote=quote, url="https://a.test/"))


@pytest.mark.parametrize(
    ("tool", "given", "named"),
    [
        (SearchInput, {"query": "a\x00"}, "query"),
        (SearchInput, {"query": "q", "wordings": ["\ud800"]}, "wordings"),
        (ReadInput, {"passage_id": "a\x00"}, "passage_id"),
        (AnswerInput, {"url": "a", "query": "q", "intent": 10**5000}, "intent"),
    ],
)
def test_arguments_of_a_tool_hold_only_characters(
    tool: type[ToolInput], given: dict[str, Any], named: str
) -> None:
    with pytest.raises(InputError, match=named):
        tool.model_validate(given)


@pytest.mark.parametrize(
    "filters",
    [
        pytest.param(nested(3_000), id="deep"),
        pytest.param(nested(20), id="a little too deep"),
        pytest.param(
            MetadataFilters(filters=[MetadataFilter(key="a", value=1)] * 70_000), id="wide"
        ),
        pytest.param(
            MetadataFilters(
                filters=[MetadataFilter(key="a", value=["b"] * 70_000, operator=FilterOperator.ANY)]
            ),
            id="wide list",
        ),
        pytest.param(
            MetadataFilters(filters=[MetadataFilter(key="a", value=10**5000)]), id="digits"
        ),
    ],
)
def test_filters_that_no_statement_holds_are_refused(filters: MetadataFilters) -> None:
    with pytest.raises(InputError, match="filter"):
        filter_condition(filters)
