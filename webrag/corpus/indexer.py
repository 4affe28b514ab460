"""Puts a normalised page into the corpus: parse, embed what is new, swap. Fetches nothing."""

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, Protocol, runtime_checkable

import numpy as np
from llama_index.node_parser.webrag import DocumentTooLargeError
from numpy.typing import NDArray

from webrag.concurrency import in_background
from webrag.corpus.models import AcquiredPage, StoredPage
from webrag.corpus.page_worker import (
    CutRequest,
    CutSetup,
    PageRefusedError,
    read_chunks,
    read_postings,
)
from webrag.corpus.pages import Corpus
from webrag.corpus.rows import (
    ChildRow,
    PageRows,
    build_page_rows,
    document_id_of,
    rows_without_postings,
)
from webrag.embedding.embedder import Embedder, PendingVector, VectorsUnderWay
from webrag.errors import UnusablePageError
from webrag.ingestion.models import NormalizedDocument
from webrag.lexical.postings import TooManyPostingsError
from webrag.process_pool.pool import Job, WorkerPool, WorkFailedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from llama_index.core.node_parser import NodeParser
    from llama_index.core.schema import Document
    from llama_index.node_parser.webrag import ParentChildNodeParser


# Far more than any page needs: time grows with the text, whose length is limited.
_TIMEOUT_S: Final = 60.0
_ANALYSIS: Final = Job("webrag.corpus.page_worker:make_analyzer")


@runtime_checkable
class PageCutter(Protocol):
    """What makes the rows of a page."""

    async def rows(self, document: NormalizedDocument, *, depth: int) -> PageRows:
        """Cut a page and analyse its words.

        Raises:
            UnusablePageError: It is beyond what can be indexed, or takes too long.
            StorageError: A chunk is not at its offsets.
        """


class LocalCutter:
    """Cuts pages in a thread, with any parser; no deadline ends it."""

    def __init__(self, parser: "NodeParser") -> None:
        self._parser = parser

    async def rows(self, document: NormalizedDocument, *, depth: int) -> PageRows:
        """As `PageCutter.rows`."""
        return await in_background(self._rows, document, depth)

    def _rows(self, document: NormalizedDocument, depth: int) -> PageRows:
        from llama_index.node_parser.webrag import ParentChildNodeParser

        try:
            source = _source(document)
            if not isinstance(self._parser, ParentChildNodeParser):
                source.metadata.pop("html", None)  # they would copy it into every node
            nodes = self._parser.get_nodes_from_documents([source])
            return build_page_rows(document, nodes, depth=depth)
        except (DocumentTooLargeError, TooManyPostingsError) as error:
            raise _refusal(document, error) from error


