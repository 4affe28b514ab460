"""A stored site whose pages a run sees only once it has "fetched" them; used by benchmarks.

Every page is fetched, converted and indexed once. Runs after that cost no conversion and no
network, so that many variants of the loop can be compared on the same pages.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from typing_extensions import override

from webrag.corpus.acquirer import PageAcquirer
from webrag.corpus.models import AcquiredPage, LinkCandidate, StoredPage
from webrag.corpus.pages import Corpus
from webrag.errors import PageGoneError
from webrag.retrieval.filters import SearchFilters
from webrag.retrieval.models import RetrievalResult
from webrag.retrieval.search import Searcher

SEEN: ContextVar[dict[str, int]] = ContextVar("seen")
"""Pages the current run has fetched, with their distance from its first one."""


class ReplayAcquirer(PageAcquirer):
    """Gives stored pages as if they had just been fetched; all others do not exist.

    Args:
        stored: Every page there is.
    """

    def __init__(self, stored: Corpus) -> None:
        self._stored = stored

    @override
    async def acquire(self, url: str, *, depth: int = 0, **_: Any) -> AcquiredPage:
        page = await self._stored.page(url)
        if page is None:
            raise PageGoneError(f"{url} is not among the pages.", url=url, status=404)
        seen = SEEN.get()
        seen[page.url] = min(depth, seen.get(page.url, depth))
        return AcquiredPage(
            url=page.url,
            requested_url=url,
            page_id=page.page_id,
            title=page.title,
            outcome="indexed",
            depth=seen[page.url],
            chunk_count=page.chunk_count,
            token_count=page.token_count,
            source=page.source,
        )


class ReplayCorpus(Corpus):
    """A corpus that holds nothing but what the current run has fetched."""

    @override
    async def pages(self, urls: Sequence[str]) -> dict[str, StoredPage]:
        found = await super().pages(urls)
        return {url: page for url, page in found.items() if page.url in SEEN.get()}

    @override
    async def links(self, urls: Sequence[str]) -> list[LinkCandidate]:
        seen = SEEN.get()
        return [
            link.model_copy(update={"source_depth": seen.get(link.source_url, 0)})
            for link in await super().links(urls)
        ]

    @override
    async def urls_in_scope(
        self, sites: Sequence[str] | None, *, limit: int | None = None
    ) -> tuple[list[str], int]:
        seen = list(SEEN.get())
        return seen[:limit], len(seen)


class ReplaySearcher(Searcher):
    """Searches nothing but what the current run has fetched."""

    @override
    async def retrieve(self, query: str, **options: Any) -> RetrievalResult:
        seen = SearchFilters(source_urls=tuple(SEEN.get()))
        return await super().retrieve(query, **{**options, "filters": seen})
