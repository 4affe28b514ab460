"""Finds the holder of an access token of the authorization server; issues none."""

import asyncio
import json
import logging
import ssl
import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import httpx2
import jwt
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls as metadata_urls,
)
from mcp.server.auth.provider import AccessToken
from typing_extensions import override

from webrag.mcp_server.authorization.callers import (
    Caller,
    InvalidTokenError,
    TokenCheck,
    UncheckedTokenError,
    collection_of_claims,
)

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


async def _ask(url: str) -> dict[str, Any]:
    """The object in a 200 answer; the message of an UncheckedTokenError is for the log."""
    try:
        async with (
            asyncio.timeout(_DEADLINE_S),
            # No proxy of the environment: it could answer with keys of its own.
            httpx2.AsyncClient(verify=_tls(), trust_env=False, follow_redirects=False) as client,
            client.stream("GET", url, headers={"Accept": "application/json"}) as answer,
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


class KeySet:
    """The public keys of one issuer, whose metadata names their place where no `url` does."""

    def __init__(self, issuer: str, url: str | None) -> None:
        self._issuer = issuer
        self._url = url
        self._keys: list[Mapping[str, Any]] = []
        self._asked_at = self._failed_at = self._searched_at = -1e9
        self._asking = asyncio.Lock()

    async def candidates(self, kid: str | None) -> list[Mapping[str, Any]]:
        """The keys a token may have been signed with: those of that id, without one all."""
        started = time.monotonic()
        await self._refresh(max_age_s=_FRESH_S)
        found = self._named(kid)
        may_search = started - self._searched_at >= _BETWEEN_ASKING_S
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
            pause_s = _BETWEEN_ASKING_S if age_s < _USABLE_S else _AFTER_FAILURE_S
            if time.monotonic() - self._failed_at < pause_s:
                failure: UncheckedTokenError | None = UncheckedTokenError("it failed just now")
            else:
                failure = await self._fetch()
            if failure is not None and (since is not None or age_s >= _USABLE_S):
                raise failure

    async def _fetch(self) -> UncheckedTokenError | None:
        try:
            url = self._url or await self._discovered()
            keys = _keys(url, await _ask(url))
        except UncheckedTokenError as error:
            logger.warning("The keys of %s could not be obtained: %s", self._issuer, error)
            self._failed_at = time.monotonic()
            return error
        self._keys = keys
        self._asked_at = time.monotonic()
        return None

    async def _discovered(self) -> str:
        failures: list[str] = []
        for url in metadata_urls(self._issuer, self._issuer):
            try:
                return self._jwks_uri(url, await _ask(url))
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


# Only algorithms with a public key, each with the kind of key it needs. With HS256 a public key
# would be the secret.
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_KINDS = {"ES256": "EC", "ES384": "EC", "ES512": "EC", "EdDSA": "OKP"} | dict.fromkeys(_RSA, "RSA")
ALGORITHMS = tuple(_KINDS)
# RFC 9068 says at+jwt, many servers say JWT or nothing; others are logout tokens and the like.
_TYPES = ("at+jwt", "application/at+jwt", "jwt", "")
_LEEWAY_S = 30
_LONGEST_TOKEN = 16_384
_MOST_KEYS_TRIED = 4


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    value = claims.get(name)
    return value if isinstance(value, str) and value else None


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    # RFC 9068 says `scope`, a text; some servers say `scp`, a text or a list.
    value = claims.get("scope", claims.get("scp"))
    if isinstance(value, str):
        return frozenset(value.split())
    if isinstance(value, list):
        return frozenset(each for each in value if isinstance(each, str))
    return frozenset()


class SignedTokens(TokenCheck):
    """JSON Web Tokens for one of the audiences, checked with the issuer's keys.

    Collections are named after `claim`; without it all share `base`.
    """

    def __init__(
        self, issuer: str, keys: KeySet, audiences: Sequence[str], *, base: str, claim: str | None
    ) -> None:
        self._issuer = issuer
        self._keys = keys
        self._audiences = tuple(audiences)
        self._base = base
        self._claim = claim

    @override
    async def caller(self, token: str) -> Caller | None:
        """The caller; every token that reaches this is taken for one of the issuer's."""
        algorithm, kid = _header(token)
        candidates = [key for key in await self._keys.candidates(kid) if _may_sign(key, algorithm)]
        if not candidates:
            raise InvalidTokenError("The token is signed with a key that its issuer does not have.")
        failure: jwt.PyJWTError | None = None
        for key in candidates[:_MOST_KEYS_TRIED]:
            try:
                claims = self._decoded(token, key, algorithm)
            except jwt.InvalidSignatureError as error:
                failure = error
            except jwt.PyJWTError as error:
                raise InvalidTokenError(_reason(error)) from error
            else:
                return self._told(claims)
        assert failure is not None
        raise InvalidTokenError(_reason(failure)) from failure

    def _told(self, claims: Mapping[str, Any]) -> Caller:
        """The caller, unless the token is bound to a key or says nothing of who holds it."""
        if "cnf" in claims:
            # Taking it without that key would let a thief use it.
            raise InvalidTokenError("The token is bound to a key and cannot be used as a bearer.")
        subject = _text(claims, "sub")
        client = _text(claims, "client_id") or _text(claims, "azp")
        if subject is None and client is None:
            raise InvalidTokenError("The token names neither a subject nor a client.")
        scopes = _scopes(claims)
        access = AccessToken(
            token="",
            client_id=client or "",
            scopes=sorted(scopes),
            subject=subject,
            claims={"iss": self._issuer},
        )
        name = f"subject {subject}" if subject is not None else f"client {client}"
        collection = collection_of_claims(self._base, self._claim, claims)
        return Caller(name, scopes, collection, access)

    def _decoded(self, token: str, key: Mapping[str, Any], algorithm: str) -> dict[str, Any]:
        try:
            return jwt.decode(
                token,
                # The algorithm of a key without one is guessed from its kind: RS256 for PS256.
                jwt.PyJWK(dict(key), algorithm),
                algorithms=[algorithm],
                audience=self._audiences,
                issuer=self._issuer,
                leeway=_LEEWAY_S,
                options={
                    "require": ["exp", "iss", "aud"],
                    "enforce_minimum_key_length": True,
                },
            )
        except (RecursionError, ValueError, TypeError) as error:
            raise jwt.DecodeError("not readable") from error


def _header(token: str) -> tuple[str, str | None]:
    """Algorithm and key id, neither of which is to be believed yet."""
    if len(token) > _LONGEST_TOKEN:
        raise InvalidTokenError(f"The token is longer than {_LONGEST_TOKEN:,} characters.")
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, RecursionError, ValueError, TypeError) as error:
        raise InvalidTokenError("The token is not a JSON Web Token.") from error
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ", "")
    if not isinstance(algorithm, str) or algorithm not in _KINDS:
        raise InvalidTokenError(
            f"The token is not signed in a way that is accepted: {', '.join(ALGORITHMS)}."
        )
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise InvalidTokenError("The token is not an access token.")
    if "crit" in header:
        raise InvalidTokenError("The token has header parameters that are not understood.")
    return algorithm, kid if isinstance(kid, str) else None


def _may_sign(key: Mapping[str, Any], algorithm: str) -> bool:
    return (
        key.get("kty") == _KINDS[algorithm]
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
    )


_REASONS: tuple[tuple[type[jwt.PyJWTError], str], ...] = (
    (jwt.ExpiredSignatureError, "The token has expired."),
    (jwt.ImmatureSignatureError, "The token is not valid yet."),
    (jwt.InvalidAudienceError, "The token is meant for another server."),
    (jwt.InvalidIssuerError, "The token is from another issuer."),
    (jwt.MissingRequiredClaimError, "The token lacks an expiry, an issuer or an audience."),
    (jwt.InvalidSignatureError, "The token's signature is wrong."),
)


def _reason(error: jwt.PyJWTError) -> str:
    fitting = (text for kind, text in _REASONS if isinstance(error, kind))
    return next(fitting, "The token cannot be read.")
