import gzip
import socket
import time
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from webrag.errors import (
    FetchError,
    InputError,
    PageGoneError,
    RefusedAddressError,
    UnusablePageError,
)
from webrag.ingestion.http.fetcher import HttpFetcher
from webrag.ingestion.models import FetchedPage, NotModified, Validators

Make = Callable[..., HttpFetcher]
PAGE = "<html><body><p>Hello there.</p></body></html>"
HTML = {"Content-Type": "text/html; charset=utf-8"}


async def fetched(fetcher: HttpFetcher, url: str) -> FetchedPage:
    page = await fetcher.fetch(url)
    assert isinstance(page, FetchedPage)
    return page


async def test_page_arrives_decoded_with_its_validators(
    make_fetcher: Make, static_site: Any
) -> None:
    site = static_site({"/a": "<p>Grüße</p>"}, validators=True)

    page = await fetched(make_fetcher(), f"{site}/a#part")

    assert (page.requested_url, page.url, page.status) == (f"{site}/a", f"{site}/a", 200)
    assert (page.kind, page.text, page.source) == ("html", "<p>Grüße</p>", "builtin")
    assert page.etag
    assert page.last_modified


async def test_current_page_is_not_transferred_again(make_fetcher: Make, static_site: Any) -> None:
    site = static_site({"/a": PAGE}, validators=True)
    fetcher = make_fetcher()
    page = await fetched(fetcher, f"{site}/a")

    answer = await fetcher.fetch(f"{site}/a", validators=Validators(etag=page.etag))

    assert isinstance(answer, NotModified)
    assert answer.url == f"{site}/a"


async def test_redirect_is_followed_to_the_page(make_fetcher: Make, static_site: Any) -> None:
    site = static_site({"/new": PAGE, "/old": lambda _: (301, {"Location": "/new?utm_x=1"}, "")})

    page = await fetched(make_fetcher(), f"{site}/old")

    assert (page.requested_url, page.url) == (f"{site}/old", f"{site}/new?utm_x=1")


async def test_endless_redirect_ends_at_the_cap(make_fetcher: Make, static_site: Any) -> None:
    steps = {f"/{n}": lambda _, n=n: (302, {"Location": f"/{n + 1}"}, "") for n in range(9)}
    site = static_site(steps)

    with pytest.raises(UnusablePageError, match="redirects more than 3 times") as caught:
        await make_fetcher(max_redirects=3).fetch(f"{site}/0")

    assert caught.value.kind == "endless_redirect"
    assert site.paths == ["/0", "/1", "/2", "/3"]


async def test_redirects_in_a_circle_end_at_once(make_fetcher: Make, static_site: Any) -> None:
    site = static_site(
        {
            "/a": lambda _: (302, {"Location": "/b"}, ""),
            "/b": lambda _: (302, {"Location": "/a"}, ""),
        }
    )

    with pytest.raises(UnusablePageError, match="in a circle") as caught:
        await make_fetcher().fetch(f"{site}/a")

    assert caught.value.kind == "endless_redirect"
    assert "cookie" in str(caught.value.hint)
    assert site.paths == ["/a", "/b"]


@pytest.mark.parametrize(
    "target", ["http://127.0.0.2/", "http://10.0.0.1/", "file:///etc/passwd", "http://[::1]:1/"]
)
async def test_fetcher_refuses_redirect_to_private_address(
    make_fetcher: Make, static_site: Any, target: str
) -> None:
    site = static_site({"/a": lambda _: (302, {"Location": target}, "")})

    with pytest.raises(RefusedAddressError):
        await make_fetcher().fetch(f"{site}/a")


async def test_private_address_is_refused_without_a_request(
    make_fetcher: Make, static_site: Any
) -> None:
    site = static_site({"/a": PAGE})

    with pytest.raises(RefusedAddressError, match="may not be contacted") as caught:
        await make_fetcher(allowed_hosts=()).fetch(f"{site}/a")

    host = site.removeprefix("http://")
    assert f"allow it: set WEBRAG_ALLOW_HOSTS={host}." in str(caught.value)
    assert caught.value.host == host
    assert site.requests == []


