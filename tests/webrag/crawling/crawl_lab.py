"""Crawlers of the real parts, and small sites for them to visit."""

import random
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from webrag.crawling.crawl import SiteCrawler
from webrag.crawling.report import CrawlOptions
from webrag.postgres.database import Database

WORDS = ["node", "replica", "volume", "primary", "log", "lag", "retry", "quorum", "lease", "shard"]


class Listed(NamedTuple):
    url: str
    newest: datetime | None = None


class SiteList:
    """A sitemap that is already read."""

    def __init__(self, *pages: Listed) -> None:
        self.pages = pages

    async def entries(
        self, start_url: str, *, limit: int, named: Sequence[str] = ()
    ) -> dict[str, datetime | None]:
        assert start_url
        assert not named
        return dict(self.pages[:limit])


class CrawlLab(NamedTuple):
    lab: Any
    database: Database

    def crawler(self, *listed: Listed) -> SiteCrawler:
        return SiteCrawler(self.lab.acquirer, self.database, SiteList(*listed) if listed else None)

    async def crawl(self, url: str, **options: Any) -> Any:
        return await self.crawler().crawl(url, CrawlOptions(**options))

    async def stored(self) -> set[str]:
        status = await self.lab.corpus.status()
        return {page.url for page in status.pages}


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


def endless_site() -> dict[str, Any]:
    """Every path answers with links to paths never seen before."""

    class Endless(dict[str, Any]):
        def get(self, path: Any, *_: Any) -> Any:
            chosen = random.Random(str(path))
            names = ["".join(chosen.choices("abcdefghij", k=12)) for _ in range(8)]
            return None if path == "/robots.txt" else page(str(path), *(f"/{n}" for n in names))

    return Endless()


def loop(request: Any) -> tuple[int, Mapping[str, str], str]:
    return 302, {"Location": "/loop/2" if request.path == "/loop/1" else "/loop/1"}, ""
