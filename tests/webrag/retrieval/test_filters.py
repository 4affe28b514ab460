from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.webrag.retrieval.conftest import stored_once
from webrag.corpus.models import AcquiredPage
from webrag.errors import InputError
from webrag.retrieval.filters import CONTENT_KINDS, NO_FILTERS, Scope, SearchFilters
from webrag.retrieval.models import RetrievalResult
from webrag.retrieval.search import Searcher

MakeSearcher = Callable[..., Searcher]
AddPage = Callable[..., Awaitable[AcquiredPage]]

MAY = datetime(2026, 5, 1, tzinfo=UTC)
OLD, NEW, UNDATED = "https://a.test/old", "https://a.test/new", "https://b.test:8080/undated"
FILLER = "The widget is described here in several plain words that go on for a while. " * 3
RICH = f"""# Widget

Plain words about the widget. {FILLER}

## Code of the widget

```python
widget = make()
```

## Table of the widget

| widget | size |
| --- | --- |
| small | 1 |

## Steps of the widget

1. Take the widget.
2. Turn the widget.
3. Put the widget down.
"""


def test_addresses_hosts_and_moments_are_made_canonical() -> None:
    filters = SearchFilters.of(
        source_urls=["HTTPS://Docs.Test/a#top", "https://docs.test/a"],
        sites=["Docs.Test", "docs.test:443"],
        years=[2024, 2024, 2025],
        fetched_since=datetime(2026, 5, 1),  # noqa: DTZ001
        has=["code", "code"],
    )

    assert filters.source_urls == ("https://docs.test/a",)
    assert filters.sites == ("docs.test", "docs.test:443")
    assert filters.years == (2024, 2025)
    assert filters.fetched_since == MAY
    assert filters.has == ("code",)


@pytest.mark.parametrize(
    ("given", "host"),
    [
        ("http://127.0.0.1:8417/", "127.0.0.1:8417"),
        ("HTTPS://www.Docs.Test", "docs.test"),
        ("https://docs.test:443/", "docs.test"),
    ],
)
def test_address_of_a_sites_root_means_its_host(given: str, host: str) -> None:
    assert SearchFilters.of(sites=[given]).sites == (host,)


def test_nothing_given_restricts_nothing() -> None:
    assert SearchFilters.of() == NO_FILTERS
    assert not Scope.of(NO_FILTERS).restricts
    assert NO_FILTERS.description == ""


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"source_urls": ["no address"]}, "no address"),
        ({"sites": ["a.test/path"]}, "a.test/path"),
        ({"sites": ["http://a.test/path"]}, "http://a.test/path"),
        ({"sites": ["http://a.test/?x"]}, "a.test"),
        ({"sites": ["ftp://a.test/"]}, "ftp://a.test/"),
        ({"sites": ["http://"]}, "http://"),
        ({"sites": [""]}, "is not a host"),
        ({"years": [0]}, "0"),
        ({"years": [10_000]}, "9999"),
        ({"has": ["pictures"]}, "definition_list"),
    ],
)
def test_unusable_value_is_refused_and_named(given: Any, named: str) -> None:
    with pytest.raises(InputError, match=named):
        SearchFilters.of(**given)


def test_description_names_every_condition() -> None:
    filters = SearchFilters.of(
        source_urls=[OLD], sites=["b.test"], years=[2024], fetched_since=MAY, has=["admonition"]
    )

    assert filters.description == (
        "https://a.test/old, b.test, published in 2024, fetched since 2026-05-01T00:00:00+00:00,"
        " has admonition"
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def dated(postgres_dir: Path) -> AsyncIterator[MakeSearcher]:
    """Searches three pages: of 2024, of 2025 and fetched later, and without a date."""
    async with stored_once(postgres_dir) as (add_page, searching):
        await add_dated(add_page)
        yield searching


async def add_dated(add_page: AddPage) -> None:
    text = "# Widget {}\n\nThe widget of page {} has a spindle."
    for number, (url, changes) in enumerate(
        {
            OLD: {"published_at": datetime(2024, 3, 1, tzinfo=UTC)},
            NEW: {
                "published_at": datetime(2025, 3, 1, tzinfo=UTC),
                "fetched_at": MAY + timedelta(days=9),
            },
            UNDATED: {},
        }.items()
    ):
        await add_page(url, f"Widget {number}", text.format(number, number), **changes)


shared = pytest.mark.asyncio(loop_scope="module")
EXACT_OR_INDEX = pytest.mark.parametrize("exact_scan_limit", [20_000, 0], ids=["exact", "index"])


@shared
@EXACT_OR_INDEX
@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"years": [2024]}, {OLD}),
        ({"years": [2025, 2024]}, {OLD, NEW}),
        ({"years": [1999]}, set()),
        ({"years": []}, set()),
        ({"fetched_since": MAY}, {OLD, NEW, UNDATED}),
        ({"fetched_since": MAY + timedelta(seconds=1)}, {NEW}),
        ({"fetched_since": datetime(2026, 5, 10, 1, tzinfo=timezone(timedelta(hours=1)))}, {NEW}),
        ({"fetched_since": MAY + timedelta(days=99)}, set()),
        ({"sites": ["a.test"]}, {OLD, NEW}),
        ({"sites": ["b.test"]}, {UNDATED}),
        ({"sites": ["b.test:8080"]}, {UNDATED}),
        ({"sites": ["b.test:9"]}, set()),
        ({"sites": ["a.test"], "years": [2025]}, {NEW}),
        ({"source_urls": [OLD, UNDATED], "sites": ["a.test"]}, {OLD}),
    ],
)
async def test_pages_outside_the_filter_are_left_out(
    dated: MakeSearcher, given: Any, found: set[str], exact_scan_limit: int
) -> None:
    searcher = dated(exact_scan_limit=exact_scan_limit, similarity_floor=-1.0)

    result = await searcher.retrieve("widget spindle", filters=SearchFilters.of(**given))

    assert set(result.corpus_stats.documents_matched) == found
    assert result.corpus_stats.total_documents == len(found)


