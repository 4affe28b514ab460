"""Callers, their rights, limits and collections, and the tokens that an operator gives out."""

import hashlib
import hmac
import json
import math
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from mcp.server.auth.provider import AccessToken
from typing_extensions import override

from webrag.errors import AccessDeniedError, ConfigurationError

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
    """The holder of a token, and their collection; None is the one that all share.

    The name tells callers apart in limits and the log; by the token the SDK keeps sessions apart.
    """

    name: str
    scopes: frozenset[str]
    collection: str | None
    token: AccessToken


class TokenCheck(Protocol):
    """One way to find out whom a token stands for."""

    async def caller(self, token: str) -> Caller | None:
        """Give the caller, None for a token of another kind.

        InvalidTokenError where it must not be accepted, AccessDeniedError where its caller may use
        nothing here, UncheckedTokenError where nobody could say.
        """


def needed_scopes(method: object, name: object) -> frozenset[str]:
    """The scopes that a message of the protocol needs, request or not."""
    more = _BEYOND_READING.get(name) if isinstance(name, str) else None
    if method != "tools/call" or more is None:
        return frozenset({READ})
    return frozenset({READ, more})


def missing_scopes(caller: Caller, tool: str | None) -> frozenset[str]:
    """The scopes that a caller lacks for a tool; None stands for reading a resource."""
    return needed_scopes("tools/call", tool) - caller.scopes


def collection_name(base: str, claim: str, value: str) -> str:
    """The collection of one value of a claim; two values never share one."""
    identity = json.dumps([base, claim, value], ensure_ascii=True).encode()
    digest = hashlib.sha256(identity).hexdigest()[:_HASH_CHARS]
    # The readable part is for whoever looks into the database; the hash alone tells them apart.
    slug = re.sub(r"[^a-z0-9]+", "_", value.lower())[:_SLUG_CHARS].strip("_")
    return "_".join(part for part in (base[:_BASE_CHARS], slug, digest) if part)


def collection_of_claims(base: str, claim: str | None, claims: Mapping[str, Any]) -> str | None:
    """The collection that a token's claims lead to; None when claims say nothing about it."""
    if claim is None:
        return None
    value = claims.get(claim)
    if not isinstance(value, str) or not value or len(value) > _LONGEST_VALUE:
        raise AccessDeniedError(
            f"The token says nothing usable about whose collection to use: its claim {claim!r} "
            "must be one text that is not empty."
        )
    return collection_name(base, claim, value)


_MINUTE = timedelta(seconds=60)


@dataclass(frozen=True)
class CallLimits:
    """Limits of one caller, None for no limit, within any 60 seconds and in each day of UTC.

    Pages are requests for them, successful or not; bytes are counted as decoded.
    """

    calls_per_minute: int | None = None
    calls_per_day: int | None = None
    pages_per_day: int | None = None
    bytes_per_day: int | None = None


class CallerUsage:
    """The use one caller has made of their limits, and the counter of the pages they ask for."""

    def __init__(
        self, limits: CallLimits, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._limits = limits
        self._now = now
        self._day: date | None = None
        self._calls = self._pages = self._bytes = 0
        self._recent: deque[datetime] = deque()  # goes on over midnight

    @property
    def is_idle(self) -> bool:
        """True once nothing counts any more: no call of today, and none within a minute."""
        now = self._now()
        is_recent = bool(self._recent) and now - self._recent[-1] < _MINUTE
        return self._day != now.date() and not is_recent

    def count_call(self) -> None:
        """Count one call, unless the caller may make no more for now."""
        limits, now = self._limits, self._today()
        if limits.calls_per_day is not None and self._calls >= limits.calls_per_day:
            raise AccessDeniedError(_until_tomorrow(f"{limits.calls_per_day:,} calls", now))
        if limits.calls_per_minute is not None:
            while self._recent and now - self._recent[0] >= _MINUTE:
                self._recent.popleft()
            if len(self._recent) >= limits.calls_per_minute:
                wait = math.ceil((self._recent[0] + _MINUTE - now).total_seconds())
                raise AccessDeniedError(
                    f"The limit of {limits.calls_per_minute:,} calls a minute is reached; try "
                    f"again in {wait} s."
                )
            self._recent.append(now)
        self._calls += 1

    def refusal(self) -> str | None:
        """Say why no further page may be requested; None counts one."""
        limits, now = self._limits, self._today()
        if limits.pages_per_day is not None and self._pages >= limits.pages_per_day:
            return _until_tomorrow(f"{limits.pages_per_day:,} pages", now)
        if limits.bytes_per_day is not None and self._bytes >= limits.bytes_per_day:
            return _until_tomorrow(f"{limits.bytes_per_day:,} bytes of pages", now)
        self._pages += 1
        return None

    def received(self, size: int) -> None:
        """Count the bytes of a page; the one that passes the limit is still used."""
        self._today()
        self._bytes += size

    def _today(self) -> datetime:
        now = self._now()
        if now.date() != self._day:
            self._day = now.date()
            self._calls = self._pages = self._bytes = 0
        return now


def _until_tomorrow(what: str, now: datetime) -> str:
    midnight = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), UTC)
    minutes = math.ceil((midnight - now).total_seconds() / 60)
    wait = f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
    return f"The limit of {what} a day is reached; try again after 00:00 UTC, in {wait}."


