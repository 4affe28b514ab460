"""Who calls, what they may do, and which collection is theirs. No I/O here."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mcp.server.auth.provider import AccessToken

from webrag.errors import AccessDeniedError

CALLER = "webrag.caller"
"""Where the ASGI scope of a request that was let in has its caller."""

READ, WRITE, FORGET = "webrag:read", "webrag:write", "webrag:forget"
SCOPES = (READ, WRITE, FORGET)

# `answer` fetches and stores whatever address it is given, and pages that those link to.
_BEYOND_READING: Mapping[str, str] = {"answer": WRITE, "ingest": WRITE, "forget": FORGET}
_LONGEST_VALUE = 1000
_SLUG_CHARS = 12
_BASE_CHARS = 10
# 96 bits: nobody can choose a value that leads to a given collection.
_HASH_CHARS = 24


class InvalidTokenError(Exception):
    """Catch it to ask for another token; the message says why, and holds nothing of the token."""


class UncheckedTokenError(Exception):
    """Catch it to refuse for now: whoever could vouch for the token cannot be asked."""


@dataclass(frozen=True)
class Caller:
    """Whom a token stands for.

    Attributes:
        name: Tells callers apart in limits and in the log.
        scopes: What they may do.
        collection: Theirs; None for the one that all share.
        token: As the SDK wants it, so that sessions belong to who opened them.
    """

    name: str
    scopes: frozenset[str]
    collection: str | None
    token: AccessToken


class TokenCheck(Protocol):
    """One way to find out whom a token stands for."""

    async def caller(self, token: str) -> Caller | None:
        """The caller; None when it is not a token of this kind.

        Raises:
            InvalidTokenError: It is, but must not be accepted.
            AccessDeniedError: Its caller may use nothing here.
            UncheckedTokenError: Nobody could say.
        """


def needed_scopes(method: object, name: object) -> frozenset[str]:
    """What a caller needs for a message of the protocol.

    Args:
        method: Such as `tools/call`; anything that is no request needs `webrag:read` as well.
        name: Of the tool.
    """
    more = _BEYOND_READING.get(name) if isinstance(name, str) else None
    if method != "tools/call" or more is None:
        return frozenset({READ})
    return frozenset({READ, more})


def missing_scopes(caller: Caller, tool: str | None) -> frozenset[str]:
    """What a caller lacks for a tool; None stands for reading a resource."""
    return needed_scopes("tools/call", tool) - caller.scopes


def collection_name(base: str, claim: str, value: str) -> str:
    """The collection of one value of a claim; two values never share one.

    Args:
        base: Collection of the server, which is none of these.
        claim: Its name.
        value: Any text.
    """
    identity = json.dumps([base, claim, value], ensure_ascii=True).encode()
    digest = hashlib.sha256(identity).hexdigest()[:_HASH_CHARS]
    # The readable part is for whoever looks into the database; the hash alone tells them apart.
    slug = re.sub(r"[^a-z0-9]+", "_", value.lower())[:_SLUG_CHARS].strip("_")
    return "_".join(part for part in (base[:_BASE_CHARS], slug, digest) if part)


def collection_of_claims(base: str, claim: str | None, claims: Mapping[str, Any]) -> str | None:
    """The collection that a token's claims lead to; None when claims say nothing about it.

    Raises:
        AccessDeniedError: The token lacks the claim, or its value is not one text.
    """
    if claim is None:
        return None
    value = claims.get(claim)
    if not isinstance(value, str) or not value or len(value) > _LONGEST_VALUE:
        raise AccessDeniedError(
            f"The token says nothing usable about whose collection to use: its claim {claim!r} "
            "must be one text that is not empty."
        )
    return collection_name(base, claim, value)
