"""Two page sources as one: the second serves while the first cannot; neither knows the other."""

import logging

from webrag.errors import RefusedAddressError, SourceUnavailableError
from webrag.ingestion.asides import note
from webrag.ingestion.models import FetchedPage, NotModified, PageSource, Validators

__all__ = ["FallbackSource"]

_log = logging.getLogger(__name__)

_SPOKEN = {"builtin": "the built-in fetcher"}


class FallbackSource:
    """Asks the first source, and the second one when the first one itself has failed.

    A page that the first source reports as missing, forbidden or unreadable is not asked for
    again. An address that the first source may not be told is left to the second one, which
    judges it by itself. Each failure is noted for the caller; the log gets it once.
    """

    def __init__(self, first: PageSource, second: PageSource) -> None:
        self._first = first
        self._second = second
        self._logged: str | None = None

    @property
    def name(self) -> str:
        """Both names; each page records the one it came from."""
        return f"{self._first.name}, else {self._second.name}"

    async def fetch(
        self, url: str, *, validators: Validators | None = None, fresh: bool = False
    ) -> FetchedPage | NotModified:
        """Get one page.

        Raises:
            InputError: Not an address that can be fetched.
            FetchError: The source that was asked last could not obtain it.
        """
        try:
            page = await self._first.fetch(url, validators=validators, fresh=fresh)
        except SourceUnavailableError as error:
            self._tell(error)
        except RefusedAddressError:
            _log.debug("%s is not for %s.", url, self._first.name)
        else:
            self._logged = None
            return page
        return await self._second.fetch(url, validators=validators, fresh=fresh)

    async def aclose(self) -> None:
        """Close both sources."""
        try:
            await self._first.aclose()
        finally:
            await self._second.aclose()

    def _tell(self, error: SourceUnavailableError) -> None:
        advice = f" {error.hint}" if error.hint else ""
        other = _SPOKEN.get(self._second.name, self._second.name)
        sentence = f"{error}{advice} Pages were fetched by {other} instead."
        note(sentence)
        if sentence != self._logged:
            self._logged = sentence
            _log.warning("%s", sentence)
