"""The records that the corpus stores and reports. No I/O here."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

from pydantic import BeforeValidator, Field

from webrag.argument_checks import shown_moment
from webrag.errors import InputError
from webrag.frozen import FrozenModel, shared_fields
from webrag.ingestion.versions import Edition

LastOutcome = Literal["indexed", "updated", "unchanged", "gone", "failed"]


class ChunkImage(FrozenModel):
    """An image that stands in a chunk, at an offset of the page; its bytes are never fetched."""

    url: str = ""
    alt: str = ""
    caption: str = ""
    position: int = 0


def images_of(given: object) -> tuple[ChunkImage, ...]:
    """Read the images that metadata of a node describe, leaving out what describes none."""
    if not isinstance(given, list | tuple):
        return ()
    return tuple(
        each if isinstance(each, ChunkImage) else _described(each)
        for each in given
        if isinstance(each, dict | ChunkImage)
    )


def _described(image: dict[str, Any]) -> ChunkImage:
    url, alt, caption = (str(image.get(key) or "") for key in ("url", "alt", "caption"))
    position = image.get("position")
    return ChunkImage(
        url=url, alt=alt, caption=caption, position=position if isinstance(position, int) else 0
    )


class ParentChunk(FrozenModel):
    """A parent chunk, what evidence is made of; its id survives edits elsewhere on the page."""

    chunk_id: UUID
    section_heading: str | None
    heading_path: tuple[str, ...] = ()
    text: str
    chunk_index: int
    char_start: int
    char_end: int
    token_start: int
    token_end: int
    has_table: bool = False
    has_code: bool = False
    has_math: bool = False
    has_definition_list: bool = False
    has_admonition: bool = False
    has_steps: bool = False
    images: Annotated[tuple[ChunkImage, ...], BeforeValidator(images_of)] = ()

    @property
    def token_count(self) -> int:
        """Tokens of `text`."""
        return self.token_end - self.token_start


class StoredPage(FrozenModel):
    """One page of the corpus, without its text; `page_id` is not stable across corpora.

    Its `depth` is the smallest number of links from a page the user named. Pages that are gone,
    which the site answered with 404 or 410, are not retrieved. The site first delivered this text
    when it was `stored_at`, as far as is known.
    """

    page_id: int
    document_id: str
    url: str
    requested_url: str
    title: str | None
    fetched_at: datetime
    content_hash: str
    etag: str | None
    last_modified: str | None
    depth: int
    chunk_count: int
    token_count: int
    gone_at: datetime | None
    source: str = ""
    edition: Edition | None = None
    stored_at: datetime | None = None
    with_login: bool = False

    def acquired(
        self,
        requested_url: str,
        outcome: Literal["stored", "unchanged", "indexed", "updated"],
        *,
        chunks_added: int = 0,
        chunks_embedded: int = 0,
    ) -> "AcquiredPage":
        """Tell how the page was acquired."""
        told = shared_fields(AcquiredPage, self) | {
            "requested_url": requested_url,
            "version": None if self.edition is None else self.edition.version,
        }
        return AcquiredPage(
            **told, outcome=outcome, chunks_added=chunks_added, chunks_embedded=chunks_embedded
        )


class AcquiredPage(FrozenModel):
    """Outcome of making sure that a page is in the corpus.

    It is `stored` where no request was made, `unchanged` where the site confirmed the stored
    version, `indexed` where the page is new, `updated` where a new version replaced the stored one.
    """

    url: str
    requested_url: str
    page_id: int
    title: str | None
    outcome: Literal["stored", "unchanged", "indexed", "updated"]
    depth: int
    chunk_count: int
    chunks_added: int = 0
    chunks_embedded: int = 0
    token_count: int
    source: str = ""
    version: str | None = None
    with_login: bool = False


class LinkCandidate(FrozenModel):
    """A link of a stored page, as a candidate for expansion.

    Offsets are the anchor's in the source's markdown, None for navigation. With the origin `map`
    its site's own map or a mapping service, `found_in`, links there.
    """

    source_url: str
    url: str
    title: str = ""
    description: str = ""
    heading: str | None = None
    rel: tuple[str, ...] = ()
    char_start: int | None = None
    char_end: int | None = None
    source_depth: int = 0
    origin: Literal["page", "map"] = "page"
    found_in: str = ""


class PageStatus(FrozenModel):
    """One stored page in the status listing; its site last confirmed it when it was `fetched_at`.

    The outcome is of the last request, made when it was `checked_at`, None for pages stored by an
    earlier version of WebRAG; after `failed` the version stored before is still retrieved.
    """

    url: str
    title: str | None
    chunk_count: int
    token_count: int
    fetched_at: datetime
    depth: int
    gone_at: datetime | None
    outcome: LastOutcome = "indexed"
    checked_at: datetime | None = None
    reason: str | None = None
    source: str = ""
    with_login: bool = False


class FailedPage(FrozenModel):
    """A page that was asked for and never obtained; `status` is None where no answer came."""

    url: str
    reason: str
    checked_at: datetime
    status: int | None = None


class PageListing(FrozenModel):
    """Some of the stored pages, most recently fetched first, and how many there are of them all."""

    pages: tuple[PageStatus, ...]
    total: int


class CollectionSize(FrozenModel):
    """A collection and its number of pages, gone ones included; None if they may not be counted."""

    name: str
    documents: int | None


class SiteSize(FrozenModel):
    """The pages of a host that can be retrieved, and the newest first versions of each library."""

    site: str
    documents: int
    tokens: int
    fetched_at: datetime
    versions: dict[str, tuple[str, ...]] = Field(default_factory=dict)


class CorpusStatus(FrozenModel):
    """The contents of a collection, or of it what concerns one page, `only_url`.

    Documents can be retrieved; failed pages were never obtained. Outcomes count pages by their last
    request. There is no embedding model while the collection is empty; the available one is another
    that the settings would choose. Schedules that have been due for an hour are overdue.
    """

    collection: str
    documents: int
    gone: int
    chunks: int
    tokens: int
    links: int
    failed: int = 0
    outcomes: dict[LastOutcome, int] = Field(default_factory=dict)
    embedding_model: str | None
    embedding_dimensions: int | None
    available_embedding_model: str | None = None
    database: str
    page_source: str = ""
    sites: tuple[SiteSize, ...] = ()
    pages: tuple[PageStatus, ...] = ()
    failures: tuple[FailedPage, ...] = ()
    other_collections: tuple[CollectionSize, ...] = ()
    only_url: str | None = None
    other_documents: int = 0
    jobs: int = 0
    schedules: int = 0
    schedules_due: int = 0
    schedules_overdue: int = 0
    schedules_failing: int = 0

    def __repr__(self) -> str:
        return (
            f"<CorpusStatus {self.collection}: {self.documents:,} pages, {self.chunks:,} chunks, "
            f"{self.embedding_model or 'no embedding model yet'}>"
        )

    __str__ = __repr__  # the pages would fill the screen


class StoredVersion(NamedTuple):
    """A version of a library that pages are stored of; fields are columns of `documents`."""

    site: str
    library: str
    edition: str
    version: str


@dataclass(frozen=True, slots=True)
class PageName:
    """Id, URL and title of a stored page."""

    document_id: UUID
    url: str
    title: str | None


@dataclass(frozen=True, slots=True)
class PageText(PageName):
    """A stored page with the text that all offsets refer to."""

    markdown: str
    fetched_at: datetime
    gone_at: datetime | None
    with_login: bool = False


@dataclass(frozen=True, slots=True)
class PassageText(PageName):
    """A parent chunk of a stored page: `markdown[char_start:char_end]` of it."""

    id: UUID
    heading: str | None
    text: str
    char_start: int
    char_end: int
    fetched_at: datetime
    gone_at: datetime | None
    with_login: bool = False


@dataclass(frozen=True, slots=True)
class PageImage:
    """An image of a stored page, with the offset in its markdown before which it stands."""

    position: int
    alt: str
    caption: str


class PastPage(FrozenModel):
    """A text that a page had: first delivered, last confirmed, and when another took its place."""

    url: str
    title: str | None
    version: str | None
    stored_at: datetime
    fetched_at: datetime
    replaced_at: datetime
    markdown: str


class Holdings(NamedTuple):
    """Numbers of pages with a text of a moment, and with only later ones; times of the earliest."""

    held: int
    missing: int
    since: list[datetime]

    def refusal(self, moment: datetime, url: str | None = None) -> InputError | None:
        """Say why nothing is known of a moment; None where something is, or nothing is stored."""
        if self.held or not (self.since or url):
            return None
        if not self.since:
            return InputError(f"{url} is not stored; nothing is fetched for an earlier moment.")
        what = "What was stored" if url is None else f"The text that {url} had"
        held = ", ".join(since := dict.fromkeys(map(shown_moment, self.since)))
        earliest = "the earliest texts" if len(since) > 1 else "the earliest text"
        return InputError(
            f"{what} on {shown_moment(moment)} is not there; {earliest} held: from {held}.",
            hint="WEBRAG_KEEP_VERSIONS says how many earlier texts of a page are kept.",
        )

    def warning(self, moment: datetime) -> str | None:
        """Say in a sentence what an answer as of a moment lacks."""
        if not self.missing:
            return None
        pages = "1 page is" if self.missing == 1 else f"{self.missing:,} pages are"
        return (
            f"{pages} left out: what is stored there is from after {shown_moment(moment)}, and no"
            " text of then was kept (WEBRAG_KEEP_VERSIONS)."
        )
