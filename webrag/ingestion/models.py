"""Pages as fetched, documents as normalised, and what goes with them; no I/O here."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Protocol, TypeAlias, runtime_checkable

from ada_url import URL
from pydantic import ConfigDict, Field, SecretStr

from webrag.errors import UnusablePageError
from webrag.frozen import Allowed, FrozenModel
from webrag.ingestion.addresses import BARE_URL, link_target, site_of
from webrag.ingestion.formats.kinds import FileKind
from webrag.ingestion.versions import Edition, Manifest

_GENERIC_ANCHORS: Final = frozenset(
    """back|click here|contents|continue|continue reading|details|forward|here|home|index|learn
more|link|more|next|next page|next topic|page|permalink|prev|previous|previous page|previous
topic|read more|see also|see more|skip to content|source|table of contents|this|this link|this
page|top|up""".replace("\n", " ").split("|")
)


class FetchConfig(FrozenModel):
    """Limits and manners of the built-in fetcher."""

    user_agent: Annotated[str, Allowed("1 to 256 printable ASCII characters")] = Field(
        default="WebRAG/0.1 (+https://github.com/webrag/webrag)",
        pattern=r"^[ -~]{0,255}[!-~]$",
        description="Sent with every request; name a contact of yours when you fetch much.",
    )
    allowed_hosts: tuple[str, ...] = Field(
        default=(),
        description="Hosts (`host` or `host:port`) that may be contacted although their address is"
        " private; no politeness delays.",
    )
    timeout_s: float = Field(
        default=20.0, gt=0, description="Whole fetch of one page, redirects included."
    )
    max_wire_bytes: int = Field(
        default=5_000_000, gt=0, description="Read from the network at most for one page."
    )
    max_decoded_bytes: int = Field(
        default=10_000_000, gt=0, description="Size of one page at most after decompression."
    )
    max_pdf_bytes: int = Field(
        default=20_000_000,
        gt=0,
        description="Size of a PDF or an OpenDocument, larger than a page that says as much.",
    )
    max_redirects: int = Field(
        default=5,
        ge=0,
        description="Redirects followed for one page; each is checked like a first request.",
    )
    host_concurrency: int = Field(
        default=4, ge=1, description="Requests under way at once to one host."
    )
    host_delay_s: float = Field(
        default=0.2,
        ge=0,
        description="Least time between two requests to one host; robots.txt may ask for more.",
    )
    extraction_timeout_s: float = Field(
        default=10.0,
        gt=0,
        description="Processor time for converting one page to text, in a worker process; on the"
        " clock it may take six times as long on Linux, elsewhere no longer.",
    )
    prefer_markdown: bool = Field(
        default=False,
        description="The Markdown version that a page names (`rel=alternate`) is read in its place,"
        " at the cost of one more request, and not only when the page itself cannot be used.",
    )


FIRECRAWL_CLOUD_URL = "https://api.firecrawl.dev"


class FirecrawlConfig(FrozenModel):
    """Settings of Firecrawl; times of pages and lists include retries.

    Attributes:
        api_key: Sent with each request; a server of one's own may need none.
        proxy: Address of a proxy, or `environment` for those that variables name.
        allowed_hosts: `host` or `host:port` entries that a server of one's own may be sent to
            although their address is private; the public service never is.
        batch_timeout_s: One batch of pages; what is there by then counts.
        max_age_s: Oldest copy of the service's cache; None for any age that it keeps.
        backoff_s: Wait before the second request; doubles for each further one.
        concurrency: Requests under way at once; others wait.
        failures: Failed calls in a row after which the service is left alone for `pause_s`.
        poll_s: Time between two questions after a batch's progress.
    """

    api_url: str = FIRECRAWL_CLOUD_URL
    api_key: SecretStr | None = None
    proxy: SecretStr | None = None
    allowed_hosts: tuple[str, ...] = ()
    timeout_s: float = Field(default=30.0, gt=0)
    map_timeout_s: float = Field(default=15.0, gt=0)
    batch_timeout_s: float = Field(default=120.0, gt=0)
    max_age_s: float | None = Field(default=86_400.0, ge=0)
    max_chars: int = Field(default=FetchConfig().max_decoded_bytes, gt=0)
    attempts: int = Field(default=3, ge=1)
    backoff_s: float = Field(default=0.5, ge=0)
    concurrency: int = Field(default=4, ge=1)
    failures: int = Field(default=3, ge=1)
    pause_s: float = Field(default=60.0, ge=0)
    poll_s: float = Field(default=1.0, gt=0)

    @property
    def is_cloud(self) -> bool:
        """Tell the public service, which asks from outside the user's network, from one's own."""
        host = URL(self.api_url).hostname
        return host == "firecrawl.dev" or host.endswith(".firecrawl.dev")


class Anchor(FrozenModel):
    """A place in a document's markdown, by what follows `#` in its URL, such as `page=3`."""

    char_start: int
    fragment: str


