"""Checks quotations against the stored pages and the live ones; compares nothing itself."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from webrag.background import in_background
from webrag.concurrency import all_of, within
from webrag.errors import InputError, PageGoneError, WebRAGError
from webrag.indexing.corpus import Corpus
from webrag.indexing.database import Database
from webrag.indexing.models import StoredPage
from webrag.indexing.page_texts import read_passage
from webrag.ingestion.links import canonical_url
from webrag.ingestion.models import NormalizedDocument
from webrag.ingestion.service import IngestionService
from webrag.retrieval.citation_checks import (
    Citation,
    CitationCheck,
    Finding,
    check_citation,
    quoted_place,
)
from webrag.retrieval.quote_check import find_quote

__all__ = ["Verifier"]

# Per host the fetcher is stricter.
_FETCH_CONCURRENCY = 8

_Fetched = Mapping[str, NormalizedDocument | WebRAGError]
OnChecked = Callable[[CitationCheck, int, int], None]


@dataclass(frozen=True)
class _Claim:
    citation: Citation
    url: str
    place: tuple[int, int] | None
    page: StoredPage | None
    stored: Finding


class Verifier:
    """Looks quotations up; live pages are fetched like any other page and never stored.

    Args:
        corpus: The stored pages.
        database: Of the corpus.
        ingestion: Fetches and converts live pages, with all checks of addresses.
    """

    def __init__(self, corpus: Corpus, database: Database, ingestion: IngestionService) -> None:
        self._corpus = corpus
        self._database = database
        self._ingestion = ingestion

    async def verify(
        self,
        citations: Sequence[Citation],
        *,
        live: bool = True,
        deadline_s: float | None = None,
        on_checked: OnChecked | None = None,
    ) -> list[CitationCheck]:
        """Check each quotation, in the order given.

        Args:
            citations: The quotations.
            live: Also read the live pages, each once.
            deadline_s: Time for the live pages; what is missing then is `unchecked`.
            on_checked: Told each result, how many there are now and how many there will be.

        Raises:
            InputError: A URL, a quotation or its offsets cannot be used; nothing was fetched.
            StorageError: The database failed.
        """
        claims = [await self._claim(citation) for citation in citations]
        claims = [await self._with_stored(claim) for claim in claims]
        fetched = await self._fetched(claims, deadline_s) if live else None
        checks: list[CitationCheck] = []
        for claim in claims:
            checks.append(await _compared(claim, fetched))
            if on_checked is not None:
                on_checked(checks[-1], len(checks), len(claims))
        return checks

    async def _claim(self, citation: Citation) -> _Claim:
        check_citation(citation)
        url, place = citation.url, quoted_place(citation)
        if citation.passage_id is not None:
            passage = await read_passage(self._database, citation.passage_id)
            if passage is not None:
                url = url or passage.url
                place = place or (passage.char_start, passage.char_end)
            elif not url:
                raise InputError(
                    f"No stored passage has the id {citation.passage_id}; give the url of the page "
                    "that is quoted."
                )
        assert url  # checked: a passage or a page is named
        return _Claim(citation, canonical_url(url), place, None, Finding(state="not_stored"))

    async def _with_stored(self, claim: _Claim) -> _Claim:
        page = await self._corpus.page(claim.url)
        markdown = None if page is None else await self._corpus.markdown(page.url)
        if page is None or markdown is None:
            return claim
        return replace(claim, page=page, stored=await _found(claim, markdown, page.fetched_at))

    async def _fetched(self, claims: Sequence[_Claim], deadline_s: float | None) -> _Fetched:
        """What came of each live page; those that did not come in time are missing."""
        slots = asyncio.Semaphore(_FETCH_CONCURRENCY)
        pages = {claim.url: claim.page for claim in claims}
        outcomes: dict[str, NormalizedDocument | WebRAGError] = {}

        async def one(url: str, page: StoredPage | None) -> None:
            try:
                async with slots:
                    document = await self._ingestion.ingest(page.url if page else url)
            except WebRAGError as error:
                outcomes[url] = error
                return
            # Only a request with validators can be answered with "not modified".
            assert isinstance(document, NormalizedDocument)
            outcomes[url] = document

        async with within(deadline_s):
            await all_of(one(url, page) for url, page in pages.items())
        return outcomes


async def _compared(claim: _Claim, fetched: _Fetched | None) -> CitationCheck:
    if fetched is None:
        return _check(claim, Finding(state="unchecked", reason="The live page was not asked for."))
    outcome = fetched.get(claim.url)
    if outcome is None:
        return _check(claim, Finding(state="unchecked", reason="Time ran out; verify it again."))
    if isinstance(outcome, PageGoneError):
        return _check(claim, Finding(state="gone", reason=str(outcome)))
    if isinstance(outcome, WebRAGError):
        return _check(claim, Finding(state="unreachable", reason=str(outcome)))
    return _check(claim, await _found(claim, outcome.markdown, outcome.fetched_at))


async def _found(claim: _Claim, text: str, seen_at: datetime) -> Finding:
    # A page may have megabytes; the event loop must not wait for the comparison.
    match = await in_background(find_quote, text, claim.citation.quote, claim.place)
    return Finding(seen_at=seen_at, **match.model_dump())


def _check(claim: _Claim, live: Finding) -> CitationCheck:
    url = claim.url if claim.page is None else claim.page.url
    return CitationCheck(citation=claim.citation, url=url, stored=claim.stored, live=live)
