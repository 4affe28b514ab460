"""One guarded HTTP client: single requests, capped bodies, failures as sentences; no policy."""

import asyncio
import contextlib
import functools
import re
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpcore2
import httpx2

from webrag.errors import FetchError, UnusablePageError
from webrag.ingestion.fetch_context import received
from webrag.ingestion.http.guard import (
    AddressRefused,
    AllowList,
    GuardedBackend,
    NameNotFound,
    Resolver,
    refused,
    resolve,
)

# What the HTTP client unpacks piece by piece with every installation; others it would pass on
# packed, or unpack with whatever library happens to be there.
_CODINGS = frozenset({"gzip", "deflate"})
_SAME_CODINGS = {"x-gzip": "gzip"}
# Servers also send names that say nothing of packing, such as `none` and `UTF-8`; browsers pass
# over what they do not know.
_PACKED = frozenset(
    """aes128gcm br brotli bzip bzip2 compress dcb dcz deflate exi gzip lz4 lzma pack200-gzip sdch
    snappy x-bzip2 x-compress xz zstd""".split()  # noqa: SIM905
)
_DOCUMENTS = ("application/pdf", "application/vnd.oasis.opendocument.")
_REFUSALS = frozenset({401, 403, 405, 406, 429, 503})
_REFUSAL_TIMEOUT_S = 2.0


class BrokenConnectionError(FetchError):
    """The connection ended before the answer was complete; asking once more may help."""


@dataclass(frozen=True)
class Caps:
    """Limits of one answer in bytes, as sent and after decompression.

    Beyond them an answer fails, or is cut off with `truncate`. `pdf_bytes`, unless 0, stands for
    both where the body is labelled as a PDF or an OpenDocument.
    """

    wire_bytes: int
    decoded_bytes: int
    truncate: bool = False
    pdf_bytes: int = 0


_REFUSAL_CAPS = Caps(wire_bytes=65_536, decoded_bytes=65_536, truncate=True)


@dataclass(frozen=True)
class Answer:
    """A complete answer to one request; names of headers are in lower case.

    The body is decompressed; of a refusal there is only the beginning, of other failures nothing.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, stream: AsyncIterable[bytes]) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            yield part

    async def aclose(self) -> None:
        close = getattr(self._stream, "aclose", None)
        if close is not None:
            await close()


@functools.cache
def _ssl_context() -> ssl.SSLContext:
    """Loading the system's certificates takes about 0.1 s; one context serves every client."""
    return httpx2.create_ssl_context(trust_env=False)


