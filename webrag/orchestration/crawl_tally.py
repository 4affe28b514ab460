"""Counts what a crawl does, in bounded memory; it decides nothing but when a site is down."""

import time
from collections import Counter
from typing import Final

from webrag.errors import (
    FetchError,
    PageGoneError,
    ProviderError,
    RefusedAddressError,
    RobotsDisallowedError,
    SourceUnavailableError,
    UnusablePageError,
    WebRAGError,
)
from webrag.indexing.models import AcquiredPage

__all__ = ["CrawlTally", "failure_kind", "is_no_answer"]

_SHOWN_FAILURES: Final = 20
_SHOWN_NOTES: Final = 20
_REMEMBERED_SKIPS: Final = 50_000
_UNREACHABLE_AFTER: Final = 20

_KINDS: Final = (
    (PageGoneError, "not found (404 or 410)"),
    (RobotsDisallowedError, "forbidden by robots.txt"),
    (RefusedAddressError, "refused address"),
    (SourceUnavailableError, "page source not available"),
    (ProviderError, "embedding failed"),
)
_UNUSABLE_KINDS: Final = {
    "bot_wall": "bot wall",
    "login_wall": "login wall",
    "cookie_wall": "cookie wall",
    "script_shell": "empty without JavaScript",
    "soft_404": "not found, although answered as if it were",
    "too_little_text": "almost no text",
    "empty": "empty",
    "not_text": "not text",
    "too_large": "too large",
}


def failure_kind(error: WebRAGError) -> str:
    """A few words for a failure, the same for all failures alike."""
    for kind, words in _KINDS:
        if isinstance(error, kind):
            return words
    if isinstance(error, UnusablePageError):
        return _UNUSABLE_KINDS.get(error.kind, "not a readable page")
    if not isinstance(error, FetchError):
        return "could not be stored"
    return "no answer" if error.status is None else f"HTTP {error.status}"


def is_no_answer(error: WebRAGError) -> bool:
    """Whether nothing came back, or only that the whole site is in trouble."""
    if isinstance(error, RobotsDisallowedError | RefusedAddressError | UnusablePageError):
        return False
    if not isinstance(error, FetchError):
        return False
    return error.status is None or error.status == 429 or error.status >= 500


class CrawlTally:
    """The figures of one run.

    Attributes:
        unanswered: The pages asked for since the site last answered.
    """

    def __init__(self) -> None:
        self.pages: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.failures: dict[str, str] = {}
        self.skipped: Counter[str] = Counter()
        self.chunks_embedded = 0
        self.degraded: dict[str, None] = {}
        self.unanswered: list[str] = []
        self._seen_skips: set[int] = set()
        self._started = time.monotonic()

    @property
    def site_is_down(self) -> bool:
        """Whether so many requests in a row had no answer that asking on is pointless."""
        return len(self.unanswered) >= _UNREACHABLE_AFTER

    @property
    def visited(self) -> int:
        """Pages of this run, obtained or not."""
        return self.pages.total() + self.failed.total()

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return time.monotonic() - self._started

    def obtained(self, page: AcquiredPage) -> None:
        """Count a page that is in the corpus."""
        self.unanswered.clear()
        self.pages[page.outcome] += 1
        self.chunks_embedded += page.chunks_embedded

    def missed(self, url: str, error: WebRAGError) -> None:
        """Count a page that is not."""
        if is_no_answer(error):
            self.unanswered.append(url)
        else:
            self.unanswered.clear()
        self.failed[failure_kind(error)] += 1
        if len(self.failures) < _SHOWN_FAILURES:
            self.failures[url] = str(error)

    def note_degraded(self, sentence: str) -> None:
        """Remember what a page source had to say, each sentence once, 20 at most."""
        if len(self.degraded) < _SHOWN_NOTES:
            self.degraded[sentence] = None

    def left_alone(self, url: str, reason: str) -> None:
        """Count an address that is not visited, once however often it is linked to.

        Beyond tens of thousands of addresses they are no longer told apart, nor counted.
        """
        mark = hash(url)
        if mark not in self._seen_skips and len(self._seen_skips) < _REMEMBERED_SKIPS:
            self._seen_skips.add(mark)
            self.skipped[reason] += 1
