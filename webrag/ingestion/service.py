"""URL in, normalised document out: joins a page source and the extraction pool."""

from webrag.ingestion.extraction_pool import ExtractionPool
from webrag.ingestion.links import canonical_url
from webrag.ingestion.models import NormalizedDocument, NotModified, PageSource, Validators

__all__ = ["IngestionService"]


class IngestionService:
    """Gets pages ready to be indexed; owns the source and the pool it is given."""

    def __init__(self, source: PageSource, pool: ExtractionPool) -> None:
        self._source = source
        self._pool = pool

    async def ingest(
        self, url: str, *, validators: Validators | None = None
    ) -> NormalizedDocument | NotModified:
        """Fetch one page and convert it.

        Args:
            url: Absolute http(s) address.
            validators: From the stored version; with them a current page is not transferred.

        Raises:
            InputError: `url` is not an address that can be fetched.
            FetchError: The page could not be obtained or holds nothing readable; the subclass
                says which.
        """
        fetched = await self._source.fetch(canonical_url(url), validators=validators)
        if isinstance(fetched, NotModified):
            return fetched
        return await self._pool.extract(fetched)

    async def aclose(self) -> None:
        """Close the source's connections and end the pool's processes."""
        try:
            await self._source.aclose()
        finally:
            await self._pool.aclose()
