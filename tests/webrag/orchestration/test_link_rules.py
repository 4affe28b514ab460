from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.orchestration.links.rules import (
    FailureKind,
    Frontier,
    LinkScope,
    anchor_of,
    path_words,
    penalty,
    silent_sites,
    skip_reason,
    weakest_followed,
    worth_now,
)
from webrag.orchestration.models import NextLink

SEEDS = ["https://www.docs.test/guide/start.html", "http://127.0.0.1:8000/"]


@pytest.mark.parametrize(
    ("kind", "url", "admitted"),
    [
        ("same_site", "https://docs.test/other", True),
        ("same_site", "https://www.docs.test/other", True),
        ("same_site", "http://127.0.0.1:8000/page", True),
        ("same_site", "http://127.0.0.1:8001/page", False),
        ("same_site", "https://api.docs.test/", False),
        ("same_site", "https://else.test/", False),
        ("allow_list", "https://docs.test/other", True),
        ("allow_list", "https://allowed.test/x", True),
        ("allow_list", "https://deep.allowed.test:8443/x", True),
        ("allow_list", "https://notallowed.test/x", False),
        ("any", "https://else.test/", True),
    ],
)
def test_scope_admits(kind: Any, url: str, admitted: Any) -> None:
    scope = LinkScope.of(kind, SEEDS, ["www.Allowed.test"])

    assert scope.admits(url) is admitted


def test_stored_pages_of_the_seeds_sites_are_in_scope() -> None:
    assert LinkScope.of("same_site", SEEDS).stored_sites == ("127.0.0.1:8000", "docs.test")


def test_allow_list_adds_its_hosts_to_the_stored_sites() -> None:
    scope = LinkScope.of("allow_list", SEEDS[:1], ["allowed.test"])

    assert scope.stored_sites == ("allowed.test", "docs.test")


def test_scope_any_restricts_no_stored_page() -> None:
    assert LinkScope.of("any", SEEDS).stored_sites is None


@pytest.mark.parametrize(
    "url",
    [
        "https://d.test/logo.png",
        "https://d.test/release.tar.gz",
        "https://d.test/manual.PDF",
        "https://d.test/style.css?v=3",
        "mailto:someone@d.test",
        "https://d.test/login",
        "https://d.test/user/logout/",
        "https://d.test/wiki?title=A&action=edit",
        "https://d.test/wiki?title=A&oldid=17",
        "https://d.test/cart",
    ],
)
def test_target_that_can_hold_no_answer_is_skipped_with_a_reason(url: str) -> None:
    assert skip_reason(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://d.test/",
        "https://d.test/login.html",
        "https://d.test/std/macro.print.html",
        "https://d.test/v1.2/notes",
        "https://d.test/guide/edit-files",
        "https://d.test/page?id=3",
        "https://d.test/a.b/c",
    ],
)
def test_page_is_not_skipped(url: str) -> None:
    assert skip_reason(url) is None


@pytest.mark.parametrize(
    ("url", "factor"),
    [
        ("https://d.test/guide.html", 1.0),
        ("https://d.test/genindex.html", 0.5),
        ("https://d.test/search?q=x", 0.5),
        ("https://d.test/page/history", 0.5),
        ("https://d.test/tags/python", 0.5),
        ("https://d.test/git-history-of-time", 1.0),
        ("https://d.test/api/src-html/org/x/Streams.html", 0.25),
        ("https://d.test/_modules/x/streams.html", 0.25),
        ("https://d.test/a00089_source.html", 0.25),
        ("https://d.test/list_8h_source.html", 0.25),
        ("https://d.test/installing_from_source.html", 1.0),
    ],
)
def test_listings_histories_and_code_count_less(url: str, factor: Any) -> None:
    assert penalty(url) == factor


@pytest.mark.parametrize(
    ("title", "anchor"),
    [
        ("Replication  lag", "Replication lag"),
        ("Next »", ""),
        ("here", ""),
        ("Read more...", ""),
        ("→", ""),
        ("", ""),
        ("Next steps", "Next steps"),
    ],
)
def test_generic_anchor_says_nothing(title: Any, anchor: Any) -> None:
    assert anchor_of(title) == anchor


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://d.test/guide/replica_lag-limits.html", "guide replica lag limits"),
        ("https://d.test/a%20b/c.d", "a b c d"),
        ("https://d.test/", ""),
        ("https://d.test/v1.2/", "v1 2"),
    ],
)
def test_path_words(url: str, words: Any) -> None:
    assert path_words(url) == words


