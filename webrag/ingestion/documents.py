"""LlamaIndex documents as pages: those that a program brings, and those that a reader gives."""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any, Literal
from urllib.parse import quote

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document, MetadataMode

from webrag.concurrency import Threads
from webrag.errors import FetchError, InputError, UnusablePageError
from webrag.ingestion.addresses import canonical_url, content_hash, page_address
from webrag.ingestion.characters import one_line, storable, storable_values
from webrag.ingestion.fetch_context import received
from webrag.ingestion.html.markdown import PageFacts, fact_of, html_from_markdown, page_html
from webrag.ingestion.http.guard import AddressCheck
from webrag.ingestion.models import (
    Anchor,
    FetchedPage,
    NormalizedDocument,
    OutgoingLink,
    Validators,
)
from webrag.redaction import redacted_failure, safe_cause

_ADDRESSES = ("source_url", "url", "source", "URL")
_FILE_NAMES = ("file_name", "filename", "file_path")
_BETWEEN = "\n\n"


@dataclass(frozen=True)
class GivenPage:
    """The documents of one address, each as a page, and the metadata that they agree on.

    Numbers are of the page of a PDF, or the like, that each is; none when one does not say.
    """

    url: str
    parts: tuple[FetchedPage, ...]
    numbers: tuple[int, ...]
    metadata: dict[str, Any]

    def joined(self, parts: Sequence[NormalizedDocument | None]) -> NormalizedDocument:
        """One document of the parts that could be converted, which leads to their numbers."""
        found = [(at, part) for at, part in enumerate(parts) if part is not None]
        lengths = (len(part.markdown) + len(_BETWEEN) for _, part in found)
        placed = list(zip(accumulate(lengths, initial=0), found, strict=False))
        has_pages = len(self.parts) > 1 and self.numbers
        anchors = (
            Anchor(char_start=offset, fragment=f"page={self.numbers[at]}")
            for offset, (at, _) in placed
            if has_pages
        )
        markdown = _BETWEEN.join(part.markdown for _, part in found)
        joined = {
            "markdown": markdown,
            "html": "\n".join(part.html for _, part in found),
            "links": tuple(_moved(link, at) for at, (_, part) in placed for link in part.links),
            "anchors": tuple(anchors),
            "content_hash": content_hash(markdown),
            "metadata": self.metadata,
        }
        return found[0][1].model_copy(update=joined)


def pages_of_documents(documents: Sequence[Document]) -> list[GivenPage]:
    """Make pages of documents, under the address of their metadata or one made of their id.

    A document given again under the same id is the next version of that page. Several documents of
    one address are the parts of one page, as readers give a PDF. Text is read as Markdown.

    Raises:
        InputError: A page has no text, or an id is too long.
    """
    by_address: dict[str, list[Document]] = {}
    for document in documents:
        if not isinstance(document, Document):
            raise InputError(f"{type(document).__name__} is no LlamaIndex Document.")
        kept = {"id_": storable(document.doc_id), "metadata": storable_values(document.metadata)}
        document = document.model_copy(update=kept)
        by_address.setdefault(_address(document), []).append(document)
    return [_page(url, several) for url, several in by_address.items()]


def _page(url: str, several: Sequence[Document]) -> GivenPage:
    texts = [storable(each.get_content(metadata_mode=MetadataMode.NONE)) for each in several]
    told = [(each, text) for each, text in zip(several, texts, strict=True) if text.strip()]
    if not told:
        raise InputError(f"The document {several[0].doc_id!r} has no text.")
    first, *others = (each.metadata for each, _ in told)
    metadata = {
        name: value
        for name, value in first.items()
        if all(name in other and other[name] == value for other in others)
    }
    facts = _facts(metadata)
    labels = [str(each.metadata.get("page_label", "")) for each, _ in told]
    return GivenPage(
        url=url,
        parts=tuple(_fetched(url, page_html(html_from_markdown(text), facts)) for _, text in told),
        numbers=tuple(map(int, labels)) if all(map(str.isdecimal, labels)) else (),
        metadata=metadata,
    )


def _fetched(
    url: str, text: str, *, kind: Literal["html", "text"] = "html", source: str = "documents"
) -> FetchedPage:
    now = datetime.now(UTC)
    return FetchedPage(
        requested_url=url, url=url, kind=kind, text=text, fetched_at=now, source=source
    )


def _moved(link: OutgoingLink, offset: int) -> OutgoingLink:
    if link.char_start is None or link.char_end is None:
        return link
    places = {"char_start": link.char_start + offset, "char_end": link.char_end + offset}
    return link.model_copy(update=places)


def _address(document: Document) -> str:
    for name in _ADDRESSES:
        value = document.metadata.get(name)
        if isinstance(value, str) and value.startswith(("http://", "https://")):
            return page_address(value)
    return page_address(f"document:{quote(document.doc_id, safe='/~:@!$&()*+,;=')}")


def _facts(metadata: dict[str, Any]) -> PageFacts:
    page = metadata.get("page_label")
    file_name = fact_of(metadata, *_FILE_NAMES).rpartition("/")[2]
    named = f"{file_name}, page {page}" if file_name and page else file_name
    return PageFacts(
        title=fact_of(metadata, "title", "og_title") or named,
        description=fact_of(metadata, "description", "summary"),
        author=fact_of(metadata, "author", "authors"),
        language=fact_of(metadata, "language", "lang"),
        published_at=fact_of(metadata, "published_time", "publish_date", "date", "published"),
    )


