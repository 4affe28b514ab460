import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Self
from uuid import UUID

import pytest

from webrag.errors import InputError, PageGoneError, WebRAGError
from webrag.indexing.forgetting import ForgetReport
from webrag.indexing.models import AcquiredPage, CorpusStatus
from webrag.indexing.page_texts import PageText, PassageText
from webrag.orchestration.models import ProgressCallback
from webrag.presentation.models import EvidenceBlock
from webrag.retrieval.citation_checks import Citation, CitationCheck, Finding


class ScriptedMemory:
    """A research memory that does what a test tells it and records how it was used.

    It stands for `webrag.app.WebRAG`, so that failures, delays and cancellations of the server
    can be tested at will; the real one is used in test_stdio.py.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.error: Exception | None = None
        self.delay_s = 0.0
        self.cancelled = asyncio.Event()
        self.is_open = False
        self.page_delay_s = 0.0
        self.chunks: list[Any] = []
        self.blocks: list[EvidenceBlock] = []
        self.finished = 0
        self.echoes = False
        self.page: PageText | None = None
        self.passage: PassageText | None = None
        self.degraded: tuple[str, ...] = ()

    async def __aenter__(self) -> Self:
        self.is_open = True
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self.is_open = False

    async def _work(self, name: str, on_progress: ProgressCallback | None, **given: Any) -> Any:
        self.calls.append((name, given))
        if on_progress is not None:
            await on_progress("retrieve", "Searching 3 documents...")
            await on_progress("expand", "Expanding to linked pages...", 1, 5)
        try:
            await asyncio.sleep(self.delay_s)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        if self.error is not None:
            raise self.error
        self.finished += 1
        return SimpleNamespace(
            chunks=self.chunks,
            query=given.get("question"),
            confidence=0.5,
            confidence_band="medium",
            partial=False,
            degraded=(),
            warnings=(),
        )

    async def answer(self, url: Any, question: str, **options: Any) -> Any:
        progress = options.pop("on_progress")
        return await self._work("answer", progress, url=url, question=question, **options)

    async def search(self, question: str, **options: Any) -> Any:
        progress = options.pop("on_progress")
        return await self._work("search", progress, question=question, **options)

    async def ingest(self, urls: list[str], *, refresh: bool = False, on_page: Any = None) -> Any:
        await self._work("ingest", None, urls=urls, refresh=refresh)
        outcomes: dict[str, AcquiredPage | WebRAGError] = {}
        for url in urls:
            await asyncio.sleep(self.page_delay_s)
            outcomes[url] = _outcome(url)
            on_page(url, outcomes[url])
        return SimpleNamespace(
            pages=[each for each in outcomes.values() if isinstance(each, AcquiredPage)],
            failed={u: str(e) for u, e in outcomes.items() if isinstance(e, WebRAGError)},
            degraded=self.degraded,
        )

    async def status(self, source_url: str | None = None, *, include_urls: bool = True) -> Any:
        await self._work("status", None, source_url=source_url, include_urls=include_urls)
        if source_url == "ftp://x":
            raise InputError("The URL scheme is ftp; only http and https can be read.")
        return CorpusStatus(
            collection="webrag",
            documents=0,
            gone=0,
            chunks=0,
            tokens=0,
            links=0,
            embedding_model=None,
            embedding_dimensions=None,
            database=f"checked {datetime(2026, 1, 1, tzinfo=UTC):%Y}",
        )

    def brief(self, result: Any, *, include_guide: bool = False, nonce: str | None = None) -> str:
        echo = f" {result.query}" if self.echoes else ""
        return f"brief of {len(result.chunks)} guide={include_guide} nonce={nonce}{echo}"

    def evidence(self, _result: Any, **_options: Any) -> list[EvidenceBlock]:
        return self.blocks

    def count_tokens(self, text: str) -> int:
        return len(text) // 4

    async def page_text(self, document_id: UUID) -> PageText | None:
        found = self.page
        return found if found is not None and found.document_id == document_id else None

    async def passage_text(self, passage_id: UUID) -> PassageText | None:
        found = self.passage
        return found if found is not None and found.id == passage_id else None

    async def forget(self, urls: list[str], *, confirm: bool | None = None) -> ForgetReport:
        assert confirm or len(urls) <= 20
        await self._work("forget", None, urls=urls)
        return ForgetReport(removed=tuple(urls))

    async def verify(self, citations: list[Citation], **options: Any) -> list[CitationCheck]:
        on_checked = options.pop("on_checked")
        await self._work("verify", None, citations=citations, live=options["live"])
        absent, unchecked = Finding(state="absent"), Finding(state="unchecked")
        checks = [
            CitationCheck(citation=each, url=each.url or "", stored=absent, live=unchecked)
            for each in citations
        ]
        for done, check in enumerate(checks, 1):
            on_checked(check, done, len(checks))
        return checks


def _outcome(url: str) -> AcquiredPage | WebRAGError:
    if "gone" in url:
        return PageGoneError("404: no such page", url=url, status=404)
    return AcquiredPage(
        url=url,
        requested_url=url,
        page_id=1,
        title="Page",
        outcome="indexed",
        depth=0,
        chunk_count=4,
        token_count=800,
    )


Load = Callable[[], AbstractAsyncContextManager[Any]]


@pytest.fixture
def memory() -> ScriptedMemory:
    return ScriptedMemory()


@pytest.fixture
def load(memory: ScriptedMemory) -> Load:
    return lambda: memory
