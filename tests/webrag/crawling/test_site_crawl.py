from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from webrag.crawling.crawl import _WORKERS, SiteCrawler
from webrag.crawling.report import CrawlOptions, CrawlProgress
from webrag.crawling.sitemap import SitemapReader
from webrag.errors import FetchError, InputError

from .crawl_lab import TREE, CrawlLab, Listed, loop, page


async def test_pages_below_the_start_folder_are_stored(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(TREE)

    report = await crawl_lab.crawl(f"{site}/docs/")

    assert await crawl_lab.stored() == {f"{site}{path}" for path in TREE if path < "/docs~" and
                                        path.startswith("/docs")}  # fmt: skip
    assert (report.pages, report.ended) == ({"indexed": 5}, "complete")


async def test_scope_site_visits_the_start_folder_first(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(TREE)

    await crawl_lab.crawl(f"{site}/docs/", scope="site")

    assert sorted(site.paths) == sorted(TREE)
    assert site.paths.index("/blog/post.html") > site.paths.index("/docs/a.html")


async def test_crawl_is_breadth_first(
    crawl_lab: CrawlLab, static_site: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webrag.crawling.crawl._WINDOW", 4)
    names = [f"{letter}x" for letter in "abcdefghijklmnopqrst"]
    routes = {"/": page("start", *(f"/{name}/" for name in names))}
    for name in names:
        routes[f"/{name}/"] = page(name, f"/{name}/deep")
        routes[f"/{name}/deep"] = page(f"{name} deep")
    site = static_site(routes)

    await crawl_lab.crawl(f"{site}/")

    before = next(place for place, path in enumerate(site.paths) if path.endswith("deep"))
    under_way = _WORKERS - 1
    assert before >= 1 + len(names) - under_way


async def test_page_of_two_addresses_is_reported_as_one(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    same = page("start", "start.html", "a.html")
    site = static_site({"/": same, "/start.html": same, "/a.html": page("a")})

    reports = [await crawl_lab.crawl(f"{site}/") for _ in range(2)]

    assert [each.obtained for each in reports] == [2, 2] == [len(await crawl_lab.stored())] * 2
    assert [each.visited for each in reports] == [3, 3]


async def test_depth_is_a_limit(crawl_lab: CrawlLab, static_site: Callable[..., Any]) -> None:
    site = static_site(TREE)

    await crawl_lab.crawl(f"{site}/docs/", depth=1)

    assert sorted(site.paths) == ["/docs/", "/docs/a.html", "/docs/b.html"]


async def test_max_pages_is_a_limit_and_a_higher_one_goes_on(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(TREE)
    first = await crawl_lab.crawl(f"{site}/docs/", max_pages=2)
    asked = list(site.paths)

    second = await crawl_lab.crawl(f"{site}/docs/", max_pages=5)

    assert (len(asked), first.ended, first.queued > 0) == (2, "limit", True)
    assert (second.pages, second.ended) == ({"stored": 2, "indexed": 3}, "complete")
    assert len(site.paths) == 5


async def test_patterns_choose_pages(crawl_lab: CrawlLab, static_site: Callable[..., Any]) -> None:
    site = static_site(TREE)

    report = await crawl_lab.crawl(f"{site}/docs/", include=("docs/**",), exclude=("b.html",))

    assert "/docs/b.html" not in site.paths
    assert "/docs/sub/d.html" in site.paths
    assert report.skipped["excluded by a pattern"] == 1


async def test_addresses_that_are_no_pages_are_counted_apart(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site({"/docs/": page("start", "/docs/a.png", "/docs/edit", "/docs/b.html")})

    report = await crawl_lab.crawl(f"{site}/docs/", exclude=("b.html",))

    assert (report.left_alone, report.not_pages) == (3, 2)


async def test_bad_pattern_is_refused_before_anything_is_fetched(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(TREE)

    with pytest.raises(InputError, match="include pattern"):
        await crawl_lab.crawl(f"{site}/docs/", include=("^/docs",))

    assert site.requests == []


async def test_nofollow_links_are_not_followed(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site({"/": page("start", "/a", rel="nofollow"), "/a": page("a")})

    await crawl_lab.crawl(f"{site}/")

    assert site.paths == ["/"]


async def test_robots_are_obeyed_and_do_not_count(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(TREE | {"/robots.txt": b"User-agent: *\nDisallow: /docs/a\n"})

    report = await crawl_lab.crawl(f"{site}/docs/")

    assert "/docs/a.html" not in site.paths
    assert (report.skipped["forbidden by robots.txt"], report.failed) == (1, {})


async def test_listed_pages_are_found_without_links(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site({"/": page("start"), "/hidden": page("hidden")})

    await crawl_lab.crawler(Listed(f"{site}/hidden")).crawl(f"{site}/", CrawlOptions())

    assert site.paths == ["/", "/hidden"]


async def test_sitemap_that_only_the_named_page_names_is_read(
    crawl_lab: CrawlLab, make_fetcher: Callable[..., Any], static_site: Callable[..., Any]
) -> None:
    link = '<link rel="sitemap" href="/maps/all.xml">'
    pages = {"/": page("start").replace("<head>", f"<head>{link}"), "/hidden": page("hidden")}
    site = static_site(pages)
    pages["/maps/all.xml"] = f"<urlset><url><loc>{site}/hidden</loc></url></urlset>"
    fetcher = make_fetcher()
    site_list = SitemapReader(fetcher.fetch_bytes, fetcher.declared_sitemaps)

    await SiteCrawler(crawl_lab.lab.acquirer, crawl_lab.database, site_list).crawl(
        f"{site}/", CrawlOptions()
    )

    assert "/hidden" in site.paths


async def test_page_the_site_lists_as_newer_is_asked_about(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site({"/": page("start"), "/old": page("old"), "/new": page("new")})
    now = datetime.now(UTC)
    listed = [Listed(f"{site}/old", now - timedelta(1)), Listed(f"{site}/new", now)]
    await crawl_lab.crawler(*listed).crawl(f"{site}/", CrawlOptions())
    site.requests.clear()
    listed[1] = Listed(f"{site}/new", datetime.now(UTC))

    await crawl_lab.crawler(*listed).crawl(f"{site}/", CrawlOptions())

    assert site.paths == ["/new"]


async def test_redirect_out_of_the_site_is_not_stored(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    other = static_site({"/": page("other", "/more"), "/more": page("more")})
    site = static_site(
        {"/": page("start", "/go"), "/go": lambda _: (302, {"Location": f"{other}/"}, "")}
    )

    report = await crawl_lab.crawl(f"{site}/")

    assert await crawl_lab.stored() == {f"{site}/"}
    assert report.skipped == {"leads outside the crawl": 1}


async def test_start_page_that_redirects_takes_its_folder_along(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(TREE | {"/old/": lambda _: (301, {"Location": "/docs/"}, "")})

    report = await crawl_lab.crawl(f"{site}/old/")

    assert report.obtained == 5


async def test_missing_start_page_is_an_error_and_leaves_no_crawl(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site({})

    for _ in range(2):
        with pytest.raises(FetchError):
            await crawl_lab.crawl(f"{site}/docs/")


async def test_failures_are_counted_by_reason_and_shown_in_status(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(
        {
            "/": page("start", "/gone", "/broken", "/loop/1"),
            "/broken": lambda _: (500, {}, "no"),
            "/loop/1": loop,
            "/loop/2": loop,
        }
    )

    report = await crawl_lab.crawl(f"{site}/")

    failures = (await crawl_lab.lab.corpus.status()).failures
    assert report.failed == {
        "not found (404 or 410)": 1,
        "HTTP 500": 1,
        "redirects without end": 1,
    }
    assert {failure.url: failure.status for failure in failures} == {
        f"{site}/gone": 404,
        f"{site}/broken": 500,
        f"{site}/loop/1": 302,
    }


async def test_progress_tells_done_queued_failed_and_rate(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(TREE | {"/docs/b.html": lambda _: (410, {}, "")})
    seen: list[CrawlProgress] = []

    await crawl_lab.crawler().crawl(f"{site}/docs/", CrawlOptions(), on_progress=seen.append)

    assert (seen[-1].done, seen[-1].queued, seen[-1].failed) == (5, 0, 1)
    assert (seen[0].seconds_left, seen[-1].pages_per_second > 0) == (None, True)
    assert {at.url: at.outcome for at in seen if at.outcome == "failed"} == {
        f"{site}/docs/b.html": "failed"
    }
    assert {(at.reason != "", at.status) for at in seen if at.outcome == "failed"} == {(True, 410)}
    assert len({at.url for at in seen}) == len(seen)
