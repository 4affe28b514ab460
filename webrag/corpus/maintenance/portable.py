"""A corpus as a file: one JSON object per line, a header first; it stores and fetches nothing.

The file holds what cannot be made again without the sites: texts, links, dates. Chunks, vectors
and the lexical index are made anew by whoever imports it.
"""

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Annotated, Literal, cast

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from webrag.errors import InputError
from webrag.ingestion.addresses import MAX_URL_CHARS, content_hash, page_address
from webrag.ingestion.characters import storable_values
from webrag.ingestion.html.metadata import MAX_DESCRIPTION_CHARS, MAX_TITLE_CHARS
from webrag.ingestion.html.tree import MAX_LINKS
from webrag.ingestion.models import Anchor, NormalizedDocument, OutgoingLink
from webrag.ingestion.versions import MAX_NAME_CHARS, Edition

FORMAT_VERSION = 1
_FORMAT = "webrag-corpus"
# Bytes; the greatest page that is fetched, as text and as HTML, with its quotation marks escaped.
_LONGEST_LINE = 40_000_000
# What is not within quotation marks: 20,000 links have 800 kB of it, and every two bytes may
# become an object in memory.
_MOST_PUNCTUATION = 2_000_000
_CHECKED_FROM = 1_000_000  # bytes; shorter lines cannot have too much of it
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)', re.DOTALL)
# Texts compress by 3 to 20. What expands more was made to fill a memory.
_MOST_EXPANSION = 100
_ALWAYS_EXPANDED = 10_000_000
_MAX_CHARS = 10_000_000
_MAX_HTML_CHARS = 20_000_000
_MAX_NAME_CHARS = 2_000  # anchors may be addresses
_MAX_NAMES = 100_000
_MAX_HEADER_CHARS = 8_192
_LONGEST_HEADER = 1_000_000
_FIRST_YEAR, _LAST_YEAR = 1000, 8999


def _in_calendar(moment: datetime) -> datetime:
    # Readers of the database turn it into the time of any zone, or into one of before or after.
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise ValueError(f"the year must be from {_FIRST_YEAR} to {_LAST_YEAR}")
    return moment


_Moment = Annotated[AwareDatetime, AfterValidator(_in_calendar)]
_Number = Annotated[int, Field(ge=0, lt=2**31)]  # columns of type integer take no more
_Url = Annotated[str, Field(max_length=MAX_URL_CHARS)]
_Header = Annotated[str, Field(max_length=_MAX_HEADER_CHARS)]
_Edition = Annotated[str, Field(max_length=MAX_NAME_CHARS)]
_Name = Annotated[str, Field(max_length=_MAX_NAME_CHARS)]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")  # later versions may say more


class PortableHeader(_Line):
    """First line of the file.

    Attributes:
        collection: Where the pages come from.
        embedding_model: Model they were searched with there; for information.
        documents: Lines that follow.
    """

    format: Literal["webrag-corpus"] = "webrag-corpus"
    version: int = FORMAT_VERSION
    collection: str
    embedding_model: str | None = None
    embedding_dimensions: int | None = None
    documents: _Number
    links: int = Field(default=0, ge=0)
    exported_at: AwareDatetime


class PortableLink(_Line):
    """A link of a page; fields as in `OutgoingLink`."""

    url: _Url
    anchor_text: _Name = ""
    sentence: _Name = ""
    heading: _Name | None = None
    rel: tuple[_Name, ...] = Field(default=(), max_length=_MAX_NAMES)
    char_start: _Number | None = None
    char_end: _Number | None = None


class PortableAnchor(_Line):
    """Where a page of a PDF begins; fields as in `Anchor`."""

    char_start: _Number
    fragment: _Name


_NOT_TAKEN_OVER = {
    *("aliases", "depth", "gone_at", "links", "anchors"),
    *("version", "library", "edition", "version_given"),
}


