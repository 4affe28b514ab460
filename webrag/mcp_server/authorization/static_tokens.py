"""Bearer tokens that the operator gives out: one for all, or a table with names and scopes."""

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mcp.server.auth.provider import AccessToken
from typing_extensions import override

from webrag.errors import ConfigurationError
from webrag.mcp_server.authorization.callers import SCOPES, Caller, TokenCheck, collection_name

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
