"""Firecrawl as a page source and a site mapper; how it is asked is the client's business."""

import logging
import re
from collections.abc import Sequence
from datetime import UTC, datetime

from webrag.concurrency import in_background
from webrag.errors import (
    FetchError,
    InputError,
    ProviderError,
    SourceUnavailableError,
    UnusablePageError,
)
from webrag.ingestion.addresses import canonical_url
from webrag.ingestion.characters import collapse
from webrag.ingestion.firecrawl.client import FirecrawlClient
from webrag.ingestion.firecrawl.models import FirecrawlConfig, ScrapedPage
from webrag.ingestion.html.markdown import PageFacts, html_from_markdown, page_html
from webrag.ingestion.http.guard import AddressCheck, Resolver, resolve
from webrag.ingestion.http.status import status_failure
from webrag.ingestion.models import FetchedPage, MappedLink, Validators
from webrag.ingestion.notes import note, rate_limited, received

# A page drawn by scripts is nearly empty as it was sent; what was drawn is in the other forms.
_LEAST_SHARE = 0.5

_UNSEEN = frozenset({"script", "style", "template", "noscript", "head"})

_PIECE = re.compile(r"<(/?)([a-z][a-z0-9]*+)[^<>]*+>|([^<]+)|<", re.IGNORECASE)


def page_content(page: ScrapedPage) -> str:
    """The page as one HTML document; "" when there is nothing in it.

    The page's own HTML comes first: it has the metadata, the formulas' sources and everything
    else that cleaning loses. It is passed over when it shows much less than what Firecrawl read.
    Cleaned HTML and Markdown get a page around them that says what Firecrawl knows of theirs.
    """
    facts = PageFacts(
        title=page.title,
        description=page.description,
        language=page.language,
        published_at=page.published_at,
        modified_at=page.modified_at,
        links=page.links,
    )
    markdown = html_from_markdown(page.markdown) if page.markdown.strip() else ""
    if not _is_html(page.content_type) and markdown:
        return page_html(markdown, facts)
    enough = _shown_chars(markdown) * _LEAST_SHARE
    if page.raw_html.strip() and _shown_chars(page.raw_html) >= enough:
        return page.raw_html
    if page.html.strip() and _shown_chars(page.html) >= enough:
        return page_html(page.html, facts)
    return page_html(markdown, facts) if markdown else ""


