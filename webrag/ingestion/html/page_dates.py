"""When a page was published and last changed, from what it says itself; it reads no clocks."""

import itertools
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from webrag.ingestion.dates import parse_date

__all__ = ["PageDates", "read_dates"]

_PUBLISHED = (
    *("article:published_time", "datepublished", "dc.date", "dcterms.created", "dc.date.issued"),
    *("date", "pubdate", "publish-date", "citation_publication_date", "parsely-pub-date"),
)
_MODIFIED = (
    *("article:modified_time", "datemodified", "og:updated_time", "dcterms.modified"),
    *("last-modified", "revised", "docsearch:date"),
)
# The search parses the page once more, which for a larger one takes too long.
_SEARCHED_CHARS = 1_000_000
_UPDATED = re.compile(r"\b(?:updated|modified|changed|revised|edited|built)\b", re.IGNORECASE)
_HAS_DATE = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True)
class PageDates:
    """When a page was published and last changed (UTC); None where it does not say."""

    published_at: datetime | None = None
    modified_at: datetime | None = None


def read_dates(
    metas: Mapping[str, str], linked: Sequence[Mapping[str, Any]], html: str, url: str
) -> PageDates:
    """Return a page's dates: from its metadata, else from its visible marks of a date.

    Args:
        metas: Contents of meta tags by lower-case name.
        linked: Items of the page's JSON-LD.
        html: The page, searched when the metadata says nothing.
        url: Where it came from; some addresses carry the date.
    """
    published = _first(_PUBLISHED, "datePublished", metas, linked)
    modified = _first(_MODIFIED, "dateModified", metas, linked)
    if published is None and modified is None:
        published, modified = _searched(html, url)
    if published is not None and modified is not None and modified < published:
        modified = None
    return PageDates(published, modified)


def _first(
    names: Sequence[str],
    key: str,
    metas: Mapping[str, str],
    linked: Sequence[Mapping[str, Any]],
) -> datetime | None:
    written = [metas[name] for name in names if name in metas]
    written += [str(item[key]) for item in linked if item.get(key)]
    return next((moment for text in written if (moment := parse_date(text))), None)


def _searched(html: str, url: str) -> tuple[datetime | None, datetime | None]:
    if len(html) > _SEARCHED_CHARS or not _HAS_DATE.search(html):
        return None, None
    # The library reports every page it cannot parse; a page without a date is no event.
    logging.getLogger("htmldate").setLevel(logging.CRITICAL)
    published = _find(html, url, original=True)
    if published is None:
        return None, None
    modified = _find(html, url, original=False)
    if modified == published:
        return (None, modified) if _says_updated(html, published) else (published, None)
    return published, modified


def _says_updated(html: str, date: datetime) -> bool:
    """The page calls its only date that of a change."""
    near = (html[match.end() : match.end() + 80] for match in _UPDATED.finditer(html))
    return any(str(date.year) in text for text in itertools.islice(near, 20))


def _find(html: str, url: str, *, original: bool) -> datetime | None:
    # Loading it takes longer than a page; only the worker processes, which ask for it early, wait.
    from htmldate import find_date

    # Without "extensive search", which takes a copyright notice's year for the page's date.
    try:
        found = find_date(html, extensive_search=False, original_date=original, url=url)
    except (ValueError, TypeError, AttributeError, OverflowError):
        logging.getLogger(__name__).debug("the dates of %s cannot be searched", url, exc_info=True)
        return None
    return parse_date(found) if found else None
