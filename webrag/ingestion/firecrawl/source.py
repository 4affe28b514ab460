"""Firecrawl as a page source and a site mapper; how it is asked is the client's business."""

import logging
import re
from collections.abc import Awaitable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document
from pydantic import SecretStr

from webrag.concurrency import all_of, blocking, in_background
from webrag.errors import FetchError, ProviderError, SourceUnavailableError, UnusablePageError
from webrag.ingestion.addresses import canonical_url, link_target
from webrag.ingestion.fetch_context import is_together, note, rate_limited, received, together
from webrag.ingestion.firecrawl.client import FirecrawlClient, GatheredScrapes, ScrapedPage
from webrag.ingestion.html.markdown import html_from_markdown, page_html
from webrag.ingestion.http.answers import status_failure
from webrag.ingestion.http.guard import AddressCheck, Resolver, resolve
from webrag.ingestion.models import (
    FetchConfig,
    FetchedPage,
    FirecrawlConfig,
    MappedLink,
    NormalizedDocument,
    Validators,
)
from webrag.ingestion.service import ExtractionPool

_T = TypeVar("_T")
_log = logging.getLogger(__name__)

# A page drawn by scripts is nearly empty as it was sent; what was drawn is in the other forms.
_LEAST_SHARE = 0.5
# Tags, and elements that show nothing; one left open goes on to the end of the page.
_UNSEEN = re.compile(
    r"<(script|style|template|noscript|head)\b(?:[^<]++|<(?!/\1\b))*+|<[^<>]*+>", re.IGNORECASE
)


def page_content(page: ScrapedPage) -> str:
    """The page as one HTML document; "" when there is nothing in it.

    The page's own HTML comes first: it has the metadata, the formulas' sources and everything
    else that cleaning loses. It is passed over when it shows much less than what Firecrawl read.
    Cleaned HTML and Markdown get a page around them that says what Firecrawl knows of theirs.
    """
    markdown = html_from_markdown(page.markdown) if page.markdown.strip() else ""
    kind = page.content_type.partition(";")[0].strip().lower()
    if markdown and kind not in ("", "text/html", "application/xhtml+xml"):
        return page_html(markdown, page)
    enough = _shown_chars(markdown) * _LEAST_SHARE
    if page.raw_html.strip() and _shown_chars(page.raw_html) >= enough:
        return page.raw_html
    if page.html.strip() and _shown_chars(page.html) >= enough:
        return page_html(page.html, page)
    return page_html(markdown, page) if markdown else ""


def _shown_chars(html: str) -> int:
    """Characters a reader would see, roughly; parsing is left to the worker processes."""
    return len("".join(_UNSEEN.sub("", html).split()))


