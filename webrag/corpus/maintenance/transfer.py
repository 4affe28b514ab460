"""Writes a collection into an export file, and reads such a file into a collection.

The file has one JSON object per line, a header first: what cannot be made again without the sites,
texts, links, dates. Chunks, vectors and the lexical index are made anew by whoever imports it.
"""

import asyncio
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from io import BufferedIOBase
from itertools import islice
from pathlib import Path
from typing import IO, Annotated, Any, Literal

from psycopg.rows import dict_row
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from webrag.concurrency import all_of
from webrag.corpus.acquirer import unexpected_failure
from webrag.corpus.indexer import Indexer
from webrag.corpus.models import StoredPage
from webrag.corpus.pages import Corpus
from webrag.corpus.schema import read_embedding, update_schema
from webrag.errors import DatabaseUnavailableError, InputError, ProviderError, WebRAGError
from webrag.frozen import FrozenModel
from webrag.ingestion.addresses import MAX_URL_CHARS, content_hash, page_address
from webrag.ingestion.characters import storable_values
from webrag.ingestion.html.metadata import MAX_DESCRIPTION_CHARS, MAX_TITLE_CHARS
from webrag.ingestion.html.tree import MAX_LINKS
from webrag.ingestion.models import NormalizedDocument
from webrag.ingestion.versions import MAX_NAME_CHARS, Edition
from webrag.postgres.database import Connection, Database, compose

FORMAT_VERSION = 1
_FORMAT = "webrag-corpus"
# Bytes; the greatest page that is fetched, as text and as HTML, with its quotation marks escaped.
_LONGEST_LINE = 40_000_000
# What is not within quotation marks: 20,000 links have 800 kB of it, and every two bytes may
# become an object in memory.
_MOST_PUNCTUATION = 2_000_000
_CHECKED_FROM = 1_000_000  # bytes; shorter lines cannot have too much of it
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)', re.DOTALL)
_PACKED = b"\x1f\x8b"  # the first bytes of what gzip has written
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
    """First line of the file: how many lines follow; model and collection are for information."""

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
    """The beginning of a page of a PDF; fields as in `Anchor`."""

    char_start: _Number
    fragment: _Name


_NOT_TAKEN_OVER = {
    *("aliases", "depth", "gone_at", "version", "library", "edition", "version_given"),
}


class PortablePage(_Line):
    """One page; fields as in `NormalizedDocument`, and the `root` of its `Edition`."""

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
        edition = None
        if self.version and self.library and self.edition:
            edition = Edition(
                version=self.version,
                library=self.library,
                root=self.edition,
                is_given=self.version_given,
            )
        return NormalizedDocument(**values, edition=edition)


def open_for_reading(path: Path) -> IO[bytes]:
    """Open a file; one that is packed is refused with what unpacks it."""
    try:
        file = path.open("rb")
        is_packed = file.read(len(_PACKED)) == _PACKED
        file.seek(0)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"The file {path} cannot be read: {reason}.") from error
    if is_packed:
        file.close()
        raise InputError(f"The file {path} is packed.", hint=f"Unpack it first: gunzip -k {path}")
    return file


def read_header(file: IO[bytes], path: Path) -> PortableHeader:
    """The header of an opened file; refuses what is no export, or one of a newer WebRAG."""
    no_export = InputError(
        f"The file {path} is not an export of WebRAG: its first line is not a header."
    )
    try:
        found = json.loads(file.readline(_LONGEST_HEADER))
    except (ValueError, RecursionError, OSError):
        found = None
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise no_export
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
        raise no_export from error


def read_pages(file: IO[bytes]) -> Iterator[tuple[int, PortablePage | str]]:
    """Give the number of each line, from 2 on, and its page, or why it is none."""
    number = 1
    while True:
        number += 1
        try:
            line = file.readline(_LONGEST_LINE)
            is_cut = len(line) == _LONGEST_LINE and not line.endswith(b"\n")
            rest = line
            while is_cut and rest and not rest.endswith(b"\n"):
                rest = file.readline(_LONGEST_LINE)
        except OSError as error:
            yield number, f"The file cannot be read from here on: {error.strerror}."
            return
        if not line:
            return
        if is_cut:
            yield number, f"It is longer than {_LONGEST_LINE:,} bytes."
        elif line.strip():
            yield number, _page(line)


def _page(line: bytes) -> PortablePage | str:
    if len(line) >= _CHECKED_FROM:
        in_strings = sum(len(found.group()) for found in _STRING.finditer(line))
        if len(line) - in_strings > _MOST_PUNCTUATION:
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