class _GuardedTransport(httpx2.AsyncBaseTransport):
    def __init__(self, backend: GuardedBackend) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=_ssl_context(),
            max_connections=50,
            max_keepalive_connections=20,
            keepalive_expiry=10.0,
            network_backend=backend,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        answer = await self._pool.handle_async_request(
            httpcore2.Request(
                method=request.method,
                url=httpcore2.URL(
                    scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        assert isinstance(answer.stream, AsyncIterable)
        return httpx2.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_Stream(answer.stream),
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


class WebClient:
    """Asks for one address at a time: no redirects followed, no cookies kept, no proxy used.

    It belongs to one event loop; close it with `aclose`.
    """

    def __init__(
        self,
        *,
        user_agent: str,
        timeout_s: float,
        allowed: AllowList,
        resolver: Resolver = resolve,
        dialer: httpcore2.AsyncNetworkBackend | None = None,
    ) -> None:
        backend = GuardedBackend(allowed, resolver=resolver, dialer=dialer)
        self._client = httpx2.AsyncClient(
            transport=_GuardedTransport(backend),
            headers={"User-Agent": user_agent, "Accept-Encoding": "gzip, deflate"},
            cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
            timeout=timeout_s,
            follow_redirects=False,
            trust_env=False,
        )

    async def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        caps: Caps,
        cookies: httpx2.Cookies | None = None,
    ) -> Answer:
        """Ask for `url` once; `cookies` of earlier answers go with it, and are added to.

        Raises:
            RefusedAddressError: The host's address or port is not allowed; nothing was sent.
            UnusablePageError: The body exceeds a cap, or is packed in a way that is not read.
            BrokenConnectionError: The connection ended too early.
            FetchError: The host cannot be reached or its answer cannot be read.
        """
        with _named_failures(url):
            request = self._client.build_request("GET", url, headers=headers)
            if cookies is not None:
                cookies.set_cookie_header(request)
            response = await self._client.send(request, stream=True)
            async with contextlib.aclosing(response):
                if cookies is not None:
                    cookies.extract_cookies(response)
                try:
                    body = await _wanted_body(response, url, caps)
                finally:
                    received(response.num_bytes_downloaded)
                return Answer(url, response.status_code, dict(response.headers), body)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.aclose()


def _codings(header: str) -> list[str]:
    named = (coding.strip().lower() for coding in header.split(","))
    known = (_SAME_CODINGS.get(coding, coding) for coding in named)
    return [coding for coding in known if coding in _PACKED]


async def _wanted_body(response: httpx2.Response, url: str, caps: Caps) -> bytes:
    packed = response.headers.get("content-encoding", "")
    codings = _codings(packed)
    if packed:  # each under the name that it is unpacked by
        response.headers["content-encoding"] = ", ".join(codings)
    # Between two layers nothing is counted: 10 kB can make the second one read 10 GB.
    is_read = len(codings) <= 1 and _CODINGS.issuperset(codings)
    unread = "" if is_read else ", ".join(codings)[:80]
    if response.is_success:
        if unread:
            said = f"The page {url} is sent packed as '{unread}', which was not asked for;"
            said += " only gzip or deflate, once, is unpacked."
            status = response.status_code
            raise UnusablePageError(said, url=url, status=status, kind="not_text")
        is_document = response.headers.get("content-type", "").lower().startswith(_DOCUMENTS)
        if is_document and caps.pdf_bytes:
            caps = replace(caps, wire_bytes=caps.pdf_bytes, decoded_bytes=caps.pdf_bytes)
        return await _capped_body(response, url, caps)
    if response.status_code not in _REFUSALS or unread:
        return b""
    # It only explains the refusal: what is late or broken is not worth a failure of its own.
    with contextlib.suppress(
        TimeoutError,
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.TimeoutException,
        httpx2.DecodingError,
    ):
        async with asyncio.timeout(_REFUSAL_TIMEOUT_S):
            return await _capped_body(response, url, _REFUSAL_CAPS)
    return b""


async def _capped_body(response: httpx2.Response, url: str, caps: Caps) -> bytes:
    announced = response.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > caps.wire_bytes and not caps.truncate:
        raise _too_large(url, f"has {_megabytes(int(announced))}", caps.wire_bytes, "read")
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if caps.truncate and len(body) >= caps.decoded_bytes:
            return bytes(body[: caps.decoded_bytes])
        if response.num_bytes_downloaded > caps.wire_bytes:
            raise _too_large(url, "is larger than allowed", caps.wire_bytes, "read")
        if len(body) > caps.decoded_bytes:
            raise _too_large(url, "unpacks to too much", caps.decoded_bytes, "unpacked")
    return bytes(body)


def _too_large(url: str, what: str, cap: int, verb: str) -> UnusablePageError:
    said = f"The page {url} {what}; at most {_megabytes(cap)} of a page are {verb}."
    return UnusablePageError(said, url=url, kind="too_large")


def _megabytes(count: int) -> str:
    return f"{count / 1_000_000:,.1f} MB" if count >= 100_000 else f"{count:,} bytes"


@contextlib.contextmanager
def _named_failures(url: str) -> Iterator[None]:
    host = httpx2.URL(url).netloc.decode()
    try:
        yield
    except AddressRefused as error:
        raise refused(url, error) from error
    except (httpcore2.TimeoutException, httpx2.TimeoutException) as error:
        raise FetchError(f"'{host}' did not answer in time.", url=url) from error
    except (httpcore2.ConnectError, httpx2.ConnectError) as error:
        raise FetchError(f"'{host}' could not be reached: {_reason(error)}.", url=url) from error
    except (httpcore2.NetworkError, httpcore2.RemoteProtocolError) as error:
        said = f"'{host}' broke the connection off: {_reason(error)}."
        raise BrokenConnectionError(said, url=url) from error
    except (httpcore2.ProtocolError, httpx2.DecodingError, httpx2.InvalidURL) as error:
        said = f"The answer of '{host}' cannot be read: {_reason(error)}."
        raise FetchError(said, url=url) from error


# What stands around the words of a failure of TLS: a name in brackets, a line of Python's source.
_OF_OPENSSL = re.compile(r"^\[[^\]]*\] | \(_ssl\.c:\d+\)$")


def _reason(error: Exception) -> str:
    """Say what the system says, however far below the error, else what the error does."""
    below: BaseException | None = error
    while below is not None and not (isinstance(below, OSError) and below.strerror):
        below = below.__cause__ or below.__context__
    if isinstance(below, ConnectionRefusedError):
        return "the connection was refused"  # asyncio names the address in place of that
    if below is not None and not isinstance(error, NameNotFound):
        return _OF_OPENSSL.sub("", str(below.strerror)).lower().rstrip(".")
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:200].rstrip(".")