class FirecrawlSource:
    """Fetches pages through Firecrawl, following `models.PageSource` and `models.SiteMapper`.

    What is taken is the page's HTML as its browser left it, so that text, offsets and links are
    made here, as for any other source; Firecrawl's own Markdown stands in where a page has no
    HTML, as PDFs have none. Private addresses are refused before anything is sent, and so is a
    page that turns out to come from one.
    """

    name = "firecrawl"

    def __init__(self, config: FirecrawlConfig, *, resolver: Resolver = resolve) -> None:
        self._config = config
        self._client = FirecrawlClient(config)
        self._gathered = GatheredScrapes(self._client)
        # The public service would fetch a private name from its own network, or learn of it.
        allowed = () if config.is_cloud else config.allowed_hosts
        self._addresses = AddressCheck(allowed, resolver=resolver)

    async def fetch(
        self, url: str, *, validators: Validators | None = None, fresh: bool = False
    ) -> FetchedPage:
        """Get one page, as `PageSource` says; Firecrawl offers no conditional requests.

        Pages asked for `together` are scraped as one batch.
        """
        del validators
        requested = canonical_url(url)
        await self._addresses.check(requested)
        source = self._gathered if is_together() else self._client
        try:
            scraped = await source.scrape(requested, fresh=fresh)
        except ProviderError as error:
            if error.status == 429:
                rate_limited()
            raise SourceUnavailableError(str(error), url=requested, hint=error.hint) from error
        return await self._page(requested, scraped)

    async def fetch_many(self, urls: Sequence[str]) -> dict[str, FetchedPage | FetchError]:
        """Get many pages, as one batch; those that failed do not cost the others.

        Returns:
            Canonical URL to page or error, in the order asked for.

        Raises:
            InputError: An address cannot be fetched; nothing was asked.
        """
        wanted = list(dict.fromkeys(canonical_url(url) for url in urls))
        with together():
            found = await all_of(_outcome(self.fetch(url)) for url in wanted)
        return dict(zip(wanted, found, strict=True))

    async def map(
        self, url: str, *, search: str | None = None, limit: int = 100
    ) -> list[MappedLink]:
        """List pages of the site a URL belongs to, as `SiteMapper` says."""
        start = canonical_url(url)
        await self._addresses.check(start)
        return await self._client.map(start, search=search, limit=limit)

    async def aclose(self) -> None:
        """Release connections; the source cannot be used afterwards."""
        await self._client.aclose()

    async def _page(self, requested: str, scraped: ScrapedPage) -> FetchedPage:
        final = link_target(scraped.url, keep_tracking=True) or requested
        if final != requested:
            await self._addresses.check(final)
        if scraped.status is not None and scraped.status >= 400:
            raise status_failure(requested, scraped.status)
        if scraped.warning:
            sentence = f"Firecrawl remarks on {requested}: {scraped.warning}."
            _log.info("%s", sentence)
            note(sentence)
        longest = max(len(scraped.raw_html), len(scraped.html), len(scraped.markdown))
        said, most = scraped.error or scraped.warning, self._config.max_chars
        why = f"Firecrawl found nothing to read on {requested}{f': {said}' if said else ''}."
        if longest > most:
            why = f"The page {requested} has {longest:,} characters; at most {most:,} are read."
        text = await in_background(page_content, scraped) if longest <= most else ""
        if not text:
            raise UnusablePageError(why, url=requested, status=scraped.status)
        received(len(text.encode()))
        return FetchedPage(
            requested_url=requested,
            url=final,
            status=scraped.status or 200,
            kind="html",
            text=text,
            fetched_at=datetime.now(UTC),
            source=self.name,
        )


async def _outcome(work: Awaitable[_T]) -> _T | FetchError:
    try:
        return await work
    except FetchError as error:
        return error


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
        raise_on_error: Raise the first page's error; otherwise `failed` has those of the last call.
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
        self.failed: dict[str, FetchError] = {}

    async def aload_data(self, /, urls: str | Sequence[str], **_: Any) -> list[Document]:
        """Read pages, several as one batch, into one document per page, in the order asked for.

        Raises:
            InputError: An address cannot be fetched; nothing was asked.
            FetchError: A page could not be read and `raise_on_error` is set.
        """
        wanted = [urls] if isinstance(urls, str) else list(urls)
        source = FirecrawlSource(self._config)
        pool = ExtractionPool(1, FetchConfig().extraction_timeout_s)
        read: list[NormalizedDocument] = []
        self.failed = {}
        try:
            for url, outcome in (await source.fetch_many(wanted)).items():
                try:
                    if isinstance(outcome, FetchError):
                        raise outcome
                    read.append(await pool.extract(outcome))
                except FetchError as error:
                    self.failed[url] = error
        finally:
            await source.aclose()
            await pool.aclose()
        if self._raise_on_error and self.failed:
            raise next(iter(self.failed.values()))
        return [_document(each) for each in read]

    load_data = blocking(aload_data)

    def lazy_load_data(self, urls: str | Sequence[str], **_: Any) -> Iterable[Document]:
        """Read pages one by one, each when it is asked for."""
        for url in [urls] if isinstance(urls, str) else urls:
            yield from self.load_data(url)


def _document(page: NormalizedDocument) -> Document:
    dates = {name: getattr(page, name) for name in ("published_at", "modified_at", "fetched_at")}
    known = {
        "title": page.title,
        "source_url": page.url,
        **page.model_dump(include={"html", "description", "language"}),
        **{name: date and date.isoformat() for name, date in dates.items()},
        "links": [link.url for link in page.links],
        **page.model_dump(include={"status", "source", "content_hash"}),
    }
    return Document(
        id_=page.url,
        text=page.markdown,
        metadata={name: value for name, value in known.items() if value},
        excluded_embed_metadata_keys=list(_NOT_FOR_MODELS),
        excluded_llm_metadata_keys=list(_NOT_FOR_MODELS),
    )
