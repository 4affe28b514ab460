"""Firecrawl as a LlamaIndex reader: documents that a node parser can cut; it stores nothing."""

from collections.abc import Iterable, Sequence
from typing import Any

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document
from pydantic import SecretStr

from webrag.concurrency import run_blocking
from webrag.errors import FetchError
from webrag.ingestion.extraction_pool import ExtractionPool
from webrag.ingestion.firecrawl.models import FirecrawlConfig
from webrag.ingestion.firecrawl.source import FirecrawlSource
from webrag.ingestion.http.guard import Resolver, resolve
from webrag.ingestion.models import FetchConfig, FetchedPage, NormalizedDocument

_DEFAULTS = FirecrawlConfig()
# For LlamaIndex's prompts and embeddings; the node parser copies what it needs by itself.
_NOT_FOR_MODELS = ["html", "status", "content_hash", "fetched_at", "source", "links"]


class FirecrawlPageReader(BaseReader):
    """Reads web pages through Firecrawl into LlamaIndex documents.

    The text of a document is the page's main content as Markdown, links unwrapped; its metadata
    holds `title`, `source_url`, `html` (the same content as HTML, which the node parser aligns
    with the text section by section) and what else is known: `description`, `language`,
    `published_at`, `modified_at`, `fetched_at`, `links`, `status`, `source`, `content_hash`.

        documents = FirecrawlPageReader(api_key="fc-...").load_data(["https://example.com/docs"])
        nodes = ParentChildNodeParser().get_nodes_from_documents(documents)

    Args:
        api_key: Key for Firecrawl; a server of one's own may need none.
        api_url: Firecrawl server, for one of one's own.
        allowed_hosts: `host` or `host:port` entries that a server of one's own may be sent to
            although their address is private.
        timeout_s: One page.
        batch_timeout_s: A call with several pages.
        max_age_s: Oldest copy that may be taken from Firecrawl's cache; 0 for none.
        raise_on_error: Raise the first page's error; otherwise pages that failed are left out
            and found in `failed`.
        resolver: Gives the addresses of a host.

    Attributes:
        failed: URL to error of the last call.
    """

    def __init__(
        self,
        api_key: str | None = None,
        api_url: str = _DEFAULTS.api_url,
        *,
        allowed_hosts: Iterable[str] = (),
        timeout_s: float = _DEFAULTS.timeout_s,
        batch_timeout_s: float = _DEFAULTS.batch_timeout_s,
        max_age_s: float | None = _DEFAULTS.max_age_s,
        raise_on_error: bool = True,
        resolver: Resolver = resolve,
    ) -> None:
        self._config = FirecrawlConfig(
            api_url=api_url,
            api_key=SecretStr(api_key) if api_key else None,
            allowed_hosts=tuple(allowed_hosts),
            timeout_s=timeout_s,
            batch_timeout_s=batch_timeout_s,
            max_age_s=max_age_s,
        )
        self._raise_on_error = raise_on_error
        self._resolver = resolver
        self.failed: dict[str, FetchError] = {}

    async def aload_data(self, urls: str | Sequence[str], **_: Any) -> list[Document]:
        """Read pages, several as one batch.

        Args:
            urls: One address or several.

        Returns:
            One document per page, in the order asked for.

        Raises:
            InputError: An address cannot be fetched; nothing was asked.
            FetchError: A page could not be read and `raise_on_error` is set.
        """
        wanted = [urls] if isinstance(urls, str) else list(urls)
        source = FirecrawlSource(self._config, resolver=self._resolver)
        pool = ExtractionPool(1, FetchConfig().extraction_timeout_s)
        try:
            outcomes = await _fetched(source, wanted)
            read = {url: await _extracted(pool, outcome) for url, outcome in outcomes.items()}
        finally:
            await source.aclose()
            await pool.aclose()
        self.failed = {url: each for url, each in read.items() if isinstance(each, FetchError)}
        if self._raise_on_error and self.failed:
            raise next(iter(self.failed.values()))
        return [_document(each) for each in read.values() if isinstance(each, NormalizedDocument)]

    def load_data(self, urls: str | Sequence[str], **_: Any) -> list[Document]:
        """Read pages, as `aload_data` does; also where an event loop is running."""
        return run_blocking(self.aload_data(urls))

    def lazy_load_data(self, urls: str | Sequence[str], **_: Any) -> Iterable[Document]:
        """Read pages one by one, each when it is asked for."""
        for url in [urls] if isinstance(urls, str) else urls:
            yield from self.load_data(url)


async def _fetched(
    source: FirecrawlSource, urls: Sequence[str]
) -> dict[str, FetchedPage | FetchError]:
    if len(urls) != 1:
        return await source.fetch_many(urls)
    try:
        return {urls[0]: await source.fetch(urls[0])}
    except FetchError as error:
        return {urls[0]: error}


async def _extracted(
    pool: ExtractionPool, outcome: FetchedPage | FetchError
) -> NormalizedDocument | FetchError:
    if isinstance(outcome, FetchError):
        return outcome
    try:
        return await pool.extract(outcome)
    except FetchError as error:
        return error


def _document(page: NormalizedDocument) -> Document:
    known = {
        "title": page.title,
        "source_url": page.url,
        "html": page.html,
        "description": page.description,
        "language": page.language,
        "published_at": page.published_at and page.published_at.isoformat(),
        "modified_at": page.modified_at and page.modified_at.isoformat(),
        "fetched_at": page.fetched_at.isoformat(),
        "links": [link.url for link in page.links],
        "status": page.status,
        "source": page.source,
        "content_hash": page.content_hash,
    }
    return Document(
        id_=page.url,
        text=page.markdown,
        metadata={name: value for name, value in known.items() if value},
        excluded_embed_metadata_keys=list(_NOT_FOR_MODELS),
        excluded_llm_metadata_keys=list(_NOT_FOR_MODELS),
    )
