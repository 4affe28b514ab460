"""Asks the authorization server that the operator named; judges no token itself.

Addresses come from settings and from the metadata of the configured issuer, never from a token.
"""

import asyncio
import json
import logging
import ssl
import time
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx2

from webrag.mcp_server.authorization.callers import UncheckedTokenError

logger = logging.getLogger(__name__)

_DEADLINE_S = 5.0
_MAX_BYTES = 512_000
# Keys that were taken back stay valid for so long at most, and a server that is down is missed
# only after so long.
_FRESH_S = 600.0
_USABLE_S = 3600.0
# Tokens with made-up key ids must not make us ask more often.
_BETWEEN_ASKING_S = 30.0
_AFTER_FAILURE_S = 2.0


@cache
def _tls() -> ssl.SSLContext:
    return httpx2.create_ssl_context(trust_env=False)


async def _ask(method: str, url: str, **options: Any) -> dict[str, Any]:
    """The object in a 200 answer.

    Raises:
        UncheckedTokenError: There was none in time; the message is for the log.
    """
    try:
        async with (
            asyncio.timeout(_DEADLINE_S),
            # No proxy of the environment: it would see client secrets and could answer with keys.
            httpx2.AsyncClient(verify=_tls(), trust_env=False, follow_redirects=False) as client,
            client.stream(method, url, headers={"Accept": "application/json"}, **options) as answer,
        ):
            if answer.status_code != httpx2.codes.OK:
                raise UncheckedTokenError(f"{url} answered with status {answer.status_code}")
            body = bytearray()
            async for part in answer.aiter_bytes():
                body += part
                if len(body) > _MAX_BYTES:
                    raise UncheckedTokenError(f"{url} answered with more than {_MAX_BYTES} bytes")
            found = json.loads(body)
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, OSError) as error:
        reason = str(error) or type(error).__name__
        raise UncheckedTokenError(f"{url} could not be asked: {reason}") from error
    except (ValueError, RecursionError) as error:
        raise UncheckedTokenError(f"{url} did not answer with JSON") from error
    if not isinstance(found, dict):
        raise UncheckedTokenError(f"{url} did not answer with a JSON object")
    return found


def metadata_urls(issuer: str) -> list[str]:
    """Where the metadata of an issuer may be: RFC 8414 first, then OpenID Connect."""
    parts = urlsplit(issuer)
    root, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    return list(
        dict.fromkeys(
            (
                f"{root}/.well-known/oauth-authorization-server{path}",
                f"{root}/.well-known/openid-configuration{path}",
                f"{root}{path}/.well-known/openid-configuration",
            )
        )
    )


class KeySet:
    """The public keys of one issuer, kept for a while.

    Args:
        issuer: As its metadata must name it.
        url: Where the keys are; None to look into the metadata.
        fresh_s: Age from which the keys are asked for again.
        usable_s: Age from which they are not used any more when asking fails.
        between_s: Least time between two requests for a key id that is not known.
        after_failure_s: Time in which a failure is not tried again.
    """

    def __init__(
        self,
        issuer: str,
        url: str | None = None,
        *,
        fresh_s: float = _FRESH_S,
        usable_s: float = _USABLE_S,
        between_s: float = _BETWEEN_ASKING_S,
        after_failure_s: float = _AFTER_FAILURE_S,
    ) -> None:
        self._issuer = issuer
        self._url = url
        self._fresh_s = fresh_s
        self._usable_s = usable_s
        self._between_s = between_s
        self._after_failure_s = after_failure_s
        self._keys: list[Mapping[str, Any]] = []
        self._asked_at = self._failed_at = self._searched_at = -1e9
        self._asking = asyncio.Lock()

    async def candidates(self, kid: str | None) -> list[Mapping[str, Any]]:
        """The keys a token may have been signed with: those of that id, without one all.

        Raises:
            UncheckedTokenError: The keys cannot be obtained.
        """
        started = time.monotonic()
        await self._refresh(max_age_s=self._fresh_s)
        found = self._named(kid)
        may_search = started - self._searched_at >= self._between_s
        if not found and may_search and self._asked_at < started:
            await self._refresh(max_age_s=0.0, since=started)
            self._searched_at = started
            found = self._named(kid)
        return found

    def _named(self, kid: str | None) -> list[Mapping[str, Any]]:
        return [key for key in self._keys if kid is None or key.get("kid") == kid]

    async def _refresh(self, *, max_age_s: float, since: float | None = None) -> None:
        """Ask unless the keys are young enough; `since` makes older ones count as unusable."""
        if time.monotonic() - self._asked_at < max_age_s:
            return
        async with self._asking:
            age_s = time.monotonic() - self._asked_at
            # Another request may have asked while this one waited.
            if age_s < max_age_s or (since is not None and self._asked_at >= since):
                return
            # With keys at hand nobody has to wait for a server that does not answer.
            pause_s = self._between_s if age_s < self._usable_s else self._after_failure_s
            if time.monotonic() - self._failed_at < pause_s:
                failure: UncheckedTokenError | None = UncheckedTokenError("it failed just now")
            else:
                failure = await self._fetch()
            if failure is not None and (since is not None or age_s >= self._usable_s):
                raise failure

    async def _fetch(self) -> UncheckedTokenError | None:
        try:
            url = self._url or await self._discovered()
            keys = _keys(url, await _ask("GET", url))
        except UncheckedTokenError as error:
            logger.warning("The keys of %s could not be obtained: %s", self._issuer, error)
            self._failed_at = time.monotonic()
            return error
        self._keys = keys
        self._asked_at = time.monotonic()
        return None

    async def _discovered(self) -> str:
        failures: list[str] = []
        for url in metadata_urls(self._issuer):
            try:
                return self._jwks_uri(url, await _ask("GET", url))
            except UncheckedTokenError as error:
                failures.append(str(error))
        raise UncheckedTokenError("; ".join(failures))

    def _jwks_uri(self, url: str, metadata: Mapping[str, Any]) -> str:
        if metadata.get("issuer") != self._issuer:
            raise UncheckedTokenError(f"{url} is the metadata of another issuer")
        found = metadata.get("jwks_uri")
        # No weaker than the issuer itself, which settings want to be https or on this machine.
        secure = ("https://", f"{self._issuer.partition('://')[0]}://")
        if not isinstance(found, str) or not found.startswith(secure):
            raise UncheckedTokenError(f"{url} names no jwks_uri that can be used")
        return found


def _keys(url: str, answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    keys = answer.get("keys")
    if not isinstance(keys, list):
        raise UncheckedTokenError(f"{url} did not answer with a set of keys")
    return [key for key in keys if isinstance(key, dict)]


class IntrospectionEndpoint:
    """RFC 7662.

    Args:
        url: Where to ask.
        credentials: Name and secret of this server there; None to ask without.
    """

    def __init__(self, url: str, credentials: tuple[str, str] | None) -> None:
        self._url = url
        self._credentials = credentials

    async def ask(self, token: str) -> Mapping[str, Any]:
        """What the server says of the token.

        Raises:
            UncheckedTokenError: It said nothing.
        """
        form = {"token": token, "token_type_hint": "access_token"}
        options: dict[str, Any] = {"data": form}
        if self._credentials is not None:
            options["auth"] = self._credentials
        try:
            return await _ask("POST", self._url, **options)
        except UncheckedTokenError as error:
            logger.warning("A token could not be introspected: %s", error)
            raise
