from typing import Any

import pytest
from mcp.server.transport_security import TransportSecurityMiddleware
from starlette.requests import Request

from webrag.mcp_server.access import is_loopback, transport_security
from webrag.settings import load_settings


async def refused(headers: dict[str, str], **settings: Any) -> int | None:
    """Status of the refusal; None when the request is let through."""
    security = transport_security(load_settings(**settings))
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    request = Request({"type": "http", "method": "GET", "headers": raw})
    response = await TransportSecurityMiddleware(security).validate_request(request)
    return None if response is None else response.status_code


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::", "192.0.2.7"])
async def test_foreign_host_is_refused_on_every_bind(host: str) -> None:
    assert await refused({"Host": "evil.example:8765"}, mcp_host=host) == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost.evil.example"])
async def test_foreign_origin_is_refused_on_every_bind(host: str, origin: str) -> None:
    headers = {"Host": "localhost:8765", "Origin": origin}

    assert await refused(headers, mcp_host=host) == 403


@pytest.mark.parametrize(
    ("host", "settings"),
    [
        pytest.param("127.0.0.1:8765", {}, id="address"),
        pytest.param("localhost", {}, id="without port"),
        pytest.param("[::1]:8765", {}, id="IPv6"),
        pytest.param("192.0.2.7:8765", {"mcp_host": "192.0.2.7"}, id="bind address"),
        pytest.param("rag.example", {"mcp_public_url": "https://rag.example"}, id="public URL"),
        pytest.param("rag.example:99", {"mcp_allowed_hosts": ["rag.example"]}, id="any port"),
        pytest.param("rag.example:99", {"mcp_allowed_hosts": ["rag.example:99"]}, id="one port"),
    ],
)
async def test_named_host_is_accepted(host: str, settings: dict[str, Any]) -> None:
    assert await refused({"Host": host}, **settings) is None


async def test_port_that_was_not_named_is_refused() -> None:
    assert await refused({"Host": "rag.example:98"}, mcp_allowed_hosts=["rag.example:99"]) == 421


@pytest.mark.parametrize(
    ("origin", "settings"),
    [
        pytest.param("http://localhost:6274", {}, id="loopback"),
        pytest.param("https://rag.example", {"mcp_public_url": "https://rag.example"}, id="own"),
        pytest.param("https://a.example", {"mcp_allowed_origins": ["https://a.example"]}, id="set"),
    ],
)
async def test_named_origin_is_accepted(origin: str, settings: dict[str, Any]) -> None:
    assert await refused({"Host": "localhost", "Origin": origin}, **settings) is None


@pytest.mark.parametrize(
    ("host", "is_private"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)],
)
def test_loopback_is_told_from_what_others_can_reach(host: str, is_private: bool) -> None:
    assert is_loopback(host) == is_private