def _check(page: PortablePage) -> None:
    values = page.model_dump()
    if storable_values(values) != values:
        raise InputError("It holds a NUL or half a surrogate pair, which no text may contain.")
    for url in (page.url, page.requested_url, *page.aliases):
        if page_address(url) != url:
            raise InputError(f"{url} is not in canonical form, {page_address(url)}.")
    if content_hash(page.markdown) != page.content_hash:
        raise InputError("The text does not have the content_hash the line names: it was changed.")


_PAGES_READ_AT_ONCE = 8  # a page and its HTML may have megabytes

_COUNTS = """
select count(*) filter (where site <> ''), count(*) filter (where site = ''),
       (select count(*) from {link_candidates} l join {documents} d on d.id = l.source_document
        where d.site <> '' and l.origin = 'page' and (%(all)s or not d.with_login)),
       count(*) filter (where site <> '' and with_login)
from {documents}
"""
_DOCUMENTS = (
    "select id, {} from {{documents}} where site <> '' and (%(all)s or not with_login) order by id"
).format(", ".join(name for name in PortablePage.model_fields if name != "links"))
_LINKS = """
select source_document, url, title as anchor_text, description as sentence, heading, rel,
       char_start, char_end
from {link_candidates} where source_document = any(%s) and origin = 'page'
order by source_document, ordinal
"""


class ExportReport(FrozenModel):
    """Pages in the file, those left out for want of a web address, private ones, and its size."""

    path: str
    documents: int
    left_out: int
    private: int = 0
    bytes: int


