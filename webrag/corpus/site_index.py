"""Keeps what a site's own index says of its pages: packed, stored as rows, ranked by a question."""

import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray
from psycopg.types.json import Jsonb
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass as checked_dataclass

from webrag.corpus.models import LinkCandidate
from webrag.corpus.writer import copy_links, lock_pages
from webrag.frozen import FrozenModel
from webrag.ingestion.models import MapMark, MappedLink, is_generic_anchor
from webrag.ingestion.site_maps.listing import (
    ListedPage,
    MapContent,
    MapRefusedError,
    Section,
    SiteListing,
)
from webrag.lexical.analysis import analyze, query_terms, stemmer, term_weight
from webrag.lexical.bm25 import K1, B, inverse_document_frequency
from webrag.postgres.database import Connection, Database

_TITLE_WEIGHT: Final = 4
_NAME_WEIGHT: Final = 2
_CHARS_PER_TERM: Final = 8
_MAX_WEIGHT: Final = 250
_OF_NAMES: Final = 1
_OF_WORDS: Final = 2
_HEAD: Final = struct.Struct(">BIIIII")
_WORD: Final = re.compile(r"\w+")
_SHOWN_NAMES: Final = 3
_KEPT_NAMES: Final = 60
_SEPARATOR: Final = "\x1f"
# Some 350 tokens, between a child and a parent chunk; docs/experiments.md has the figures with it.
_PASSAGE_CHARS: Final = 1_400
_PASSAGES_READ: Final = 2


