import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from webrag.ingestion.firecrawl.source import FirecrawlSource

from .fake_firecrawl import FakeFirecrawl, Fault

URL = "https://docs.test/guide"
MakeSource = Callable[..., FirecrawlSource]


async def test_map_lists_the_pages_of_a_site(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    firecrawl.sites["https://docs.test/"] = [
        {"url": "https://docs.test/a#top", "title": "Page\nA", "description": "About a."},
        {"url": "https://docs.test/b?utm_source=x"},
        "https://docs.test/c",
        {"url": "https://docs.test/a", "title": "again"},
        {"url": "mailto:me@docs.test"},
        {"url": "javascript:alert(1)", "title": "no page"},
    ]

    found = await make_source().map("https://docs.test", limit=50)

    assert [(link.url, link.title, link.description) for link in found] == [
        ("https://docs.test/a", "Page A", "About a."),
        ("https://docs.test/b", "", ""),
        ("https://docs.test/c", "", ""),
    ]


async def test_map_asks_for_no_more_than_wanted(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    firecrawl.sites[URL] = [{"url": f"https://docs.test/{n}"} for n in range(9)]

    found = await make_source().map(URL, search="retry", limit=4)

    body = firecrawl.asked("map")[0].body
    assert (body["limit"], body["search"], body["sitemap"]) == (4, "retry", "include")
    assert len(found) == 4


@pytest.mark.parametrize("body", [{"success": True}, {"success": True, "links": None}])
async def test_map_without_links_is_empty(
    firecrawl: FakeFirecrawl, make_source: MakeSource, body: Any
) -> None:
    firecrawl.queue("map", *[Fault(200, body)] * 3)

    outcome = await asyncio.gather(make_source().map(URL), return_exceptions=True)

    assert outcome == [[]] or "could not be understood" in str(outcome[0])
