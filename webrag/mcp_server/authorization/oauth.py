"""Whom an access token of the authorization server stands for; issues none."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import jwt
from mcp.server.auth.provider import AccessToken
from typing_extensions import override

from webrag.mcp_server.authorization.callers import (
    Caller,
    InvalidTokenError,
    TokenCheck,
    collection_of_claims,
)
from webrag.mcp_server.authorization.issuer import IntrospectionEndpoint, KeySet

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
_REMEMBERED_S = 30.0
_MOST_REMEMBERED = 1000


class ClaimReader:
    """Reads a caller out of claims that were found to be true.

    Args:
        issuer: Who issues the tokens.
        audiences: Names of this server; a token must be meant for one of them.
        base: The server's own collection.
        claim: What collections are named after; None when all share one.
    """

    def __init__(
        self, issuer: str, audiences: Sequence[str], *, base: str, claim: str | None
    ) -> None:
        self.issuer = issuer
        self.audiences = tuple(audiences)
        self._base = base
        self._claim = claim

    def caller(self, claims: Mapping[str, Any]) -> Caller:
        """The caller.

        Raises:
            InvalidTokenError: The token is bound to a key, or says nothing of who holds it.
            AccessDeniedError: It does not say whose collection to use.
        """
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
            claims={"iss": self.issuer},
        )
        name = f"subject {subject}" if subject is not None else f"client {client}"
        collection = collection_of_claims(self._base, self._claim, claims)
        return Caller(name, scopes, collection, access)


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
    """JSON Web Tokens, checked with the issuer's keys.

    Args:
        claims: Knows who must have issued them, and for whom.
        keys: The issuer's.
    """

    def __init__(self, claims: ClaimReader, keys: KeySet) -> None:
        self._claims = claims
        self._keys = keys

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
                return self._claims.caller(claims)
        assert failure is not None
        raise InvalidTokenError(_reason(failure)) from failure

    def _decoded(self, token: str, key: Mapping[str, Any], algorithm: str) -> dict[str, Any]:
        try:
            return jwt.decode(
                token,
                # The algorithm of a key without one is guessed from its kind: RS256 for PS256.
                jwt.PyJWK(dict(key), algorithm),
                algorithms=[algorithm],
                audience=self._claims.audiences,
                issuer=self._claims.issuer,
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


class IntrospectedTokens(TokenCheck):
    """Tokens of any form, checked by asking the server that issued them.

    What it says is remembered for 30 s at most, so a token that was taken back is refused soon.

    Args:
        claims: Knows who must have issued them, and for whom.
        endpoint: Where to ask.
        remembered_s: How long an answer is remembered.
    """

    def __init__(
        self,
        claims: ClaimReader,
        endpoint: IntrospectionEndpoint,
        *,
        remembered_s: float = _REMEMBERED_S,
    ) -> None:
        self._claims = claims
        self._endpoint = endpoint
        self._remembered_s = remembered_s
        self._remembered: OrderedDict[bytes, tuple[float, Mapping[str, Any]]] = OrderedDict()

    @override
    async def caller(self, token: str) -> Caller | None:
        """The caller; every token that reaches this is asked about."""
        if len(token) > _LONGEST_TOKEN:
            raise InvalidTokenError(f"The token is longer than {_LONGEST_TOKEN:,} characters.")
        claims = await self._known(token)
        if claims.get("active") is not True:
            raise InvalidTokenError("The token is not valid, or not any more.")
        self._check(claims)
        return self._claims.caller(claims)

    async def _known(self, token: str) -> Mapping[str, Any]:
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        found = self._remembered.get(digest)
        if found is not None and time.monotonic() - found[0] < self._remembered_s:
            return found[1]
        claims = await self._endpoint.ask(token)
        self._remembered[digest] = (time.monotonic(), claims)
        while len(self._remembered) > _MOST_REMEMBERED:
            self._remembered.popitem(last=False)
        return claims

    def _check(self, claims: Mapping[str, Any]) -> None:
        now = time.time()
        if claims.get("iss", self._claims.issuer) != self._claims.issuer:
            raise InvalidTokenError("The token is from another issuer.")
        audience = claims.get("aud")
        named = audience if isinstance(audience, list) else [audience]
        if not any(each in self._claims.audiences for each in named if isinstance(each, str)):
            raise InvalidTokenError("The token is meant for another server.")
        if not _number(claims, "exp", now) > now - _LEEWAY_S:
            raise InvalidTokenError("The token has expired.")
        if not _number(claims, "nbf", now) <= now + _LEEWAY_S:
            raise InvalidTokenError("The token is not valid yet.")


def _number(claims: Mapping[str, Any], name: str, default: float) -> float:
    value = claims.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidTokenError(f"The token's {name} is not a number.")
    return value
