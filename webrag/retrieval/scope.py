"""Filters as SQL conditions; it runs no statement."""

from dataclasses import dataclass
from typing import Any, LiteralString

from psycopg import sql

from webrag.retrieval.filters import ContentKind, SearchFilters

__all__ = ["Scope"]


@dataclass(frozen=True, slots=True)
class Scope:
    """Which conditions a search has, as SQL over values that are bound.

    Attributes:
        conditions: Names of the page conditions that restrict.
        has: Kinds of content that chunks must hold.
    """

    conditions: tuple[str, ...]
    has: tuple[ContentKind, ...]

    @classmethod
    def of(cls, filters: SearchFilters) -> "Scope":
        """The conditions of some filters, whatever their values."""
        given = tuple(name for name in _CONDITIONS if getattr(filters, name) is not None)
        return cls(given, filters.has)

    @staticmethod
    def values(filters: SearchFilters) -> dict[str, Any]:
        """What the conditions compare with."""
        return {
            "urls": list(filters.source_urls or ()),
            "sites": list(filters.sites or ()),
            "years": list(filters.years or ()),
            "fetched_since": filters.fetched_since,
        }

    @property
    def pages(self) -> sql.Composed:
        """Condition on `documents d`."""
        parts = ["d.gone_at is null", *(_CONDITIONS[name] for name in self.conditions)]
        return sql.SQL(" and ").join(sql.SQL(part) for part in parts)

    @property
    def chunks(self) -> sql.Composable:
        """Condition on `parents p`; children are what their parents are."""
        flags = [sql.Identifier("p", f"has_{kind}") for kind in self.has]
        return sql.SQL(" and ").join(flags) if flags else sql.SQL("true")


_CONDITIONS: dict[str, LiteralString] = {
    "source_urls": "(d.url = any(%(urls)s) or d.aliases && %(urls)s::text[])",
    # A host without a port means every port of it.
    "sites": (
        "(d.site = any(%(sites)s) or regexp_replace(d.site, ':[0-9]+$', '') = any(%(sites)s))"
    ),
    "years": "d.publication_year = any(%(years)s)",
    "fetched_since": "d.fetched_at >= %(fetched_since)s",
}