class WorkerCutter:
    """Cuts pages in worker processes, with their deadline and memory limit.

    Args:
        workers: The processes.
        parser: Gives what makes nodes of chunks; its sizes are those of `setup`.
        setup: How a process cuts.
        timeout_s: Time that cutting a page may take, and analysing its words.

    Attributes:
        job: What a process cuts by.
    """

    def __init__(
        self,
        workers: WorkerPool,
        parser: "Callable[[], ParentChildNodeParser]",
        setup: CutSetup,
        *,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        self._timeout_s = timeout_s
        self._workers = workers
        self._parser = parser
        self.job = Job("webrag.corpus.page_worker:make_cutter", setup.to_bytes())

    async def rows(self, document: NormalizedDocument, *, depth: int) -> PageRows:
        """As `PageCutter.rows`."""
        request = CutRequest(document.markdown, document.html, document.url)
        try:
            cut = await self._workers.run(
                self.job,
                request.to_bytes(),
                about=f"{document.url} (cutting it)",
                timeout_s=self._timeout_s,
            )
            rows = await in_background(self._rows, document, cut, depth)
            texts = [child.indexed_text for child in rows.children]
            analyzed = await self._workers.run(
                _ANALYSIS,
                json.dumps(texts, ensure_ascii=False).encode(),
                about=f"{document.url} (analysing its words)",
                timeout_s=self._timeout_s,
            )
            postings, count = await in_background(read_postings, analyzed)
        except PageRefusedError as error:
            raise _refusal(document, error) from error
        except WorkFailedError as error:
            raise UnusablePageError(
                f"{document.url} cannot be cut into passages: {error}.",
                url=document.url,
                status=document.status,
                kind="too_large",
            ) from error
        return replace(rows, postings=postings, term_count=count)

    def _rows(self, document: NormalizedDocument, cut: bytes, depth: int) -> PageRows:
        nodes = self._parser().nodes_from_chunks(_source(document), read_chunks(cut))
        return rows_without_postings(document, nodes, depth=depth)


def _source(document: NormalizedDocument) -> "Document":
    from llama_index.core.schema import Document

    metadata = {"title": document.title, "source_url": document.url, "html": document.html}
    return Document(
        id_=str(document_id_of(document.url)),
        text=document.markdown,
        metadata={key: value for key, value in metadata.items() if value},
    )


def _refusal(document: NormalizedDocument, reason: Exception) -> UnusablePageError:
    return UnusablePageError(
        f"{document.url} is too large to be indexed. {reason}",
        url=document.url,
        status=document.status,
        kind="too_large",
    )


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PreparedPage:
    """A page that only has to be stored.

    Attributes:
        embeddings: One row per chunk.
        chunks_added: Chunks that its stored version lacks.
        chunks_embedded: Chunks whose text neither the corpus nor a page under way had.
        held: Keeps the vectors for pages under way that share a text.
    """

    rows: PageRows
    embeddings: NDArray[np.float32]
    outcome: Literal["indexed", "updated"]
    chunks_added: int
    chunks_embedded: int
    held: Mapping[bytes, PendingVector]


class Indexer:
    """Indexes pages; safe to share between tasks, repeating a page changes nothing.

    Args:
        corpus: Where pages are stored.
        parser: Splits a page into parents and children; `ParentChildNodeParser`, or one that
            sets the same relationships and offsets. A `PageCutter` where the work is not to be
            done in this process.
        embedder: The model the corpus was made with.
    """

    def __init__(
        self, corpus: Corpus, parser: "NodeParser | PageCutter", embedder: Embedder
    ) -> None:
        self._corpus = corpus
        self._cutter = parser if isinstance(parser, PageCutter) else LocalCutter(parser)
        self._embedder = embedder
        self._under_way = VectorsUnderWay()

    async def index(self, document: NormalizedDocument, *, depth: int = 0) -> AcquiredPage:
        """Store a page, replacing its previous version as a whole.

        A page whose text, title and links are as stored is only marked as fetched. A page that
        the site serves under several URLs is stored once and known by all of them. Chunks whose
        title, headings and text are in the corpus already, or in a page that is being indexed by
        another task, are not embedded again.

        Args:
            document: The page.
            depth: Links from a page the user named; the smallest one ever given is kept.

        Raises:
            UnusablePageError: The page is too large to be indexed; the stored version is untouched.
            ProviderError: Embedding failed; the stored version is untouched.
            StorageError: Writing failed; the stored version is untouched.
        """
        started = time.perf_counter()
        prepared = await self.prepare(document, depth=depth)
        if isinstance(prepared, AcquiredPage):
            return prepared
        (page,) = await self.store([prepared])
        _log.info(
            "Indexed %s: %d chunks, %d embedded, %.2f s.",
            *(page.url, page.chunk_count, page.chunks_embedded, time.perf_counter() - started),
        )
        return page

    async def prepare(
        self, document: NormalizedDocument, *, depth: int = 0
    ) -> PreparedPage | AcquiredPage:
        """Parse and embed a page, for `store`; one that is stored as it is, is only confirmed.

        Raises:
            UnusablePageError: The page is too large to be indexed.
            ProviderError: Embedding failed.
            StorageError: The corpus cannot be read, or a chunk is not at its offsets.
        """
        document = await self._with_given_version(document)
        previous, same = await self._corpus.known_versions(document)
        if same is not None:
            return await self._confirm(document, same, depth)
        rows = await self._cutter.rows(document, depth=depth)
        held = self._under_way.claim(child.text_hash for child in rows.children)
        page_id = None if previous is None else previous.page_id
        known = await self._corpus.known_chunks(page_id, list(held))
        embeddings, made = await self._embed(rows.children, known.embeddings, held)
        return PreparedPage(
            rows=rows,
            embeddings=embeddings,
            outcome="indexed" if previous is None else "updated",
            chunks_added=sum(child.node_id not in known.node_ids for child in rows.children),
            chunks_embedded=sum(child.text_hash in made for child in rows.children),
            held=held,
        )

    async def _with_given_version(self, document: NormalizedDocument) -> NormalizedDocument:
        """A version that somebody named for a page holds for its later states as well."""
        if document.edition is not None and document.edition.is_given:
            return document
        stored = await self._corpus.page(document.url)
        if stored is None or stored.edition is None or not stored.edition.is_given:
            return document
        return document.model_copy(update={"edition": stored.edition})

    async def store(self, pages: Sequence[PreparedPage]) -> list[AcquiredPage]:
        """Store prepared pages in one transaction: all or none.

        No two of them may have a URL or their text in common.

        Raises:
            StorageError: Writing failed; the stored versions are untouched.
        """
        stored = await self._corpus.replace_pages([(page.rows, page.embeddings) for page in pages])
        return [
            result.acquired(
                page.rows.document.requested_url,
                page.outcome,
                chunks_added=page.chunks_added,
                chunks_embedded=page.chunks_embedded,
            )
            for page, result in zip(pages, stored, strict=True)
        ]

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
        self,
        children: Sequence[ChildRow],
        known: Mapping[bytes, NDArray[np.float32]],
        held: Mapping[bytes, PendingVector],
    ) -> tuple[NDArray[np.float32], set[bytes]]:
        """Vectors of all children, and the hashes of the texts that were embedded for them."""
        texts = {child.text_hash: child.indexed_text for child in children}
        new = {key: each for key, each in held.items() if key not in known}
        made = await self._under_way.complete(
            new, lambda keys: self._embedder.embed_documents([texts[key] for key in keys])
        )
        embeddings = np.zeros((len(children), self._embedder.dimensions), np.float32)
        for row, child in enumerate(children):
            pending = new.get(child.text_hash)
            embeddings[row] = known[child.text_hash] if pending is None else pending.value
        return embeddings, made
