import asyncio
import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from webrag.errors import FetchError, InputError
from webrag.indexing.crawl_state import CrawlState
from webrag.indexing.database import Database
from webrag.orchestration.crawl_models import CrawlOptions, CrawlProgress
from webrag.orchestration.site_crawl import SiteCrawler

WORDS = ["node", "replica", "volume", "primary", "log", "lag", "retry", "quorum", "lease", "shard"]


class Listed(NamedTuple):
    url: str
    lastmod: datetime | None = None


class SiteList:
    """A sitemap that is already read."""

    def __init__(self, *pages: Listed) -> None:
        self.pages = pages

    async def entries(self, start_url: str, *, limit: int) -> list[Listed]:
        assert start_url
        return list(self.pages)[:limit]


class CrawlLab(NamedTuple):
    lab: Any
    state: CrawlState

    def crawler(self, *listed: Listed) -> SiteCrawler:
        return SiteCrawler(self.lab.acquirer, self.state, SiteList(*listed) if listed else None)

    async def crawl(self, url: str, **options: Any) -> Any:
        return await self.crawler().crawl(url, CrawlOptions(**options))

    async def stored(self) -> set[str]:
        status = await self.lab.corpus.status()
        return {page.url for page in status.pages}


@pytest.fixture
def crawl_lab(lab: Any, database: Database) -> CrawlLab:
    return CrawlLab(lab, CrawlState(database))


def page(title: str, *links: str, rel: str = "") -> str:
    words = random.Random(title)
    text = " ".join(words.choices(WORDS, k=60))
    anchors = "".join(f'<li><a rel="{rel}" href="{link}">next</a></li>' for link in links)
    return (
        f"<html><head><title>{title}</title></head><body><main><h1>{title}</h1>"
        f"<p>About {title}. {text}.</p><ul>{anchors}</ul></main></body></html>"
    )


TREE = {
    "/docs/": page("start", "a.html", "b.html", "/blog/", "https://other.test/x", "pic.zip"),
    "/docs/a.html": page("a", "sub/c.html", "b.html"),
    "/docs/b.html": page("b", "/docs/"),
    "/docs/sub/c.html": page("c", "d.html"),
    "/docs/sub/d.html": page("d"),
    "/blog/": page("blog", "post.html"),
    "/blog/post.html": page("post"),
}


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


async def test_crawl_is_breadth_first(crawl_lab: CrawlLab, static_site: Callable[..., Any]) -> None:
    names = [f"{chr(97 + n)}x" for n in range(10)]
    routes = {"/": page("start", *(f"/{name}/" for name in names))}
    for name in names:
        routes[f"/{name}/"] = page(name, f"/{name}/deep")
        routes[f"/{name}/deep"] = page(f"{name} deep")
    site = static_site(routes)

    await crawl_lab.crawl(f"{site}/")

    shallow = [place for place, path in enumerate(site.paths) if not path.endswith("deep")]
    assert shallow == list(range(11))


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


