"""Servers that misbehave at the socket: each ends within its deadline in a named error."""

import asyncio
import gzip
import itertools
import resource
import socket
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from webrag.errors import FetchError
from webrag.ingestion.http.fetcher import HttpFetcher

Make = Callable[..., HttpFetcher]
RawServer = Callable[[Callable[[socket.socket, bytes], None]], str]
Answer = Callable[[socket.socket], None]

DEADLINE_S = 1.0
NOTHING = b"HTTP/1.1 404 N\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def sends(*pieces: bytes) -> Answer:
    return lambda connection: connection.sendall(b"".join(pieces))


def trickles(head: bytes, drops: Iterator[bytes], pause_s: float = 0.03) -> Answer:
    def answer(connection: socket.socket) -> None:
        connection.sendall(head)
        until = time.monotonic() + 3 * DEADLINE_S
        for drop in drops:
            if time.monotonic() > until:
                return
            connection.sendall(drop)
            time.sleep(pause_s)

    return answer


def floods(head: bytes, piece: bytes) -> Answer:
    def answer(connection: socket.socket) -> None:
        connection.sendall(head)
        until = time.monotonic() + 3 * DEADLINE_S
        while time.monotonic() < until:
            connection.sendall(piece)

    return answer


def silent(connection: socket.socket) -> None:
    connection.settimeout(3 * DEADLINE_S)
    with suppress(TimeoutError):
        connection.recv(1)


