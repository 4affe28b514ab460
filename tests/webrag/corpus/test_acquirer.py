import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from llama_index.node_parser.webrag import ParentChildNodeParser
from pydantic import PrivateAttr

from webrag.corpus.acquirer import PageAcquirer, PageNotAdmittedError
from webrag.corpus.indexer import Indexer
from webrag.corpus.pages import Corpus
from webrag.embedding.embedder import Embedder
from webrag.errors import (
    FetchError,
    InputError,
    PageGoneError,
    UnusablePageError,
)
from webrag.ingestion.fetch_context import (
    listening,
    metering,
    note,
    rate_limited,
    received,
    watching_rate_limits,
)
from webrag.ingestion.models import NormalizedDocument, NotModified, Validators

MakeDocument = Callable[..., NormalizedDocument]
URL = "https://docs.test/guide"
GUIDE = """# Storage guide

Welcome to the storage guide. It explains how data is kept.

## Snapshots

A snapshot freezes the volume. Use `--no-snapshot` to turn it off.

## Replication

Replicas follow the primary. Error E0502 means that a replica lags behind.
"""


@pytest.fixture
def impatient(site: Any, indexer: Indexer, corpus: Corpus) -> Any:
    """Everything stored is due."""
    return PageAcquirer(site, indexer.index, corpus, recrawl_after_s=0)


def unreachable() -> Any:
    return FetchError("docs.test does not answer.", url=URL)


async def test_missing_page_is_fetched_and_indexed(acquirer: PageAcquirer, site: Any) -> None:
    page = await acquirer.acquire(URL)

    assert (page.outcome, page.url, page.depth) == ("indexed", URL, 0)
    assert site.asked == [(URL, None)]


async def test_stored_page_needs_no_request(acquirer: PageAcquirer, site: Any) -> None:
    await acquirer.acquire(URL)

    page = await acquirer.acquire(URL)

    assert page.outcome == "stored"
    assert len(site.asked) == 1


async def test_spellings_of_one_address_are_one_page(acquirer: PageAcquirer, site: Any) -> None:
    await acquirer.acquire(URL)

    page = await acquirer.acquire("HTTPS://docs.test:443/guide?utm_source=x#part")

    assert page.outcome == "stored"


async def test_unusable_url_is_refused(acquirer: PageAcquirer) -> None:
    with pytest.raises(InputError):
        await acquirer.acquire("ftp://docs.test/")


async def test_refresh_asks_conditionally(acquirer: PageAcquirer, site: Any) -> None:
    await acquirer.acquire(URL)

    await acquirer.acquire(URL, refresh=True)

    assert site.asked[-1] == (URL, Validators(etag='"1"'))


async def test_validators_are_not_sent_to_an_alias(
    acquirer: PageAcquirer, site: Any, corpus: Corpus
) -> None:
    await acquirer.acquire(URL)
    await corpus.add_aliases(URL, ["https://docs.test/alias"])

    await acquirer.acquire("https://docs.test/alias", refresh=True)

    assert site.asked[-1] == ("https://docs.test/alias", None)


async def test_confirmed_page_is_marked_as_fetched(
    acquirer: PageAcquirer, site: Any, corpus: Corpus
) -> None:
    await acquirer.acquire(URL)
    later = datetime.now(UTC) + timedelta(hours=1)
    site.answer = NotModified(url=URL, fetched_at=later)

    page = await acquirer.acquire(URL, refresh=True)

    assert page.outcome == "unchanged"
    assert (await corpus.page(URL)).fetched_at == later


async def test_changed_page_is_updated(
    acquirer: PageAcquirer, site: Any, make_document: MakeDocument
) -> None:
    await acquirer.acquire(URL)
    site.answer = make_document(markdown="# New\n\ntext\n")

    page = await acquirer.acquire(URL, refresh=True)

    assert page.outcome == "updated"


async def test_page_is_asked_for_again_when_it_is_due(impatient: PageAcquirer, site: Any) -> None:
    await impatient.acquire(URL)

    page = await impatient.acquire(URL)

    assert page.outcome == "unchanged"
    assert len(site.asked) == 2


