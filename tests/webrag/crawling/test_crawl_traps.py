import random
from collections.abc import Iterator
from itertools import repeat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webrag.crawling.traps import TrapGuard, TrapLimits

SITE = "https://site.test"


@pytest.fixture
def guard() -> TrapGuard:
    return TrapGuard(TrapLimits.for_pages(200))


def admitted(guard: TrapGuard, paths: list[str]) -> int:
    return sum(guard.admit(SITE + path, 1) is None for path in paths)


@pytest.mark.parametrize(
    ("name", "paths", "most"),
    [
        ("facets", [f"/shop?color={n}&size={n * 7}" for n in range(5_000)], 25),
        ("key sets", [f"/shop?{chr(97 + n % 26)}{chr(97 + n // 26)}=1" for n in range(600)], 12),
        ("endless", ["/" + "a/" * n for n in range(1, 500)], 2),
        ("cycle", ["/" + "a/b/" * n for n in range(1, 500)], 2),
        ("slashes", ["/x" + "/" * n + "y" for n in range(1, 500)], 3),
        ("deep", ["/" + "/".join(f"d{chr(97 + i)}" for i in range(n)) for n in range(1, 26)], 16),
        ("tree", [f"/{chr(97 + n % 26)}/{chr(97 + n // 26)}/c/d/e/f/g/h" for n in range(600)], 50),
        ("parameters", ["/x?" + "&".join(f"p{i}=1" for i in range(n)) for n in range(1, 99)], 6),
    ],
)  # fmt: skip
def test_trap_ends_under_its_cap(guard: TrapGuard, name: str, paths: list[str], most: int) -> None:
    random.Random(3).shuffle(paths)

    assert 0 < admitted(guard, paths) <= most


def test_links_do_not_lead_on_without_end(guard: TrapGuard) -> None:
    assert guard.admit(f"{SITE}/x", 50) is None
    assert "links from the start page" in (guard.admit(f"{SITE}/x", 51) or "")


def test_pages_with_names_have_no_cap(guard: TrapGuard) -> None:
    words = [f"/guide/{a}{b}{c}" for a in "abcdefgh" for b in "ijklmnop" for c in "qrstuvwxyz"]

    assert admitted(guard, words) == len(words)


