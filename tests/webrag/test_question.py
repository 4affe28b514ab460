import inspect
from typing import Any

import pytest

from webrag import WebRAG
from webrag.answering.planning import check_answerable
from webrag.errors import InputError
from webrag.orchestration.models import ExpansionConfig, OrchestrationConfig
from webrag.orchestration.state import RunState
from webrag.question import Question, QuestionOptions, check_question

from .questions import URL, asked, searched

CONFIG = OrchestrationConfig(expansion=ExpansionConfig())


@pytest.mark.parametrize(
    ("mode", "budget", "rounds"),
    [
        ("fast", None, 0),
        ("fast", 0, 0),
        ("fast", 2, 2),
        ("deep", None, 20),
        ("deep", 0, 0),
        ("deep", 3, 3),
        ("deep", 50, 20),
    ],
)
def test_rounds_follow_mode_and_budget(mode: Any, budget: Any, rounds: Any) -> None:
    question = asked(research_mode=mode, expansion_budget=budget)

    assert RunState.begin(question, CONFIG).rounds == rounds


def test_question_that_names_no_page_is_allowed_no_rounds() -> None:
    assert RunState.begin(searched(expansion_budget=2), CONFIG).rounds == 0


def test_lowered_budget_is_told() -> None:
    (warning,) = RunState.begin(asked(expansion_budget=50), CONFIG).warnings

    assert "lowered to 20" in warning


def test_pages_default_to_the_configured_number() -> None:
    budgets = [RunState.begin(each, CONFIG).budget for each in (asked(), asked(max_pages=3))]

    assert [each.pages for each in budgets] == [25, 3]


def test_urls_are_canonical_and_distinct() -> None:
    question = asked(["HTTPS://docs.test/guide", URL + "#part", "https://other.test"])

    assert question.urls == (URL, "https://other.test/")


def test_filters_are_canonical() -> None:
    question = searched(source_urls=f"{URL}#part", sites="https://docs.test/", years=2025)

    assert question.filters.source_urls == (URL,)
    assert (question.sites, question.years) == (("docs.test",), (2025,))


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"urls": [f"https://d.test/{n}" for n in range(21)]}, id="too many URLs"),
        pytest.param({"urls": "ftp://d.test/"}, id="no web address"),
        pytest.param({"urls": "not a url"}, id="no address"),
        pytest.param({"expansion_budget": -1}, id="negative budget"),
        pytest.param({"expansion_budget": True}, id="no number"),
        pytest.param({"max_pages": 101}, id="too many pages"),
        pytest.param({"max_pages": -1}, id="negative pages"),
        pytest.param({"top_k": 0}, id="no results"),
        pytest.param({"parts": ["which port", "Which port?"]}, id="one part"),
        pytest.param({"parts": list("abcde")}, id="too many parts"),
        pytest.param({"known_context": "\0"}, id="no character"),
        pytest.param({"constraints": [3]}, id="no text"),
    ],
)
def test_unusable_value_is_refused(values: Any) -> None:
    with pytest.raises(InputError):
        asked(**values)


@pytest.mark.parametrize("value", [5, [5], True])
@pytest.mark.parametrize("name", ["urls", "constraints", "wordings", "parts", "sites", "has"])
def test_value_of_another_type_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InputError):
        asked(**{name: value})


def test_one_constraint_stands_for_a_list_of_one() -> None:
    assert asked(constraints="with code").constraints == ("with code",)


def test_value_that_is_no_question_is_refused_with_the_fields_of_one() -> None:
    with pytest.raises(InputError, match="This is 5; it must be an object with text, wordings, "):
        Question.model_validate(5)


@pytest.mark.parametrize("text", ["", "  ", "x" * 8_001])
def test_text_that_nothing_can_be_found_for_is_left_to_who_looks(text: str) -> None:
    with pytest.raises(InputError, match="The question"):
        check_question(searched(text).text)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"research_mode": "deeep"}, "research_mode is 'deeep'; it must be one of fast, deep."),
        (
            {"retrieval_mode": "all"},
            "retrieval_mode is 'all'; it must be one of chunk, full_context, auto.",
        ),
        (
            {"intent": "howto"},
            "intent is 'howto'; it must be one of factual, comparison, how_to, exploratory.",
        ),
    ],
)
def test_unknown_words_are_refused_by_name(values: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        asked(**values)

    assert str(caught.value) == said


def test_field_that_there_is_not_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match="speed is not known; known are text, wordings, "):
        asked(speed="high")


def test_wordings_are_checked() -> None:
    assert asked(wordings=["", "what?", "a port"]).wordings == ("a port",)
    with pytest.raises(InputError, match="Wording 1 has 600 characters"):
        asked(wordings=["x" * 600])


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        pytest.param({"research_mode": "deep"}, "give a URL", id="deep-without-url"),
        pytest.param({"expansion_budget": 2}, "it needs deep", id="rounds-without-deep"),
        pytest.param(
            {"expansion_budget": 0, "research_mode": "deep", "urls": URL}, "from 1", id="rounds"
        ),
        pytest.param({"years": [999]}, "give years up to", id="year"),
    ],
)
def test_answer_in_sentences_refuses_what_says_nothing(values: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        check_answerable(searched(**values))


def test_methods_show_what_may_be_said_about_a_question() -> None:
    shown = inspect.signature(WebRAG.search).parameters

    assert set(shown) - {"self", "question", "on_progress"} == set(QuestionOptions.__annotations__)
    assert f"top_k: {Question.model_fields['top_k'].description}" in str(WebRAG.search.__doc__)


def test_what_callers_may_say_are_fields_of_a_question() -> None:
    assert set(QuestionOptions.__annotations__) == set(Question.model_fields) - {
        "text", "urls", "stored",
    }  # fmt: skip