async def test_page_is_not_asked_for_before_it_is_due(
    site: Any, indexer: Indexer, corpus: Corpus
) -> None:
    patient = PageAcquirer(site, indexer.index, corpus, recrawl_after_s=3600)
    await patient.acquire(URL)

    assert (await patient.acquire(URL)).outcome == "stored"


async def test_due_page_of_an_unreachable_site_is_given_as_stored(
    impatient: PageAcquirer, site: Any, caplog: pytest.LogCaptureFixture
) -> None:
    await impatient.acquire(URL)
    site.answer = unreachable()

    with caplog.at_level(logging.WARNING):
        page = await impatient.acquire(URL)

    assert page.outcome == "stored"
    assert "could not be fetched" in caplog.text


async def test_refresh_of_an_unreachable_site_fails(
    acquirer: PageAcquirer, site: Any, corpus: Corpus
) -> None:
    await acquirer.acquire(URL)
    site.answer = unreachable()

    with pytest.raises(FetchError):
        await acquirer.acquire(URL, refresh=True)

    assert await corpus.markdown(URL) is not None


async def test_missing_page_of_an_unreachable_site_fails(acquirer: PageAcquirer, site: Any) -> None:
    site.answer = unreachable()

    with pytest.raises(FetchError):
        await acquirer.acquire(URL)


async def test_page_the_site_has_removed_is_marked_gone(
    acquirer: PageAcquirer, site: Any, corpus: Corpus
) -> None:
    await acquirer.acquire(URL)
    site.answer = PageGoneError("The page is gone.", url=URL, status=410)

    with pytest.raises(PageGoneError):
        await acquirer.acquire(URL, refresh=True)

    assert (await corpus.page(URL)).gone_at is not None


async def test_gone_alias_leaves_the_page_itself(
    acquirer: PageAcquirer, site: Any, corpus: Corpus
) -> None:
    await acquirer.acquire(URL)
    await corpus.add_aliases(URL, ["https://docs.test/alias"])
    site.answer = PageGoneError("The page is gone.", url="https://docs.test/alias", status=404)

    with pytest.raises(PageGoneError):
        await acquirer.acquire("https://docs.test/alias", refresh=True)

    assert (await corpus.page(URL)).gone_at is None


async def test_gone_page_is_asked_for_again_and_can_come_back(
    acquirer: PageAcquirer, site: Any, corpus: Corpus
) -> None:
    await acquirer.acquire(URL)
    await corpus.mark_gone(URL, datetime.now(UTC))

    page = await acquirer.acquire(URL)

    assert page.outcome == "unchanged"
    assert (await corpus.page(URL)).gone_at is None


async def test_gone_page_of_an_unreachable_site_is_not_given(
    acquirer: PageAcquirer, site: Any, corpus: Corpus
) -> None:
    await acquirer.acquire(URL)
    await corpus.mark_gone(URL, datetime.now(UTC))
    site.answer = unreachable()

    with pytest.raises(FetchError):
        await acquirer.acquire(URL)


async def test_concurrent_calls_share_one_request(acquirer: PageAcquirer, site: Any) -> None:
    pages = await asyncio.gather(*(acquirer.acquire(URL) for _ in range(8)))

    assert len(site.asked) == 1
    assert {page.page_id for page in pages} == {pages[0].page_id}


async def test_concurrent_calls_keep_the_smallest_depth(
    acquirer: PageAcquirer, corpus: Corpus
) -> None:
    pages = await asyncio.gather(acquirer.acquire(URL, depth=3), acquirer.acquire(URL, depth=1))

    assert [page.depth for page in pages] == [3, 1]
    assert (await corpus.page(URL)).depth == 1


async def test_named_page_found_by_a_link_before_gets_depth_zero(
    acquirer: PageAcquirer, corpus: Corpus
) -> None:
    await acquirer.acquire(URL, depth=2)

    page = await acquirer.acquire(URL)

    assert page.depth == (await corpus.page(URL)).depth == 0