def resets(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def page(*headers: bytes, body: bytes = b"<p>x</p>") -> bytes:
    lines = b"".join(header + b"\r\n" for header in headers)
    return b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + lines + b"\r\n" + body


def compressed(encoding: bytes, body: bytes) -> bytes:
    length = b"Content-Length: %d" % len(body)
    return page(b"Content-Encoding: " + encoding, length, body=body)


def redirect(target: bytes) -> bytes:
    return (
        b"HTTP/1.1 302 F\r\nContent-Length: 0\r\nConnection: close\r\nLocation: %s\r\n\r\n" % target
    )


EMPTY = b"HTTP/1.1 302 F\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
CHUNKED = page(b"Transfer-Encoding: chunked", body=b"")
ZEROS = b" " * 30_000_000
GZIP_ZEROS, DEFLATE_ZEROS = gzip.compress(ZEROS, 9), zlib.compress(ZEROS, 9)
# The same 30 MB, as those two write them.
BROTLI_ZEROS = bytes.fromhex(
    "cbffff3ff82540e2b14020f7fe8fffff7ff04b00c4611180eefd1fffffffe0970088c30200ddfbbffc1b4ec22f0110"
    "8705003abb49"
)
ZSTD_ZEROS = b"(\xb5/\xfd\x00\x58" + (b"\x02\x00\x10\x20" * 228) + b"\x03\x00\x10\x20"
CASES: dict[str, tuple[Answer, str]] = {
    "silent": (silent, "did not arrive within 1 seconds"),
    "closes at once": (sends(), "broke the connection off"),
    "resets": (resets, "broke the connection off"),
    "ssh banner": (sends(b"SSH-2.0-OpenSSH_9.6\r\n"), "broke the connection|cannot be read"),
    "http 0.9": (sends(b"<html><p>old</p></html>"), "broke the connection|cannot be read"),
    "garbage": (sends(bytes(range(256)) * 4), "broke the connection|cannot be read"),
    "status line cut off": (sends(b"HTTP/1.1 20"), "broke the connection off"),
    "impossible status": (sends(b"HTTP/1.1 999 Z\r\nContent-Length: 0\r\n\r\n"), "HTTP 999"),
    "headers drop by drop": (
        trickles(b"HTTP/1.1 200 OK\r\n", itertools.repeat(b"X-A: b\r\n")),
        "did not arrive within",
    ),
    "endless headers": (
        floods(b"HTTP/1.1 200 OK\r\n", b"X-Filler: " + b"y" * 4_000 + b"\r\n"),
        "broke the connection|cannot be read|did not arrive",
    ),
    "endless header line": (
        floods(b"HTTP/1.1 200 OK\r\nX-Long: ", b"y" * 65_536),
        "broke the connection|cannot be read|did not arrive",
    ),
    "endless interim answers": (
        floods(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
        "did not arrive|broke the connection",
    ),
    "body drop by drop": (
        trickles(page(b"Content-Length: 9999", body=b""), itertools.repeat(b"x")),
        "did not arrive within",
    ),
    "chunk by chunk": (trickles(CHUNKED, itertools.repeat(b"1\r\nx\r\n")), "did not arrive within"),
    "endless body": (floods(page(body=b""), b"z" * 65_536), "larger than allowed"),
    "endless chunks": (
        floods(CHUNKED, b"8000\r\n" + b"z" * 32_768 + b"\r\n"),
        "larger than allowed",
    ),
    "announced too large": (sends(page(b"Content-Length: 99000000000")), "at most 1.0 MB"),
    "shorter than announced": (
        sends(page(b"Content-Length: 5000")),
        "broke the connection off",
    ),
    "two lengths": (
        sends(page(b"Content-Length: 5", b"Content-Length: 7")),
        "broke the connection|cannot be read",
    ),
    "negative length": (
        sends(page(b"Content-Length: -5")),
        "broke the connection|cannot be read",
    ),
    "broken chunk size": (sends(CHUNKED, b"zz\r\nabc\r\n"), "broke the connection|cannot be read"),
    "chunks end early": (sends(CHUNKED, b"ff\r\nabc"), "broke the connection off"),
    "gzip bomb": (
        sends(compressed(b"gzip", GZIP_ZEROS)),
        "at most 2.0 MB of a page are unpacked",
    ),
    "deflate bomb": (
        sends(compressed(b"deflate", DEFLATE_ZEROS)),
        "at most 2.0 MB of a page are unpacked",
    ),
    "gzip in gzip": (
        sends(compressed(b"gzip, gzip", gzip.compress(GZIP_ZEROS))),
        "packed as 'gzip, gzip'",
    ),
    "gzip in deflate": (
        sends(compressed(b"deflate, gzip", gzip.compress(DEFLATE_ZEROS))),
        "packed as 'deflate, gzip'",
    ),
    "gzip in gzip by two headers": (
        sends(compressed(b"gzip\r\nContent-Encoding: gzip", gzip.compress(GZIP_ZEROS))),
        "packed as 'gzip, gzip'",
    ),
    "gzip bomb, identity": (
        sends(compressed(b"GZIP , identity", GZIP_ZEROS)),
        "at most 2.0 MB of a page are unpacked",
    ),
    "brotli bomb": (sends(compressed(b"br", BROTLI_ZEROS)), "packed as 'br'"),
    "Zstandard bomb": (sends(compressed(b"zstd", ZSTD_ZEROS)), "packed as 'zstd'"),
    "packed in an unknown way": (sends(compressed(b"pack200-gzip", b"x")), "'pack200-gzip'"),
    "packed a thousand times": (
        sends(compressed(b"gzip" + b",gzip" * 1_000, b"x")),
        "packed as 'gzip, gzip",
    ),
    "gzip that is none": (sends(compressed(b"gzip", b"no gzip at all")), "cannot be read"),
    "empty page": (sends(page(b"Content-Length: 0", body=b"")), "is empty"),
    "program labelled as page": (
        sends(page(b"Content-Type: text/html", body=b"\x7fELF\x02\x01\x01" + bytes(50))),
        "an ELF program",
    ),
    "redirect to a file": (sends(redirect(b"file:///etc/passwd")), "not followed"),
    "redirect to metadata": (sends(redirect(b"http://169.254.169.254/")), "may not be contacted"),
    "redirect to itself": (sends(redirect(b"/page")), "in a circle"),
    "redirect without target": (
        sends(b"HTTP/1.1 302 F\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
        "HTTP 302",
    ),
    "redirect to nonsense": (sends(redirect(b"http://[::1")), "not followed"),
    "busy for a day": (
        sends(EMPTY.replace(b"302 F", b"429 T\r\nRetry-After: 86400")),
        "HTTP 429",
    ),
    "refusal that never ends": (
        floods(b"HTTP/1.1 403 F\r\n\r\n", b"z" * 65_536),
        "not open to everyone",
    ),
    "refusal drop by drop": (
        trickles(b"HTTP/1.1 403 F\r\n\r\n", itertools.repeat(b"z")),
        "not open to everyone|did not arrive within",
    ),
    "not modified unasked": (sends(b"HTTP/1.1 304 N\r\nConnection: close\r\n\r\n"), "HTTP 304"),
    "meta refresh to metadata": (
        sends(page(body=b'<meta http-equiv=refresh content="0;url=http://169.254.169.254/">')),
        "may not be contacted",
    ),
    "meta refresh to a script": (
        sends(page(body=b'<meta http-equiv="refresh" content="0; javascript:alert(1)">')),
        "not followed",
    ),
}


def server_of(answer: Answer, raw_server: RawServer) -> str:
    def serve(connection: socket.socket, request: bytes) -> None:
        if b"/robots.txt" in request:
            connection.sendall(NOTHING)
        else:
            answer(connection)

    return raw_server(serve)


@pytest.mark.parametrize(("answer", "named"), CASES.values(), ids=CASES.keys())
async def test_hostile_server_ends_in_a_named_error(
    make_fetcher: Make, raw_server: RawServer, answer: Answer, named: str
) -> None:
    fetcher = make_fetcher(
        timeout_s=DEADLINE_S, max_wire_bytes=1_000_000, max_decoded_bytes=2_000_000
    )
    started = time.monotonic()

    with pytest.raises(FetchError, match=named):
        await fetcher.fetch(server_of(answer, raw_server) + "/page")

    assert time.monotonic() - started < DEADLINE_S + 0.7


async def test_robots_txt_that_never_comes_costs_one_deadline(
    make_fetcher: Make, raw_server: RawServer
) -> None:
    started = time.monotonic()

    with pytest.raises(FetchError, match=r"robots\.txt did not answer in time|did not arrive"):
        await make_fetcher(timeout_s=0.5).fetch(raw_server(lambda c, _: silent(c)) + "/page")

    assert time.monotonic() - started < 1.2


async def test_endless_body_takes_no_memory(make_fetcher: Make, raw_server: RawServer) -> None:
    answer = floods(page(body=b""), b"z" * 1_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(FetchError, match="larger than allowed"):
        await make_fetcher(max_wire_bytes=5_000_000).fetch(server_of(answer, raw_server) + "/page")

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


@pytest.mark.parametrize("name", [name for name in CASES if "bomb" in name or "gzip in" in name])
async def test_no_bomb_takes_more_memory_than_a_page(
    make_fetcher: Make, raw_server: RawServer, name: str
) -> None:
    url = server_of(CASES[name][0], raw_server) + "/page"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(FetchError):
        await make_fetcher(max_decoded_bytes=2_000_000).fetch(url)

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


async def test_a_refusal_packed_in_an_unread_way_is_still_named_a_refusal(
    make_fetcher: Make, raw_server: RawServer
) -> None:
    answer = sends(compressed(b"br", BROTLI_ZEROS).replace(b"200 OK", b"403 Forbidden"))

    with pytest.raises(FetchError, match="not open to everyone"):
        await make_fetcher().fetch(server_of(answer, raw_server) + "/page")


async def test_only_what_is_unpacked_is_asked_for(
    make_fetcher: Make, raw_server: RawServer
) -> None:
    asked: list[bytes] = []

    def serve(connection: socket.socket, request: bytes) -> None:
        asked.append(request.lower())
        connection.sendall(NOTHING)

    with suppress(FetchError):
        await make_fetcher().fetch(raw_server(serve) + "/page")

    assert all(b"accept-encoding: gzip, deflate\r\n" in request for request in asked)


async def test_hostile_server_does_not_hold_up_others(
    make_fetcher: Make, raw_server: RawServer, static_site: Callable[..., str]
) -> None:
    site = static_site({"/a": "<p>Here.</p>"})
    fetcher = make_fetcher(timeout_s=DEADLINE_S)
    slow = asyncio.create_task(fetcher.fetch(server_of(silent, raw_server) + "/page"))

    started = time.monotonic()
    await fetcher.fetch(f"{site}/a")

    assert time.monotonic() - started < DEADLINE_S / 2
    with pytest.raises(FetchError):
        await slow