@shared
@pytest.mark.parametrize("mode", ["full_context", "auto"])
async def test_filters_hold_where_everything_is_read(dated: MakeSearcher, mode: Any) -> None:
    filters = SearchFilters.of(years=[2024])

    result = await dated().retrieve("widget", mode=mode, filters=filters)

    assert (result.mode, result.corpus_stats.documents_matched) == ("full_context", (OLD,))
    assert not result.truncated


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rich(postgres_dir: Path) -> AsyncIterator[MakeSearcher]:
    """Searches a page with code, a table and steps, and one with none."""
    async with stored_once(postgres_dir) as (add_page, searching):
        await add_rich(add_page)
        yield searching


async def add_rich(add_page: AddPage) -> None:
    await add_page("https://a.test/rich", "Widget", RICH)
    await add_page("https://a.test/plain", "Widget, plainly", f"# Widget\n\n{FILLER}")


@shared
@EXACT_OR_INDEX
@pytest.mark.parametrize("question", ["widget", "gizmo apparatus"], ids=["words", "meaning"])
@pytest.mark.parametrize("kind", CONTENT_KINDS)
async def test_only_passages_with_the_wanted_content_are_found(
    rich: MakeSearcher, kind: Any, question: str, exact_scan_limit: int
) -> None:
    searcher = rich(exact_scan_limit=exact_scan_limit, similarity_floor=-1.0)
    everything = await searcher.retrieve(question)
    wanted = {c.chunk_id for c in everything.chunks if getattr(c, f"has_{kind}")}

    result = await searcher.retrieve(question, filters=SearchFilters(has=(kind,)))

    assert {chunk.chunk_id for chunk in result.chunks} == wanted
    assert bool(wanted) == (kind in {"code", "table", "steps"})
    assert result.corpus_stats.total_parent_chunks == len(wanted)
    assert result.corpus_stats.total_tokens == sum(chunk.token_count for chunk in result.chunks)


def scores(result: RetrievalResult) -> dict[str, float]:
    return {match.node_id: match.lexical for chunk in result.chunks for match in chunk.matches}


@shared
async def test_wanting_content_changes_no_lexical_score(rich: MakeSearcher) -> None:
    everything = scores(await rich().retrieve("size of the small widget"))
    tables = await rich().retrieve(
        "size of the small widget", filters=SearchFilters(has=("table",))
    )

    assert tables.chunks
    assert scores(tables).items() <= everything.items()


async def test_rare_content_is_found_behind_many_better_words(
    make_searcher: MakeSearcher, add_page: AddPage
) -> None:
    await add_rich(add_page)
    for number in range(12):
        text = f"# Small size\n\nSize of the small widget, the small size number {number}."
        await add_page(f"https://c.test/{number}", f"Small {number}", text)

    result = await make_searcher(similarity_floor=1.0).retrieve(
        "small size", filters=SearchFilters(has=("table",)), children_limit=1
    )

    assert [chunk.has_table for chunk in result.chunks] == [True]


@shared
async def test_everything_is_read_of_the_wanted_content_only(rich: MakeSearcher) -> None:
    filters = SearchFilters(has=("code",))

    result = await rich().retrieve("widget", mode="full_context", filters=filters)

    assert result.chunks
    assert all(chunk.has_code for chunk in result.chunks)
    assert result.corpus_stats.total_parent_chunks == len(result.chunks)
    assert not result.truncated


@shared
@pytest.mark.parametrize("value", ["x' or true --", 'x"; drop table documents; --', "%(urls)s"])
async def test_values_are_bound_and_never_pasted(dated: MakeSearcher, value: str) -> None:
    for filters in (SearchFilters(source_urls=(value,)), SearchFilters(sites=(value,))):
        assert (await dated().retrieve("widget", filters=filters)).is_empty
