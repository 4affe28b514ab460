"""Judges an address before somebody else is sent there; it opens no connection itself."""

import asyncio
from collections.abc import Iterable

from ada_url import URL

from webrag.errors import FetchError, RefusedAddressError
from webrag.ingestion.http.guard import (
    AddressRefused,
    AllowList,
    GuardedBackend,
    NameNotFound,
    Resolver,
    resolve,
)

__all__ = ["AddressCheck"]

_RESOLVE_TIMEOUT_S = 5.0


class AddressCheck:
    """The guard's rules for page sources that do not dial through the guard.

    A service or a library that fetches by itself resolves the name once more, so this keeps
    private addresses from being handed over; it cannot bind what is dialled in the end.

    Args:
        allowed: `host` or `host:port` entries that may be handed over although private.
        resolver: Gives the addresses of a host.
    """

    def __init__(self, allowed: Iterable[str], *, resolver: Resolver = resolve) -> None:
        self._guard = GuardedBackend(AllowList(allowed), resolver=resolver)

    async def check(self, url: str) -> None:
        """Return when every address of the URL's host may be contacted.

        Args:
            url: A canonical URL.

        Raises:
            RefusedAddressError: An address or the port is private, special or unusual.
            FetchError: The name has no address, or the name service does not answer.
        """
        target = URL(url)
        port = int(target.port) if target.port else (443 if target.protocol == "https:" else 80)
        try:
            async with asyncio.timeout(_RESOLVE_TIMEOUT_S):
                await self._guard.checked_addresses(target.hostname.strip("[]"), port)
        except AddressRefused as error:
            raise RefusedAddressError(
                # In the message, as reports of several pages keep only that.
                f"'{target.hostname}' may not be contacted: {error}. If it is yours, allow it: "
                f"--allow-host {target.host}, or set WEBRAG_ALLOW_HOSTS={target.host}.",
                url=url,
            ) from error
        except NameNotFound as error:
            raise FetchError(
                f"'{target.hostname}' could not be reached: {error}.", url=url
            ) from error
        except TimeoutError as error:
            raise FetchError(
                f"The name '{target.hostname}' was not found in time.", url=url
            ) from error