async def test_proxy_variables_are_ignored(
    make_fetcher: Make, static_site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    site = static_site({"/a": PAGE})

    assert (await fetched(make_fetcher(), f"{site}/a")).text == PAGE


async def test_cookies_are_not_sent_back(make_fetcher: Make, static_site: Any) -> None:
    site = static_site({"/a": lambda _: (200, HTML | {"Set-Cookie": "id=1"}, PAGE)})
    fetcher = make_fetcher()
    await fetcher.fetch(f"{site}/a")
    await fetcher.fetch(f"{site}/a")

    assert all("cookie" not in request.headers for request in site.requests)


def gate(request: Any) -> Any:
    """As sites that let nobody pass without a cookie of theirs."""
    if "seen=1" in request.headers.get("cookie", ""):
        return (200, HTML, PAGE)
    return (302, {"Location": "/a", "Set-Cookie": "seen=1; Path=/"}, "")


async def test_cookies_of_a_redirect_are_sent_on_its_way_and_then_forgotten(
    make_fetcher: Make, static_site: Any
) -> None:
    site = static_site({"/a": gate})
    fetcher = make_fetcher()

    assert (await fetched(fetcher, f"{site}/a")).text == PAGE
    await fetcher.fetch(f"{site}/a")

    asked = [request for request in site.requests if request.path == "/a"]
    assert ["cookie" in request.headers for request in asked] == [False, True] * 2


async def test_cookies_of_a_redirect_are_not_sent_to_another_host(
    make_fetcher: Make, static_site: Any
) -> None:
    other = static_site({"/b": PAGE})
    away = {"Location": f"{other}/b".replace("127.0.0.1", "localhost"), "Set-Cookie": "id=1"}
    site = static_site({"/a": lambda _: (302, away, "")})

    await make_fetcher(allowed_hosts=("127.0.0.1", "localhost")).fetch(f"{site}/a")

    assert all("cookie" not in request.headers for request in other.requests)


CODINGS = {
    "none": PAGE.encode(),
    "UTF-8": PAGE.encode(),
    "identity": PAGE.encode(),
    "8bit, ": PAGE.encode(),
    "x-gzip": gzip.compress(PAGE.encode()),
    "GZIP": gzip.compress(PAGE.encode()),
    "utf-8, gzip": gzip.compress(PAGE.encode()),
    "deflate": zlib.compress(PAGE.encode()),
}


@pytest.mark.parametrize("coding", CODINGS)
async def test_content_encoding_of_an_odd_name_is_read(
    make_fetcher: Make, static_site: Any, coding: str
) -> None:
    packed = HTML | {"Content-Encoding": coding}
    site = static_site({"/a": lambda _: (200, packed, CODINGS[coding])})
    assert (await fetched(make_fetcher(), f"{site}/a")).text == PAGE


FRAMESETS = [
    "<frameset rows='100%,*'><frame src=a></frameset>",
    "<FRAMESET cols=*><FRAME SRC='a'><noframes>Get a browser.</noframes></FRAMESET>",
]


@pytest.mark.parametrize("frames", FRAMESETS)
async def test_only_frame_of_a_window_is_the_page(
    make_fetcher: Make, static_site: Any, frames: str
) -> None:
    site = static_site({"/": f"<html><head><title>One</title></head>{frames}</html>", "/a": PAGE})

    page = await fetched(make_fetcher(), f"{site}/")

    assert (page.url, page.text) == (f"{site}/a", PAGE)


@pytest.mark.parametrize("status", [404, 410])
async def test_missing_page_is_reported_as_gone(
    make_fetcher: Make, static_site: Any, status: int
) -> None:
    site = static_site({"/a": lambda _: (status, HTML, "gone")})

    with pytest.raises(PageGoneError) as caught:
        await make_fetcher().fetch(f"{site}/a")

    assert caught.value.status == status


@pytest.mark.parametrize("status", [401, 403, 418, 500, 502])
async def test_other_failures_carry_the_status(
    make_fetcher: Make, static_site: Any, status: int
) -> None:
    site = static_site({"/a": lambda _: (status, HTML, "no")})

    with pytest.raises(FetchError, match=f"HTTP {status}") as caught:
        await make_fetcher().fetch(f"{site}/a")

    assert (caught.value.status, type(caught.value)) == (status, FetchError)


async def test_announced_size_over_the_cap_is_refused_unread(
    make_fetcher: Make, raw_server: Any
) -> None:
    def answer(connection: socket.socket, request: bytes) -> None:
        if b"/robots.txt" in request:
            connection.sendall(b"HTTP/1.1 404 N\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        else:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n<p>")

    with pytest.raises(UnusablePageError, match=r"50\.0 MB; at most 5\.0 MB"):
        await make_fetcher().fetch(raw_server(answer) + "/a")


async def test_unannounced_size_over_the_cap_is_refused(
    make_fetcher: Make, static_site: Any
) -> None:
    site = static_site({"/a": "<p>" + "x" * 300_000})

    with pytest.raises(UnusablePageError, match=r"at most 0\.2 MB"):
        await make_fetcher(max_wire_bytes=200_000).fetch(f"{site}/a")


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_decompression_bomb_stops_at_the_cap(
    make_fetcher: Make, static_site: Any, encoding: str
) -> None:
    zeros = b" " * 50_000_000
    bomb = gzip.compress(zeros) if encoding == "gzip" else zlib.compress(zeros)
    site = static_site({"/a": lambda _: (200, HTML | {"Content-Encoding": encoding}, bomb)})

    with pytest.raises(UnusablePageError, match=r"at most 1\.0 MB of a page are unpacked"):
        await make_fetcher(max_decoded_bytes=1_000_000).fetch(f"{site}/a")


async def test_damaged_compression_is_a_fetch_error(make_fetcher: Make, static_site: Any) -> None:
    site = static_site({"/a": lambda _: (200, HTML | {"Content-Encoding": "gzip"}, b"not gzip")})

    with pytest.raises(FetchError, match="cannot be read"):
        await make_fetcher().fetch(f"{site}/a")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"PK\x03\x04....", "a ZIP archive"),
        (b"\x7fELF", "ELF"),
    ],
)
async def test_binary_answers_are_named_whatever_their_label(
    make_fetcher: Make, static_site: Any, body: bytes, named: str
) -> None:
    site = static_site({"/a": lambda _: (200, HTML, body)})

    with pytest.raises(UnusablePageError, match=named):
        await make_fetcher().fetch(f"{site}/a")


