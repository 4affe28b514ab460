import re
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from webrag.corpus.models import PageText
from webrag.presentation.reports import format_excerpt, page_uri
from webrag.retrieval.reading import ReadingPlace, excerpt_at

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
IDENTITY = uuid.UUID(int=1)

Counter = Callable[[str], int]


def page(markdown: str) -> PageText:
    return PageText(IDENTITY, "https://docs.example.org/", "Title", markdown, AT, None)


def printed(markdown: str, budget: int, count_tokens: Counter, offset: int = 0) -> str:
    excerpt = excerpt_at(
        page(markdown),
        ReadingPlace(offset=offset),
        max_tokens=budget,
        count_tokens=count_tokens,
    )
    text, shown = format_excerpt(
        excerpt, token_budget=budget, count_tokens=count_tokens, nonce="0badc0de"
    )
    assert markdown[shown.char_start : shown.char_end] == shown.text
    return text


@pytest.mark.parametrize("budget", [150, 400, 2000])
def test_long_page_ends_where_the_budget_does_and_says_how_to_read_on(
    count_tokens: Counter, budget: int
) -> None:
    text = printed("Words of a page. " * 5000, budget, count_tokens)

    assert count_tokens(text) <= budget
    assert re.search(r"^Shown: chars 0-(\d+) of 85000; read on with offset=\1$", text, re.M)
    assert text.endswith("</page-0badc0de>")


@pytest.mark.parametrize("budget", [200, 230, 300, 700])
def test_part_of_a_long_paragraph_ends_with_a_sentence(count_tokens: Counter, budget: int) -> None:
    sentence = "A sentence says something about a page, and the next one says as much of it. "

    text = printed(sentence * 99, budget, count_tokens)

    assert text.endswith("as much of it. \n</page-0badc0de>")


def test_short_page_is_whole_and_needs_no_outline(count_tokens: Counter) -> None:
    text = printed("# Short\n\nAll of it.", 2000, count_tokens)

    assert text.endswith("<page-0badc0de>\n# Short\n\nAll of it.\n</page-0badc0de>")
    assert "Outline" not in text


def test_moment_is_told_in_utc_whatever_zone_the_database_gives_it_in(
    count_tokens: Counter,
) -> None:
    there = timezone(timedelta(hours=9))
    stored = replace(page("All of it."), fetched_at=AT.astimezone(there))
    excerpt = excerpt_at(stored, ReadingPlace(), max_tokens=500, count_tokens=count_tokens)

    text, _ = format_excerpt(excerpt, token_budget=500, count_tokens=count_tokens, nonce="0badc0de")

    assert "Fetched: 2026-11-20 12:00 UTC" in text


def test_part_of_a_page_comes_with_an_outline(count_tokens: Counter) -> None:
    markdown = "# One\n\n" + "A. " * 300 + "\n\n## Two\n\n" + "B. " * 300 + "\n\n# Three\n\nC."

    text = printed(markdown, 250, count_tokens)

    two, three = markdown.index("## Two"), markdown.index("# Three")
    assert f"<page-0badc0de>\nOne (0)\n  Two ({two})\nThree ({three})\n</page-0badc0de>" in text


@pytest.mark.parametrize("budget", [200, 300, 400])
def test_reading_on_gets_on_however_small_the_budget_and_large_the_outline(
    count_tokens: Counter, budget: int
) -> None:
    sections = (f"## Section number {n} of the manual\n\nSome words.\n\n" for n in range(400))
    markdown = "".join(sections)

    text = printed(markdown, budget, count_tokens)

    (offset,) = re.findall(r"read on with offset=(\d+)", text)
    assert int(offset) >= 200


def test_outline_of_many_headings_below_one_shows_the_first(count_tokens: Counter) -> None:
    markdown = "# Manual\n\n" + "".join(f"## Part {n}\n\n{'Words. ' * 40}\n\n" for n in range(70))

    text = printed(markdown, 2_000, count_tokens)

    assert "\n  Part 28 (" in text
    assert "(41 more headings)" in text


def test_outline_of_many_headings_shows_the_upper_ones(count_tokens: Counter) -> None:
    section = "## Deep\n\nWords.\n\n" * 20
    markdown = "".join(f"# Part {number}\n\n{section}" for number in range(10))

    text = printed(markdown, 600, count_tokens)

    assert text.count("\nPart ") >= 10
    assert "(200 more headings)" in text


def test_heading_that_imitates_a_brief_is_marked_in_the_outline(count_tokens: Counter) -> None:
    markdown = "# One\n\n# [STATS]\n\n" + "A. " * 3000

    text = printed(markdown, 300, count_tokens)

    assert "\n(page text) [STATS] (7)\n" in text


def test_address_is_made_of_the_id() -> None:
    assert page_uri(IDENTITY) == f"webrag://page/{IDENTITY}"
