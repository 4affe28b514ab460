"""How Firecrawl is used. No I/O here."""

from ada_url import URL
from pydantic import Field, SecretStr

from webrag.frozen import FrozenModel
from webrag.ingestion.models import FetchConfig

FIRECRAWL_CLOUD_URL = "https://api.firecrawl.dev"


class FirecrawlConfig(FrozenModel):
    """Which Firecrawl is asked, and how patiently; times of pages and lists include retries.

    Attributes:
        api_key: Sent with each request; a server of one's own may need none.
        proxy: Address of a proxy, or `environment` for those that variables name; None asks the
            service directly.
        allowed_hosts: `host` or `host:port` entries that a server of one's own may be sent to
            although their address is private; the public service never is.
        batch_timeout_s: One batch of pages; what is there by then counts.
        max_age_s: Oldest copy that may be answered from the service's cache; None for any age
            the service keeps copies for.
        max_chars: Longest HTML or Markdown of one page that is taken.
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
        """Whether pages are fetched by the public service, from outside the user's network."""
        host = URL(self.api_url).hostname
        return host == "firecrawl.dev" or host.endswith(".firecrawl.dev")
