"""Turns every kind of filter of a search into SQL conditions with their values.

Conditions see `documents d`, `data_children c` and `parents p`. Their texts are made of constants
only: whatever a user gave is a value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from webrag.retrieval.filters import SearchFilters


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
    def of(
        cls,
        filters: SearchFilters,
        choice: Condition | None = None,
        left_out: Sequence[str] = (),
    ) -> "Scope":
        """Make the conditions of some filters, with the `choice` of versions, if any matters."""
        given = (
            # A page may be known by several addresses.
            _given(
                "(d.url = any(%s) or d.aliases && %s::text[])",
                filters.source_urls,
                filters.source_urls,
            ),
            of_sites(filters.sites) if choice is None else choice,
            _given("d.publication_year = any(%s)", filters.years),
            ALWAYS
            if filters.fetched_since is None
            else Condition("d.fetched_at >= %s", (filters.fetched_since,)),
        )
        pages = all_of(given)
        # Children are what their parents are.
        chunks = all_of([Condition(f"p.has_{kind}") for kind in filters.has])
        is_all = pages == choice and filters.as_of is None
        return cls(pages, chunks, filters.as_of, tuple(left_out) if is_all else ())

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