ContentKind = Literal["auto", "html", "markdown", "text"]

_MAX_SAID = 200
# A reader that never returns keeps its thread for good.
_READERS = Threads("webrag-reader", 8)


class ReaderSource:
    """Fetches pages with a LlamaIndex reader, following `models.PageSource`.

    An asynchronous reader is awaited; any other runs in a thread, which goes on by itself when
    the deadline passes. Several documents of one page are joined in their order. The address is
    judged before the reader gets it, but the reader dials and follows redirects as it likes, so
    keep to readers you trust.

    Args:
        reader: Such as `TrafilaturaWebReader()` of `llama-index-readers-web`.
        name: Recorded with each page; None for the reader's class name.
        kind: What the reader's texts are; `auto` looks at each.
        load: Gives the documents of one URL, for readers that take neither `urls`, nor `url`, nor
            a list of addresses as first argument.
        allowed_hosts: `host` or `host:port` entries that may be read although private.
        timeout_s: One page.
        max_chars: Longest text of one page.
    """

    def __init__(
        self,
        reader: BaseReader,
        *,
        name: str | None = None,
        kind: ContentKind = "auto",
        load: Callable[[str], Sequence[Document]] | None = None,
        allowed_hosts: Iterable[str] = (),
        timeout_s: float = 30.0,
        max_chars: int = 10_000_000,
    ) -> None:
        self.name = name or type(reader).__name__
        self._reader = reader
        self._kind = kind
        self._load = load
        self._timeout_s = timeout_s
        self._max_chars = max_chars
        self._addresses = AddressCheck(allowed_hosts)

    async def fetch(
        self, url: str, *, validators: Validators | None = None, fresh: bool = False
    ) -> FetchedPage:
        """Get one page, as `PageSource` says; readers know neither validators nor copies."""
        del validators, fresh
        requested = canonical_url(url)
        await self._addresses.check(requested)
        documents = await self._documents(requested)
        text = "\n\n".join(filter(None, (document.text.strip() for document in documents)))
        if 0 < len(text) <= self._max_chars:
            return self._page(requested, storable(text), documents)
        why = f"gave {len(text):,} characters for {requested}; at most {self._max_chars:,} are read"
        why = why if text else f"found nothing to read on {requested}"
        raise UnusablePageError(f"{self.name} {why}.", url=requested)

    async def aclose(self) -> None:
        """Do nothing: a reader is its owner's to close."""

    async def _documents(self, url: str) -> list[Document]:
        try:
            async with asyncio.timeout(self._timeout_s):
                return list(await self._ask(url))
        except TimeoutError as error:
            raise FetchError(
                f"{self.name} did not give {url} within {self._timeout_s:g} seconds.", url=url
            ) from error
        # Readers are other people's code and raise whatever the libraries under them raise.
        except Exception as error:  # noqa: BLE001 - foreign code
            said = one_line(redacted_failure(str(error)))[:_MAX_SAID]
            reason = ": ".join(filter(None, (type(error).__name__, said.rstrip("."))))
            message = f"{self.name} could not read {url} ({reason})."
            raise FetchError(message, url=url) from safe_cause(error)

    async def _ask(self, url: str) -> Iterable[Document]:
        if self._load is not None:
            return await _READERS.run(self._load, url)
        if _overrides(self._reader, "aload_data"):
            arguments, named = _arguments(self._reader.aload_data, url)
            return await self._reader.aload_data(*arguments, **named)
        loads = _overrides(self._reader, "load_data")
        method = self._reader.load_data if loads else self._reader.lazy_load_data
        arguments, named = _arguments(method, url)
        return await _READERS.run(lambda: list(method(*arguments, **named)))

    def _page(self, url: str, text: str, documents: Sequence[Document]) -> FetchedPage:
        kind = self._kind
        if kind == "auto":
            start = text[:2_000].lstrip().lower()
            is_page = start.startswith(("<!doctype", "<html", "<?xml")) or "<body" in start
            kind = "html" if is_page else "markdown"
        if kind == "markdown":
            text, kind = page_html(html_from_markdown(text), _facts(_joined(documents))), "html"
        elif kind == "html" and "<head" not in text[:5_000].lower():
            text = page_html(text, _facts(_joined(documents)))
        received(len(text.encode()))
        return _fetched(url, text, kind=kind, source=self.name)


def _overrides(reader: BaseReader, method: str) -> bool:
    return getattr(type(reader), method) is not getattr(BaseReader, method)


def _arguments(method: Callable[..., Any], url: str) -> tuple[list[Any], dict[str, Any]]:
    names = inspect.signature(method).parameters
    for name in ("urls", "url", "base_url", "website_url"):
        if name in names:
            return [], {name: [url] if name == "urls" else url}
    return [[url]], {}


def _joined(documents: Sequence[Document]) -> dict[str, Any]:
    """Join the metadata of documents, the first one's before others'; one alone names its page."""
    told = (each.metadata for each in reversed(documents))
    found = {key.lower(): value for metadata in told for key, value in metadata.items()}
    return found if len(documents) == 1 else {**found, "page_label": None}