def _is_html(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind in ("", "text/html", "application/xhtml+xml")


def _shown_chars(html: str) -> int:
    """Characters a reader would see, roughly; parsing is left to the worker processes."""
    inside = ""
    count = 0
    for match in _PIECE.finditer(html):
        slash, tag, text = match.groups()
        if text and not inside:
            count += len(collapse(text))
        elif tag and tag.lower() in _UNSEEN and not inside:
            inside = "" if slash else tag.lower()
        elif tag and slash and tag.lower() == inside:
            inside = ""
    return count


_log = logging.getLogger(__name__)

_TOO_MANY_REQUESTS = 429


class FirecrawlSource:
    """Fetches pages through Firecrawl, following `models.PageSource` and `models.SiteMapper`.

    What is taken is the page's HTML as its browser left it, so that text, offsets and links are
    made here, as for any other source; Firecrawl's own Markdown stands in where a page has no
    HTML, as PDFs have none. Private addresses are refused before anything is sent, and so is a
    page that turns out to come from one.

    Args:
        config: Which Firecrawl, and how patiently.
        resolver: Gives the addresses of a host.
    """

    name = "firecrawl"

    def __init__(self, config: FirecrawlConfig, *, resolver: Resolver = resolve) -> None:
        self._config = config
        self._client = FirecrawlClient(config)
        # The public service would fetch a private name from its own network, or learn of it.
        allowed = () if config.is_cloud else config.allowed_hosts
        self._addresses = AddressCheck(allowed, resolver=resolver)

    async def fetch(
        self, url: str, *, validators: Validators | None = None, fresh: bool = False
    ) -> FetchedPage:
        """Get one page.

        Args:
            url: Absolute http(s) address.
            validators: Not used: Firecrawl offers no conditional requests.
            fresh: Have Firecrawl read the page anew, whatever copy it keeps.

        Raises:
            InputError: Not an address that can be fetched.
            RefusedAddressError: Its address, or the one it leads to, is not public.
            PageGoneError: The site answers 404 or 410.
            UnusablePageError: There is nothing in it, or too much.
            SourceUnavailableError: Firecrawl itself failed or refused.
            FetchError: The page could not be obtained for another reason.
        """
        del validators
        requested = canonical_url(url)
        await self._addresses.check(requested)
        try:
            scraped = await self._client.scrape(requested, fresh=fresh)
        except ProviderError as error:
            if error.status == _TOO_MANY_REQUESTS:
                rate_limited()
            raise SourceUnavailableError(str(error), url=requested, hint=error.hint) from error
        return await self._page(requested, scraped)

    async def fetch_many(self, urls: Sequence[str]) -> dict[str, FetchedPage | FetchError]:
        """Get many pages as one batch; the pages that failed do not cost the others.

        Returns:
            Canonical URL to page or error, in the order asked for.

        Raises:
            InputError: An address cannot be fetched; nothing was asked.
        """
        wanted = list(dict.fromkeys(canonical_url(url) for url in urls))
        outcomes: dict[str, FetchedPage | FetchError] = {}
        for url in wanted:
            try:
                await self._addresses.check(url)
            except FetchError as error:
                outcomes[url] = error
        sent = [url for url in wanted if url not in outcomes]
        outcomes.update(await self._batch(sent))
        return {url: outcomes[url] for url in wanted}

    async def map(
        self, url: str, *, search: str | None = None, limit: int = 100
    ) -> list[MappedLink]:
        """List pages of the site a URL belongs to, each once.

        Args:
            url: Absolute http(s) address to start from.
            search: Words that pages near the front should be about.
            limit: Pages at most.

        Raises:
            InputError: Not an address that can be fetched.
            FetchError: The site may not be contacted or cannot be listed.
            ProviderError: Firecrawl failed or refused.
        """
        start = canonical_url(url)
        await self._addresses.check(start)
        return await self._client.map(start, search=search, limit=limit)

    async def aclose(self) -> None:
        """Release connections; the source cannot be used afterwards."""
        await self._client.aclose()

    async def _batch(self, urls: Sequence[str]) -> dict[str, FetchedPage | FetchError]:
        outcomes: dict[str, FetchedPage | FetchError] = {}
        try:
            scraped = await self._client.batch(urls)
        except (ProviderError, FetchError) as error:
            return {
                url: SourceUnavailableError(str(error), url=url, hint=error.hint) for url in urls
            }
        for url, answer in scraped.items():
            try:
                outcomes[url] = (
                    answer if isinstance(answer, FetchError) else await self._page(url, answer)
                )
            except FetchError as error:
                outcomes[url] = error
        return outcomes

    async def _page(self, requested: str, scraped: ScrapedPage) -> FetchedPage:
        final = _final_url(requested, scraped)
        if final != requested:
            await self._addresses.check(final)
        if scraped.status is not None and scraped.status >= 400:
            raise status_failure(requested, scraped.status)
        if scraped.warning:
            sentence = f"Firecrawl remarks on {requested}: {scraped.warning}."
            _log.info("%s", sentence)
            note(sentence)
        self._refuse_oversize(requested, scraped)
        text = await in_background(page_content, scraped)
        if not text:
            said = scraped.error or scraped.warning
            because = f": {said}" if said else ""
            raise UnusablePageError(
                f"Firecrawl found nothing to read on {requested}{because}.",
                url=requested,
                status=scraped.status,
            )
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

    def _refuse_oversize(self, url: str, scraped: ScrapedPage) -> None:
        longest = max(len(scraped.raw_html), len(scraped.html), len(scraped.markdown))
        if longest > self._config.max_chars:
            raise UnusablePageError(
                f"The page {url} has {longest:,} characters; at most {self._config.max_chars:,}"
                " are read.",
                url=url,
                status=scraped.status,
            )


def _final_url(requested: str, scraped: ScrapedPage) -> str:
    try:
        return canonical_url(scraped.url, keep_tracking=True) if scraped.url else requested
    except InputError:
        return requested