class Validators(FrozenModel):
    """Headers of the stored page for a conditional request."""

    etag: str | None = None
    last_modified: str | None = None


class NotModified(FrozenModel):
    """The site said at a time (UTC) that the stored version is current."""

    url: str
    fetched_at: datetime


class _Page(FrozenModel):
    """A page before and after it is converted.

    Attributes:
        requested_url: Canonical form of what was asked for; differs from `url` after a redirect.
        etag: Validator for the next conditional request, as is `last_modified`.
        fetched_at: UTC.
        source: Name of the page source that delivered it.
        markdown_url: Its Markdown version on the same site, as it or its server names it.
        with_login: It was asked for with a login of the user's.
    """

    requested_url: str
    url: str
    status: int = 200
    etag: str | None = None
    last_modified: str | None = None
    fetched_at: datetime
    source: str
    markdown_url: str | None = None
    with_login: bool = False


class FetchedPage(_Page):
    """A page as a source delivered it, decoded but not yet converted.

    Attributes:
        kind: How `text` is to be read.
        text: Decoded body; free of NUL and lone surrogates. Empty where `body` is not.
        body: The bytes of a PDF, an office document or a mail; empty for everything else.
        language: What the Content-Language header says; "" when it says nothing.
        is_nofollow: A header asks this reader to follow no link. `noindex` is for public search
            engines: what is read here was named by the user or is part of the user's own corpus.
        manifest: What the package that a file belongs to says of itself.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64"
    )

    kind: FileKind
    text: str
    body: bytes = b""
    language: str = ""
    is_nofollow: bool = False
    manifest: Manifest | None = None


class PageSource(Protocol):
    """Gets pages, as the built-in fetcher and scraping services do."""

    @property
    def name(self) -> str:
        """Recorded with each page."""

    async def fetch(
        self, url: str, *, validators: Validators | None = None, fresh: bool = False
    ) -> FetchedPage | NotModified:
        """Get one page by its canonical address, of the kind that the source reads.

        With `validators`, of the stored version, a source may answer that it is current; `fresh`
        takes no copy that anybody keeps.

        Raises:
            InputError: Not an address that can be fetched.
            RefusedAddressError: The address, or one it leads to, may not be read.
            RobotsDisallowedError: The site's robots.txt forbids the page.
            PageGoneError: There is no such page or file.
            UnusablePageError: Too large, no text or empty, a wall, or redirects without end.
            SourceUnavailableError: A service that was asked failed or refused.
            FetchError: The page could not be obtained for another reason, or in time.
        """

    async def aclose(self) -> None:
        """Release connections; the source cannot be used afterwards."""


class Rendering(FrozenModel):
    """A page as a browser drew it, and how many files of other sites it asked for in vain."""

    page: FetchedPage
    left_out: int = 0


class MappedLink(FrozenModel):
    """One page of a site, as a mapping service lists it; title and description may be empty."""

    url: str
    title: str = ""
    description: str = ""


@runtime_checkable
class SiteMapper(Protocol):
    """Lists pages of a site without fetching them; Firecrawl is one."""

    @property
    def name(self) -> str:
        """Named in messages."""

    async def map(
        self, url: str, *, search: str | None = None, limit: int = 100
    ) -> list[MappedLink]:
        """List pages of the site a URL belongs to, each once, best first for the words of `search`.

        Raises:
            FetchError: The site cannot be listed.
            ProviderError: The service failed.
        """


class OutgoingLink(FrozenModel):
    """One link of a page, by its canonical target without fragment.

    Attributes:
        sentence: Sentence or list item around the link, at most 300 characters; of a link in a
            definition list's term the beginning of the definition. Empty outside the main
            content.
        rel: Tokens of the rel attribute, lower case.
        char_start: Where the anchor text begins in the document's markdown; None for links
            outside the main content (navigation, footers).
    """

    url: str
    anchor_text: str
    title: str | None = None
    sentence: str = ""
    heading: str | None = None
    rel: tuple[str, ...] = ()
    char_start: int | None = None
    char_end: int | None = None


def written_links(text: str, own: str) -> Iterator[OutgoingLink]:
    """Addresses that are written in the text of a page, which its readers make into links."""
    for match in BARE_URL.finditer(text):
        target = link_target(match.group())
        if target is not None and target != own:
            start, end = match.span()
            yield OutgoingLink(
                url=target, anchor_text=match.group(), char_start=start, char_end=end
            )


MapKind: TypeAlias = Literal[
    "sphinx",
    "mkdocs",
    "mdbook",
    "rustdoc",
    "javadoc",
    "doxygen",
    "docusaurus",
    "vitepress",
    "json",
    "llms",
    "sitemap",
    "index_page",
    "home",
]


class MapMark(FrozenModel):
    """A map of its site that a page names; `home` is a page that may name one in turn.

    Addresses are canonical: `root` is what the map's own are relative to, and each of `urls` is
    asked for when those before it cannot be used.
    """

    kind: MapKind
    root: str
    urls: tuple[str, ...]


@dataclass(frozen=True)
class PageMetadata:
    """A page's statements about itself; None where it says nothing usable.

    Attributes:
        base_url: What relative addresses on the page are resolved against.
        url: Canonical URL: the page's own, or the one it names on the same site.
        author: Several are joined by commas.
        languages: What the page declares about its language, best first.
        is_nofollow: It asks every reader, or this one, to follow no link.
        version: What its generator says; empty where it says nothing.
    """

    base_url: str
    url: str
    title: str | None = None
    description: str | None = None
    author: str | None = None
    site_name: str | None = None
    languages: tuple[str, ...] = ()
    published_at: datetime | None = None
    modified_at: datetime | None = None
    is_nofollow: bool = False
    markdown_url: str | None = None
    version: str = ""


@dataclass(frozen=True)
class PageSigns:
    """Holds what can be told of a page before anything is removed from it.

    Attributes:
        heading: First top heading.
        has_app_root: There is an element that scripts draw the page into.
        notice: What the page says to readers without scripts.
    """

    title: str = ""
    heading: str = ""
    has_captcha: bool = False
    has_password_field: bool = False
    has_app_root: bool = False
    scripts: int = 0
    notice: str = ""
    markup: str = field(default="", repr=False)


@dataclass(frozen=True)
class Content:
    """A page as the reader of its format read it; signs and maps are those of HTML alone."""

    meta: PageMetadata
    markdown: str
    html: str
    links: tuple[OutgoingLink, ...]
    signs: PageSigns = field(default_factory=PageSigns)
    anchors: tuple[Anchor, ...] = ()
    map_marks: tuple[MapMark, ...] = ()


class NormalizedDocument(_Page):
    """A page ready to be indexed; its `url` is its canonical identity in the corpus.

    Attributes:
        author: Who wrote it, several joined by commas.
        language: BCP 47 primary tag, lower case.
        markdown: The text everything refers to; all offsets are into this string. Links are
            unwrapped, images left out, nothing needlessly escaped.
        html: Main content as HTML, for presentation only.
        links: Every link of the page, in page order. `nofollow` is among a link's `rel` also when
            the whole page asks for it, and of links to print versions.
        anchors: Where the pages of a PDF begin, in order; of a file the lines it was made of, each
            counted on from the anchor before it.
        content_hash: SHA-256 of `markdown`, hex.
        metadata: Of a program's own document; its chunks carry them.
    """

    title: str | None = None
    description: str | None = None
    author: str | None = None
    site_name: str | None = None
    language: str | None = None
    published_at: datetime | None = None
    modified_at: datetime | None = None
    markdown: str
    html: str = ""
    links: tuple[OutgoingLink, ...] = ()
    anchors: tuple[Anchor, ...] = ()
    map_marks: tuple[MapMark, ...] = ()
    content_hash: str
    metadata: dict[str, Any] = Field(default_factory=dict)
    edition: Edition | None = None


def is_generic_anchor(anchor: str) -> bool:
    """Tell texts of links that say nothing about the target."""
    words = anchor.strip().casefold()
    return words in _GENERIC_ANCHORS or not any(char.isalnum() for char in words)


_MARKDOWN_TYPES = frozenset({"text/markdown", "text/x-markdown"})


def markdown_version(links: Iterable[tuple[str, str]], url: str, base: str) -> str | None:
    """Return the address of a page's Markdown version on its own site; None when it names none.

    The links are those to its other versions, each with its media type.
    """
    for href, media_type in links:
        if media_type.partition(";")[0].strip().lower() in _MARKDOWN_TYPES:
            target = link_target(href, base)
            if target is not None and target != url and site_of(target) == site_of(url):
                return target
    return None


class Conversion(FrozenModel):
    """A page after its conversion: a document, or a failure as UnusablePageError has it."""

    document: NormalizedDocument | None = None
    failure: str = ""
    hint: str | None = None
    kind: str = ""
    alternative_url: str | None = None

    def result(self, page: FetchedPage) -> NormalizedDocument:
        """Give the document that a page became, or raise UnusablePageError where it became none."""
        if self.document is not None:
            return self.document
        said = self.model_dump(include={"hint", "kind", "alternative_url"})
        raise UnusablePageError(self.failure, url=page.url, status=page.status, **said)