async def test_one_caller_leaving_does_not_stop_the_others(
    acquirer: PageAcquirer, site: Any
) -> None:
    site.gate = asyncio.Event()
    leaving = asyncio.create_task(acquirer.acquire(URL))
    staying = asyncio.create_task(acquirer.acquire(URL))
    await wait_for_request(site)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    site.gate.set()

    assert (await staying).outcome == "indexed"


async def test_request_ends_when_the_last_caller_leaves(
    acquirer: PageAcquirer, site: Any, corpus: Corpus
) -> None:
    site.gate = asyncio.Event()
    leaving = asyncio.create_task(acquirer.acquire(URL))
    await wait_for_request(site)
    before = asyncio.all_tasks()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving

    assert len(asyncio.all_tasks()) < len(before) - 1
    assert await corpus.page(URL) is None


class Heard:
    """What one caller was told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.sizes: list[int] = []
        self.refusals = 0

    async def acquire(self, acquirer: PageAcquirer, **options: Any) -> Any:
        with (
            listening(self.notes.append),
            metering(self.sizes.append),
            watching_rate_limits(self._refused),
        ):
            return await acquirer.acquire(URL, **options)

    def _refused(self) -> None:
        self.refusals += 1

    @property
    def all(self) -> tuple[list[str], list[int], int]:
        return self.notes, self.sizes, self.refusals


def say_everything() -> None:
    note("The service is down.")
    received(4_000)
    rate_limited()


@pytest.mark.parametrize("succeeds", [True, False], ids=["obtained", "failed"])
async def test_every_caller_of_a_shared_request_hears_notes_and_the_first_of_bytes_and_refusals(
    acquirer: PageAcquirer, site: Any, succeeds: bool
) -> None:
    site.says = say_everything
    site.answer = site.answer if succeeds else unreachable()
    callers = [Heard() for _ in range(3)]

    await asyncio.gather(*(each.acquire(acquirer) for each in callers), return_exceptions=True)

    assert len(site.asked) == 1
    heard = [each.all for each in callers]
    assert heard == [(["The service is down."], *rest) for rest in (([4_000], 1), ([], 0), ([], 0))]


async def test_what_an_abandoned_request_has_read_counts_for_who_abandoned_it(
    acquirer: PageAcquirer, site: Any
) -> None:
    async def hangs(*_: Any, **__: Any) -> None:
        try:
            site.asked.append((URL, None))
            await asyncio.Event().wait()
        finally:
            received(300)

    site.ingest = hangs
    heard = Heard()
    leaving = asyncio.create_task(heard.acquire(acquirer))
    await wait_for_request(site)
    leaving.cancel()
    await asyncio.wait([leaving])

    assert heard.sizes == [300]


async def test_failure_reaches_every_caller_and_the_next_one_tries_again(
    acquirer: PageAcquirer, site: Any, make_document: MakeDocument
) -> None:
    site.answer = unreachable()
    outcomes = await asyncio.gather(
        *(acquirer.acquire(URL) for _ in range(3)), return_exceptions=True
    )
    assert all(isinstance(outcome, FetchError) for outcome in outcomes)
    site.answer = make_document()

    assert (await acquirer.acquire(URL)).outcome == "indexed"


async def test_since_makes_a_refresh_go_on_where_it_was(acquirer: PageAcquirer, site: Any) -> None:
    await acquirer.acquire(URL)
    began = datetime.now(UTC)
    site.answer = NotModified(url=URL, fetched_at=began + timedelta(seconds=1))

    first = await acquirer.acquire(URL, refresh=True, since=began)
    second = await acquirer.acquire(URL, refresh=True, since=began)

    assert (first.outcome, second.outcome, len(site.asked)) == ("unchanged", "stored", 2)


async def test_page_that_is_not_admitted_is_neither_stored_nor_remembered(
    acquirer: PageAcquirer, corpus: Corpus
) -> None:
    with pytest.raises(PageNotAdmittedError, match="leads to"):
        await acquirer.acquire(URL, admits=lambda url: url != URL)

    status = await corpus.status()
    assert (status.documents, status.failures) == (0, ())


async def test_changed_page_embeds_only_its_changed_chunks(
    acquirer: PageAcquirer, site: Any, make_document: MakeDocument, counting_embedding: Any
) -> None:
    site.answer = make_document(markdown=GUIDE)
    first = await acquirer.acquire(URL)
    counting_embedding.texts.clear()
    site.answer = make_document(markdown=GUIDE.replace("freezes the volume", "freezes the disk"))

    page = await acquirer.acquire(URL, refresh=True)

    assert first.chunk_count > 2
    assert (page.outcome, page.chunks_embedded, len(counting_embedding.texts)) == ("updated", 1, 1)


async def test_confirmed_page_embeds_nothing(
    acquirer: PageAcquirer, site: Any, counting_embedding: Any
) -> None:
    await acquirer.acquire(URL)
    counting_embedding.texts.clear()
    site.answer = NotModified(url=URL, fetched_at=datetime.now(UTC))

    await acquirer.acquire(URL, refresh=True)

    assert (counting_embedding.texts, len(site.asked)) == ([], 2)


@pytest.mark.parametrize(
    ("asked_for", "is_fresh"),
    [
        ({}, False),
        ({"refresh": True}, True),
        ({"refresh": True, "since": datetime(2026, 1, 1, tzinfo=UTC)}, False),
        ({"refresh": True, "since": datetime(2026, 1, 1, tzinfo=UTC), "fresh": True}, True),
    ],
)
async def test_only_a_refresh_refuses_the_copies_a_service_keeps(
    acquirer: PageAcquirer, site: Any, asked_for: Any, is_fresh: bool
) -> None:
    await acquirer.acquire(URL, **asked_for)

    assert site.wants_fresh == [is_fresh]


async def wait_for_request(site: Any) -> None:
    async with asyncio.timeout(5):
        while not site.asked:
            await asyncio.sleep(0.005)


class BrokenParser(ParentChildNodeParser):
    """Fails at some pages as nobody foresaw."""

    _error: Exception = PrivateAttr()

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def get_nodes_from_documents(self, documents: Any, **options: Any) -> Any:
        if "bad" in documents[0].metadata["source_url"]:
            raise self._error
        return super().get_nodes_from_documents(documents, **options)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        pytest.param(ValueError("a\x07b"), "ValueError", id="value"),
        pytest.param(RecursionError("deep"), "RecursionError", id="recursion"),
        pytest.param(MemoryError(), "MemoryError", id="memory"),
        pytest.param(UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no"), "Unicode", id="surrogate"),
        pytest.param(InputError("A text is too long."), "was not stored: A text", id="input"),
    ],
)
async def test_whatever_goes_wrong_with_a_page_is_its_own_failure(
    site: Any,
    corpus: Corpus,
    counting_embedding: Any,
    make_document: MakeDocument,
    error: Exception,
    said: str,
) -> None:
    good, site.answer = site.answer, make_document("https://docs.test/bad")
    indexer = Indexer(corpus, BrokenParser(error), Embedder(counting_embedding, 16))
    acquirer = PageAcquirer(site, indexer.index, corpus)

    with pytest.raises(UnusablePageError, match=said) as caught:
        await acquirer.acquire("https://docs.test/bad")

    assert caught.value.url == "https://docs.test/bad"
    site.answer = good
    assert (await acquirer.acquire(URL)).outcome == "indexed"


async def test_what_nobody_foresaw_is_logged_whole_and_remembered(
    site: Any,
    corpus: Corpus,
    counting_embedding: Any,
    make_document: MakeDocument,
    caplog: pytest.LogCaptureFixture,
) -> None:
    site.answer = make_document("https://docs.test/bad")
    parser = BrokenParser(ValueError("nobody foresaw this"))
    indexer = Indexer(corpus, parser, Embedder(counting_embedding, 16))

    with caplog.at_level(logging.ERROR), pytest.raises(UnusablePageError):
        await PageAcquirer(site, indexer.index, corpus).acquire("https://docs.test/bad")

    assert "Traceback" in caplog.text
    (failure,) = (await corpus.status()).failures
    assert "nobody foresaw this" in failure.reason
