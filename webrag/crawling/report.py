"""Options, progress and report of a crawl. No I/O here."""

import hashlib
import json
from collections.abc import Callable
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from webrag.checked_model import CheckedModel, whole_number
from webrag.frozen import Allowed, FrozenModel

PageOutcome: TypeAlias = Literal["indexed", "updated", "unchanged", "stored", "failed"]

ALIAS: Final = "alias"
"""Counted beside the outcomes: another address of a page that was visited, too."""

SIZE_REASONS: Final = {
    "known": "more pages than one crawl takes note of",
    "waiting": "too many addresses that differ in a number only",
    "deep": "too many pages in folders within folders within folders",
    "facets": "too many combinations of query parameters",
}
"""Why addresses are left alone of which a crawl of more pages takes more."""

USUAL_PAGES: Final = 500
MOST_PAGES: Final = 1_000_000

MaxPages: TypeAlias = Annotated[
    int,
    Field(ge=1, le=MOST_PAGES),
    BeforeValidator(whole_number),
    Allowed(f"a whole number from 1 to {MOST_PAGES:,}"),
]


class CrawlOptions(CheckedModel):
    """Limits of a crawl: pages visited, also failed and fresh ones, and links from the start page.

    Only pages that match an `include` glob, the start page apart, and no `exclude` glob are
    visited. With `refresh` the site is asked about fresh pages, too; `version` is of the library
    that pages are about, None for what they say themselves.
    """

    max_pages: MaxPages = USUAL_PAGES
    depth: Annotated[int, Field(ge=0), BeforeValidator(whole_number)] | None = None
    scope: Literal["site", "folder"] = "folder"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    refresh: bool = False
    version: str | None = None

    def key(self, start_url: str) -> str:
        """Equal for crawls that visit the same pages, however many of them."""
        values = self.model_dump(exclude={"max_pages"}) | {"start": start_url}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


class CrawlProgress(FrozenModel):
    """Progress of a crawl, failures and rate of this run, and the page visited last, if known.

    Of a page that failed, `status` is what the site answered with, None for no answer.
    """

    done: int
    queued: int
    failed: int
    pages_per_second: float
    url: str = ""
    outcome: PageOutcome = "stored"
    reason: str = ""
    status: int | None = None

    @property
    def seconds_left(self) -> float | None:
        """Time for the pages that wait at this rate; more may be found meanwhile."""
        return self.queued / self.pages_per_second if self.pages_per_second else None


CrawlProgressCallback = Callable[[CrawlProgress], None]


class SiteReport(FrozenModel):
    """Outcome of one run of a crawl: pages by outcome, failures and addresses left alone by reason.

    Of those left alone so many are `not_pages`, which nothing stores. The `failures` are some of
    them, with the whole reason, `degraded` sentences, 20 at most, about page sources in whose place
    another one was used. Queued pages are known and not visited. It `ended` complete, at the limit,
    with a site that stopped answering, or paused for another turn; `before` it interrupted runs had
    visited pages.
    """

    start_url: str
    pages: dict[str, int] = Field(default_factory=dict)
    failed: dict[str, int] = Field(default_factory=dict)
    failures: dict[str, str] = Field(default_factory=dict)
    skipped: dict[str, int] = Field(default_factory=dict)
    not_pages: int = 0
    degraded: tuple[str, ...] = ()
    chunks_embedded: int = 0
    queued: int = 0
    ended: Literal["complete", "limit", "unreachable", "paused"] = "complete"
    before: int = 0
    resumed: bool = False
    seconds: float = 0.0

    @property
    def obtained(self) -> int:
        """Pages that are in the corpus, after this run or before it."""
        return sum(count for outcome, count in self.pages.items() if outcome != ALIAS)

    @property
    def visited(self) -> int:
        """Addresses of this run."""
        return sum(self.pages.values()) + sum(self.failed.values())

    @property
    def left_alone(self) -> int:
        """Addresses of the site that were not visited, for whatever reason."""
        return sum(self.skipped.values())

    def __repr__(self) -> str:
        return (
            f"<SiteReport {self.start_url}: {self.obtained:,} pages obtained, "
            f"{sum(self.failed.values()):,} failed, {self.queued:,} queued, "
            f"{self.left_alone:,} left alone, ended: {self.ended}>"
        )

    __str__ = __repr__