async def test_known_page_whose_site_says_not_found_with_status_200_keeps_its_text(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    pages = {"/": page("start", "/a"), "/a": page("a")}
    site = static_site(pages)
    await crawl_lab.crawl(f"{site}/")
    pages["/a"] = (
        "<html><head><title>Page not found</title></head><body><main><h1>Page not found</h1>"
        "<p>The page you are looking for does not exist.</p></main></body></html>"
    )

    report = await crawl_lab.crawl(f"{site}/", refresh=True)

    status = await crawl_lab.lab.corpus.status()
    assert report.failed == {"not found, although answered as if it were": 1}
    assert await crawl_lab.stored() == {f"{site}/", f"{site}/a"}
    assert status.gone == 0
    assert "About a." in (await crawl_lab.lab.corpus.markdown(f"{site}/a") or "")


async def test_repeating_a_crawl_of_fresh_pages_makes_no_request(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(TREE)
    await crawl_lab.crawl(f"{site}/docs/")
    site.requests.clear()

    report = await crawl_lab.crawl(f"{site}/docs/")

    assert (report.pages, site.paths) == ({"stored": 5}, [])


async def test_refresh_costs_one_conditional_request_a_page_and_no_embedding(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(TREE, validators=True)
    await crawl_lab.crawl(f"{site}/docs/")
    site.requests.clear()

    report = await crawl_lab.crawl(f"{site}/docs/", refresh=True)

    pages = [request for request in site.requests if request.path != "/robots.txt"]
    assert len(pages) == 5
    assert all("if-none-match" in request.headers for request in pages)
    assert (report.pages, report.chunks_embedded) == ({"unchanged": 5}, 0)


async def test_refresh_finds_changed_new_and_gone_pages(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    routes: dict[str, Any] = {
        "/": page("start", "/a", "/b"), "/a": page("a"), "/b": page("b"),
    }  # fmt: skip
    site = static_site(routes)
    await crawl_lab.crawl(f"{site}/")
    routes |= {"/": page("start", "/a", "/b", "/c"), "/c": page("c")}
    del routes["/b"]

    report = await crawl_lab.crawl(f"{site}/", refresh=True)

    status = await crawl_lab.lab.corpus.status()
    assert report.pages == {"updated": 1, "unchanged": 1, "indexed": 1}
    assert (status.documents, status.gone) == (3, 1)
    assert status.outcomes == {"gone": 1, "indexed": 1, "unchanged": 1, "updated": 1}


async def test_interrupted_crawl_goes_on_without_asking_again(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    names = [f"/p{chr(97 + n)}{chr(97 + m)}" for n in range(5) for m in range(8)]
    site = static_site({"/": page("start", *names)} | {name: page(name) for name in names})
    reached = asyncio.Event()

    def stop_later(progress: CrawlProgress) -> None:
        if progress.done >= 12:
            reached.set()

    options = CrawlOptions(refresh=True)
    running = asyncio.create_task(
        crawl_lab.crawler().crawl(f"{site}/", options, on_progress=stop_later)
    )
    await reached.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    stored = await crawl_lab.stored()
    before = len(site.paths)

    report = await crawl_lab.crawler().crawl(f"{site}/", options)

    assert report.resumed
    assert report.ended == "complete"
    assert await crawl_lab.stored() == {f"{site}{name}" for name in ["/", *names]}
    assert len(site.paths) - before <= 41 - len(stored)


async def test_cancelled_crawl_leaves_no_task_and_no_connection(
    crawl_lab: CrawlLab, static_site: Callable[..., Any], database: Database
) -> None:
    site = static_site(endless_site())
    before = asyncio.all_tasks()
    for turn in range(12):
        running = asyncio.create_task(crawl_lab.crawl(f"{site}/", max_pages=1_000))
        await asyncio.sleep(0.05 + 0.03 * turn)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    assert {task for task in asyncio.all_tasks() - before if "pool" not in task.get_name()} == set()
    async with asyncio.timeout(5):
        await asyncio.gather(*(crawl_lab.state.queued(0) for _ in range(10)))


async def test_finished_crawl_leaves_no_queue_behind(
    crawl_lab: CrawlLab, static_site: Callable[..., Any], database: Database
) -> None:
    site = static_site(TREE)

    await crawl_lab.crawl(f"{site}/docs/", max_pages=3)

    options = CrawlOptions(max_pages=3)
    assert not (await crawl_lab.state.begin(options.key(f"{site}/docs/"))).is_resumed


async def test_site_that_stops_answering_ends_the_crawl_and_is_tried_again_later(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    names = [f"/x{chr(97 + n)}/{chr(97 + m)}" for n in range(10) for m in range(5)]
    down = True

    def answer(request: Any) -> tuple[int, Mapping[str, str], str]:
        return (
            (500, {}, "down") if down else (200, {"Content-Type": "text/html"}, page(request.path))
        )

    site = static_site({"/": page("start", *names)} | dict.fromkeys(names, answer))
    first = await crawl_lab.crawl(f"{site}/")
    asked = len(site.paths)
    down = False

    second = await crawl_lab.crawl(f"{site}/")

    assert (first.ended, asked < 40) == ("unreachable", True)
    assert (second.ended, second.resumed) == ("complete", True)
    assert len(await crawl_lab.stored()) == 51


async def test_progress_tells_done_queued_failed_and_rate(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(TREE | {"/docs/b.html": lambda _: (410, {}, "")})
    seen: list[CrawlProgress] = []

    await crawl_lab.crawler().crawl(f"{site}/docs/", CrawlOptions(), on_progress=seen.append)

    assert (seen[-1].done, seen[-1].queued, seen[-1].failed) == (5, 0, 1)
    assert seen[-1].pages_per_second > 0


async def test_two_processes_may_crawl_one_site(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(TREE)

    await asyncio.gather(*(crawl_lab.crawl(f"{site}/docs/") for _ in range(3)))

    assert len(await crawl_lab.stored()) == 5


def endless_site() -> dict[str, Any]:
    """Every path answers with links to paths never seen before."""

    class Endless(dict[str, Any]):
        def get(self, path: Any, *_: Any) -> Any:
            chosen = random.Random(str(path))
            names = ["".join(chosen.choices("abcdefghij", k=12)) for _ in range(8)]
            return None if path == "/robots.txt" else page(str(path), *(f"/{n}" for n in names))

    return Endless()


def answering(body: Callable[[Any], str], status: int = 200) -> Callable[[Any], Any]:
    return lambda request: (status, {"Content-Type": "text/html; charset=utf-8"}, body(request))


def name_of(seed: object, count: int = 10) -> str:
    return "".join(random.Random(str(seed)).choices("abcdefghijklmnopqrstuvwxyz", k=count))


def month(request: Any) -> str:
    year, at = (int(part) for part in request.path.strip("/").split("/")[1:])
    later = f"/cal/{year + at // 12}/{at % 12 + 1}"
    sooner = f"/cal/{year - (at == 1)}/{(at - 2) % 12 + 1}"
    return page("calendar", later, sooner, f"{later}?m=+1")


def session_page(request: Any) -> str:
    sid = f"{random.Random(request.path + request.query).getrandbits(96):024x}"
    shown = request.path.rsplit("/", 1)[-1]
    return page(shown, *(f"/s/{sid}/{name}?sid={sid}" for name in ("one", "two", "three")))


def soft_404(request: Any) -> str:
    text = "This is not the page that was looked for, but one of those may help you on. " * 5
    links = "".join(f'<a href="/soft/{name_of((request.path, n))}">see</a> ' for n in range(4))
    return f"<html><body><main><h1>Hm</h1><p>{text}</p><p>{links}</p></main></body></html>"


def facets(request: Any) -> str:
    values = {name: random.Random(name + request.query).randrange(50) for name in "abcd"}
    links = [f"/shop?{name}={value}&sort={value % 3}" for name, value in values.items()]
    return page(f"shop {request.query}", *links, f"/shop?{request.query}&page=2")


def branches(request: Any) -> str:
    return page(request.path, *(f"{request.path}/{name_of((request.path, n))}" for n in "xy"))


def random_queries(request: Any) -> str:
    return page("q", *(f"/q?r={name_of((request.query, n))}" for n in range(5)))


def endless(request: Any) -> str:
    return page(request.path, request.path + "/a", "a/", "./a/a")


def chain(request: Any) -> tuple[int, Mapping[str, str], str]:
    return 302, {"Location": f"/chain/{int(request.path[7:]) + 1}"}, ""


def loop(request: Any) -> tuple[int, Mapping[str, str], str]:
    return 302, {"Location": "/loop/2" if request.path == "/loop/1" else "/loop/1"}, ""


# Where each begins, what it answers, and the requests it may cost.
TRAPS: dict[str, tuple[str, Callable[[Any], Any], int]] = {
    "calendar": ("/cal/2026/11", answering(month), 62),
    "endless path": ("/a/a", answering(endless), 8),
    "random tree": ("/deep/x", answering(branches), 230),
    "session in path and query": ("/s/0123456789abcdef01234567/one", answering(session_page), 40),
    "soft 404 maze": ("/soft/start", answering(soft_404), 40),
    "facets": ("/shop", answering(facets), 50),
    "redirect loop": ("/loop/1", loop, 3),
    "redirect chain": ("/chain/1", chain, 20),
    "counting up": ("/n/1", answering(lambda r: page("n", f"/n/{int(r.path[3:]) + 1}")), 25),
    "random query": ("/q", answering(random_queries), 40),
}


class TrapSite(dict[str, Any]):
    """One folder of good pages, and one trap of each kind beside it."""

    def get(self, path: Any, *_: Any) -> Any:
        where = str(path).partition("?")[0]
        if where == "/":
            dead = [f"/dead/{name_of(n)}" for n in range(200)]
            good = [f"/good/{name_of(n)}" for n in range(20)]
            return page("start", *(start for start, _, _ in TRAPS.values()), *dead, *good)
        for start, handler, _ in TRAPS.values():
            if where.split("/")[1] == start.split("/")[1]:
                return handler
        return page(where) if where.startswith("/good/") else None


async def test_every_trap_ends_under_its_cap_and_the_good_pages_are_found(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(TrapSite())

    report = await crawl_lab.crawl(f"{site}/", max_pages=360)

    asked = {name: sum(path.split("/")[1] == start.split("/")[1] for path in site.paths)
             for name, (start, _, _) in TRAPS.items()}  # fmt: skip
    asked["404 maze"] = sum(path.startswith("/dead/") for path in site.paths)
    good = {url for url in await crawl_lab.stored() if "/good/" in url}
    over = {name: asked[name] for name, (_, _, most) in TRAPS.items() if asked[name] > most}
    assert (over, len(good), asked["404 maze"] <= 40) == ({}, 20, True), (asked, report)
    assert report.ended == "complete"


async def test_site_without_end_stops_at_the_limit(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(endless_site())

    report = await crawl_lab.crawl(f"{site}/", max_pages=40)

    assert (report.visited, len(site.paths), report.ended) == (40, 40, "limit")


def test_options_give_one_key_per_set_of_pages() -> None:
    start = "https://docs.test/"

    assert CrawlOptions(max_pages=5).key(start) == CrawlOptions(max_pages=9).key(start)
    assert CrawlOptions(depth=1).key(start) != CrawlOptions().key(start)
