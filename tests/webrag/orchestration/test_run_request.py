from typing import Any

import pytest

from webrag.errors import InputError

from .run_requests import URL, asked, searched


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


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"research_mode": "deeep"}, "research_mode is 'deeep'; use 'fast' or 'deep'."),
        (
            {"retrieval_mode": "all"},
            "retrieval_mode is 'all'; use 'chunk', 'full_context' or 'auto'.",
        ),
        (
            {"intent": "howto"},
            "intent is 'howto'; use 'factual', 'comparison', 'how_to' or 'exploratory'.",
        ),
    ],
)
def test_unknown_words_are_refused_by_name(values: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        asked(**values)

    assert str(caught.value) == said


@pytest.mark.parametrize("values", [{"retrieval_mode": "all"}, {"intent": "howto"}])
def test_search_refuses_unknown_words(values: Any) -> None:
    with pytest.raises(InputError, match="; use "):
        searched(**values)


@pytest.mark.parametrize("request_with", [asked, searched])
def test_wordings_are_checked_once_for_every_call(request_with: Any) -> None:
    assert request_with(wordings=["", "what?", "a port"]).wordings == ("a port",)
    with pytest.raises(InputError, match="Wording 1 has 600 characters"):
        request_with(wordings=["x" * 600])
