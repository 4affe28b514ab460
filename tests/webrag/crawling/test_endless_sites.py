import random
from collections.abc import Callable, Mapping
from typing import Any

from .crawl_lab import CrawlLab, endless_site, loop, page


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
