"""Settings of who may use the MCP server over HTTP, and how much. Values only; no I/O."""

import ipaddress
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel

from webrag.settings.fields import KEY_TEXT, CommaList, Secret, checked_http_url, setting

__all__ = ["AccessSettings"]

_SECURE_URL_TEXT = (
    "an https:// URL without a user name, query or fragment (http:// on a loopback host only)"
)
_CLAIM_TEXT = "the name of a claim whose value is text, such as `sub` or `team`"
_COUNT_TEXT = "a whole number from 1"


def _secure_url(value: str) -> str:
    # Kept as written: an issuer is compared character by character, its last slash included.
    checked_http_url(value)
    parts = urlsplit(value)
    if parts.query or parts.fragment:
        raise ValueError("holds a query or a fragment")
    if parts.scheme != "https" and not _is_loopback(parts.hostname or ""):
        raise ValueError("is neither https nor on this machine")
    return value


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


SecureUrl = Annotated[str, AfterValidator(_secure_url)]


def _limit(description: str) -> int | None:
    limit: int | None = setting(
        None,
        description,
        read_by="MCP server",
        allowed=_COUNT_TEXT,
        default_text="no limit",
        ge=1,
        le=10**15,
    )
    return limit


class AccessSettings(BaseModel):
    """Callers of the MCP server."""

    mcp_tokens_file: Path | None = setting(
        None,
        "File with one named bearer token a line: name, scopes, token, and optionally a "
        "collection.",
        read_by="MCP server",
        allowed="a path",
    )
    mcp_oauth_issuer: SecureUrl | None = setting(
        None,
        "Authorization server whose tokens are accepted, exactly as its tokens name it.",
        read_by="MCP server",
        allowed=_SECURE_URL_TEXT,
    )
    mcp_oauth_audience: CommaList = setting(
        (),
        "Audiences of tokens that are meant for this server.",
        read_by="MCP server",
        allowed="comma-separated audiences",
        default_text="`MCP_PUBLIC_URL` and `/mcp`",
    )
    mcp_oauth_jwks_url: SecureUrl | None = setting(
        None,
        "Where the keys of the authorization server are.",
        read_by="MCP server",
        allowed=_SECURE_URL_TEXT,
        default_text="what the issuer's metadata says",
    )
    mcp_oauth_introspection_url: SecureUrl | None = setting(
        None,
        "Where to ask about every token (RFC 7662), in place of checking its signature.",
        read_by="MCP server",
        allowed=_SECURE_URL_TEXT,
    )
    mcp_oauth_client_id: str | None = setting(
        None,
        "Name under which this server asks about tokens.",
        read_by="MCP server",
        allowed="a client name without a colon",
        pattern=r"^[!-9;-~]{1,200}$",
    )
    mcp_oauth_client_secret: Secret | None = setting(
        None, "Secret that goes with it.", read_by="MCP server", allowed=KEY_TEXT
    )
    collection_claim: str | None = setting(
        None,
        "Claim of a caller's token that says whose collection is used; each value has its own.",
        read_by="MCP server",
        env="WEBRAG_COLLECTION_CLAIM",
        allowed=_CLAIM_TEXT,
        default_text="all callers share `WEBRAG_COLLECTION`",
        pattern=r"^[A-Za-z0-9_.:/-]{1,200}$",
    )
    mcp_max_open_collections: int = setting(
        8,
        "Collections of callers kept open at once; the one unused for longest is closed first.",
        read_by="MCP server",
        ge=1,
        le=1000,
    )
    mcp_calls_per_minute: int | None = _limit("Calls of one caller within 60 seconds.")
    mcp_calls_per_day: int | None = _limit("Calls of one caller in one day (UTC).")
    mcp_pages_per_day: int | None = _limit("Pages requested for one caller in one day (UTC).")
    mcp_bytes_per_day: int | None = _limit(
        "Bytes of pages received for one caller in one day (UTC), as decoded."
    )
