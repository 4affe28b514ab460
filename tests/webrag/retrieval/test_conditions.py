import pytest

from webrag.retrieval.filters import (
    ALWAYS,
    EVERYTHING,
    NEVER,
    NO_FILTERS,
    Condition,
    Scope,
    SearchFilters,
    all_of,
    any_of,
    negated,
)

ONE, TWO = Condition("a = %s", (1,)), Condition("b = %s", (2,))


def test_values_are_named_in_their_order() -> None:
    both = all_of([ONE, any_of([TWO, negated(ONE)])])

    assert both.named("x") == (
        "(a = %(x0)s and (b = %(x1)s or not coalesce(a = %(x2)s, false)))",
        {"x0": 1, "x1": 2, "x2": 1},
    )


def test_nothing_to_hold_always_holds() -> None:
    assert all_of([]) == all_of([ALWAYS, ALWAYS]) == ALWAYS


def test_one_of_nothing_never_holds() -> None:
    assert any_of([]) == NEVER


def test_no_filters_restrict_nothing() -> None:
    assert Scope.of(NO_FILTERS) == EVERYTHING
    assert not EVERYTHING.restricts


@pytest.mark.parametrize(
    ("filters", "of_pages", "of_chunks"),
    [
        (SearchFilters(source_urls=()), True, False),
        (SearchFilters(sites=("a.test",)), True, False),
        (SearchFilters(years=(2025,)), True, False),
        (SearchFilters(has=("code",)), False, True),
        (SearchFilters(years=(2025,), has=("code", "table")), True, True),
    ],
)
def test_filters_restrict_pages_or_chunks(
    filters: SearchFilters, *, of_pages: bool, of_chunks: bool
) -> None:
    scope = Scope.of(filters)

    assert (scope.restricts_pages, scope.restricts_chunks) == (of_pages, of_chunks)


@pytest.mark.parametrize("value", ["x' or true --", "%s", "{pages}", "%(page_0)s"])
def test_no_value_gets_into_the_text(value: str) -> None:
    filters = SearchFilters(source_urls=(value,), sites=(value,))

    assert Scope.of(filters).pages.text == Scope.of(SearchFilters(("u",), ("s",))).pages.text
