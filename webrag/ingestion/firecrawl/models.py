"""How Firecrawl is used and what it answers, without its own types. No I/O here."""

from ada_url import URL
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from webrag.frozen import FrozenModel
from webrag.ingestion.models import FetchConfig

FIRECRAWL_CLOUD_URL = "https://api.firecrawl.dev"


class FirecrawlConfig(FrozenModel):
    """Which Firecrawl is asked, and how patiently.

    Attributes:
        api_url: The service, or a server of the user's own.
        api_key: Sent with each request; a server of one's own may need none.
        proxy: Address of a proxy, or `environment` for those that variables name; None asks the
            service directly.
        allowed_hosts: `host` or `host:port` entries that a server of one's own may be sent to
            although their address is private; the public service never is.
        timeout_s: One page, retries included.
        map_timeout_s: One list of a site's pages, retries included.
        batch_timeout_s: One batch of pages; what is there by then counts.
        max_age_s: Oldest copy that may be answered from the service's cache; None for any age
            the service keeps copies for.
        max_chars: Longest HTML or Markdown of one page that is taken.
        attempts: Requests at most for one answer.
        backoff_s: Wait before the second request; doubles for each further one.
        concurrency: Requests under way at once; others wait.
        failures: Failed calls in a row after which the service is left alone for `pause_s`.
        pause_s: Length of that pause.
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
        """Whether pages are fetched by the public service, from outside the user's network."""
        host = URL(self.api_url).hostname
        return host == "firecrawl.dev" or host.endswith(".firecrawl.dev")


class ScrapedPage(BaseModel):
    """One page as Firecrawl answered; "" and None where it says nothing.

    Attributes:
        requested_url: What Firecrawl says it was asked for.
        url: Address after redirects.
        status: HTTP status of the page's own site.
        error: What went wrong with the page.
        warning: A remark of the service.
    """

    model_config = ConfigDict(frozen=True)

    markdown: str = ""
    html: str = ""
    raw_html: str = ""
    links: tuple[str, ...] = ()
    title: str = ""
    description: str = ""
    language: str = ""
    published_at: str = ""
    modified_at: str = ""
    requested_url: str = ""
    url: str = ""
    status: int | None = None
    content_type: str = ""
    error: str = ""
    warning: str = ""
