"""Gets the pages a question names into the corpus; it searches nothing."""

from collections.abc import Sequence

from webrag.answering.models import AnswerRequest
from webrag.concurrency import all_of
from webrag.errors import FetchError
from webrag.indexing.acquirer import PageAcquirer
from webrag.indexing.models import AcquiredPage
from webrag.ingestion.asides import listening
from webrag.orchestration.engine import OrchestratorEngine

__all__ = ["NamedPages"]


class NamedPages:
    """Reads the named pages, and with `deep` those their links lead to.

    Args:
        acquirer: Gets single pages.
        engine: Follows links.
    """

    def __init__(self, acquirer: PageAcquirer, engine: OrchestratorEngine) -> None:
        self._acquirer = acquirer
        self._engine = engine

    async def __call__(
        self, request: AnswerRequest
    ) -> tuple[Sequence[str] | None, tuple[str, ...]]:
        """Addresses to search, None for all that is stored, and what did not work as configured.

        Raises:
            FetchError: None of the pages could be obtained.
            ProviderError: None of them could be embedded.
            StorageError: The database failed.
        """
        if not request.urls:
            return None, ()
        if request.deep:
            return await self._deep(request)
        notes: dict[str, None] = {}
        with listening(lambda sentence: notes.update({sentence: None})):
            outcomes = await all_of(self._one(url) for url in request.urls)
        pages = [each.url for each in outcomes if isinstance(each, AcquiredPage)]
        failures = [each for each in outcomes if isinstance(each, FetchError)]
        if not pages:
            raise failures[0]
        return pages, (*notes, *(f"{each.url} could not be read: {each}" for each in failures))

    async def _one(self, url: str) -> AcquiredPage | FetchError:
        try:
            return await self._acquirer.acquire(url)
        except FetchError as error:
            return error

    async def _deep(self, request: AnswerRequest) -> tuple[Sequence[str], tuple[str, ...]]:
        found = await self._engine.run(request.urls, request.query, research_mode="deep")
        matched = [ranked.chunk.source_url for ranked in found.chunks]
        urls = dict.fromkeys((*found.seed_urls, *found.urls_fetched, *matched))
        return list(urls), found.degraded
