"""A corpus as a file: one JSON object per line, a header first; it stores and fetches nothing.

The file holds what cannot be made again without the sites: texts, links, dates. Chunks, vectors
and the lexical index are made anew by whoever imports it.
"""

import gzip
import json
import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Literal, cast

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from webrag.errors import InputError
from webrag.ingestion.links import canonical_url, content_hash
from webrag.ingestion.models import Anchor, NormalizedDocument, OutgoingLink

__all__ = [
    "FORMAT_VERSION",
    "PortableAnchor",
    "PortableHeader",
    "PortableLink",
    "PortablePage",
    "open_for_reading",
    "open_for_writing",
    "read_header",
    "read_pages",
]

FORMAT_VERSION = 1
_FORMAT = "webrag-corpus"
_LONGEST_LINE = 100_000_000  # bytes; a page is at most a fraction of it
_GZIP_LEVEL = 6


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")  # later versions may say more


class PortableHeader(_Line):
    """First line of the file.

    Attributes:
        version: Version of the format.
        collection: Where the pages come from.
        embedding_model: Model they were searched with there; for information.
        documents: Lines that follow.
        exported_at: UTC.
    """

    format: Literal["webrag-corpus"] = "webrag-corpus"
    version: int = FORMAT_VERSION
    collection: str
    embedding_model: str | None = None
    embedding_dimensions: int | None = None
    documents: int = Field(ge=0)
    links: int = Field(default=0, ge=0)
    exported_at: AwareDatetime


class PortableLink(_Line):
    """A link of a page; fields as in `OutgoingLink`."""

    url: str
    anchor_text: str = ""
    sentence: str = ""
    heading: str | None = None
    rel: tuple[str, ...] = ()
    char_start: int | None = Field(default=None, ge=0)
    char_end: int | None = Field(default=None, ge=0)


class PortableAnchor(_Line):
    """Where a page of a PDF begins; fields as in `Anchor`."""

    char_start: int = Field(ge=0, lt=2**31)
    fragment: str


class PortablePage(_Line):
    """One page; fields as in `NormalizedDocument`.

    Attributes:
        aliases: Other URLs the page is known by.
        depth: Links from a page that was named.
        gone_at: When the site was first seen to have removed it.
    """

    url: str
    requested_url: str
    aliases: tuple[str, ...] = ()
    title: str | None = None
    description: str | None = None
    language: str | None = None
    published_at: AwareDatetime | None = None
    modified_at: AwareDatetime | None = None
    fetched_at: AwareDatetime
    depth: int = Field(ge=0, lt=2**31)
    markdown: str
    html: str = ""
    content_hash: str
    etag: str | None = None
    last_modified: str | None = None
    status: int = 200
    source: str
    gone_at: AwareDatetime | None = None
    anchors: tuple[PortableAnchor, ...] = ()
    links: tuple[PortableLink, ...] = ()

    def document(self) -> NormalizedDocument:
        """The page as ingestion would deliver it."""
        values = self.model_dump(exclude={"aliases", "depth", "gone_at", "links", "anchors"})
        anchors = tuple(Anchor(**anchor.model_dump()) for anchor in self.anchors)
        links = tuple(OutgoingLink(**link.model_dump()) for link in self.links)
        return NormalizedDocument(**values, links=links, anchors=anchors)

    @property
    def last_seen(self) -> datetime:
        """When the site was last asked for it."""
        return max(self.fetched_at, self.gone_at or self.fetched_at)


def open_for_writing(path: Path, *, compress: bool) -> IO[bytes]:
    """Open a new file, compressed on request."""
    if compress:
        return cast("IO[bytes]", gzip.open(path, "wb", _GZIP_LEVEL))
    return path.open("wb")


def open_for_reading(path: Path) -> IO[bytes]:
    """Open a file; whether it is compressed is seen from its first bytes.

    Raises:
        InputError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            is_compressed = file.read(2) == b"\x1f\x8b"
        if is_compressed:
            return cast("IO[bytes]", gzip.open(path, "rb"))
        return path.open("rb")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"The file {path} cannot be read: {reason}.") from error


def read_header(file: IO[bytes], path: Path) -> PortableHeader:
    """The header of an opened file.

    Raises:
        InputError: It is not an export, or one of a newer WebRAG.
    """
    try:
        found = json.loads(file.readline(_LONGEST_LINE))
    except (ValueError, RecursionError, OSError, EOFError, zlib.error):
        found = None
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise _not_an_export(path)
    version = found.get("version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise InputError(
            f"The file {path} has format version {version}; this WebRAG reads versions up to"
            f" {FORMAT_VERSION}.",
            hint="Upgrade WebRAG.",
        )
    try:
        return PortableHeader.model_validate(found)
    except ValidationError as error:
        raise _not_an_export(path) from error


def _not_an_export(path: Path) -> InputError:
    return InputError(
        f"The file {path} is not an export of WebRAG: its first line is not a header."
    )


def read_pages(file: IO[bytes]) -> Iterator[tuple[int, PortablePage | str]]:
    """Line number, from 2 on, and page of each line; for a line that is none, why.

    A file that is cut off gives a reason for its last line.
    """
    number = 1
    while True:
        number += 1
        try:
            line = file.readline(_LONGEST_LINE)
            is_cut = len(line) == _LONGEST_LINE and not line.endswith(b"\n")
            if is_cut:
                _skip_line(file)
        except (OSError, EOFError, zlib.error):
            yield number, "The compressed file is damaged or incomplete from here on."
            return
        if not line:
            return
        if is_cut:
            yield number, f"It is longer than {_LONGEST_LINE:,} bytes."
        elif line.strip():
            yield number, _page(line)


def _skip_line(file: IO[bytes]) -> None:
    while True:
        rest = file.readline(_LONGEST_LINE)
        if not rest or rest.endswith(b"\n"):
            return


def _page(line: bytes) -> PortablePage | str:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return "It is not JSON."
    try:
        page = PortablePage.model_validate(found)
        _check(page)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the line"
        return f"{place}: {first['msg']}."
    except InputError as error:
        return str(error)
    return page


def _check(page: PortablePage) -> None:
    if not all(map(_is_storable, _strings(page.model_dump(mode="python")))):
        raise InputError("It holds a NUL or half a surrogate pair, which no text may contain.")
    for url in (page.url, page.requested_url, *page.aliases):
        if canonical_url(url) != url:
            raise InputError(f"{url} is not in canonical form, {canonical_url(url)}.")
    if content_hash(page.markdown) != page.content_hash:
        raise InputError("The text does not have the content_hash the line names: it was changed.")


def _is_storable(text: str) -> bool:
    if "\x00" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each)
