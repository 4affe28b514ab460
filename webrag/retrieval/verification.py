"""Checks quotations against the stored pages and the live ones."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from webrag.concurrency import all_of, in_background, within
from webrag.corpus.models import StoredPage
from webrag.corpus.pages import Corpus
from webrag.errors import InputError, PageGoneError, WebRAGError
from webrag.ingestion.addresses import page_address
from webrag.ingestion.models import NormalizedDocument
from webrag.ingestion.service import IngestionService
from webrag.retrieval.citation_checks import (
    Citation,
    CitationCheck,
    Finding,
    check_citation,
    find_quote,
    quoted_place,
)

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
    markdown: str | None = None


class Verifier:
    """Looks quotations up; live pages are fetched like any other page and never stored."""

    def __init__(self, corpus: Corpus, ingestion: IngestionService) -> None:
        self._corpus = corpus
        self._ingestion = ingestion

    async def verify(
        self,
        citations: Sequence[Citation],
        *,
        live: bool = True,
        deadline_s: float | None = None,
        on_checked: OnChecked | None = None,
    ) -> list[CitationCheck]:
        """Check each quotation, in the order given, as `WebRAG.verify`."""
        claims = [await self._claim(citation) for citation in citations]
        texts = {url: await self._stored(url) for url in {claim.url: None for claim in claims}}
        for place, claim in enumerate(claims):
            if (stored := texts[claim.url]) is not None:
                page, markdown = stored
                found = await _found(claim, markdown, page.fetched_at)
                claims[place] = replace(claim, page=page, stored=found, markdown=markdown)
        fetched = await self._fetched(claims, deadline_s) if live else None
        checks: list[CitationCheck] = []
        for claim in claims:
            checks.append(await self._with_past(claim, await _compared(claim, fetched)))
            if on_checked is not None:
                on_checked(checks[-1], len(checks), len(claims))
        return checks

    async def _claim(self, citation: Citation) -> _Claim:
        check_citation(citation)
        url, place = citation.url, quoted_place(citation)
        if citation.passage_id is not None:
            passage = await self._corpus.passage_text(citation.passage_id)
            if passage is not None:
                url = url or passage.url
                place = place or (passage.char_start, passage.char_end)
            elif not url:
                raise InputError(
                    f"No stored passage has the id {citation.passage_id}; give the url of the page "
                    "that is quoted."
                )
        assert url  # checked: a passage or a page is named
        return _Claim(citation, page_address(url), place, None, Finding(state="not_stored"))

    async def _stored(self, url: str) -> tuple[StoredPage, str] | None:
        page = await self._corpus.page(url)
        markdown = None if page is None else await self._corpus.markdown(page.url)
        return None if page is None or markdown is None else (page, markdown)

    async def _with_past(self, claim: _Claim, check: CitationCheck) -> CitationCheck:
        """Add when a quotation disappeared, as far as earlier texts of the page were kept."""
        if claim.page is None or check.stored.state not in ("changed", "absent"):
            return check
        missing_since = claim.page.stored_at
        for past in await self._corpus.past(claim.page.url):
            found = await in_background(find_quote, past.markdown, claim.citation.quote)
            if found.state not in ("changed", "absent"):
                update = {"last_seen_at": past.fetched_at, "missing_since": missing_since}
                return check.model_copy(update=update)
            missing_since = past.stored_at
        return check

    async def _fetched(self, claims: Sequence[_Claim], deadline_s: float | None) -> _Fetched:
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
    outcome = None if fetched is None else fetched.get(claim.url)
    same: bool | None = None
    if outcome is None:
        reason = None if fetched is None else "Time ran out; verify it again."
        live = Finding(state="unchecked", reason=reason)
    elif isinstance(outcome, WebRAGError):
        is_gone = isinstance(outcome, PageGoneError)
        live = Finding(state="gone" if is_gone else "unreachable", reason=str(outcome))
    else:
        live = await _found(claim, outcome.markdown, outcome.fetched_at)
        same = None if claim.markdown is None else claim.markdown == outcome.markdown
    return CitationCheck(
        citation=claim.citation,
        url=claim.url if claim.page is None else claim.page.url,
        stored=claim.stored,
        live=live,
        page_unchanged=same,
    )


async def _found(claim: _Claim, text: str, seen_at: datetime) -> Finding:
    # A page may have megabytes; the event loop must not wait for the comparison.
    match = await in_background(find_quote, text, claim.citation.quote, claim.place)
    return match.model_copy(update={"seen_at": seen_at})
