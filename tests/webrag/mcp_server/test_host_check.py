from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import Response

from webrag.mcp_server.request_checks import (
    Authority,
    HostCheck,
    allowed_names,
    parse_authority,
)
from webrag.settings import load_settings

Headers = dict[str, str] | list[tuple[str, str]]


async def refused(headers: Headers, path: str = "/mcp", **settings: Any) -> int | None:
    """Status of the refusal; None when the request is let through."""
    pairs = headers.items() if isinstance(headers, dict) else headers
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in pairs]
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    checked = HostCheck(
        Response(status_code=200),
        allowed_names(load_settings(**settings)),
        unchecked=frozenset({"/healthz"}),
    )
    scope = {"type": "http", "method": "GET", "path": path, "headers": raw}
    await checked(scope, _nothing, send)
    status = sent[0]["status"]
    return None if status == 200 else int(status)


async def _nothing() -> Any:
    raise AssertionError("the body is not read")


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


_LOCAL = ("127.0.0.1", "localhost", "[::1]")
_ACCEPTED_HOSTS = [
    "localhost", "LocalHost", "localhost:1", "localhost:80", "localhost:65535", "127.0.0.1",
    "127.0.0.1:8765", "[::1]", "[::1]:8765", "[0:0:0:0:0:0:0:1]", "[0000::0001]:443",
]  # fmt: skip
_REFUSED_HOSTS = [
    "localhost:evil.test", "localhost:80.evil.test", "localhost:", "localhost:0", "localhost:00",
    "localhost:080", "localhost:65536", "localhost:99999999999", "localhost:-1", "localhost:+80",
    "localhost: 80", "localhost:80 ", " localhost", "localhost ", "localhost\t", "local host",
    "localhost:80:80", "localhost:8\u00b2", "localhost:http", "localhost:80/", "localhost/", "",
    " ", ":", ":80", ".", "localhost.", "localhost..", ".localhost", "localhost..evil.test",
    "localhost.evil.test", "evil.test", "evil.test:localhost", "evil.localhost", "xlocalhost",
    "localhost-", "user@localhost", "localhost@evil.test", "localhost:80@evil.test",
    "localhost#evil.test", "localhost?evil.test", "localhost\\evil.test", "localhost%00",
    "localhost%2eevil.test", "http://localhost", "//localhost", "localhost,evil.test",
    "localhost, localhost", "localhost;", "localhost*", "*", "xn--lclhost-6ya", "l\u00f6calhost",
    "0x7f.1", "0x7f000001", "2130706433", "127.1", "127.0.0.01", "0177.0.0.1", "127.0.0.1.",
    "127.0.0.2", "0.0.0.0", "::1", "::1:8765", "[::1", "::1]", "[::1]x", "[::1]80", "[::1]:",
    "[::1]:0", "[::1]:80.evil.test", "[[::1]]", "[]", "[:]", "[localhost]", "[127.0.0.1]",
    "[::1%lo]", "[::1%25lo]", "[::ffff:127.0.0.1]", "[::2]", "[::]", "[v1.x]", "null",
    "localhost\x00", "a" * 300, "localhost:" + "8" * 5000,
]  # fmt: skip
_ACCEPTED_ORIGINS = [
    "http://localhost", "https://localhost", "http://localhost:6274", "HTTP://LOCALHOST:80",
    "http://127.0.0.1:1", "https://[::1]:65535", "http://[::1]",
]  # fmt: skip
_REFUSED_ORIGINS = [
    "http://localhost:80@evil.test", "http://localhost@evil.test", "http://user@localhost",
    "http://localhost:pass@localhost", "http://localhost:evil.test", "http://localhost:80.evil.test",
    "http://localhost.evil.test", "http://evil.test", "http://evil.test#http://localhost",
    "http://evil.test/http://localhost", "http://localhost/", "http://localhost/path",
    "http://localhost:80/", "http://localhost?x", "http://localhost#x", "http://localhost:",
    "http://localhost:0", "http://localhost:65536", "http://localhost.", "http:localhost",
    "http:/localhost", "http:///localhost", "//localhost", "localhost", "localhost:80", "null",
    "", " ", "http://", "https://", "ftp://localhost", "file://", "ws://localhost",
    "javascript://localhost", "data:text/html,x", "chrome-extension://localhost",
    "httpx://localhost", " http://localhost", "http://localhost ", "http://localhost\t",
    "http:// localhost", "http://localhost http://evil.test", "http://localhost,http://evil.test",
    "http://localhost:80, http://localhost:80", "http://::1", "http://[::1", "http://[::1%25lo]",
    "http://0x7f.1", "http://2130706433", "http://127.1", "http://[::ffff:127.0.0.1]",
    "http://xn--lclhost-6ya", "http://l\u00f6calhost", "http://*", "http://localhost:*",
    "http://localhost\\@evil.test", "http://localhost%40evil.test",
]  # fmt: skip


