"""Brings what callers name, pages, files, folders and repositories, into the corpus."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Final, Self

from pydantic import BaseModel, ConfigDict, Field

from webrag.concurrency import all_of, in_background
from webrag.corpus.models import AcquiredPage
from webrag.errors import FetchError, PageGoneError, WebRAGError
from webrag.ingestion.addresses import is_file, is_git
from webrag.ingestion.fetch_context import listening, together
from webrag.ingestion.files.folder import NamedSources, expand_named
from webrag.ingestion.files.source import FileAccess
from webrag.orchestration.models import ProgressCallback
from webrag.question import Question

if TYPE_CHECKING:
    from llama_index.core.schema import Document

    from webrag.ingestion.documents import GivenPage
    from webrag.ingestion.models import FetchedPage, NormalizedDocument
    from webrag.wiring.components import Components

_log = logging.getLogger(__name__)

PageListener = Callable[[str, AcquiredPage | WebRAGError], None]
"""Told each URL and its outcome as soon as it is known."""

_AT_ONCE: Final = 24  # pages; per host the fetcher is stricter
_MAX_TOLD: Final = 5  # failures of files that a result names; `ingest` reports all


class IngestReport(BaseModel):
    """Outcome of an ingest call.

    Attributes:
        pages: In the order they were asked for.
        failed: URL to the reason it was not obtained.
        gone: Files of the folders named that are there no more and no longer retrieved.
        left_out: Number of files below those folders that are not read, by reason.
        degraded: Sentences about page sources that did not work as configured.
    """

    model_config = ConfigDict(frozen=True)

    pages: tuple[AcquiredPage, ...] = ()
    failed: dict[str, str] = Field(default_factory=dict)
    gone: tuple[str, ...] = ()
    left_out: dict[str, int] = Field(default_factory=dict)
    degraded: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, outcomes: Iterable[tuple[str, AcquiredPage | WebRAGError]], notes: Iterable[str]
    ) -> Self:
        """Make the report from the outcome of each URL."""
        told = list(outcomes)
        return cls(
            pages=tuple(each for _, each in told if isinstance(each, AcquiredPage)),
            failed={url: str(each) for url, each in told if isinstance(each, WebRAGError)},
            degraded=tuple(notes),
        )

    def __repr__(self) -> str:
        return f"<IngestReport {len(self.pages)} pages, {len(self.failed)} failed>"

    def __str__(self) -> str:
        """List the outcome of each page, as `webrag ingest` prints it."""
        from webrag.presentation.reports import format_ingest

        return format_ingest(**dict(self))


@dataclass(frozen=True)
class Ingester:
    """Works with the parts of an open WebRAG; made for each call, as parts may be exchanged."""

    parts: "Components"
    files: FileAccess
    max_bytes: int

    async def ingest(
        self,
        addresses: Sequence[str],
        *,
        refresh: bool,
        version: str,
        on_page: PageListener | None,
        on_found: Callable[[int], None] | None,
    ) -> IngestReport:
        """Store pages and all below folders and repositories, as `WebRAG.ingest` says."""
        named = await self._named(addresses, refresh=refresh)
        if on_found is not None:
            on_found(len(named.every))
        report = await self.pages(
            named.every, refresh=refresh, on_page=on_page, version=version, folders=named.folders
        )
        update = {
            "failed": {**report.failed, **named.empty},
            "gone": await self._gone_files(named),
            "left_out": dict(named.left_out),
            "degraded": (*named.notes, *report.degraded),
        }
        return report.model_copy(update=update)

    async def pages(
        self,
        wanted: Sequence[str],
        *,
        refresh: bool = False,
        on_page: PageListener | None = None,
        version: str = "",
        folders: Sequence[str] = (),
    ) -> IngestReport:
        """Store pages, by addresses that name one each."""
        corpus, slots = self.parts.corpus, asyncio.Semaphore(_AT_ONCE)

        async def one(url: str) -> AcquiredPage | WebRAGError:
            async with slots:
                try:
                    outcome: AcquiredPage | WebRAGError = await self.parts.acquirer.acquire(
                        url,
                        refresh=refresh,
                        version=version,
                        folder=next((each for each in folders if url.startswith(each)), ""),
                    )
                except WebRAGError as error:
                    outcome = error
            if on_page is not None:
                on_page(url, outcome)
            return outcome

        notes: dict[str, None] = {}
        with listening(lambda sentence: notes.update({sentence: None})), together():
            new = len(wanted) - len(await corpus.pages(wanted))
            async with corpus.index_deferred(new):
                results = await all_of(one(url) for url in wanted)
        return IngestReport.of(zip(wanted, results, strict=True), notes)

    async def documents(self, documents: "Sequence[Document]") -> IngestReport:
        """Store LlamaIndex documents, as `WebRAG.add_documents` says."""
        from webrag.ingestion.documents import pages_of_documents

        pages = await in_background(pages_of_documents, documents)
        slots = asyncio.Semaphore(_AT_ONCE)
        notes: list[str] = []

        async def converted(part: "FetchedPage") -> "NormalizedDocument | FetchError":
            async with slots:
                try:
                    return await self.parts.ingestion.convert(part)
                except FetchError as error:
                    return error

        async def one(page: "GivenPage") -> AcquiredPage | FetchError:
            found = await all_of(converted(part) for part in page.parts)
            failures = [each for each in found if isinstance(each, FetchError)]
            if len(failures) == len(found):
                return failures[0]
            notes.extend(f"A part of {page.url} was left out: {each}" for each in failures)
            usable = [None if isinstance(each, FetchError) else each for each in found]
            async with slots:
                try:
                    return await self.parts.indexer.index(page.joined(usable))
                except FetchError as error:
                    return error

        results = await all_of(one(page) for page in pages)
        return IngestReport.of(zip((each.url for each in pages), results, strict=True), notes)

    async def located(
        self, question: Question, on_progress: ProgressCallback | None = None
    ) -> tuple[Question, tuple[str, ...]]:
        """Take folders apart, or keep the pages that are held as of the question's moment.

        Gives a sentence for everything that could not be used as well.
        """
        if question.as_of is not None:
            where = "stored" if question.urls else "source_urls"
            named = question.urls or question.source_urls or ()
            held, missing = await self._held(named, question.as_of)
            return question.model_copy(update={where: held} if held else {}), missing
        sources = await self._named(question.urls)
        stored, missing = await self._stored_files(sources, on_progress)
        update = {"urls": sources.urls, "stored": stored}
        if question.source_urls:
            corpus = self.parts.corpus
            found = [
                (is_file(url) and await corpus.urls_below(f"{url}/")) or [url]
                for url in question.source_urls
            ]
            update["source_urls"] = tuple(chain(*found))
        return question.model_copy(update=update), missing

    async def _named(self, addresses: Sequence[str], *, refresh: bool = False) -> NamedSources:
        """Take the folders among named addresses apart."""
        named = await expand_named(addresses, self.files, max_bytes=self.max_bytes)
        repositories = [url for url in named.urls if is_git(url) and url.endswith("/")]
        notes: dict[str, None] = {}
        for url in repositories:
            try:
                with listening(lambda sentence: notes.update({sentence: None})):
                    found = await self.parts.clones.files_of(url, refresh=refresh)
            except FetchError as error:
                named = named.without(url, str(error))
            else:
                named = named.with_folder(url, found)
        return replace(named, notes=tuple(notes))

    async def _stored_files(
        self, named: NamedSources, on_progress: ProgressCallback | None
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Bring the files of the folders that were named up to date.

        Gives their addresses, and a sentence for everything that could not be used.
        """
        if not (named.folders or named.empty):
            return (), named.notes
        if on_progress is not None:
            await on_progress("ingestion", f"Files to read: {len(named.files):,}")
        report = await self.pages(named.files)
        await self._gone_files(named)
        failed = {**report.failed, **named.empty}
        if not report.pages and not named.urls:
            url, reason = next(iter(failed.items()))
            raise FetchError(reason, url=url)
        told = (*named.notes, *report.degraded, *_failures(failed))
        return tuple(dict.fromkeys(page.url for page in report.pages)), told

    async def _gone_files(self, named: NamedSources) -> tuple[str, ...]:
        """Mark stored files of the folders that are there no more as gone."""
        gone: list[str] = []
        for folder in named.folders:
            # What is a folder now, or is named like one, may have been a file.
            below = await self.parts.corpus.urls_below(folder.rstrip("/"))
            stored = {url for url in below if f"{url}/".startswith(folder)}
            for url in sorted(stored.difference(named.every)):
                try:
                    await self.parts.acquirer.acquire(url, refresh=True)
                except PageGoneError:
                    gone.append(url)
                except FetchError as error:
                    _log.info("%s stays as it is: %s", url, error)
        return tuple(sorted(gone))

    async def _held(
        self, urls: Sequence[str], moment: datetime
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Give the addresses, of those named if any, that are held as of a moment.

        Also a sentence for everything that is missing.
        """
        corpus = self.parts.corpus
        if not urls:
            holdings = await corpus.holdings(moment)
            refusal = holdings.refusal(moment)
            if refusal is not None:
                raise refusal
            warning = holdings.warning(moment)
            return (), () if warning is None else (warning,)
        found = {url: await corpus.holdings(moment, [url]) for url in urls}
        refusals = [why for url, each in found.items() if (why := each.refusal(moment, url))]
        if len(refusals) == len(found):
            raise refusals[0]
        warnings = (each.warning(moment) for each in found.values() if each.held)
        told = (*map(str, refusals), *filter(None, warnings))
        return tuple(await corpus.urls_as_of(moment, urls)), tuple(dict.fromkeys(told))


def _failures(failed: Mapping[str, str]) -> tuple[str, ...]:
    """A sentence for each page that could not be used; of many, the first and their number."""
    told = [why if url in why else f"{url} could not be used: {why}" for url, why in failed.items()]
    more = len(told) - _MAX_TOLD
    return (*told[:_MAX_TOLD], *([f"{more:,} more files could not be used."] if more > 0 else []))
