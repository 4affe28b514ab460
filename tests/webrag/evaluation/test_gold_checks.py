from pathlib import Path
from typing import Any

import pytest

from webrag.evaluation.metrics import VisiblePages, gold_warnings
from webrag.evaluation.questions import Question


@pytest.fixture
def pages(site_folder: Path) -> dict[str, VisiblePages | None]:
    return {"bakery": VisiblePages(site_folder)}


def question(id: str, *gold: Any) -> Question:
    return Question.model_validate({"id": id, "query": "?", "site": "bakery", "gold": gold})


RIGHT = {"page": "leaven.html", "quote": "every **twelve** hours"}
WRONG = {"page": "oven.html", "quote": "every twelve hours"}


def test_quotation_that_is_not_on_its_page_is_named(pages: Any) -> None:
    asked = [question("good", RIGHT), question("bad", RIGHT, WRONG)]

    (warning,) = gold_warnings(asked, pages)

    assert warning == (
        "1 of 3 gold quotations do not stand on the page they name and may count as missed, for"
        " example of bad: 'every twelve hours' on 'oven.html'. Check words and page of: bad."
    )


def test_quotation_that_stands_on_its_page_is_not_warned_about(pages: Any) -> None:
    assert gold_warnings([question("good", RIGHT)], pages) == []


def test_page_with_a_leading_slash_is_the_same_page(pages: Any) -> None:
    assert gold_warnings([question("good", {**RIGHT, "page": "/leaven.html"})], pages) == []


def test_alternative_that_stands_on_its_page_is_enough(pages: Any) -> None:
    assert gold_warnings([question("good", {**WRONG, "alts": [RIGHT]})], pages) == []


def test_site_known_from_the_network_only_is_not_checked() -> None:
    assert gold_warnings([question("bad", WRONG)], {"bakery": None}) == []


def test_questions_without_any_gold_get_a_hint() -> None:
    (warning,) = gold_warnings([Question(id="a", query="?")], {})

    assert "No question has 'gold'" in warning


def test_empty_gold_is_gold_and_gets_no_hint(pages: Any) -> None:
    assert gold_warnings([question("hopeless")], pages) == []
