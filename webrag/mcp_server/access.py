"""Who may talk to the HTTP server: its bearer token, and who can reach it at all. No I/O here."""

import hashlib
import hmac
import ipaddress

from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from pydantic import AnyHttpUrl
from typing_extensions import override

from webrag.settings import Settings

__all__ = ["StaticTokenVerifier", "auth_settings", "is_loopback"]


class StaticTokenVerifier(TokenVerifier):
    """Accepts one token; compared by digest, so that the time tells nothing about it.

    Args:
        token: What requests must carry.
    """

    def __init__(self, token: str) -> None:
        self._digest = _digest(token)

    @override
    async def verify_token(self, token: str) -> AccessToken | None:
        """Who the token stands for; None when it is not the right one."""
        if not hmac.compare_digest(_digest(token), self._digest):
            return None
        # The SDK ties each session to this id, so a session cannot be used without the token.
        return AccessToken(token=token, client_id="webrag-client", scopes=[])


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def auth_settings(settings: Settings) -> AuthSettings | None:
    """What the SDK wants to know beside a verifier; None without a token.

    No metadata for OAuth is published: with a token from a setting there is no server that could
    issue one, and clients that find metadata try to register there instead of saying "401".
    """
    if settings.mcp_auth_token is None:
        return None
    own = settings.mcp_public_url or f"http://localhost:{settings.mcp_port}"
    return AuthSettings(
        issuer_url=AnyHttpUrl(own), resource_server_url=None, validate_token_resource=False
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server bound to this address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