async def test_empty_answer_is_unusable(make_fetcher: Make, static_site: Any) -> None:
    site = static_site({"/a": ""})

    with pytest.raises(UnusablePageError, match="is empty"):
        await make_fetcher().fetch(f"{site}/a")


async def test_charset_of_the_header_decides(make_fetcher: Make, static_site: Any) -> None:
    headers = {"Content-Type": "text/html; charset=windows-1251"}
    site = static_site({"/a": lambda _: (200, headers, "Привет".encode("cp1251"))})

    assert (await fetched(make_fetcher(), f"{site}/a")).text == "Привет"


async def test_slow_body_ends_at_the_deadline(make_fetcher: Make, raw_server: Any) -> None:
    sent: list[int] = []

    def trickle(connection: socket.socket, request: bytes) -> None:
        if b"/robots.txt" in request:
            connection.sendall(b"HTTP/1.1 404 N\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for number in range(1000):
            connection.sendall(b"x")
            sent.append(number)
            time.sleep(0.05)

    with pytest.raises(FetchError, match=r"did not arrive within 0\.5 seconds"):
        await make_fetcher(timeout_s=0.5).fetch(raw_server(trickle) + "/a")

    assert len(sent) < 100  # some 10 on an idle machine


async def test_silent_server_is_one_sentence(make_fetcher: Make, raw_server: Any) -> None:
    def silent(connection: socket.socket, request: bytes) -> None:
        connection.settimeout(2)
        connection.recv(1)

    with pytest.raises(FetchError, match=r"did not (answer|arrive)"):
        await make_fetcher(timeout_s=0.3).fetch(raw_server(silent) + "/a")


async def test_broken_connection_is_tried_once_more(make_fetcher: Make, raw_server: Any) -> None:
    seen: list[bytes] = []

    def answer(connection: socket.socket, request: bytes) -> None:
        seen.append(request.split(b" ")[1])
        if seen[-1] == b"/robots.txt":
            connection.sendall(b"HTTP/1.1 404 N\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        elif seen.count(b"/a") == 2:
            head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n"
            connection.sendall(head + b"<p>hi</p>")

    page = await fetched(make_fetcher(), raw_server(answer) + "/a")

    assert page.text == "<p>hi</p>"


async def test_refused_connection_is_told_with_its_port(make_fetcher: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    with pytest.raises(FetchError) as raised:
        await make_fetcher().fetch(f"http://127.0.0.1:{port}/a")

    said = f"'127.0.0.1:{port}' could not be reached: the connection was refused."
    assert str(raised.value) == said


async def test_site_without_tls_is_told_in_plain_words(
    make_fetcher: Make, raw_server: Callable[..., str]
) -> None:
    site = raw_server(lambda connection, _: connection.sendall(b"HTTP/1.1 400 No\r\n\r\n"))

    with pytest.raises(FetchError) as raised:
        await make_fetcher().fetch(site.replace("http:", "https:") + "/a")

    assert str(raised.value).endswith("could not be reached: wrong version number.")


async def test_tls_broken_off_is_told_in_the_systems_words(
    make_fetcher: Make, raw_server: Callable[..., str]
) -> None:
    site = raw_server(lambda *_: None)

    with pytest.raises(FetchError, match=r"(reset by peer|end of file|eof occurred).*\.$"):
        await make_fetcher().fetch(site.replace("http:", "https:") + "/a")


async def test_unknown_name_is_one_sentence(make_fetcher: Make) -> None:
    with pytest.raises(FetchError, match=r"the name 'nowhere\.invalid' was not found"):
        await make_fetcher().fetch("https://nowhere.invalid/")


async def test_address_that_is_none_is_an_input_error(make_fetcher: Make) -> None:
    with pytest.raises(InputError):
        await make_fetcher().fetch("example.com")
