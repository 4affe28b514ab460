import asyncio
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document

from webrag.errors import FetchError, InputError, RefusedAddressError, UnusablePageError
from webrag.ingestion.documents import ReaderSource
from webrag.ingestion.extract import extract
from webrag.ingestion.models import NormalizedDocument

HTML = (
    "<html><head><title>Install</title></head><body><main><h1>Install</h1><p>Unpack the archive"
    " and run the <a href='/setup'>setup program</a> as an ordinary user.</p></main></body></html>"
)
MARKDOWN = "# Install\n\nUnpack the archive and run the [setup program](/setup) as a user."


class UrlsReader(BaseReader):
    """Like most web readers: a list of addresses in, one document each."""

    def __init__(self, convert: Callable[[str], str] = str, **metadata: Any) -> None:
        self.convert = convert
        self.metadata = metadata

    def load_data(self, urls: list[str]) -> list[Document]:
        assert isinstance(urls, list)
        return [
            Document(text=self.convert(get(url)), metadata={"URL": url, **self.metadata})
            for url in urls
        ]


class UrlReader(BaseReader):
    def load_data(self, url: str, **_: Any) -> list[Document]:
        assert isinstance(url, str)
        return [Document(text=get(url))]


class OtherNameReader(BaseReader):
    def load_data(self, addresses: Sequence[str]) -> list[Document]:
        return [Document(text=get(url)) for url in addresses]


class LazyReader(BaseReader):
    def lazy_load_data(self, urls: list[str]) -> Iterable[Document]:
        for url in urls:
            yield Document(text=get(url))


class AsyncReader(BaseReader):
    async def aload_data(self, urls: list[str]) -> list[Document]:
        return [Document(text=await asyncio.to_thread(get, url)) for url in urls]


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return str(answer.read().decode())


def source(reader: BaseReader, **options: Any) -> ReaderSource:
    return ReaderSource(reader, **{"allowed_hosts": ("127.0.0.1",), **options})


async def read(reader: BaseReader, url: str, **options: Any) -> NormalizedDocument:
    return extract(await source(reader, **options).fetch(url))


@pytest.fixture
def page(static_site: Callable[..., str]) -> str:
    return static_site({"/install": HTML}) + "/install"


@pytest.mark.parametrize("kind", [UrlsReader, UrlReader, OtherNameReader, LazyReader, AsyncReader])
async def test_reader_is_called_as_it_wants_to_be(kind: type[BaseReader], page: str) -> None:
    document = await read(kind(), page)

    link = document.links[0]
    assert document.title == "Install"
    assert document.markdown[link.char_start : link.char_end] == "setup program"
    assert document.source == kind.__name__


async def test_markdown_becomes_the_same_text_as_any_page(page: str) -> None:
    document = await read(UrlsReader(lambda _: MARKDOWN, title="Install it"), page)

    assert document.markdown == (
        "# Install\n\nUnpack the archive and run the setup program as a user."
    )
    assert document.links[0].url == page.replace("/install", "/setup")


async def test_plain_text_stays_as_it_is(page: str) -> None:
    text = "First line\n  * not a list\nLast line, with more words in it"

    assert (await read(UrlsReader(lambda _: text), page, kind="text")).markdown == text


async def test_several_documents_of_a_page_are_joined(page: str) -> None:
    def load(url: str) -> list[Document]:
        return [Document(text=f"## Part {number}\n\nText {number} of it.") for number in (1, 2)]

    document = await read(BaseReaderWithoutMethods(), page, load=load, name="parts")

    assert document.markdown == "## Part 1\n\nText 1 of it.\n\n## Part 2\n\nText 2 of it."
    assert document.source == "parts"


class BaseReaderWithoutMethods(BaseReader):
    pass


async def test_failure_of_the_reader_is_a_fetch_error_that_names_it(page: str) -> None:
    with pytest.raises(FetchError, match=r"UrlsReader could not read .*\(HTTPError: .*404"):
        await source(UrlsReader()).fetch(page + "/missing")


async def test_reader_that_cannot_load_is_named(page: str) -> None:
    with pytest.raises(FetchError, match="NotImplementedError"):
        await source(BaseReaderWithoutMethods()).fetch(page)


@pytest.mark.parametrize("text", ["", "  \n "])
async def test_nothing_read_is_unusable(page: str, text: str) -> None:
    with pytest.raises(UnusablePageError, match="found nothing to read"):
        await source(UrlsReader(lambda _: text)).fetch(page)


async def test_too_much_is_unusable(page: str) -> None:
    with pytest.raises(UnusablePageError, match="at most 100 are read"):
        await source(UrlsReader(lambda _: "word " * 50), max_chars=100).fetch(page)


async def test_slow_reader_ends_at_the_deadline(page: str) -> None:
    go_on = threading.Event()

    def load(_url: str) -> list[Document]:
        go_on.wait(10)
        return []

    started = time.monotonic()
    with pytest.raises(FetchError, match=r"within 0\.1 seconds"):
        await source(UrlsReader(), load=load, timeout_s=0.1).fetch(page)
    go_on.set()

    assert time.monotonic() - started < 2


async def test_private_address_never_reaches_the_reader() -> None:
    asked: list[str] = []

    def load(url: str) -> list[Document]:
        asked.append(url)
        return []

    with pytest.raises(RefusedAddressError):
        await ReaderSource(UrlsReader(), load=load).fetch("http://127.0.0.1/")

    assert asked == []


async def test_what_is_no_web_address_is_refused() -> None:
    with pytest.raises(InputError):
        await source(UrlsReader()).fetch("file:///etc/passwd")


async def test_half_characters_and_nul_never_reach_the_text(page: str) -> None:
    text = (await source(UrlsReader(lambda _: "one\x00 \ud800 two"), kind="text").fetch(page)).text

    assert text == "one\ufffd \ufffd two"
