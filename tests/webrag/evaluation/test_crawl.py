from collections.abc import Mapping, Sequence

import pytest

from webrag.errors import PageGoneError
from webrag.evaluation.crawl import PageCallback, crawl
from webrag.indexing.models import AcquiredPage, LinkCandidate

BASE = "http://site.test/docs/"


class ScriptedSite:
    """Pages by address with the addresses they link to; records what was asked for."""

    def __init__(self, links: Mapping[str, Sequence[str]]) -> None:
        self.pages = {BASE + name: targets for name, targets in links.items()}
        self.batches: list[list[str]] = []

    async def ingest(
        self, urls: str | Sequence[str], *, on_page: PageCallback | None = None
    ) -> None:
        self.batches.append([urls] if isinstance(urls, str) else list(urls))
        assert on_page is not None
        for url in self.batches[-1]:
            on_page(url, page(url) if url in self.pages else PageGoneError("gone", url=url))

    async def links(self, urls: Sequence[str]) -> list[LinkCandidate]:
        return [
            LinkCandidate(source_url=url, source_page_id=1, url=BASE + target)
            if "://" not in target
            else LinkCandidate(source_url=url, source_page_id=1, url=target)
            for url in urls
            for target in self.pages[url]
        ]


def page(url: str) -> AcquiredPage:
    return AcquiredPage(
        url=url, requested_url=url, page_id=1, title=None, outcome="indexed",
        depth=0, chunk_count=1, token_count=1,
    )  # fmt: skip


async def names(site: ScriptedSite, *, max_pages: int = 100) -> list[str]:
    found = await crawl(site, BASE, max_pages=max_pages, on_progress=lambda *_: None)
    return [url.removeprefix(BASE) for url in found]


async def test_pages_come_breadth_first() -> None:
    site = ScriptedSite({"": ["a", "b"], "a": ["c"], "b": [], "c": []})

    assert await names(site) == ["", "a", "b", "c"]


async def test_page_that_is_linked_again_is_asked_for_once() -> None:
    site = ScriptedSite({"": ["a", "a"], "a": ["", "a"]})

    assert await names(site) == ["", "a"]


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("http://other.test/docs/a", id="other-host"),
        pytest.param("http://site.test/blog/a", id="other-folder"),
        pytest.param("http://site.test/docs-old/a", id="folder-with-a-longer-name"),
        pytest.param("http://site.test:8080/docs/a", id="other-port"),
    ],
)
async def test_target_outside_the_start_folder_is_left_alone(target: str) -> None:
    assert await names(ScriptedSite({"": [target]})) == [""]


async def test_page_that_fails_is_counted_but_not_returned() -> None:
    site = ScriptedSite({"": ["gone", "a"], "a": []})
    told: list[tuple[int, int]] = []

    found = await crawl(site, BASE, max_pages=9, on_progress=lambda *step: told.append(step))

    assert (found, told) == ([BASE, BASE + "a"], [(1, 1), (2, 3), (3, 3)])


@pytest.mark.parametrize(("most", "asked"), [(1, 1), (21, 21), (22, 22), (1000, 51)])
async def test_no_more_pages_than_allowed_are_asked_for(most: int, asked: int) -> None:
    many = [f"p{number}" for number in range(50)]
    site = ScriptedSite({"": many} | {name: [] for name in many})

    await names(site, max_pages=most)

    assert sum(map(len, site.batches)) == asked


async def test_pages_are_asked_for_in_batches() -> None:
    many = [f"p{number}" for number in range(50)]
    site = ScriptedSite({"": many} | {name: [] for name in many})

    await names(site)

    assert [len(batch) for batch in site.batches] == [1, 20, 20, 10]