def pack_listing(listing: SiteListing) -> bytes:
    """Give the bytes `MapIndex` reads."""
    numbers: dict[str, int] = {}
    rows: list[tuple[int, int, int]] = []
    lengths = np.ones(len(listing.pages), np.uint32)
    for at, page in enumerate(listing.pages):
        weights = _weights(page)
        lengths[at] += sum(len(each.text) for each in page.sections) // _CHARS_PER_TERM
        rows += [
            (numbers.setdefault(term, len(numbers)), at, weight) for term, weight in weights.items()
        ]
    held = [numbers.setdefault(stem, len(numbers)) for stem in listing.occurrences]
    counts = np.fromiter(map(len, listing.occurrences.values()), np.int64, len(held))
    stems = np.repeat(np.array(held, np.int64), counts)
    found = np.fromiter(chain.from_iterable(listing.occurrences.values()), np.int64, len(stems))
    lengths += np.bincount(found, minlength=len(lengths)).astype(np.uint32)
    named = np.array(rows, np.int64).reshape(-1, 3)
    places = np.concatenate([named[:, 0], stems]) * len(listing.pages)
    places += np.concatenate([named[:, 1], found])
    weights_ = np.concatenate([named[:, 2], np.ones(len(stems), np.int64)])
    keys, inverse = np.unique(places, return_inverse=True)
    summed = np.minimum(np.bincount(inverse, weights_), _MAX_WEIGHT).astype(np.uint8)
    owners = (keys % len(listing.pages)).astype(">u4")
    per_term = np.bincount(keys // len(listing.pages), minlength=len(numbers)).astype(">u4")
    texts = [
        "\n".join(page.url for page in listing.pages),
        "\n".join(page.title for page in listing.pages),
        "\n".join(_SEPARATOR.join(page.names[:_KEPT_NAMES]) for page in listing.pages),
        "\n".join(numbers),
    ]
    packed = [text.encode() for text in texts]
    arrays = [lengths.astype(">u4"), per_term, owners, summed]
    form = _OF_NAMES if listing.content == "names" else _OF_WORDS
    head = _HEAD.pack(form, len(listing.pages), *map(len, packed))
    body = zlib.compress(b"".join([*packed, *(each.tobytes() for each in arrays)]), 1)
    return head + body + (_packed_texts(listing.pages) if listing.content == "texts" else b"")


def _packed_texts(pages: Sequence[ListedPage]) -> bytes:
    blobs = [
        # The separator counts as white space.
        zlib.compress(
            _SEPARATOR.join(
                " ".join(part.split()) for part in chain.from_iterable(page.sections)
            ).encode(),
            1,
        )
        for page in pages
    ]
    return np.array([len(blob) for blob in blobs], ">u4").tobytes() + b"".join(blobs)


def _weights(page: ListedPage) -> Counter[str]:
    weights = Counter(chain.from_iterable(analyze(each.text) for each in page.sections))
    named = Counter(chain.from_iterable(set(analyze(name)) for name in page.names))
    for term, count in named.items():
        weights[term] += _NAME_WEIGHT * count
    for term in set(analyze(page.title)):
        weights[term] += _TITLE_WEIGHT
    return weights


class MapIndex:
    """A map that can be asked, with the pages' own text, compressed, where it has that.

    Its `content` is "names" in place of "words" where it was packed before maps told.
    """

    def __init__(self, packed: bytes) -> None:
        form, count, *sizes = _HEAD.unpack_from(packed)
        assert form in (_OF_NAMES, _OF_WORDS), f"maps of format {form} are not known"
        body = zlib.decompressobj()
        raw = body.decompress(packed[_HEAD.size :])
        # Only a map that holds the pages' own text has something behind its index.
        self._texts = body.unused_data
        words: MapContent = "names" if form == _OF_NAMES else "words"
        self.content: MapContent = "texts" if self._texts else words
        texts = []
        for size in sizes:
            texts.append(raw[:size].decode())
            raw = raw[size:]
        self.urls = texts[0].split("\n")
        self.titles = texts[1].split("\n")
        self._names = texts[2].split("\n")
        terms = texts[3].split("\n") if texts[3] else []
        self._lengths = np.frombuffer(raw, ">u4", count).astype(np.float32)
        counts = np.frombuffer(raw, ">u4", len(terms), 4 * count)
        total = int(counts.sum())
        start = 4 * (count + len(terms))
        self._owners = np.frombuffer(raw, ">u4", total, start)
        self._weights = np.frombuffer(raw, np.uint8, total, start + 4 * total)
        self._ends = np.cumsum(counts, dtype=np.int64)
        self._terms = {term: at for at, term in enumerate(terms)}
        self._text_ends = 4 * count + np.cumsum(
            np.frombuffer(self._texts, ">u4", count if self._texts else 0), dtype=np.int64
        )
        average = float(self._lengths.mean()) or 1.0
        self._unheard = inverse_document_frequency(0, count)
        self._norms = K1 * (1 - B + B * self._lengths / average)

    def scores(self, query: str) -> NDArray[np.float32]:
        """Give the share of a question that the map finds in each page, [0, 1]."""
        total = np.zeros(len(self.urls), np.float32)
        most = 0.0
        for variants in _variants(query):
            best = np.zeros(len(self.urls), np.float32)
            # A word that the map does not have is asked for all the same: maps of names know few.
            idf = 0.0 if any(term in self._terms for term in variants) else self._unheard
            # The stem that a site's own index has for an identifier does not tell that it is one.
            weight = term_weight(variants[0])
            for term in variants:
                if term not in self._terms:
                    continue
                span = self._span(term)
                owners, weights = self._owners[span], self._weights[span].astype(np.float32)
                rarity = weight * inverse_document_frequency(len(owners), len(self.urls))
                idf = max(idf, rarity)
                value = rarity * weights * (K1 + 1) / (weights + self._norms[owners])
                best[owners] = np.maximum(best[owners], value)
            total += best
            most += idf * (K1 + 1)
        return total / most if most else total

    def term_weights(self, query: str) -> dict[str, float]:
        """Give the inverse document frequency of each term of a question among the pages."""
        pages = len(self.urls)
        return {
            term: inverse_document_frequency(len(self._owners[self._span(term)]), pages)
            for term in query_terms(query)
        }

    def passages_about(self, at: int, queries: Sequence[str]) -> list[Section]:
        """Give the two passages of a page's own text that hold most words of some questions."""
        parts = [
            Section(heading, part) for heading, text in self._sections(at) for part in _parts(text)
        ]
        held = _terms_held(map(" ".join, parts), queries)
        order = sorted(range(len(parts)), key=lambda place: -held[place])
        return [parts[place] for place in order[:_PASSAGES_READ]]

    def _span(self, term: str) -> slice:
        at = self._terms.get(term)
        if at is None:
            return slice(0, 0)
        return slice(int(self._ends[at - 1]) if at else 0, int(self._ends[at]))

    def _sections(self, at: int) -> list[Section]:
        if not self._texts:
            return []
        start = self._text_ends[at - 1] if at else 4 * len(self.urls)
        raw = zlib.decompress(self._texts[start : self._text_ends[at]]).decode()
        pieces = raw.split(_SEPARATOR) if raw else []
        return list(map(Section, pieces[::2], pieces[1::2]))

    def names_about(self, at: int, queries: Sequence[str]) -> list[str]:
        """Give the headings and names of a page that hold most of a question's words."""
        names = [name for name in self._names[at].split(_SEPARATOR) if name]
        counted = zip(_terms_held(names, queries), names, strict=True)
        shown = sorted((each for each in counted if each[0]), key=lambda each: -each[0])
        return [name for _, name in shown[:_SHOWN_NAMES]]


def _terms_held(texts: Iterable[str], queries: Sequence[str]) -> list[int]:
    terms = {term for query in queries for term in query_terms(query)}
    return [len(terms.intersection(analyze(text))) for text in texts]


def _parts(text: str) -> Iterator[str]:
    """A text cut between words into passages; its white space is single spaces."""
    start = 0
    while len(text) - start > _PASSAGE_CHARS:
        space = text.rfind(" ", start + 1, start + _PASSAGE_CHARS + 1)
        end = space if space > 0 else start + _PASSAGE_CHARS
        yield text[start:end]
        start = end + (space > 0)
    if start < len(text):
        yield text[start:]


def _variants(query: str) -> list[list[str]]:
    """The terms of a question, each with the stem that a site's own index may have for it."""
    groups = {term: [term] for term in query_terms(query)}
    for word in _WORD.findall(query):
        own = next((term for term in analyze(word) if term in groups), None)
        stem = str(stemmer("porter").stemWord(word.lower()))
        if own is not None and stem not in groups[own]:
            groups[own].append(stem)
    return list(groups.values())


@dataclass(frozen=True, slots=True)
class MapRequest:
    """Files of a map to read; as for `read_map`."""

    mark: MapMark
    page_url: str
    files: Mapping[str, bytes]


class MapAnswer(FrozenModel):
    """A map, further files wanted, further maps, or why it cannot be used, as a clause."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    packed: bytes = b""
    refusal: str = ""
    wanted: tuple[str, ...] = ()
    marks: tuple[MapMark, ...] = ()


def make_mapper(_setup: object) -> Callable[[MapRequest], MapAnswer]:
    """Load what reads maps."""
    # The process that only asks for it does without.
    from webrag.ingestion.site_maps.reading import NamedMaps, Wanted, read_map

    def mapped(request: MapRequest) -> MapAnswer:
        try:
            found = read_map(request.mark, request.page_url, request.files)
        except MapRefusedError as error:
            return MapAnswer(refusal=str(error))
        if isinstance(found, Wanted):
            return MapAnswer(wanted=tuple(found.urls))
        if isinstance(found, NamedMaps):
            return MapAnswer(marks=tuple(found.marks))
        return MapAnswer(packed=pack_listing(found))

    return mapped


@checked_dataclass(frozen=True, slots=True)
class MarkedPage:
    """A stored page that names maps of its site."""

    url: str
    depth: int
    marks: tuple[MapMark, ...]


@checked_dataclass(frozen=True, slots=True)
class StoredMap:
    """A map for `MapIndex`, else a sentence why there is none, else the maps that a page names."""

    url: str
    fetched_at: datetime
    packed: bytes = b""
    failure: str = ""
    marks: tuple[MapMark, ...] = ()


class SiteMapStore:
    """The maps of one collection; safe to share between tasks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def marked(self, urls: Sequence[str]) -> list[MarkedPage]:
        """Give those of some canonical URLs whose stored page names maps, in order."""
        statement = (
            "select url, depth, map_marks as marks from {documents}"
            " where url = any(%(urls)s) and map_marks <> '[]'"
            " order by array_position(%(urls)s, url)"
        )
        return await self._database.fetch_as(MarkedPage, statement, {"urls": list(urls)})

    async def read(self, url: str) -> StoredMap | None:
        """Give what came of reading a map, None when it was not asked for yet."""
        statement = (
            "select url, fetched_at, coalesce(packed, '') as packed,"
            " coalesce(failure, '') as failure, marks from {site_maps} where url = %s"
        )
        found = await self._database.fetch_as(StoredMap, statement, (url,))
        return found[0] if found else None

    async def write(self, found: StoredMap) -> None:
        """Keep what came of reading a map in place of what was kept before."""
        marks = Jsonb([mark.model_dump(mode="json") for mark in found.marks])
        await self._database.fetch(
            "insert into {site_maps} (url, fetched_at, packed, failure, marks)"
            " values (%s, %s, %s, %s, %s)"
            " on conflict (url) do update set fetched_at = excluded.fetched_at,"
            " packed = excluded.packed, failure = excluded.failure, marks = excluded.marks",
            (found.url, found.fetched_at, found.packed or None, found.failure or None, marks),
        )


class MappedLinks:
    """The mapped links of one collection, kept as long as the version of their page."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def unmapped(self, urls: Sequence[str]) -> list[str]:
        """Give those of some canonical URLs whose stored page was not mapped yet, in order."""
        rows = await self._database.fetch(
            "select url from {documents}"
            " where url = any(%s) and mapped_at is null and gone_at is null",
            (list(urls),),
        )
        found = {url for (url,) in rows}
        return [url for url in dict.fromkeys(urls) if url in found]

    async def store(self, url: str, links: Sequence[MappedLink], at: datetime) -> None:
        """Keep what was listed for a page that is stored in place of what was listed before."""
        await self._database.run(lambda connection: self._write(connection, url, links, at))

    async def _write(
        self, connection: Connection, url: str, links: Sequence[MappedLink], at: datetime
    ) -> None:
        await lock_pages(connection, [url])
        mark = "update {documents} set mapped_at = %s where url = %s returning id"
        rows = await connection.fetch(mark, (at, url))
        if not rows:
            return
        page_id = rows[0][0]
        forget = "delete from {link_candidates} where source_document = %s and origin = 'map'"
        await connection.change(forget, (page_id,))
        last = await connection.fetch(
            "select coalesce(max(ordinal), -1) from {link_candidates} where source_document = %s",
            (page_id,),
        )
        others = {link.url: link for link in links if link.url != url}
        listed = [
            LinkCandidate(source_url=url, origin="map", **link.model_dump())
            for link in others.values()
        ]
        await copy_links(connection, [(page_id, listed)], first=last[0][0] + 1)


def enriched(links: Sequence[LinkCandidate]) -> list[LinkCandidate]:
    """Merge mapped links into the pages' own where these lack a title, description or target."""
    mapped = {(link.source_url, link.url): link for link in links if link.origin == "map"}
    if not mapped:
        return list(links)
    own = {(link.source_url, link.url) for link in links if link.origin == "page"}
    merged: list[LinkCandidate] = []
    for link in links:
        known = mapped.get((link.source_url, link.url))
        if link.origin == "page" and known is not None:
            title = known.title if known.title and is_generic_anchor(link.title) else link.title
            told = {"title": title, "description": link.description or known.description}
            merged.append(link.model_copy(update=told))
        elif link.origin == "page" or (link.source_url, link.url) not in own:
            merged.append(link)
    return merged
