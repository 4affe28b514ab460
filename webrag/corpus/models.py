"""What the corpus stores and reports. No I/O here."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

from pydantic import BeforeValidator, Field

from webrag.frozen import FrozenModel
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
    """A parent chunk of a page: what is written of it, and what evidence is made of.

    Its text is `document.markdown[char_start:char_end]`, its id survives edits elsewhere on the
    page.
    """

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
    """What is known of one page of the corpus, without its text.

    Attributes:
        page_id: Row number in this corpus; not stable across corpora.
        document_id: Stable id, a UUID derived from the canonical URL.
        depth: Smallest number of links from a page the user named; 0 for named pages.
        gone_at: When the site was first seen to answer 404 or 410; gone pages are not retrieved.
        stored_at: When the site first delivered this text, as far as is known.
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
        """How the page was acquired."""
        own = AcquiredPage.model_fields.keys() & type(self).model_fields.keys()
        told = {name: getattr(self, name) for name in own} | {
            "requested_url": requested_url,
            "version": None if self.edition is None else self.edition.version,
        }
        return AcquiredPage(
            **told, outcome=outcome, chunks_added=chunks_added, chunks_embedded=chunks_embedded
        )


class AcquiredPage(FrozenModel):
    """Outcome of making sure that a page is in the corpus.

    Attributes:
        outcome: `stored` no request was made; `unchanged` the site confirmed the stored version;
            `indexed` the page is new; `updated` a new version replaced the stored one.
        chunks_added: Child chunks written that the previous version did not have.
        chunks_embedded: Child chunks that had to be embedded.
        version: Of the library that the page is about; None where nothing says one.
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

    Attributes:
        title: Anchor text, or the link's title attribute when the anchor is generic; may be empty.
        char_start: Offset of the anchor in the source's markdown; None for navigation.
        origin: `page` the page itself links there; `map` its site's own map or a mapping service
            does.
        found_in: That map, as in "the site's search index"; empty for links of pages.
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
    """One stored page in the status listing.

    Attributes:
        fetched_at: When the site last delivered or confirmed the stored version.
        outcome: What the last request for the page came to; after `failed` the version stored
            before is still retrieved.
        checked_at: When that was; None for pages stored by an earlier version of WebRAG.
        reason: Why it failed, or why the page is gone.
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
    """A page that was asked for and never obtained.

    Attributes:
        checked_at: When it was last asked for.
        status: HTTP status of the answer, None when there was none.
    """

    url: str
    reason: str
    checked_at: datetime
    status: int | None = None


class PageListing(FrozenModel):
    """Some of the stored pages, most recently fetched first, and how many there are of them all."""

    pages: tuple[PageStatus, ...]
    total: int


class CollectionSize(FrozenModel):
    """One collection of the database.

    Attributes:
        documents: Pages it holds, gone ones included; None when they may not be counted.
    """

    name: str
    documents: int | None


class SiteSize(FrozenModel):
    """What is stored of one host.

    Attributes:
        site: `host` or `host:port`.
        documents: Pages that can be retrieved.
        tokens: Of their markdown.
        fetched_at: When the page asked about longest ago was delivered or confirmed.
        versions: By library that pages are about: the versions stored, the newest first.
    """

    site: str
    documents: int
    tokens: int
    fetched_at: datetime
    versions: dict[str, tuple[str, ...]] = Field(default_factory=dict)


class CorpusStatus(FrozenModel):
    """What a collection holds.

    Attributes:
        documents: Pages that can be retrieved.
        gone: Pages marked gone.
        chunks: Child chunks.
        tokens: Tokens of all markdown.
        links: Link candidates known.
        failed: Pages that were asked for and never obtained.
        outcomes: What the last request for each page came to, stored or not, to the number of
            pages; outcomes without pages are absent.
        embedding_model: Model the corpus was made with; None while it is empty.
        embedding_dimensions: Its vector size.
        available_embedding_model: Set when the settings would choose another model for a new
            corpus.
        database: `embedded` or `external`, with the server version.
        page_source: Where pages are fetched from now; "" when that is not known.
        sites: The hosts whose pages are stored, those with most pages first; empty of one page.
        pages: The listing, newest first; empty when it was not asked for.
        failures: The pages never obtained, latest attempt first.
        other_collections: The other collections of the database, in alphabetical order.
        only_url: The page that was asked for; None when all of them were.
        other_documents: Pages that can be retrieved beside the one that was asked for.
        jobs: Jobs that wait or run.
        schedules: Sites that workers visit again and again.
        schedules_due: Those whose next visit should have been enqueued by now.
        schedules_overdue: Those of which that is an hour ago or more: no worker runs.
        schedules_failing: Those whose last visit failed.
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
class PageText:
    """A stored page with the text that all offsets refer to."""

    document_id: UUID
    url: str
    title: str | None
    markdown: str
    fetched_at: datetime
    gone_at: datetime | None
    with_login: bool = False


@dataclass(frozen=True, slots=True)
class PassageText:
    """A parent chunk of a stored page: `markdown[char_start:char_end]` of it."""

    id: UUID
    document_id: UUID
    url: str
    title: str | None
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


@dataclass(frozen=True, slots=True)
class PageName:
    """What a stored page is called."""

    document_id: UUID
    url: str
    title: str | None
