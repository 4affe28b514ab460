"""Whole runs over a Firecrawl that lists, fails or is not there, with the real SDK and Postgres."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from llama_index.node_parser.webrag import ParentChildNodeParser

from tests.webrag.ingestion.firecrawl.fake_firecrawl import KEY, FakeFirecrawl, document, failing
from webrag.corpus.acquirer import PageAcquirer
from webrag.corpus.indexer import Indexer
from webrag.corpus.site_index import MappedLinks
from webrag.embedding.embedder import Embedder
from webrag.ingestion.firecrawl.source import FirecrawlSource
from webrag.ingestion.http.fetcher import HttpFetcher
from webrag.ingestion.models import FetchConfig, FirecrawlConfig
from webrag.ingestion.service import FallbackSource, IngestionService
from webrag.orchestration.engine import OrchestratorEngine
from webrag.orchestration.links.expander import LinkDiscovery
from webrag.question import Question

from .conftest import ENCODER, MANUAL, TWO_LINKS_AWAY, InProcess, Lab

BROKEN = failing(503, "Service Unavailable")


@pytest.fixture
async def firecrawl() -> AsyncIterator[FakeFirecrawl]:
    fake = FakeFirecrawl()
    yield fake
    fake.stop()


@pytest.fixture
async def make_engine(
    lab: Lab, database: Any, firecrawl: FakeFirecrawl
) -> AsyncIterator[Callable[[], OrchestratorEngine]]:
    """Composes engines that fetch through the fake, else through the built-in fetcher."""
    source = FirecrawlSource(
        FirecrawlConfig(
            api_url=firecrawl.url,
            api_key=KEY,
            allowed_hosts=("127.0.0.1",),
            attempts=1,
            failures=1,
            timeout_s=5,
        )
    )
    builtin = HttpFetcher(FetchConfig(allowed_hosts=("127.0.0.1",)))
    service = IngestionService(FallbackSource(source, builtin), InProcess())  # type: ignore[arg-type]
    indexer = Indexer(lab.corpus, ParentChildNodeParser(), Embedder(ENCODER, ENCODER.dimensions))

    yield lambda: lab.engine(
        acquirer=PageAcquirer(service, indexer.index, lab.corpus),
        discovery=lambda: LinkDiscovery(source, MappedLinks(database), limit=50),
    )
    await service.aclose()


def through_firecrawl(fake: FakeFirecrawl, site: str) -> None:
    for path, html in MANUAL.items():
        fake.pages[site + path] = document(html)


async def test_pages_come_through_firecrawl_and_the_result_says_so(
    make_engine: Callable[[], OrchestratorEngine],
    firecrawl: FakeFirecrawl,
    static_site: Callable[..., Any],
) -> None:
    site = static_site(MANUAL)
    through_firecrawl(firecrawl, str(site))

    result = await make_engine().run(Question.of(TWO_LINKS_AWAY, urls=f"{site}/"))

    assert result.page_sources == {f"{site}/": "firecrawl"}
    assert result.degraded == ()
    assert site.paths == []


async def test_built_in_fetcher_serves_while_firecrawl_is_down_and_the_result_says_so(
    make_engine: Callable[[], OrchestratorEngine],
    firecrawl: FakeFirecrawl,
    static_site: Callable[..., Any],
) -> None:
    site = static_site(MANUAL)
    firecrawl.queue("scrape", BROKEN)
    firecrawl.queue("map", BROKEN)

    result = await make_engine().run(
        Question.of(TWO_LINKS_AWAY, urls=f"{site}/", research_mode="deep")
    )

    assert set(result.page_sources.values()) == {"builtin"}
    assert any("512 megabytes" in item.chunk.text for item in result.chunks)
    assert result.degraded[0] == (
        "Firecrawl failed (HTTP 503): Service Unavailable. Pages were fetched by the built-in"
        " fetcher instead."
    )
    assert all("Firecrawl failed (HTTP 503)" in sentence for sentence in result.degraded)
    assert len(firecrawl.calls) == 1


async def test_page_that_is_linked_from_nowhere_is_found_in_the_list_of_the_site(
    make_engine: Callable[[], OrchestratorEngine],
    firecrawl: FakeFirecrawl,
) -> None:
    site = "http://127.0.0.1"
    page = "<title>{0}</title><main><h1>{0}</h1><p>{1}</p></main>".format
    firecrawl.pages = {
        f"{site}/": document(page("Manual", "A manual whose menu is drawn by a script.")),
        f"{site}/p/77": document(
            page("Limits", "The broker closes a connection that is idle for 95 seconds.")
        ),
    }
    firecrawl.sites[f"{site}/"] = [
        {"url": f"{site}/p/76", "title": "Colours", "description": "The colours of the logo."},
        {"url": f"{site}/p/77", "title": "Limits", "description": "When idle connections end."},
    ]
    engine = make_engine()
    question = "After how many seconds does the broker close an idle connection?"

    result = await engine.run(Question.of(question, urls=f"{site}/", research_mode="deep"))
    await engine.run(Question.of(question, urls=f"{site}/", research_mode="deep"))

    assert any("95 seconds" in item.chunk.text for item in result.chunks)
    assert [call.body["url"] for call in firecrawl.asked("map")].count(f"{site}/") == 1
    assert {call.body["limit"] for call in firecrawl.asked("map")} == {50}


async def test_run_goes_on_with_the_pages_own_links_when_the_site_cannot_be_listed(
    make_engine: Callable[[], OrchestratorEngine],
    firecrawl: FakeFirecrawl,
    static_site: Callable[..., Any],
) -> None:
    site = static_site(MANUAL)
    through_firecrawl(firecrawl, str(site))
    firecrawl.queue("map", *[failing(403, "Forbidden")] * 9)

    result = await make_engine().run(
        Question.of(TWO_LINKS_AWAY, urls=f"{site}/", research_mode="deep")
    )

    assert any("512 megabytes" in item.chunk.text for item in result.chunks)
    assert result.degraded == (
        "Firecrawl refused the request (HTTP 403): Forbidden. Links were followed without its"
        " list of the site's pages.",
    )
    assert len(firecrawl.asked("map")) == 1


async def test_reached_limit_of_requests_makes_the_round_smaller_and_the_result_says_so(
    make_engine: Callable[[], OrchestratorEngine],
    firecrawl: FakeFirecrawl,
    static_site: Callable[..., Any],
) -> None:
    site = static_site(MANUAL)
    through_firecrawl(firecrawl, str(site))
    engine = make_engine()
    await engine.run(Question.of(TWO_LINKS_AWAY, urls=f"{site}/"))
    firecrawl.queue("scrape", *[failing(429, "Rate limit exceeded")] * 9)

    result = await engine.run(
        Question.of(TWO_LINKS_AWAY, urls=f"{site}/", research_mode="deep", expansion_budget=1)
    )

    assert "A limit of requests was reached" in " ".join(result.warnings)
    assert any("HTTP 429" in sentence for sentence in result.degraded)
    assert 0 < len(result.urls_fetched) < len(MANUAL) - 1