class PortablePage(_Line):
    """One page; fields as in `NormalizedDocument`.

    Attributes:
        aliases: Other URLs the page is known by.
        depth: Links from a page that was named.
        gone_at: When the site was first seen to have removed it.
        version: Of the library that the page is about.
        edition: The `root` of its `Edition`.
        with_login: It was read with a login, which keeps it out of exports where it is imported.
    """

    url: _Url
    requested_url: _Url
    aliases: tuple[_Url, ...] = Field(default=(), max_length=_MAX_NAMES)
    title: str | None = Field(default=None, max_length=MAX_TITLE_CHARS)
    description: str | None = Field(default=None, max_length=MAX_DESCRIPTION_CHARS)
    author: _Edition | None = None
    site_name: _Edition | None = None
    language: _Name | None = None
    published_at: _Moment | None = None
    modified_at: _Moment | None = None
    fetched_at: _Moment
    depth: _Number
    markdown: str = Field(max_length=_MAX_CHARS)
    html: str = Field(default="", max_length=_MAX_HTML_CHARS)
    content_hash: _Name
    etag: _Header | None = None
    last_modified: _Header | None = None
    status: _Number = 200
    source: _Name
    gone_at: _Moment | None = None
    version: _Edition | None = None
    library: _Edition | None = None
    edition: _Edition | None = None
    version_given: bool = False
    with_login: bool = False
    anchors: tuple[PortableAnchor, ...] = Field(default=(), max_length=MAX_LINKS)
    links: tuple[PortableLink, ...] = Field(default=(), max_length=MAX_LINKS)

    def document(self) -> NormalizedDocument:
        """The page as ingestion would deliver it."""
        values = self.model_dump(exclude=_NOT_TAKEN_OVER)
        anchors = tuple(Anchor(**anchor.model_dump()) for anchor in self.anchors)
        links = tuple(OutgoingLink(**link.model_dump()) for link in self.links)
        edition = None
        if self.version and self.library and self.edition:
            edition = Edition(
                version=self.version,
                library=self.library,
                root=self.edition,
                is_given=self.version_given,
            )
        return NormalizedDocument(**values, links=links, anchors=anchors, edition=edition)

    @property
    def last_seen(self) -> datetime:
        """When the site was last asked for it."""
        return max(self.fetched_at, self.gone_at or self.fetched_at)


def open_for_writing(path: Path, *, compress: bool) -> IO[bytes]:
    """Open a new file, compressed on request."""
    return cast("IO[bytes]", gzip.open(path, "wb", 6)) if compress else path.open("wb")


def open_for_reading(path: Path) -> IO[bytes]:
    """Open a file; whether it is compressed is seen from its first bytes."""
    try:
        with path.open("rb") as file:
            is_compressed = file.read(2) == b"\x1f\x8b"
        if is_compressed:
            return cast("IO[bytes]", _Inflated(path))
        return path.open("rb")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"The file {path} cannot be read: {reason}.") from error


class _ExpandsTooMuchError(Exception):
    """The file was made to fill a memory."""


class _Inflated(gzip.GzipFile):
    """A compressed file that gives up where it expands beyond any text."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        super().__init__(fileobj=self._file, mode="rb")
        self._given = 0

    def readline(self, size: int | None = -1) -> bytes:
        """As of any file."""
        line = super().readline(-1 if size is None else size)
        self._given += len(line)
        if self._given > _ALWAYS_EXPANDED + _MOST_EXPANSION * self._file.tell():
            raise _ExpandsTooMuchError
        return line

    def close(self) -> None:
        """Close the file itself, too."""
        try:
            super().close()
        finally:
            self._file.close()


def read_header(file: IO[bytes], path: Path) -> PortableHeader:
    """The header of an opened file; refuses what is no export, or one of a newer WebRAG."""
    try:
        found = json.loads(file.readline(_LONGEST_HEADER))
    except (ValueError, RecursionError, OSError, EOFError, zlib.error, _ExpandsTooMuchError):
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
            rest = line
            while is_cut and rest and not rest.endswith(b"\n"):
                rest = file.readline(_LONGEST_LINE)
        except (OSError, EOFError, zlib.error):
            yield number, "The compressed file is damaged or incomplete from here on."
            return
        except _ExpandsTooMuchError:
            yield (
                number,
                (
                    f"The compressed file expands more than {_MOST_EXPANSION}-fold from here on,"
                    " as no text does."
                ),
            )
            return
        if not line:
            return
        if is_cut:
            yield number, f"It is longer than {_LONGEST_LINE:,} bytes."
        elif line.strip():
            yield number, _page(line)


def _page(line: bytes) -> PortablePage | str:
    if _has_too_many_values(line):
        return "It has more values than a page can have."
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


def _has_too_many_values(line: bytes) -> bool:
    if len(line) < _CHECKED_FROM:
        return False
    return len(line) - sum(len(found.group()) for found in _STRING.finditer(line)) > (
        _MOST_PUNCTUATION
    )


def _check(page: PortablePage) -> None:
    values = page.model_dump()
    if storable_values(values) != values:
        raise InputError("It holds a NUL or half a surrogate pair, which no text may contain.")
    for url in (page.url, page.requested_url, *page.aliases):
        if page_address(url) != url:
            raise InputError(f"{url} is not in canonical form, {page_address(url)}.")
    if content_hash(page.markdown) != page.content_hash:
        raise InputError("The text does not have the content_hash the line names: it was changed.")
