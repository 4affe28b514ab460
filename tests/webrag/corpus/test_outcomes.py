from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from webrag.corpus.acquirer import PageAcquirer
from webrag.corpus.indexer import Indexer
from webrag.corpus.pages import Corpus
from webrag.corpus.writer import forget_page
from webrag.errors import (
    FetchError,
    PageGoneError,
    ProviderError,
    UnusablePageError,
)
from webrag.ingestion.models import NormalizedDocument, NotModified
from webrag.postgres.database import Database

MakeDocument = Callable[..., NormalizedDocument]
URL = "https://docs.test/guide"


@pytest.fixture
def impatient(site: Any, indexer: Indexer, corpus: Corpus) -> Any:
    """Everything stored is due."""
    return PageAcquirer(site, indexer.index, corpus, recrawl_after_s=0)


def unreachable() -> Any:
    return FetchError("docs.test does not answer.", url=URL)


async def test_failure_of_a_page_never_stored_is_in_status_until_it_succeeds(
    acquirer: PageAcquirer, site: Any, corpus: Corpus, make_document: MakeDocument
) -> None:
    site.answer = FetchError("docs.test answered HTTP 503.", url=URL, status=503)
    with pytest.raises(FetchError):
        await acquirer.acquire(URL)
    failed = await corpus.status()
    site.answer = make_document()
    await acquirer.acquire(URL)

    assert [(page.url, page.status, page.reason) for page in failed.failures] == [
        (URL, 503, "docs.test answered HTTP 503.")
    ]
    assert (failed.failed, failed.outcomes) == (1, {"failed": 1})
    assert (await corpus.status()).outcomes == {"indexed": 1}


async def test_failure_of_a_stored_page_is_in_status_and_the_page_stays(
    impatient: PageAcquirer, site: Any, corpus: Corpus
) -> None:
    await impatient.acquire(URL)
    site.answer = unreachable()
    await impatient.acquire(URL)

    status = await corpus.status(URL)

    assert (status.documents, status.failed) == (1, 0)
    assert (status.pages[0].outcome, status.pages[0].reason) == (
        "failed",
        "docs.test does not answer. The stored version stays in use.",
    )


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (lambda make: make(markdown="# New\n\ntext\n"), "updated"),
        (lambda make: make(), "unchanged"),
        (lambda _: NotModified(url=URL, fetched_at=datetime.now(UTC)), "unchanged"),
        (lambda _: PageGoneError("gone", url=URL, status=410), "gone"),
    ],
)
async def test_status_tells_the_last_outcome_of_a_page(
    acquirer: PageAcquirer,
    site: Any,
    corpus: Corpus,
    make_document: MakeDocument,
    change: Callable[[MakeDocument], Any],
    outcome: str,
) -> None:
    await acquirer.acquire(URL)
    site.answer = change(make_document)

    with suppress(PageGoneError):
        await acquirer.acquire(URL, refresh=True)

    page = (await corpus.status()).pages[0]
    assert (page.outcome, page.checked_at is not None) == (outcome, True)


async def test_alias_that_failed_before_is_no_failure_once_it_leads_to_a_page(
    acquirer: PageAcquirer, site: Any, corpus: Corpus, make_document: MakeDocument
) -> None:
    alias = "https://docs.test/alias"
    site.answer = FetchError("no answer", url=alias)
    with pytest.raises(FetchError):
        await acquirer.acquire(alias)
    site.answer = make_document(requested_url=alias)

    await acquirer.acquire(alias)

    assert (await corpus.status()).failures == ()


async def test_page_that_could_not_be_embedded_is_in_status(
    site: Any, corpus: Corpus, make_document: MakeDocument
) -> None:
    class Failing:
        async def index(self, *_: Any, **__: Any) -> Any:
            raise ProviderError("The embedding service is down.", provider="x")

    with pytest.raises(ProviderError):
        await PageAcquirer(site, Failing().index, corpus).acquire(URL)

    assert "embedding service is down" in (await corpus.status()).failures[0].reason


async def test_forgotten_page_leaves_no_outcome(
    database: Database, acquirer: PageAcquirer, corpus: Corpus
) -> None:
    await acquirer.acquire(URL)

    await forget_page(database, URL)

    assert (await corpus.status()).outcomes == {}


async def test_known_page_that_says_not_found_with_status_200_is_kept_and_status_says_so(
    acquirer: PageAcquirer, site: Any, corpus: Corpus
) -> None:
    await acquirer.acquire(URL)
    site.answer = UnusablePageError("It says not found.", url=URL, status=200, kind="soft_404")

    with pytest.raises(UnusablePageError):
        await acquirer.acquire(URL, refresh=True)

    status = await corpus.status()
    assert (status.documents, status.gone) == (1, 0)
    assert (status.pages[0].outcome, status.pages[0].reason) == (
        "failed",
        "It says not found. The stored version stays in use.",
    )


@pytest.mark.parametrize(
    ("status", "hours", "is_dead"),
    [
        pytest.param(404, 23, True, id="what is missing is believed for a day"),
        pytest.param(404, 25, False, id="and not longer"),
        pytest.param(503, 0.2, True, id="a failing server is left alone for a quarter of an hour"),
        pytest.param(503, 0.3, False, id="then it may be asked again"),
        pytest.param(429, 0.3, False, id="a limit of requests passes"),
        pytest.param(None, 0.3, False, id="so does silence"),
    ],
)
async def test_links_that_failed_lately_are_known_as_dead(
    corpus: Corpus, status: int | None, hours: float, is_dead: bool
) -> None:
    now = datetime.now(UTC)
    await corpus.note_failure(URL, now - timedelta(hours=hours), reason="It failed.", status=status)

    dead = await corpus.known_dead([URL, "https://docs.test/fine"], now)

    assert dead == ({URL} if is_dead else set())


async def test_stored_page_is_not_dead(acquirer: PageAcquirer, corpus: Corpus) -> None:
    await acquirer.acquire(URL)

    assert await corpus.known_dead([URL], datetime.now(UTC)) == frozenset()
