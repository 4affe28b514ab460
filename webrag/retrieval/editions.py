"""Chooses which stored version of a library a search reads: the one asked for, else the newest."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from webrag.corpus.models import StoredVersion
from webrag.corpus.queries import stored_versions
from webrag.errors import InputError
from webrag.ingestion.addresses import FILES
from webrag.ingestion.versions import is_version, newest_version, version_order
from webrag.postgres.database import Connection
from webrag.retrieval.conditions import (
    ALWAYS,
    Condition,
    Scope,
    all_of,
    any_of,
    negated,
    of_editions,
    of_sites,
)
from webrag.retrieval.filters import SearchFilters
from webrag.retrieval.statements import Queries

_MOST_NAMED: Final = 12
_PORT: Final = re.compile(r":\d{1,5}\Z")


@dataclass(frozen=True)
class VersionChoice:
    """The condition on pages that the sites and versions of some filters come to.

    Notes tell by library which version is searched unasked; `left_out` is as of `Scope`.
    """

    pages: Condition | None = None
    notes: dict[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


async def read_choice(connection: Connection, filters: SearchFilters) -> VersionChoice:
    """Decide which of the stored versions a search reads, as `choose_versions` does."""
    if filters.as_of is not None:
        versions = Queries(connection.collection, Scope(as_of=filters.as_of)).versions()
        stored = [StoredVersion(*row) for row in await versions.fetch(connection)]
        return choose_versions(filters, stored)
    stored = await stored_versions(connection)
    near = await _read_near(connection, filters.near) if filters.near else {}
    return choose_versions(filters, stored, near)


async def _read_near(connection: Connection, urls: Sequence[str]) -> dict[str, set[str]]:
    statement = (
        "select library, edition from {documents} where version is not null and url = any(%s)"
    )
    rows = await connection.fetch(statement, (list(urls),))
    return {
        library: {edition for _, edition in group}
        for library, group in groupby(sorted(rows), key=lambda row: str(row[0]))
    }


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