def test_articles_below_dates_have_no_cap(guard: TrapGuard) -> None:
    names = [chr(97 + n % 26) * (1 + n // 26) for n in range(300)]
    paths = [f"/2026/{1 + n % 12}/{name}" for n, name in enumerate(names)]

    assert admitted(guard, paths) == len(paths)


SERIES = {
    "calendar": [f"/cal/{y}/{m}" for y in range(2000, 2100) for m in range(1, 13)],
    "numbers": [f"/item/{n}" for n in range(1_000)],
    "hex ids": [f"/s/{n:012x}a1/page" for n in range(1_000)],
    "query": [f"/view?r={n}x" for n in range(1_000)],
    "random query": [f"/view?r={chr(97 + n % 26)}{n:b}" for n in range(999)],
}


def visited(guard: TrapGuard, paths: list[str], signatures: Iterator[int]) -> int:
    count = 0
    for path in paths:
        if guard.begin(SITE + path) is None:
            count += 1
            guard.note_obtained(SITE + path, next(signatures))
            guard.note_obtained(SITE + f"/good/{count}x{path.count('/')}", None, words=count)
    return count


@pytest.mark.parametrize("name", SERIES)
def test_series_that_says_the_same_ends(guard: TrapGuard, name: str) -> None:
    assert visited(guard, SERIES[name], repeat(12345)) <= 54


@pytest.mark.parametrize("name", SERIES)
def test_series_that_says_something_new_goes_on(guard: TrapGuard, name: str) -> None:
    chosen = random.Random(5)
    new = iter(lambda: chosen.getrandbits(64), None)

    assert visited(guard, SERIES[name], new) == len(SERIES[name])


def test_short_pages_of_a_series_are_told_apart_by_their_words(guard: TrapGuard) -> None:
    for number in range(200):
        assert guard.begin(f"{SITE}/n{number}.html") is None
        guard.note_obtained(f"{SITE}/n{number}.html", None, words=number)


def test_series_beyond_its_share_may_wait(guard: TrapGuard) -> None:
    for number in range(100):
        assert not guard.may_wait(f"{SITE}/n{number}.html")
        guard.begin(f"{SITE}/n{number}.html")
        guard.note_obtained(f"{SITE}/n{number}.html", None, words=number)

    assert guard.may_wait(f"{SITE}/n100.html")
    assert not guard.may_wait(f"{SITE}/name.html")


def test_released_page_may_be_admitted_again() -> None:
    guard = TrapGuard(TrapLimits(waiting=1))
    guard.admit(f"{SITE}/item/1", 1)
    guard.release(f"{SITE}/item/1")

    assert guard.admit(f"{SITE}/item/2", 1) is None
    assert guard.admit(f"{SITE}/item/3", 1) is not None


def test_folder_of_failures_is_closed_and_its_neighbours_are_not(guard: TrapGuard) -> None:
    for name in "abcdefghijklmnopqrst":
        guard.note_failed(f"{SITE}/maze/{name}")

    assert "failed" in (guard.closed(f"{SITE}/maze/zz") or "")
    assert guard.closed(f"{SITE}/maze/deeper/zz") is None
    assert guard.closed(f"{SITE}/guide/zz") is None


def test_tree_of_failures_is_closed(guard: TrapGuard) -> None:
    for a in "abcdefghij":
        for b in "klmn":
            guard.note_failed(f"{SITE}/maze/{a}{b}/{b}{a}/x")

    assert guard.closed(f"{SITE}/maze/zz/yy/x") is not None
    assert guard.closed(f"{SITE}/guide/zz") is None


def test_page_that_is_found_starts_the_count_again(guard: TrapGuard) -> None:
    for _ in range(5):
        for name in "abcdefghijklmno":
            guard.note_failed(f"{SITE}/maze/{name}")
        guard.note_obtained(f"{SITE}/maze/good", None)

    assert guard.closed(f"{SITE}/maze/zz") is None


def test_pages_that_say_the_same_close_their_folder(guard: TrapGuard) -> None:
    for name in "abcdefghijklm":
        guard.note_obtained(f"{SITE}/soft/{name}", 12345)

    assert "said the same" in (guard.closed(f"{SITE}/soft/zz") or "")
    assert guard.admit(f"{SITE}/soft/zz", 1) is not None


def test_aliases_of_pages_close_their_folder(guard: TrapGuard) -> None:
    for name in "abcdefghijklm":
        guard.note_obtained(f"{SITE}/r/{name}", None, is_alias=True)

    assert guard.closed(f"{SITE}/r/zz") is not None


def test_short_pages_are_not_taken_for_each_other(guard: TrapGuard) -> None:
    for name in "abcdefghijklmnopqrstuvwxyz":
        guard.note_obtained(f"{SITE}/stubs/{name}", None)

    assert guard.closed(f"{SITE}/stubs/zz") is None


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_site_made_of_a_few_names_and_numbers_never_uses_up_a_crawl(seed: int) -> None:
    guard = TrapGuard(TrapLimits.for_pages(200))
    chosen = random.Random(seed)
    names = ["a", "b", "c", "7", "2026", "11"]
    paths = []
    for _ in range(3_000):
        path = "/" + "/".join(chosen.choices(names, k=chosen.randrange(1, 30)))
        query = "&".join(f"{chosen.choice('pqr')}={chosen.randrange(99)}" for _ in range(3))
        paths.append(path + (f"?{query}" if chosen.random() < 0.5 else ""))

    assert admitted(guard, paths) < 2_000


def test_memory_is_bounded_whatever_fails() -> None:
    guard = TrapGuard(TrapLimits())
    for number in range(30_000):
        name = "".join(chr(97 + int(digit)) for digit in str(number))
        guard.note_failed(f"{SITE}/{name}/{name[::-1]}/x")

    assert len(guard._folders) <= 2_000
