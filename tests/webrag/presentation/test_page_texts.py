import uuid
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from webrag.corpus.texts import PageText
from webrag.presentation.reports import format_page, page_uri, passage_uri

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
IDENTITY = uuid.UUID(int=1)

Counter = Callable[[str], int]


def page(markdown: str) -> PageText:
    return PageText(IDENTITY, "https://docs.example.org/", "Title", markdown, AT, None)


@pytest.mark.parametrize("budget", [150, 400, 2000])
def test_long_page_ends_where_the_budget_does_and_says_so(
    count_tokens: Counter, budget: int
) -> None:
    text = format_page(
        page("Words of a page. " * 5000),
        token_budget=budget,
        count_tokens=count_tokens,
        nonce="0badc0de",
    )

    assert count_tokens(text) <= budget
    assert "of 85,000; the response budget ends there" in text
    assert text.endswith("</page-0badc0de>")


def test_short_page_is_whole(count_tokens: Counter) -> None:
    text = format_page(
        page("# Short\n\nAll of it."),
        token_budget=2000,
        count_tokens=count_tokens,
        nonce="0badc0de",
    )

    assert text.endswith("<page-0badc0de>\n# Short\n\nAll of it.\n</page-0badc0de>")


def test_addresses_are_made_of_ids() -> None:
    assert page_uri(IDENTITY) == f"webrag://page/{IDENTITY}"
    assert passage_uri(IDENTITY) == f"webrag://passage/{IDENTITY}"
