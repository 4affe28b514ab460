"""Hosts of the web for tests, with names, ports and certificates, on one loopback server."""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpcore2
import trustme
from typing_extensions import override

from tests.loopback import QuietHandler, serving

Reply = tuple[int, Mapping[str, str], str]


class Asked(NamedTuple):
    """A request that arrived, with what a login would have added to it."""

    scheme: str
    host: str
    path: str
    cookie: str | None
    authorization: str | None


class TlsHosts:
    """What each host answers, by `https://host/path`, and what was asked of all of them."""

    def __init__(self) -> None:
        self.replies: dict[str, Any] = {}
        self.asked: list[Asked] = []
        self.https_port = 0
        self.dialer: httpcore2.AsyncNetworkBackend

    def sent_to(self, url: str) -> list[Asked]:
        """The requests for an address."""
        parts = urlsplit(url)
        wanted = (parts.scheme, parts.netloc, parts.path or "/")
        return [each for each in self.asked if (each.scheme, each.host, each.path) == wanted]

    def with_secrets(self) -> set[str]:
        """Scheme and host of every request that had a cookie or an authorization."""
        return {f"{each.scheme}://{each.host}" for each in self.asked if each[3] or each[4]}


@contextmanager
def tls_hosts() -> Iterator[TlsHosts]:
    """Serve any host name under a certificate that `dialer` trusts, and plain HTTP beside."""
    hosts = TlsHosts()
    authority = trustme.CA()
    names = ("wiki.example", "*.wiki.example", "evil.example", "other.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with (
        serving(_handler(hosts, "https"), tls=context) as secure,
        serving(_handler(hosts, "http")) as plain,
    ):
        ports = {scheme: urlsplit(url).port for scheme, url in (("s", secure), ("p", plain))}
        assert ports["s"]
        assert ports["p"]
        hosts.https_port = ports["s"]
        hosts.dialer = _Dialer(ports["s"], ports["p"], trusting)
        yield hosts


def _handler(hosts: TlsHosts, scheme: str) -> type[QuietHandler]:
    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply()

        def do_POST(self) -> None:
            self._reply()

        def _reply(self) -> None:
            self.body = self.read_body()
            path = self.path.partition("?")[0]
            host = self.headers["Host"]
            cookie, token = self.headers["Cookie"], self.headers["Authorization"]
            hosts.asked.append(Asked(scheme, host, path, cookie, token))
            reply = hosts.replies.get(f"{scheme}://{host}{path}", (404, {}, "none"))
            status, headers, body = reply(self) if callable(reply) else reply
            html = {"Content-Type": "text/html; charset=utf-8"}
            self.send(status, body.encode(), {**html, **headers})

    return Handler


class _Dialer(httpcore2.AsyncNetworkBackend):
    def __init__(self, secure: int, plain: int, trusting: ssl.SSLContext) -> None:
        self._secure, self._plain, self._trusting = secure, plain, trusting
        self._inner = httpcore2.AnyIOBackend()

    @override
    async def connect_tcp(
        self, host: str, port: int, **options: Any
    ) -> httpcore2.AsyncNetworkStream:
        mapped = self._plain if port == 80 else self._secure
        stream = await self._inner.connect_tcp("127.0.0.1", mapped, **options)
        return _Stream(stream, self._trusting)

    @override
    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class _Stream(httpcore2.AsyncNetworkStream):
    """Trusts the authority of the test in place of those of the system."""

    def __init__(self, inner: httpcore2.AsyncNetworkStream, trusting: ssl.SSLContext) -> None:
        self._inner, self._trusting = inner, trusting

    @override
    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._inner.read(max_bytes, timeout)

    @override
    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._inner.write(buffer, timeout)

    @override
    async def aclose(self) -> None:
        await self._inner.aclose()

    @override
    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        return await self._inner.start_tls(self._trusting, server_hostname, timeout)

    @override
    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
