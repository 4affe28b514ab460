"""Filters that say which stored pages and chunks a search may return; no SQL here."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, TypeVar, cast, get_args

from webrag.argument_checks import (
    check_choice,
    check_text,
    checked_moment,
    shown_moment,
    shown_value,
)
from webrag.errors import InputError
from webrag.ingestion.addresses import DOCUMENTS, FILES, canonical_url, page_address, site_of

ContentKind = Literal["table", "code", "math", "definition_list", "admonition", "steps"]

CONTENT_KINDS: tuple[ContentKind, ...] = get_args(ContentKind)

_MAX_YEAR = 9999
_REPOSITORY: Final = re.compile(r"[\w.:-]+/[\w.~/+-]+@[\w.+/-]+")
_VERSIONED: Final = re.compile(r"([^@]{0,300})@(v?\d[\w.+-]{0,49})")
_ROOT: Final = re.compile(r"(https?://)?([^/?#]+)/?", re.IGNORECASE)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Conditions that must all hold; None does not restrict, an empty sequence matches nothing.

    Those on pages restrict what terms are weighed by; those on chunks, `has`, do not. Versions of
    the pages of `near` are preferred to the newest ones of their libraries.
    """

    source_urls: tuple[str, ...] | None = None
    sites: tuple[str, ...] | None = None
    years: tuple[int, ...] | None = None
    fetched_since: datetime | None = None
    has: tuple[ContentKind, ...] = ()
    near: tuple[str, ...] = ()
    as_of: datetime | None = None

    @classmethod
    def of(
        cls,
        *,
        source_urls: str | Sequence[str] | None = None,
        sites: str | Sequence[str] | None = None,
        years: int | Sequence[int] | None = None,
        fetched_since: datetime | None = None,
        has: ContentKind | Sequence[ContentKind] = (),
        as_of: datetime | None = None,
    ) -> "SearchFilters":
        """Check what a user gave and bring it into canonical form.

        One value stands for a list of one: a text is itself a sequence, of its letters.

        Args:
            source_urls: Any spelling of the canonical addresses of pages, or of others they have.
            sites: Hosts, `host` or `host:port`, or the address of a site's root; `file:` for files
                of this machine, `document:` for documents of programs; with `@` and a version
                behind it only that one, `@1.5` alone for any library's.
            years: Of publication, from 1 to 9999; a page without a date has none.
            fetched_since: The site confirmed the page then or later; without a time zone UTC.
            has: Some of `CONTENT_KINDS`.
            as_of: Texts of this moment, not in the future, are searched; without a time zone UTC.

        Raises:
            InputError: A value cannot be used.
        """
        if fetched_since is not None and not isinstance(fetched_since, datetime):
            raise InputError(
                f"fetched_since is of type {type(fetched_since).__name__}; it must be a datetime."
            )
        if fetched_since is not None and fetched_since.tzinfo is None:
            fetched_since = fetched_since.replace(tzinfo=UTC)
        return cls(
            source_urls=_each_once(page_address, source_urls),
            sites=_each_once(_host, sites),
            years=_each_once(_checked_year, years),
            fetched_since=fetched_since,
            has=_each_once(_checked_kind, has) or (),
            as_of=None if as_of is None else checked_moment(as_of),
        )

    @property
    def description(self) -> str:
        """The conditions in words, for messages; empty when there are none."""
        parts = [*(self.source_urls or ()), *(self.sites or ())]
        if self.years is not None:
            parts.append("published in " + (", ".join(map(str, self.years)) or "no year"))
        if self.fetched_since is not None:
            parts.append(f"fetched since {self.fetched_since.isoformat(timespec='seconds')}")
        parts += [f"has {kind.replace('_', ' ')}" for kind in self.has]
        if self.as_of is not None:
            parts.append(f"as of {shown_moment(self.as_of)}")
        return ", ".join(parts)


NO_FILTERS = SearchFilters()


def _each_once(check: Callable[[T], T], values: T | Iterable[T] | None) -> tuple[T, ...] | None:
    if values is None:
        return None
    several = isinstance(values, Iterable) and not isinstance(values, str)
    return tuple(dict.fromkeys(map(check, cast("Iterable[T]", values if several else [values]))))


def _checked_year(year: int) -> int:
    is_number = isinstance(year, int) and not isinstance(year, bool)
    if not is_number or not 1 <= year <= _MAX_YEAR:
        raise InputError(
            f"The year {shown_value(year)} cannot be used; years are from 1 to {_MAX_YEAR}."
        )
    return year


def _checked_kind(kind: ContentKind) -> ContentKind:
    check_choice("has", kind, CONTENT_KINDS)
    return kind


def _host(site: str) -> str:
    """The site as pages are filed under it; the address of its root names it as well."""
    if site in (FILES, DOCUMENTS) or _REPOSITORY.fullmatch(check_text("A site", site)):
        return site
    versioned = _VERSIONED.fullmatch(site)
    if versioned:
        name, version = versioned[1], versioned[2]
        is_named = not name or name.startswith((FILES, DOCUMENTS))
        return f"{name if is_named else _host(name)}@{version}"
    rooted = _ROOT.fullmatch(check_text("A site", site))
    try:
        found = site_of(canonical_url(f"{rooted[1] or 'http://'}{rooted[2]}/")) if rooted else ""
    except InputError:
        found = ""
    if not found:
        raise InputError(f"The site {site!r} is not a host; give one such as docs.example.com.")
    return found