@pytest.mark.parametrize(
    ("hosts", "status"), [(_ACCEPTED_HOSTS, None), (_REFUSED_HOSTS, 421)], ids=["is", "looks"]
)
async def test_only_spellings_of_a_name_of_this_machine_are_accepted(
    hosts: list[str], status: int | None
) -> None:
    assert [host for host in hosts if await refused({"Host": host}) != status] == []


@pytest.mark.parametrize(
    ("origins", "status"), [(_ACCEPTED_ORIGINS, None), (_REFUSED_ORIGINS, 403)], ids=["is", "looks"]
)
async def test_only_origins_of_this_machine_are_accepted(
    origins: list[str], status: int | None
) -> None:
    headers = [{"Host": "localhost", "Origin": origin} for origin in origins]

    assert [each for each in headers if await refused(each) != status] == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param([], 421, id="no host"),
        pytest.param([("Host", "localhost"), ("Host", "evil.test")], 421, id="two hosts"),
        pytest.param([("Host", "localhost")] * 2, 421, id="one host twice"),
        pytest.param(
            [("Host", "localhost"), ("Origin", "http://localhost"), ("Origin", "http://evil.test")],
            403,
            id="two origins",
        ),
    ],
)
async def test_headers_that_are_absent_or_repeated_are_refused(
    headers: list[tuple[str, str]], status: int
) -> None:
    assert await refused(headers) == status


@pytest.mark.parametrize("host", ["rag.example:evil.test", "rag.example.evil.test", "arag.example"])
@pytest.mark.parametrize(
    "settings",
    [{"mcp_allowed_hosts": ["rag.example"]}, {"mcp_public_url": "https://rag.example"}],
    ids=["allowed", "public"],
)
async def test_beginning_or_end_of_a_configured_name_is_refused(
    host: str, settings: dict[str, Any]
) -> None:
    assert await refused({"Host": host}, **settings) == 421


@pytest.mark.parametrize(
    ("origin", "configured", "status"),
    [
        ("https://a.example:443", "https://a.example", None),
        ("https://a.example", "https://a.example:443", None),
        ("https://A.example", "https://a.example", None),
        ("https://a.example:444", "https://a.example", 403),
        ("http://a.example", "https://a.example", 403),
        ("https://a.example:443@evil.test", "https://a.example", 403),
        ("https://xn--bcher-kva.example", "https://b\u00fccher.example", None),
    ],
)
async def test_configured_origin_is_compared_by_scheme_host_and_port(
    origin: str, configured: str, status: int | None
) -> None:
    headers = {"Host": "localhost", "Origin": origin}

    assert await refused(headers, mcp_allowed_origins=[configured]) == status


@pytest.mark.parametrize("host", ["xn--bcher-kva.example", "XN--BCHER-KVA.example:8765"])
async def test_international_name_is_accepted_as_clients_send_it(host: str) -> None:
    assert await refused({"Host": host}, mcp_allowed_hosts=["b\u00fccher.example"]) is None


async def test_health_is_told_to_probes_that_know_only_an_address() -> None:
    assert await refused({"Host": "10.0.0.7:8765"}, path="/healthz") is None


@given(st.text(max_size=40) | st.from_regex(r"localhost.{1,20}|\[::1\].{1,20}", fullmatch=True))
def test_whatever_is_accepted_names_this_machine_and_perhaps_a_port(value: str) -> None:
    accepted = allowed_names(load_settings()).accepts_host(value)
    parsed = parse_authority(value)

    assert not accepted or (parsed is not None and parsed.host in _LOCAL)


@given(
    host=st.sampled_from(["localhost", "[::1]", "rag.example"]),
    port=st.none() | st.integers(1, 65_535),
)
def test_parsed_authority_is_what_was_written(host: str, port: int | None) -> None:
    written = host if port is None else f"{host}:{port}"

    assert parse_authority(written) == Authority(host, port)
