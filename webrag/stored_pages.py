"""What WebRAG has stored: totals, texts, links, and whether quotations hold."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from webrag.argument_checks import checked_seconds, shown_value
from webrag.corpus.models import CorpusStatus, LinkCandidate
from webrag.errors import InputError
from webrag.ingestion.addresses import canonical_url
from webrag.operations import CorpusOperations
from webrag.retrieval.citation_checks import Citation, CitationCheck

if TYPE_CHECKING:
    from uuid import UUID

    from webrag.corpus.texts import PageText, PassageText

__all__ = ["StoredPages"]


class StoredPages(CorpusOperations):
    """The part of WebRAG that reads what is stored; it must be open."""

    async def status(
        self, source_url: str | None = None, *, include_urls: bool = True
    ) -> CorpusStatus:
        """Tell what the corpus holds.

        Args:
            source_url: Only this page.
            include_urls: List the pages.

        Raises:
            InputError: The URL cannot be used.
        """
        url = None if source_url is None else canonical_url(source_url)
        parts = self._open_parts
        status = await parts.corpus.status(url, include_urls=include_urls)
        others = await self.collections()
        return status.model_copy(
            update={
                "available_embedding_model": parts.other_embedding,
                "page_source": parts.page_source,
                "other_collections": tuple(e for e in others if e.name != status.collection),
            }
        )

    async def verify(
        self,
        citations: Citation | Sequence[Citation],
        *,
        live: bool = True,
        deadline_s: float | None = None,
        on_checked: Callable[[CitationCheck, int, int], None] | None = None,
    ) -> list[CitationCheck]:
        """Check quotations against the stored pages and the live ones; nothing is stored.

        Args:
            citations: The quotations, each with its page and, if known, its place.
            live: Also fetch the pages as they are now, each once.
            deadline_s: Time for that; what is missing then is reported as unchecked.
            on_checked: Told each result, how many there are now and how many there will be.

        Raises:
            InputError: A URL, a quotation or its offsets cannot be used; nothing was fetched.
            StorageError: The database failed.
        """
        given = [citations] if isinstance(citations, Citation) else list(citations)
        if not given:
            raise InputError("No citation was given: name at least one.")
        if deadline_s is not None:
            checked_seconds("deadline_s", deadline_s)
        verifier = (await self._current_parts()).verifier
        return await verifier.verify(given, live=live, deadline_s=deadline_s, on_checked=on_checked)

    async def page_text(self, document_id: "UUID") -> "PageText | None":
        """A stored page by its stable id; None when it is not stored."""
        from webrag.corpus.texts import read_page

        return await read_page(self._open_parts.database, _identity(document_id))

    async def passage_text(self, passage_id: "UUID") -> "PassageText | None":
        """A passage of a stored page (its `chunk_id`); None when it is not stored."""
        from webrag.corpus.texts import read_passage

        return await read_passage(self._open_parts.database, _identity(passage_id))

    async def links(self, urls: Sequence[str]) -> list[LinkCandidate]:
        """Links of stored pages, in page order."""
        return await self._open_parts.corpus.links([canonical_url(url) for url in urls])

    async def markdown(self, url: str) -> str | None:
        """Stored text of a page, the string citation offsets refer to; None if not stored."""
        return await self._open_parts.corpus.markdown(canonical_url(url))


def _identity(value: "UUID | str") -> "UUID":
    """The id, also where a caller holds it as text.

    Raises:
        InputError: It is none.
    """
    from uuid import UUID

    try:
        return UUID(str(value))
    except ValueError:
        raise InputError(f"The id {shown_value(value)} is none; give a UUID.") from None