@pytest.mark.parametrize(
    ("scores", "rounds_left", "count"),
    [
        pytest.param([0.8, 0.7, 0.2, 0.19, 0.1], 2, 3, id="down to a quarter of the best"),
        pytest.param([0.8, 0.1, 0.1], 2, 1, id="one stands out"),
        pytest.param([0.8, 0.1, 0.1], 1, 3, id="nothing waits in the last round"),
        pytest.param([0.14, 0.01, 0.0], 3, 3, id="none stands out"),
        pytest.param([0.0, 0.0], 3, 2, id="all score nothing"),
        pytest.param([], 3, 1, id="no links"),
    ],
)
def test_links_far_below_the_best_wait_for_a_later_round(
    scores: list[float], rounds_left: int, count: int
) -> None:
    assert worth_now(scores, 5, rounds_left=rounds_left) == count


@pytest.mark.parametrize(("rounds_left", "count"), [(3, 4), (1, 50)])
def test_two_links_are_tried_for_each_page_while_rounds_are_left(
    rounds_left: int, count: int
) -> None:
    assert worth_now([0.5] * 50, 2, rounds_left=rounds_left) == count


def test_site_is_silent_after_three_requests_without_an_answer() -> None:
    asked = [f"https://a.test/{n}" for n in range(3)] + ["https://b.test/1", "https://b.test/2"]
    failures: dict[str, FailureKind] = dict.fromkeys(asked, "cut off")
    failures |= dict.fromkeys((f"https://c.test/{n}" for n in range(3)), "dead")

    assert silent_sites(failures) == {"a.test"}


@given(
    st.tuples(st.floats(0, 1), st.floats(0, 100), st.integers(0, 100)),
    st.tuples(st.floats(0, 1), st.floats(0, 100), st.integers(0, 100)),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_a_link_must_promise_the_more_the_surer_a_run_and_the_dearer_more_and_vainer_its_pages(
    given: Any, more: Any, in_vain: float, further: float
) -> None:
    confidence, page_s, pages = (a + b for a, b in zip(given, more, strict=True))

    least = weakest_followed(*given, in_vain)
    most = weakest_followed(min(confidence, 1.0), page_s, pages, in_vain * further)
    assert 0 < least <= most * (1 + 1e-9) <= 1 + 1e-9


def test_a_link_must_promise_twice_as_much_after_twice_as_many_pages() -> None:
    assert weakest_followed(0.5, 1.0, 16, 1.0) == 2 * weakest_followed(0.5, 1.0, 8, 1.0)
    assert weakest_followed(0.5, 1.0, 0, 1.0) == weakest_followed(0.5, 1.0, 5, 1.0)


def test_evidence_is_the_surer_the_likelier_pages_were_that_brought_nothing_better() -> None:
    # Of .5 for what was found and .5 for another page, .25 is left where half of that was read.
    assert weakest_followed(0.5, 1.0, 0, 0.5) == pytest.approx(weakest_followed(2 / 3, 1.0, 0, 1.0))
    assert weakest_followed(0.0, 1.0, 0, 0.5) == weakest_followed(0.0, 1.0, 0, 1.0)


def candidate(name: str, score: float, **values: Any) -> NextLink:
    return NextLink(f"https://d.test/{name}", "", None, "https://d.test/", score, **values)


def test_links_of_the_named_page_come_before_those_of_the_sites_map() -> None:
    of_map = [candidate(f"m{n}", 0.9, found_in="the site's search index") for n in range(5)]
    deeper = [candidate("deeper", 0.3, depth=2)]
    own = [*(candidate(f"own{n}", 0.3) for n in range(3)), candidate("far below", 0.2)]
    moved = Frontier((*of_map, *deeper, *own)).own_first(5)

    assert [each.url[15:] for each in moved.candidates[:4]] == ["own0", "own1", "own2", "m0"]
    assert len(moved.candidates) == 10


def test_links_of_a_named_index_keep_their_order() -> None:
    own = [candidate(f"own{n}", 0.2) for n in range(11)]
    frontier = Frontier((candidate("m", 0.9, found_in="the site's search index"), *own))

    assert frontier.own_first(5) == frontier
