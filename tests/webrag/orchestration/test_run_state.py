import time
from typing import Any

import pytest

from webrag.errors import InputError
from webrag.orchestration.link_rules import LinkScope
from webrag.orchestration.models import ExpansionConfig, QueryAnalysis
from webrag.orchestration.page_budget import PageBudget
from webrag.orchestration.run_state import RunClock, RunRequest, RunState
from webrag.retrieval.filters import NO_FILTERS, SearchFilters

URL = "https://docs.test/guide"


def asked(urls: Any = URL, query: str = "What?", **values: Any) -> RunRequest:
    given = {
        "intent": None,
        "known_context": None,
        "constraints": None,
        "expansion_budget": None,
        "research_mode": "fast",
        "retrieval_mode": "chunk",
        "max_pages": None,
        "config": ExpansionConfig(),
    }
    return RunRequest.answer(urls, query, **{**given, **values})


def searched(query: str = "What?", **values: Any) -> RunRequest:
    given = {
        "filters": NO_FILTERS,
        "intent": None,
        "top_k": None,
        "retrieval_mode": "chunk",
    }
    return RunRequest.search(query, **{**given, **values})


def state(request: RunRequest, scope: str = "same_site") -> RunState:
    return RunState(
        request=request,
        clock=RunClock(started=0, work_until=0),
        scope=LinkScope.of(scope, request.urls),
        budget=PageBudget.of(1, 1),
    )


@pytest.mark.parametrize(
    ("mode", "budget", "rounds"),
    [
        ("fast", None, 0),
        ("fast", 0, 0),
        ("fast", 2, 2),
        ("deep", None, 5),
        ("deep", 0, 0),
        ("deep", 3, 3),
        ("deep", 50, 5),
    ],
)
def test_rounds_follow_mode_and_budget(mode: Any, budget: Any, rounds: Any) -> None:
    assert asked(research_mode=mode, expansion_budget=budget).max_iterations == rounds


def test_lowered_budget_is_told() -> None:
    assert "lowered to 5" in asked(expansion_budget=50).warnings[0]


def test_urls_are_canonical_and_distinct() -> None:
    request = asked([URL, URL + "#part", "https://other.test"])

    assert request.urls == (URL, "https://other.test/")


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"urls": []}, id="no URL"),
        pytest.param({"urls": [f"https://d.test/{n}" for n in range(21)]}, id="too many URLs"),
        pytest.param({"urls": "ftp://d.test/"}, id="no web address"),
        pytest.param({"query": "  "}, id="empty question"),
        pytest.param({"expansion_budget": -1}, id="negative budget"),
        pytest.param({"max_pages": 26}, id="too many pages"),
        pytest.param({"max_pages": -1}, id="negative pages"),
    ],
)
def test_unusable_value_is_refused(values: Any) -> None:
    with pytest.raises(InputError):
        asked(**values)


@pytest.mark.parametrize("values", [{"query": ""}, {"top_k": 0}])
def test_unusable_search_is_refused(values: Any) -> None:
    with pytest.raises(InputError):
        searched(**values)


def test_pages_default_to_the_configured_number() -> None:
    assert (asked().max_pages, asked(max_pages=3).max_pages) == (10, 3)


def analysis(*parts: str) -> QueryAnalysis:
    return QueryAnalysis(
        original_query="A and B?",
        sub_queries=parts,
        query_type="factual",
        complexity="simple",
        key_concepts=(),
        method="rule_based",
    )


def test_split_question_is_searched_as_a_whole_too() -> None:
    run = state(asked(query="A and B?"))
    run.analysis, run.extra_queries = analysis("A", "B"), ("C",)

    assert run.queries == ("A", "B", "A and B?", "C")


def test_whole_question_is_searched_once() -> None:
    run = state(asked(query="A and B?"))
    run.analysis = analysis("A and B?")

    assert run.queries == ("A and B?",)


def test_first_search_is_limited_to_the_named_pages() -> None:
    run = state(asked())
    run.pages[URL] = None

    assert run.searched_urls == (URL,)


def test_later_searches_add_stored_pages_inside_the_scope() -> None:
    run = state(asked())
    run.pages[URL], run.joined, run.is_widened = None, ("https://docs.test/b",), True

    assert run.searched_urls == (URL, "https://docs.test/b")


def test_scope_any_searches_everything_once_widened() -> None:
    run = state(asked(), scope="any")
    run.is_widened = True

    assert run.searched_urls is None


def test_search_is_limited_to_what_was_asked_for() -> None:
    filters = SearchFilters(source_urls=(URL,), has=("code",))

    assert state(searched(filters=filters)).filters == filters
    assert state(searched()).filters == NO_FILTERS


def test_clock_adds_up_and_knows_its_end() -> None:
    clock = RunClock(started=time.monotonic(), work_until=time.monotonic() + 60)

    with clock.timed("merge_ms"):
        pass
    with clock.timed("merge_ms"):
        pass

    assert 0 < clock.timing().merge_ms <= clock.timing().total_ms
    assert not clock.is_over
    assert 0 < clock.left_s <= 60


def test_clock_without_time_left_is_over() -> None:
    clock = RunClock(started=0, work_until=time.monotonic() - 1)

    assert clock.is_over
    assert clock.left_s == 0
