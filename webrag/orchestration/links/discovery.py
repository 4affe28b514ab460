"""Asks a mapping service for more links of stored pages; it scores none."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from webrag.concurrency import all_of
from webrag.corpus.site_index import MappedLinks
from webrag.errors import FetchError, ProviderError
from webrag.ingestion.models import SiteMapper

_log = logging.getLogger(__name__)

# Each costs a credit and some seconds, and the pages of a site are listed alike.
_MAX_PER_ROUND: Final = 3


@dataclass(frozen=True, slots=True)
class LinkDiscovery:
    """Enriches the link candidates of stored pages; safe to share between runs.

    Attributes:
        mapper: The service.
        store: Where its answers are kept, so that no page is asked about twice.
        limit: Addresses wanted for one page.
    """

    mapper: SiteMapper
    store: MappedLinks
    limit: int

    async def discover_links(self, sources: Sequence[str], *, timeout_s: float) -> str | None:
        """Ask about pages that were not asked about before, at most three, all at once.

        The most relevant come first; what is not there in time is left for later. Gives a sentence
        when the service failed; the links of the pages themselves remain.

        Raises:
            StorageError: The database failed.
        """
        # Paths of this machine are nothing to tell a service.
        asked = [url for url in sources if url.startswith("http")]
        waiting = (await self.store.unmapped(asked))[:_MAX_PER_ROUND]
        if not waiting:
            return None
        try:
            async with asyncio.timeout(timeout_s):
                failures = await all_of(self._discover(url) for url in waiting)
        except TimeoutError:
            return (
                f"{self.mapper.name.capitalize()} did not list the site's pages in time;"
                " links were followed without its list."
            )
        failed = [failure for failure in failures if failure]
        return failed[0] if failed else None

    async def _discover(self, url: str) -> str | None:
        try:
            links = await self.mapper.map(url, limit=self.limit)
        except FetchError as error:
            # It is about this page; asking again would end the same way.
            _log.info("The site of %s could not be listed: %s", url, error)
            links = []
        except ProviderError as error:
            advice = f" {error.hint}" if error.hint else ""
            return f"{error}{advice} Links were followed without its list of the site's pages."
        await self.store.store(url, links, datetime.now(UTC))
        return None