async def export_corpus(
    database: Database,
    path: Path,
    *,
    overwrite: bool = False,
    with_logins: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> ExportReport:
    """Write all pages, as of one moment, to a file that appears when complete."""
    if path.suffix == ".gz":
        raise InputError(
            f"An export is not packed, and {path} says it is; name it {path.with_suffix('')}.",
            hint="gzip packs it afterwards.",
        )
    if not overwrite and await asyncio.to_thread(path.exists):
        raise InputError(
            f"The file {path} exists already; name another one, or replace it with --overwrite"
            " (overwrite=True).",
        )
    await update_schema(database)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")

    async def work(connection: Connection) -> dict[str, int]:
        await connection.lift_timeouts()
        with partial.open("wb") as file:
            return await _write(connection, file, on_progress, with_logins=with_logins)

    try:
        written = await database.run(work, snapshot=True)
        size = (await asyncio.to_thread(partial.stat)).st_size
        await asyncio.to_thread(partial.replace, path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"The file {path} cannot be written: {reason}.") from error
    finally:
        partial.unlink(missing_ok=True)
    return ExportReport(path=str(path), bytes=size, **written)


async def _write(
    connection: Connection,
    file: BufferedIOBase,
    on_progress: Callable[[int, int], None] | None,
    *,
    with_logins: bool,
) -> dict[str, int]:
    embedding = await read_embedding(connection)
    if embedding is None:
        raise InputError(f"The collection {connection.collection!r} does not exist yet.")
    which = {"all": with_logins}
    ((total, left_out, links, private),) = await connection.fetch(_COUNTS, which)
    private = 0 if with_logins else private
    total -= private
    header = PortableHeader(
        collection=connection.collection,
        embedding_model=embedding[0],
        embedding_dimensions=embedding[1],
        documents=total,
        links=links,
        exported_at=datetime.now(UTC),
    )
    await asyncio.to_thread(_write_lines, file, [header])
    written = 0
    # A cursor of the server's: the driver's own would hold the whole corpus.
    async with connection.cursor("webrag_export", row_factory=dict_row) as cursor:
        await cursor.execute(compose(connection.collection, _DOCUMENTS), which)
        while rows := await cursor.fetchmany(_PAGES_READ_AT_ONCE):
            pages = await _with_links(connection, rows)
            await asyncio.to_thread(_write_lines, file, pages)
            written += len(pages)
            if on_progress is not None:
                on_progress(written, total)
    return {"documents": written, "left_out": left_out, "private": private}


async def _with_links(connection: Connection, rows: Sequence[dict[str, Any]]) -> list[PortablePage]:
    links: dict[int, list[PortableLink]] = {row["id"]: [] for row in rows}
    for link in await connection.fetch_as(dict, _LINKS, (list(links),)):
        links[link.pop("source_document")].append(PortableLink.model_validate(link))
    return [PortablePage(**row, links=tuple(links[row["id"]])) for row in rows]


def _write_lines(file: BufferedIOBase, lines: Sequence[BaseModel]) -> None:
    for line in lines:
        file.write(line.model_dump_json(exclude_none=True).encode() + b"\n")


# One transaction for 96 pages loads a tenth faster than three for 32; large pages come in fewer.
_LINES_AT_ONCE = 96
_CHARS_AT_ONCE = 4_000_000

_NumberedLine = tuple[int, PortablePage | str]


class ImportReport(FrozenModel):
    """Numbers of pages that are new, newer, the same, or older; failures by number of the line."""

    indexed: int = 0
    updated: int = 0
    unchanged: int = 0
    kept: int = 0
    failed: dict[int, str] = Field(default_factory=dict)


async def import_corpus(
    corpus: Corpus,
    indexer: Indexer,
    path: Path,
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> ImportReport:
    """Store the pages of a file, a few at a time, each completely or not at all.

    An unusable line is reported and the others go on. Repeating an import changes nothing.
    """
    with await asyncio.to_thread(open_for_reading, path) as file:
        header = await asyncio.to_thread(read_header, file, path)
        lines = read_pages(file)
        outcomes: dict[int, str] = {}

        def note(number: int, outcome: str) -> None:
            outcomes[number] = outcome
            if on_progress is not None:
                on_progress(len(outcomes), max(len(outcomes), header.documents))

        async def store(pages: Mapping[int, PortablePage]) -> None:
            for number in sorted(pages):
                note(number, await _imported(corpus, indexer, pages[number]))

        async with corpus.index_deferred(header.documents):
            while batch := await asyncio.to_thread(_next_lines, lines):
                for number, page in batch:
                    if isinstance(page, str):
                        note(number, page)
                await all_of(map(store, _related_pages(batch)))
    return _import_report(outcomes, header.documents)


def _next_lines(lines: Iterator[_NumberedLine]) -> list[_NumberedLine]:
    """A few lines: reading each in a thread of its own takes longer than reading it."""
    found: list[_NumberedLine] = []
    size = 0
    for number, page in islice(lines, _LINES_AT_ONCE):
        found.append((number, page))
        size += 0 if isinstance(page, str) else len(page.markdown) + len(page.html)
        if size > _CHARS_AT_ONCE:
            break
    return found


def _import_report(outcomes: Mapping[int, str], promised: int) -> ImportReport:
    found = Counter(outcomes.values())
    counts = {name: found[name] for name in ImportReport.model_fields if name != "failed"}
    failed = {number: why for number, why in sorted(outcomes.items()) if why not in counts}
    done, last = len(outcomes), max(outcomes, default=1)
    if done < promised and last not in failed:
        failed[last + 1] = f"The file ends after {done:,} of {promised:,} pages."
    return ImportReport(**counts, failed=failed)


def _related_pages(lines: Sequence[_NumberedLine]) -> list[dict[int, PortablePage]]:
    """Group the pages that have an address or their text in common: of these the order counts."""
    groups: list[tuple[set[str], dict[int, PortablePage]]] = []
    for number, page in lines:
        if isinstance(page, str):
            continue
        names = {page.url, page.requested_url, *page.aliases, page.content_hash}
        pages = {number: page}
        for other in [each for each in groups if not names.isdisjoint(each[0])]:
            groups.remove(other)
            names |= other[0]
            pages |= other[1]
        groups.append((names, pages))
    return [pages for _, pages in groups]


async def _imported(corpus: Corpus, indexer: Indexer, page: PortablePage) -> str:
    try:
        return await _stored(corpus, indexer, page)
    except (DatabaseUnavailableError, ProviderError):
        raise
    except WebRAGError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - one line must not end the import
        return str(unexpected_failure(page.url, error))


def _last_seen(page: StoredPage | PortablePage) -> datetime:
    return max(page.fetched_at, page.gone_at or page.fetched_at)


async def _stored(corpus: Corpus, indexer: Indexer, page: PortablePage) -> str:
    stored = await corpus.page(page.url)
    if stored is not None and stored.url == page.url and _last_seen(stored) >= _last_seen(page):
        await corpus.add_aliases(stored.url, page.aliases)
        await corpus.lower_depth(stored.url, page.depth)
        return "unchanged" if stored.content_hash == page.content_hash else "kept"
    result = await indexer.index(page.document(), depth=page.depth)
    if set(page.aliases) - {page.url, page.requested_url}:
        await corpus.add_aliases(result.url, page.aliases)
    if page.gone_at is not None and result.url == page.url:
        await corpus.mark_gone(result.url, page.gone_at)
    return result.outcome
