"""Says which stored pages and chunks a search may return, as users ask for it and as SQL.

Of the stored versions of a library one is searched: the one asked for, else the newest. Conditions
see `documents d`, `data_children c` and `parents p`; whatever a user gave is a value in them.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final, Literal, TypeVar, cast, get_args

from webrag.argument_checks import (
    check_choice,
    check_text,
    checked_moment,
    shown_moment,
    shown_value,
)
from webrag.corpus.models import StoredVersion
from webrag.errors import InputError
from webrag.ingestion.addresses import DOCUMENTS, FILES, canonical_url, page_address, site_of
from webrag.ingestion.versions import is_version, newest_version, version_order

ContentKind = Literal["table", "code", "math", "definition_list", "admonition", "steps"]

CONTENT_KINDS: tuple[ContentKind, ...] = get_args(ContentKind)

_MAX_YEAR = 9999
_REPOSITORY: Final = re.compile(r"[\w.:-]+/[\w.~/+-]+@[\w.+/-]+")
_VERSIONED: Final = re.compile(r"([^@]{0,300})@(v?\d[\w.+-]{0,49})")
_ROOT: Final = re.compile(r"(https?://)?([^/?#]+)/?", re.IGNORECASE)

_MOST_NAMED: Final = 12
_PORT: Final = re.compile(r":\d{1,5}\Z")

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
            source_urls=each_once(page_address, source_urls),
            sites=each_once(_host, sites),
            years=each_once(_checked_year, years),
            fetched_since=fetched_since,
            has=each_once(_checked_kind, has) or (),
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


def each_once(check: Callable[[T], T], values: T | Iterable[T] | None) -> tuple[T, ...] | None:
    """Check values, of which one stands for a list of one, and leave out repetitions."""
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


@dataclass(frozen=True, slots=True)
class Condition:
    """A boolean SQL expression and the values of its `%s`, in their order; null means false."""

    text: str
    values: tuple[Any, ...] = ()

    def named(self, prefix: str) -> tuple[str, dict[str, Any]]:
        """The expression and its values by name, so that it can stand in a statement twice."""
        first, *others = self.text.split("%s")
        names = [f"{prefix}{place}" for place in range(len(others))]
        text = "".join(
            [first, *(f"%({name})s{rest}" for name, rest in zip(names, others, strict=True))]
        )
        return text, dict(zip(names, self.values, strict=True))


ALWAYS = Condition("true")
NEVER = Condition("false")


def all_of(parts: Sequence[Condition]) -> Condition:
    """Give the condition that all of these hold; it is always true when there are none."""
    return _join([part for part in parts if part != ALWAYS], " and ") or ALWAYS


def any_of(parts: Sequence[Condition]) -> Condition:
    """Give the condition that one of these holds at least; never when there are none."""
    return _join(parts, " or ") or NEVER


def negated(condition: Condition) -> Condition:
    """Give the condition that this one does not hold."""
    return Condition(f"not coalesce({condition.text}, false)", condition.values)


def _join(parts: Sequence[Condition], glue: str) -> Condition | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    values = tuple(value for part in parts for value in part.values)
    return Condition(f"({glue.join(part.text for part in parts)})", values)


@dataclass(frozen=True, slots=True)
class Scope:
    """The conditions of what a search may return: of pages on `d`, of chunks on `c`, `d` and `p`.

    Without the editions `left_out` the pages are everything; none where the condition says more.
    """

    pages: Condition = ALWAYS
    chunks: Condition = ALWAYS
    as_of: datetime | None = None
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, filters: SearchFilters, choice: "VersionChoice | None" = None) -> "Scope":
        """Make the conditions of some filters, with the `choice` of versions, if any matters."""
        chosen = None if choice is None else choice.pages
        given = (
            # A page may be known by several addresses.
            _given(
                "(d.url = any(%s) or d.aliases && %s::text[])",
                filters.source_urls,
                filters.source_urls,
            ),
            of_sites(filters.sites) if chosen is None else chosen,
            _given("d.publication_year = any(%s)", filters.years),
            ALWAYS
            if filters.fetched_since is None
            else Condition("d.fetched_at >= %s", (filters.fetched_since,)),
        )
        pages = all_of(given)
        # Children are what their parents are.
        chunks = all_of([Condition(f"p.has_{kind}") for kind in filters.has])
        is_all = pages == chosen and filters.as_of is None
        return cls(pages, chunks, filters.as_of, choice.left_out if choice and is_all else ())

    @property
    def restricts_pages(self) -> bool:
        """Some pages may be left out as a whole."""
        return self.pages != ALWAYS or self.as_of is not None

    @property
    def restricts_chunks(self) -> bool:
        """Some chunks of a page may be left out, and others not."""
        return self.chunks != ALWAYS

    @property
    def restricts(self) -> bool:
        """Anything may be left out."""
        return self.restricts_pages or self.restricts_chunks


EVERYTHING = Scope()


def there(as_of: datetime | None) -> Condition:
    """Give the condition that a text is that of its page, now or at a moment."""
    if as_of is None:
        return Condition("d.gone_at is null")
    return Condition(
        "(coalesce(d.stored_at, d.fetched_at) <= %s and (d.gone_at is null or d.gone_at > %s))",
        (as_of, as_of),
    )


def of_editions(editions: Sequence[str]) -> Condition:
    """Give the condition for pages of some editions."""
    return Condition("d.edition = any(%s)", (list(editions),))


def of_sites(sites: Sequence[str] | None) -> Condition:
    """Give the condition for pages of some sites; a host without a port means every port of it."""
    return _given(
        "(d.site = any(%s) or regexp_replace(d.site, ':[0-9]+$', '') = any(%s))", sites, sites
    )


def _given(text: str, *values: Sequence[Any] | None) -> Condition:
    """A condition on lists, which is always true when they are not given."""
    if any(value is None for value in values):
        return ALWAYS
    return Condition(text, tuple(list(value or ()) for value in values))


@dataclass(frozen=True)
class VersionChoice:
    """The condition on pages that the sites and versions of some filters come to.

    Notes tell by library which version is searched unasked; `left_out` is as of `Scope`.
    """

    pages: Condition | None = None
    notes: dict[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def choose_versions(
    filters: SearchFilters,
    stored: Sequence[StoredVersion],
    near: dict[str, set[str]] | None = None,
) -> VersionChoice:
    """Decide which stored versions a search reads: of a library the one asked for, else the newest.

    Of libraries that `near` names those editions are read.
    """
    sites = {each.site for each in stored}
    asked = [each for each in filters.sites or () if _asks_version(each, sites, stored)]
    if filters.source_urls is not None and not asked:
        return VersionChoice()
    plain = None if filters.sites is None else [e for e in filters.sites if e not in asked]
    wanted = [_asked(each, stored) for each in asked]
    notes: dict[str, str] = {}
    if plain is not None and not plain:
        return VersionChoice(any_of(wanted))
    left_out = _less_preferred([e for e in stored if _is_of(e.site, plain)], near or {}, notes)
    newest = negated(of_editions(left_out)) if left_out else ALWAYS
    condition = all_of([of_sites(plain), newest])
    if wanted:
        return VersionChoice(any_of([condition, *wanted]), notes)
    return VersionChoice(condition, notes, () if plain is not None else tuple(left_out))


def _asks_version(entry: str, sites: set[str], stored: Sequence[StoredVersion]) -> bool:
    """A repository at a ref is a site of its own, so its `@` is part of the name."""
    name, at, _ = entry.rpartition("@")
    if not at or entry in sites:
        return False
    return "/" not in name or any(_is_named(each, name) for each in stored)


def _is_of(site: str, wanted: Sequence[str] | None) -> bool:
    return wanted is None or site in wanted or _PORT.sub("", site) in wanted


def _is_named(each: StoredVersion, name: str) -> bool:
    known = (each.site, _PORT.sub("", each.site), each.library, each.library.removeprefix(FILES))
    return not name or name in known


def _asked(entry: str, stored: Sequence[StoredVersion]) -> Condition:
    name, _, version = entry.rpartition("@")
    named = [each for each in stored if _is_named(each, name)]
    found = [each for each in named if is_version(each.version, version)]
    if not found:
        raise InputError(_refusal(name, version, named))
    parts = []
    for _, group in _by(found, lambda each: each.library):
        newest = newest_version(each.version for each in group)
        roots = sorted({each.edition for each in group if each.version == newest})
        parts.append(Condition("(d.edition = any(%s) and d.version = %s)", (roots, newest)))
    return any_of(parts)


def _refusal(name: str, version: str, named: Sequence[StoredVersion]) -> str:
    there = _listed({each.version for each in named})
    if not name:
        known = f"there are {there}" if named else "no stored page says its version"
        return f"No stored page is of version {version}; {known}."
    if not named:
        return (
            f"No stored page of {name} says its version, so {name}@{version} cannot be told from"
            " others; ingest it with a version."
        )
    return f"Version {version} of {name} is not stored; there are {there}."


def _listed(versions: Iterable[str]) -> str:
    every = sorted(versions, key=version_order, reverse=True)
    more = f" and {len(every) - _MOST_NAMED} more" if len(every) > _MOST_NAMED else ""
    return ", ".join(every[:_MOST_NAMED]) + more


def _less_preferred(
    stored: Sequence[StoredVersion], near: dict[str, set[str]], notes: dict[str, str]
) -> list[str]:
    left_out: list[str] = []
    for library, group in _by(stored, lambda each: each.library):
        editions = {
            edition: newest_version(each.version for each in own)
            for edition, own in _by(group, lambda each: each.edition)
        }
        newest = newest_version(editions.values())
        kept = near.get(library) or {each for each, top in editions.items() if top == newest}
        others = [each for each in editions if each not in kept]
        if not others:
            continue
        left_out += others
        searched = _listed({editions[each] for each in kept if each in editions})
        name = library.removeprefix(FILES)
        rest = _listed({editions[each] for each in others})
        notes[library] = (
            f"Of {name}, version {searched} was searched; also stored: {rest}. Ask for"
            f" {name}@{editions[others[-1]]} to search that one."
        )
    return left_out


def _by(
    versions: Iterable[StoredVersion], key: Callable[[StoredVersion], str]
) -> list[tuple[str, list[StoredVersion]]]:
    ordered = sorted(versions, key=lambda each: (key(each), each))
    return [(name, list(group)) for name, group in groupby(ordered, key=key)]
