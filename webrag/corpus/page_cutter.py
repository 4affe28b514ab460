"""Makes the rows of a page, the expensive part in worker processes; it stores nothing."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from llama_index.node_parser.webrag import DocumentTooLargeError

from webrag.concurrency import in_background
from webrag.corpus.page_worker import (
    CutRequest,
    CutSetup,
    PageRefusedError,
    read_chunks,
    read_postings,
)
from webrag.corpus.rows import (
    PageRows,
    build_page_rows,
    document_id_of,
    rows_without_postings,
)
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
        try:
            nodes = self._parser.get_nodes_from_documents([_source(document)])
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
