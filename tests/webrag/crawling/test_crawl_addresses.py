import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.crawling.traps import (
    is_calendar,
    places,
    url_pattern,
    varies,
    without_session,
)

SITE = "https://site.test"


@pytest.mark.parametrize(
    ("path", "clean"),
    [
        ("/a;jsessionid=1A2B3C?x=1", "/a?x=1"),
        ("/a?PHPSESSID=abc&x=1", "/a?x=1"),
        ("/a?x=1&sid=8f3b2c9d7e6a5f41", "/a?x=1"),
        ("/a?sid=8f3b2c9d7e6a5f41", "/a"),
        ("/(S(lit3py55t21z5v55vlm25s55))/page.aspx", "/page.aspx"),
        ("/a?s=search+words", "/a?s=search+words"),
        ("/a?sid=12", "/a?sid=12"),
        ("/a?ASPSESSIONIDQQRR=X", "/a"),
        ("/a", "/a"),
    ],
)
def test_session_ids_are_dropped_and_nothing_else(path: str, clean: str) -> None:
    assert without_session(SITE + path) == SITE + clean


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/cal/2026/11", "/cal/1999/2"),
        ("/item/8f3b2c9d", "/item/0a1b2c3d4e"),
        ("/x/123e4567-e89b-12d3-a456-426614174000", "/x/00000000-e89b-12d3-a456-426614174fff"),
        ("/list?page=2", "/list?page=31"),
        ("/list?a=1&b=2", "/list?b=7&a=9"),
        ("/t/Xy12345678901234567890ab", "/t/Ab98765432109876543210xy"),
    ],
)
def test_addresses_a_program_counts_up_share_a_pattern(one: str, other: str) -> None:
    assert url_pattern(SITE + one) == url_pattern(SITE + other)
    assert varies(SITE + one)


@pytest.mark.parametrize("path", ["/install", "/guide/feedback", "/a/decade?tab=code", "/caffe"])
def test_words_are_no_pattern(path: str) -> None:
    assert not varies(SITE + path)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/cal/2026/11", True),
        ("/cal/2026/11/05/", True),
        ("/cal/2026-11", True),
        ("/2026/11/how-to-install", False),
        ("/rfc/9110", False),
        ("/issues/2026/33", False),
    ],
)
def test_calendar_is_told_from_articles_with_a_date(path: str, expected: bool) -> None:
    assert is_calendar(SITE + path) is expected


def test_places_are_the_folder_and_everything_above() -> None:
    assert places(f"{SITE}/a/2/page") == [
        (False, "/a/#/"), (True, "/"), (True, "/a/"), (True, "/a/#/"),
    ]  # fmt: skip


@given(st.text(alphabet="abc019;=/?&.-%", max_size=60))
def test_cleaning_twice_changes_nothing_more(tail: str) -> None:
    once = without_session(f"{SITE}/{tail}")

    assert without_session(once) == once or len(without_session(once)) < len(once)
    assert once.startswith(SITE)
