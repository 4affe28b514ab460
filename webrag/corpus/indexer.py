"""Puts a normalised page into the corpus: parse, embed what is new, swap. Fetches nothing."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal
from weakref import WeakValueDictionary

import numpy as np
from llama_index.node_parser.webrag import DocumentTooLargeError
from numpy.typing import NDArray
from pydantic import Field

from webrag.concurrency import in_background
from webrag.corpus.batches import Batches
from webrag.corpus.models import AcquiredPage, StoredPage
from webrag.corpus.page_worker import CutPage, CutSetup, PagePart, PageTask
from webrag.corpus.pages import Corpus
from webrag.corpus.rows import ChildRow, PageRows, build_page_rows, document_id_of, rows_of_chunks
from webrag.corpus.writer import EmbeddedPage
from webrag.embedding.embedder import Embedder
from webrag.errors import UnusablePageError
from webrag.ingestion.models import FetchedPage, NormalizedDocument
from webrag.ingestion.service import ExtractionPool
from webrag.lexical.postings import TooManyPostingsError
from webrag.process_pool.pool import Job, WorkFailedError

if TYPE_CHECKING:
    from llama_index.core.node_parser import NodeParser
    from llama_index.core.schema import Document

_log = logging.getLogger(__name__)

_MOST_PAGES: Final = 100
_MOST_CHUNKS: Final = 2_000  # of several pages that are written in one transaction
_LONGEST_WAIT_S: Final = 1.0  # on a busy machine .2 made two and a half times as many transactions
# Far more than any page needs: time grows with the text, whose length is limited.
_TIMEOUT_S: Final = 60.0
_TOO_LARGE: Final = "is too large to be indexed."


class LocalCutter:
    """Cuts pages in a thread, with any parser; no deadline ends it."""

    def __init__(self, parser: "NodeParser") -> None:
        self._parser = parser

    async def rows(self, document: NormalizedDocument, *, depth: int) -> PageRows:
        """Cut a page and analyse its words; refuse what is beyond what can be indexed."""
        return await in_background(self._rows, document, depth)

    def is_busy(self) -> bool:
        """Tell whether pages are converted now, of which rows will be wanted next."""
        return False

    def _rows(self, document: NormalizedDocument, depth: int) -> PageRows:
        from llama_index.node_parser.webrag import ParentChildNodeParser

        try:
            source = _source(document)
            if not isinstance(self._parser, ParentChildNodeParser):
                source.metadata.pop("html", None)  # they would copy it into every node
            nodes = self._parser.get_nodes_from_documents([source])
            return build_page_rows(document, nodes, depth=depth)
        except (DocumentTooLargeError, TooManyPostingsError) as error:
            raise _too_large(document, f"{_TOO_LARGE} {error}") from error


class CutDocument(NormalizedDocument):
    """A page that was cut as it was converted."""

    cut: tuple[tuple[object, ...], Any] = Field(exclude=True, repr=False)


class PageWorkers:
    """Converts and cuts pages in worker processes, with their deadline and memory limit."""

    def __init__(
        self, pool: ExtractionPool, setup: CutSetup, *, timeout_s: float = _TIMEOUT_S
    ) -> None:
        self._timeout_s = timeout_s
        self._pool = pool
        self._converting = 0
        self._job = Job("webrag.corpus.page_worker:make_page_worker", PagePart, setup)

    def prepare(self) -> None:
        """Start the processes, if none has been."""
        self._pool.prepare(self._job)

    async def convert(self, page: FetchedPage, known: str | None = None) -> NormalizedDocument:
        """Convert a page and cut it in one go, for `rows`, unless its text has the hash `known`."""
        failure: WorkFailedError | None = None
        parts: Sequence[PagePart]
        self._converting += 1
        try:
            parts = await self._pool.workers.run_parts(
                self._job,
                PageTask(page=page, known=known),
                about=f"{page.url} (converting it)",
                limits_s=[self._pool.timeout_s, self._timeout_s],
            )
        except WorkFailedError as error:
            parts, failure = error.parts, error
            if not parts:
                raise self._pool.failure(page, error) from error
        finally:
            self._converting -= 1
        conversion = parts[0].conversion
        assert conversion is not None
        document = conversion.result(page)
        if failure is not None:
            cut: CutPage | UnusablePageError = _uncut(document, failure)
        elif len(parts) > 1:
            cut = _cut_of(document, parts[1])
        else:
            return document
        return CutDocument.model_construct(**dict(document), cut=(_cut_from(document), cut))

    def is_busy(self) -> bool:
        """As `LocalCutter.is_busy`."""
        return self._converting > 0

    async def rows(self, document: NormalizedDocument, *, depth: int) -> PageRows:
        """As `LocalCutter.rows`."""
        made_of, cut = document.cut if isinstance(document, CutDocument) else (None, None)
        if cut is None or made_of != _cut_from(document):
            cut = await self._cut(document)
        if isinstance(cut, UnusablePageError):
            raise cut
        rows = await in_background(rows_of_chunks, document, cut.chunks, depth=depth)
        return replace(rows, postings=cut.postings, term_count=cut.term_count)

    async def _cut(self, document: NormalizedDocument) -> CutPage | UnusablePageError:
        try:
            part = await self._pool.workers.run(
                self._job,
                PageTask(document=document),
                about=f"{document.url} (cutting it)",
                timeout_s=self._timeout_s,
            )
        except WorkFailedError as error:
            return _uncut(document, error)
        return _cut_of(document, part)


def _cut_from(document: NormalizedDocument) -> tuple[object, ...]:
    return document.url, document.title, document.content_hash, document.html, document.metadata


def _cut_of(document: NormalizedDocument, part: PagePart) -> CutPage | UnusablePageError:
    return part.cut or _too_large(document, f"{_TOO_LARGE} {part.refusal}")


def _uncut(document: NormalizedDocument, error: WorkFailedError) -> UnusablePageError:
    failure = _too_large(document, f"cannot be cut into passages: {error}.")
    failure.__cause__ = error
    return failure


def _source(document: NormalizedDocument) -> "Document":
    from llama_index.core.schema import Document

    metadata = {"title": document.title, "source_url": document.url, "html": document.html}
    return Document(
        id_=str(document_id_of(document.url)),
        text=document.markdown,
        metadata={key: value for key, value in metadata.items() if value},
    )


def _too_large(document: NormalizedDocument, what: str) -> UnusablePageError:
    return UnusablePageError(
        f"{document.url} {what}", url=document.url, status=document.status, kind="too_large"
    )


@dataclass(frozen=True, slots=True)
class PreparedPage(EmbeddedPage):
    """A page for `Indexer.store`."""

    outcome: Literal["indexed", "updated"]
    chunks_added: int
    chunks_embedded: int

    def acquired(self, stored: StoredPage) -> AcquiredPage:
        """Tell what came of the page, once it is stored."""
        return stored.acquired(
            self.rows.document.requested_url,
            self.outcome,
            chunks_added=self.chunks_added,
            chunks_embedded=self.chunks_embedded,
        )


class Indexer:
    """Indexes pages; safe to share between tasks, repeating a page changes nothing.

    A parser that cuts in this process sets relationships and offsets as `ParentChildNodeParser`.
    """

    def __init__(
        self, corpus: Corpus, parser: "NodeParser | PageWorkers", embedder: Embedder
    ) -> None:
        self._corpus = corpus
        self._cutter = parser if isinstance(parser, PageWorkers) else LocalCutter(parser)
        self._embedder = embedder
        # Pages on their way from the first batch to the second, and from there to the last one.
        self._cutting = self._embedding = 0
        self._arrived = Batches(
            corpus.known_versions,
            most=_MOST_PAGES,
            more_comes=self._cutter.is_busy,
            longest_wait_s=_LONGEST_WAIT_S,
        )
        self._cut = Batches(
            corpus.known_chunks, most=_MOST_PAGES, more_comes=lambda: self._cutting > 0
        )
        self._ready = Batches(
            self.store,
            most=_MOST_CHUNKS,
            size=lambda page: len(page.rows.children),
            more_comes=lambda: self._embedding > 0,
            longest_wait_s=_LONGEST_WAIT_S,
        )
        self._locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()

    async def index(self, document: NormalizedDocument, *, depth: int = 0) -> AcquiredPage:
        """Store a page, replacing its previous version as a whole or not at all.

        A page whose text, title and links are as stored, also under another URL of its site, is
        only marked as fetched and known by all URLs. Chunks whose title, headings and text are in
        the corpus are not embedded again. The smallest `depth` is kept.
        """
        started = time.perf_counter()
        async with self._turns(document):
            prepared = await self.prepare(document, depth=depth)
            if isinstance(prepared, AcquiredPage):
                return prepared
            page = await self._ready.result(prepared)
        _log.info(
            "Indexed %s: %d chunks, %d embedded, %.2f s.",
            *(page.url, page.chunk_count, page.chunks_embedded, time.perf_counter() - started),
        )
        return page

    @asynccontextmanager
    async def _turns(self, document: NormalizedDocument) -> AsyncIterator[None]:
        """Let pages with an address or their text in common take turns."""
        loop = id(asyncio.get_running_loop())
        keys = {document.url, document.requested_url, document.content_hash}
        async with AsyncExitStack() as stack:
            for key in sorted(keys):
                lock = self._locks.setdefault((loop, key), asyncio.Lock())
                await stack.enter_async_context(lock)
            yield

    async def prepare(
        self, document: NormalizedDocument, *, depth: int = 0
    ) -> PreparedPage | AcquiredPage:
        """Parse and embed a page, for `store`; one that is stored as it is, is only confirmed."""
        document, previous, same = await self._arrived.result(document)
        if same is not None:
            return await self._confirm(document, same, depth)
        self._cutting += 1
        try:
            rows = await self._cutter.rows(document, depth=depth)
        finally:
            self._cutting -= 1
        page_id = None if previous is None else previous.page_id
        hashes = list(dict.fromkeys(child.text_hash for child in rows.children))
        known = await self._cut.result((page_id, hashes))
        self._embedding += 1
        try:
            embeddings, made = await self._embed(rows.children, known.embeddings)
        finally:
            self._embedding -= 1
        return PreparedPage(
            rows=rows,
            embeddings=embeddings,
            outcome="indexed" if previous is None else "updated",
            chunks_added=sum(child.node_id not in known.node_ids for child in rows.children),
            chunks_embedded=sum(child.text_hash in made for child in rows.children),
        )

    async def store(self, pages: Sequence[PreparedPage]) -> list[AcquiredPage]:
        """Store prepared pages, no two with a URL or their text in common, in one transaction."""
        stored = await self._corpus.replace_pages(pages)
        return [page.acquired(result) for page, result in zip(pages, stored, strict=True)]

    async def _confirm(
        self, document: NormalizedDocument, page: StoredPage, depth: int
    ) -> AcquiredPage:
        own = page.url == document.url
        await self._corpus.touch(
            page.url,
            document.fetched_at,
            etag=document.etag if own else None,
            last_modified=document.last_modified if own else None,
        )
        await self._corpus.add_aliases(page.url, [document.url, document.requested_url])
        await self._corpus.lower_depth(page.url, depth)
        current = await self._corpus.page(page.url) or page
        return current.acquired(document.requested_url, "unchanged")

    async def _embed(
        self, children: Sequence[ChildRow], known: Mapping[bytes, NDArray[np.float32]]
    ) -> tuple[NDArray[np.float32], set[bytes]]:
        """Vectors of all children, and the hashes of the texts that were embedded for them."""
        texts = {child.text_hash: child.indexed_text for child in children}
        new = {key: text for key, text in texts.items() if key not in known}
        made = await self._embedder.embed_documents(list(new.values()))
        vectors = {**known, **dict(zip(new, made, strict=True))}
        embeddings = np.zeros((len(children), self._embedder.dimensions), np.float32)
        for row, child in enumerate(children):
            embeddings[row] = vectors[child.text_hash]
        return embeddings, set(new)