_SHORTEST = 16
_MOST_BYTES = 1_000_000
_NAME = re.compile(r"[A-Za-z0-9_.@+-]{1,100}")
_HASHED = re.compile(r"sha256:([0-9a-f]{64})")
_PLAIN = re.compile(rf"[!-~]{{{_SHORTEST},500}}")
_FORM = "name, scopes, token, and optionally a collection, separated by white space"
_SHORT_SCOPES = {scope.partition(":")[2]: scope for scope in SCOPES} | {
    each: each for each in SCOPES
}


@dataclass(frozen=True, repr=False)
class StaticToken:
    """One line of the table: the token's SHA-256, and what its collection is named after."""

    name: str
    digest: bytes
    scopes: frozenset[str]
    value: str


def digest_of(token: str) -> bytes:
    """Compared and kept in place of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


class StaticTokens(TokenCheck):
    """Compares digests, every one for every request, so that the time tells nothing.

    The `shared` token may do everything, in `base`; others' collections are named after `claim`.
    """

    def __init__(
        self,
        table: Sequence[StaticToken] = (),
        *,
        shared: str | None = None,
        base: str = "webrag",
        claim: str | None = None,
    ) -> None:
        self._callers = [(entry.digest, _caller(entry, base, claim)) for entry in table]
        if shared is not None:
            access = AccessToken(token="", client_id="webrag-client", scopes=list(SCOPES))
            everything = Caller("the shared token", frozenset(SCOPES), None, access)
            self._callers.append((digest_of(shared), everything))

    @override
    async def caller(self, token: str) -> Caller | None:
        """The holder of the token; None when it is not in the table."""
        digest = digest_of(token)
        found = None
        for known, caller in self._callers:
            if hmac.compare_digest(digest, known):
                found = caller
        return found


def _caller(entry: StaticToken, base: str, claim: str | None) -> Caller:
    access = AccessToken(token="", client_id=f"token:{entry.name}", scopes=sorted(entry.scopes))
    collection = None if claim is None else collection_name(base, claim, entry.value)
    return Caller(f"token {entry.name}", entry.scopes, collection, access)


def read_tokens(path: Path) -> list[StaticToken]:
    """The table in a file."""
    try:
        with path.expanduser().open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ConfigurationError(
                f"MCP_TOKENS_FILE names {str(path)!r}, which is larger than {_MOST_BYTES:,} bytes."
            )
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise ConfigurationError(
            f"MCP_TOKENS_FILE names {str(path)!r}, which cannot be read: {error.strerror}."
        ) from None
    except UnicodeDecodeError:
        raise ConfigurationError(
            f"MCP_TOKENS_FILE names {str(path)!r}, which is not UTF-8 text."
        ) from None
    return parse_tokens(text)


def parse_tokens(text: str) -> list[StaticToken]:
    """Read the table, empty and `#` lines left out; what is malformed or there twice is refused."""
    table: list[StaticToken] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            entry = _parse_line(number, line)
            if any(entry.name == each.name for each in table):
                raise _wrong(number, "gives a name a second time")
            if any(entry.digest == each.digest for each in table):
                raise _wrong(number, "gives a token a second time")
            table.append(entry)
    if not table:
        raise ConfigurationError(f"MCP_TOKENS_FILE holds no token; a line is {_FORM}.")
    return table


def _parse_line(number: int, line: str) -> StaticToken:
    parts = line.split()
    if not 3 <= len(parts) <= 4:
        raise _wrong(number, f"has {len(parts)} columns; a line is {_FORM}")
    name, scopes, token = parts[:3]
    if not _NAME.fullmatch(name):
        raise _wrong(number, "has a name with other characters than letters, digits and _.@+-")
    value = parts[3] if parts[3:] else name
    allowed = _scopes(number, scopes)
    return StaticToken(name, _digest(number, token), allowed, value)


def _scopes(number: int, text: str) -> frozenset[str]:
    named = text.split(",")
    if unknown := [each for each in named if each not in _SHORT_SCOPES]:
        allowed = ", ".join(scope.partition(":")[2] for scope in SCOPES)
        # A line whose columns are swapped has its token here.
        known = len(unknown) == 1 and len(unknown[0]) < _SHORTEST
        which = f"the scope {unknown[0]!r}" if known else "scopes"
        raise _wrong(number, f"has {which} but allowed are {allowed}, separated by commas")
    return frozenset(_SHORT_SCOPES[each] for each in named)


def _digest(number: int, token: str) -> bytes:
    if hashed := _HASHED.fullmatch(token):
        return bytes.fromhex(hashed[1])
    if token.startswith("sha256:") or not _PLAIN.fullmatch(token):
        raise _wrong(
            number,
            f"has a token that is neither `sha256:` and 64 lower-case hexadecimal digits nor "
            f"{_SHORTEST} to 500 printable ASCII characters",
        )
    return digest_of(token)


def _wrong(number: int, what: str) -> ConfigurationError:
    return ConfigurationError(
        f"Line {number} of MCP_TOKENS_FILE {what}.", hint="docs/clients.md shows an example."
    )
