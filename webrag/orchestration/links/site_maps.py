"""Gets the maps that sites keep of themselves and ranks their pages; it follows no link."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
from llama_index.postprocessor.webrag.local_scoring import PassageScorer
from llama_index.postprocessor.webrag.rerank_features import Passage
from llama_index.postprocessor.webrag.wordings import AskedWording
from numpy.typing import NDArray

from webrag.concurrency import in_background, within
from webrag.corpus.models import LinkCandidate
from webrag.corpus.site_index import (
    MapAnswer,
    MapIndex,
    MapRequest,
    MarkedPage,
    SiteMapStore,
    StoredMap,
)
from webrag.errors import FetchError, InputError, UnusablePageError
from webrag.ingestion.addresses import same_site
from webrag.ingestion.models import MapMark
from webrag.orchestration.models import SiteMapConfig
from webrag.process_pool.pool import Job, WorkerPool, WorkFailedError

_log = logging.getLogger(__name__)

_JOB: Final = Job("webrag.corpus.site_index:make_mapper", MapAnswer)
# A page of a manual names one map, and a start page of several manuals the home of each.
_MAX_MAPS: Final = 4
_MAX_FILES: Final = 12
_MAX_STEPS: Final = 4
_REMEMBERED_MAPS: Final = 8
# What is missing is asked for again sooner than what is there is read again.
_FAILURE_FRESH_S: Final = 3_600.0
_PARTS_TIME: Final = 0.5  # share of the time after which a sitemap does without its missing parts
_WHOLE_TIME: Final = 0.9  # share of the time for maps from which one that is late has failed
# Pages of a map that compete with the links of pages. With 40, names that merely sound alike pushed
# out what the named page links to: of the evidence in a whole manual .53 was found in place of .64.
_OFFERED: Final = 8
# What a map that knows only names finds counts half. Counted whole, PostgreSQL's book index cost 3
# of 18 questions; counted half as well, Sphinx's and mdBook's found 2 of 36 less.
_BY_NAMES: Final = 0.5
# Pages of a map with texts whose best passages are read.
_REREAD: Final = 30
_REFUSED: Final = "The site's own map {} was refused: {}."
_NAMES: Final = {
    "index_page": "the site's index page",
    "llms": "the site's llms.txt",
    "sitemap": "the site's sitemap",
}


DeclaredSitemaps: TypeAlias = Callable[[str], Awaitable[Sequence[str]]]
FetchFile: TypeAlias = Callable[..., Awaitable[bytes]]  # as `HttpFetcher.fetch_bytes`


@dataclass(frozen=True, slots=True)
class KnownMap:
    """A map and the page that named it."""

    index: MapIndex
    page: MarkedPage
    mark: MapMark


@dataclass(frozen=True, slots=True)
class MapPages:
    """The pages that maps offer for one question.

    Attributes:
        links: The best pages, as links of the page that named their map.
        scores: How much of the question a map finds in each page, [0, 1] by its words, [0, .5] by
            names alone; those of no use are left out.
        text_scores: The same of maps that hold their pages' text, by the relevance of that.
    """

    links: Sequence[LinkCandidate] = ()
    scores: dict[str, float] = field(default_factory=dict)
    text_scores: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class SiteMaps:
    """Gets and keeps the maps that pages name; safe to share between runs.

    `declared` gives the sitemaps that the robots.txt of a page's site names.
    """

    fetch: FetchFile
    declared: DeclaredSitemaps
    workers: WorkerPool
    store: SiteMapStore
    config: SiteMapConfig
    _indexes: OrderedDict[str, tuple[datetime, MapIndex]] = field(default_factory=OrderedDict)
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def known(
        self, pages: Sequence[str], *, timeout_s: float
    ) -> tuple[list[KnownMap], list[str]]:
        """Maps that some stored pages name, asked for where they are not known.

        The most relevant pages come first; what is not there in time is left for another run, 0 to
        use what is stored. Gives the maps, and a sentence for each that was refused just now.

        Raises:
            StorageError: The database failed.
        """
        waiting: dict[str, tuple[MarkedPage, MapMark]] = {}
        for page in await self.store.marked(pages):
            for mark in page.marks:
                waiting.setdefault(mark.urls[0], (page, mark))
        found: list[KnownMap] = []
        sentences: list[str] = []
        until = time.monotonic() + min(timeout_s, self.config.timeout_s)
        for page, mark in list(waiting.values())[:_MAX_MAPS]:
            found += await self._maps(page, mark, until, sentences)
        if not found and pages and timeout_s > 0:
            found += await self._sitemap(pages[0], until, sentences)
        return found, sentences

    async def _sitemap(self, url: str, until: float, sentences: list[str]) -> list[KnownMap]:
        """The sitemap that robots.txt names, which is read for every page in any case."""
        try:
            async with asyncio.timeout(max(until - time.monotonic(), 0)):
                declared = await self.declared(url)
        except (FetchError, InputError, TimeoutError) as error:
            _log.info("The sitemaps of %s are not known: %s", url, error)
            return []
        addresses = [other for address in declared if (other := same_site(address, url))]
        if not addresses:
            return []
        mark = MapMark(kind="sitemap", root=url, urls=tuple(addresses[:1]))
        return await self._maps(MarkedPage(url, 0, (mark,)), mark, until, sentences)

    async def _maps(
        self, page: MarkedPage, mark: MapMark, until: float, sentences: list[str]
    ) -> list[KnownMap]:
        index = self._remembered(mark.urls[0])
        if index is not None:
            return [KnownMap(index, page, mark)]
        stored = await self._stored(page, mark, until, sentences)
        if stored is None:
            return []
        if stored.packed:
            return [KnownMap(await self._index(stored), page, mark)]
        found = []
        for other in stored.marks:
            found += await self._maps(page, other, until, sentences)
        return found

    async def _stored(
        self, page: MarkedPage, mark: MapMark, until: float, sentences: list[str]
    ) -> StoredMap | None:
        url = mark.urls[0]
        lock = self._locks.setdefault(url, asyncio.Lock())
        async with lock:
            stored = await self.store.read(url)
            limit = _FAILURE_FRESH_S if stored and stored.failure else self.config.fresh_s
            is_fresh = stored is not None and _is_younger(stored.fetched_at, limit)
            if is_fresh or time.monotonic() >= until:
                return stored
            begun = time.monotonic()
            try:
                async with asyncio.timeout(max(until - begun, 0)):
                    found = await self._read(page.url, mark, until, sentences)
            except TimeoutError:
                if until - begun < _WHOLE_TIME * self.config.timeout_s:
                    return stored  # the run had little time left; another one asks again
                found = StoredMap(url, datetime.now(UTC), failure=f"{url} did not arrive in time.")
            if found.failure:
                _log.info("No map of the site was read: %s", found.failure)
            if found.failure and stored is not None and stored.packed:
                # It is due when a failure would be.
                early_s = max(self.config.fresh_s - _FAILURE_FRESH_S, 0)
                due = found.fetched_at - timedelta(seconds=early_s)
                found = replace(stored, fetched_at=due)
            await self.store.write(found)
        return found

    async def _read(
        self, page_url: str, mark: MapMark, until: float, sentences: list[str]
    ) -> StoredMap:
        """Ask for the addresses of a map in turn until one gives it."""
        failure = ""
        parts_until = self._parts_until(mark, until)
        for url in mark.urls:
            try:
                return await self._read_one(page_url, mark, url, parts_until)
            except UnusablePageError as error:
                failure = str(error)
                if mark.kind != "home":  # which need not be a map
                    sentences.append(f"{error} Links were followed without it.")
            except (FetchError, InputError) as error:
                failure = str(error)
        return StoredMap(mark.urls[0], datetime.now(UTC), failure=failure)

    def _parts_until(self, mark: MapMark, until: float) -> float | None:
        """Set the moment to go on without the rest of a map; None for never.

        Of a sitemap every part is of use alone. What a run with more time would read whole is not
        kept in part.
        """
        left = until - time.monotonic()
        is_whole_time = left >= _WHOLE_TIME * self.config.timeout_s
        return until - _PARTS_TIME * left if mark.kind == "sitemap" and is_whole_time else None

    async def _read_one(
        self, page_url: str, mark: MapMark, url: str, parts_until: float | None
    ) -> StoredMap:
        files: dict[str, bytes] = {}
        wanted: Collection[str] = (url,)
        left = self.config.max_bytes
        for _ in range(_MAX_STEPS):
            for each in wanted:
                fetched = self.fetch(each, at_most=max(left, 1))
                files[each] = await (fetched if each == url else _part(fetched, parts_until))
                left -= len(files[each])
            request = MapRequest(mark, page_url, files)
            try:
                answer = await self.workers.run(_JOB, request, about=f"{url} (a map)")
            except WorkFailedError as error:
                raise UnusablePageError(_REFUSED.format(url, error), url=url) from error
            if answer.refusal:
                raise UnusablePageError(_REFUSED.format(url, answer.refusal), url=url)
            if not answer.wanted:
                return StoredMap(mark.urls[0], datetime.now(UTC), answer.packed, marks=answer.marks)
            wanted = [each for each in answer.wanted if each not in files][:_MAX_FILES]
        raise UnusablePageError(_REFUSED.format(url, "it leads from file to file"), url=url)

    def _remembered(self, url: str) -> MapIndex | None:
        """A map that needs no look at the database, where its megabytes would be read each time."""
        fetched_at, index = self._indexes.get(url, (None, None))
        if fetched_at is None or not _is_younger(fetched_at, self.config.fresh_s):
            return None
        self._indexes.move_to_end(url)
        return index

    async def _index(self, stored: StoredMap) -> MapIndex:
        index = await in_background(MapIndex, stored.packed)
        self._indexes[stored.url] = stored.fetched_at, index
        self._indexes.move_to_end(stored.url)
        while len(self._indexes) > _REMEMBERED_MAPS:
            self._indexes.popitem(last=False)
        return index


async def _part(fetched: Awaitable[bytes], until: float | None) -> bytes:
    """A file of a map behind the first; empty when it cannot be had by then."""
    body = b""
    async with within(None if until is None else max(until - time.monotonic(), 0)):
        try:
            body = await fetched
        except FetchError as error:
            _log.info("A part of a map is missing: %s", error)
    return body


def _is_younger(at: datetime, seconds: float) -> bool:
    return datetime.now(UTC) - at < timedelta(seconds=seconds)


def rank_maps(
    maps: Sequence[KnownMap], queries: Sequence[str], scorer: PassageScorer | None = None
) -> MapPages:
    """The pages of some maps that a question and its other wordings find.

    Each map is its own collection: how rare a word is depends on the site. A page counts by its
    mean under all queries. The scorer reads what a map holds of the pages' own text.
    """
    links: list[LinkCandidate] = []
    found = MapPages(links)
    for known in maps:
        values = np.array([known.index.scores(query) for query in queries])
        scores = found.scores
        if scorer is not None and known.index.content == "texts":
            scores = found.text_scores
            ranked = _reread(known.index, values, queries, scorer)
        else:
            ranked = values.mean(axis=0)
        best = np.argsort(-ranked, kind="stable")[:_OFFERED]
        links += [_link(known, at, queries) for at in best.tolist() if ranked[at] > 0]
        worth = ranked * _BY_NAMES if known.index.content == "names" else ranked
        for at in np.flatnonzero(worth > 0).tolist():
            url = known.index.urls[at]
            scores[url] = max(float(worth[at]), scores.get(url, 0.0))
    return found


def _reread(
    index: MapIndex,
    values: NDArray[np.float32],
    queries: Sequence[str],
    scorer: PassageScorer,
) -> NDArray[np.float32]:
    """Scores by the best passage of each page, for those pages that words find best.

    The others keep their order behind the last of them. The mean over all questions is taken as
    for words, which have a row of `values` for each query; it knows parts of a question beside its
    wordings, so that none counts double.
    """
    by_words: NDArray[np.float32] = values.mean(axis=0)
    best = np.argsort(-by_words, kind="stable")[:_REREAD]
    best = best[by_words[best] > 0]
    if not len(best):
        return by_words
    found = [(at, part) for at in best.tolist() for part in _passages(index, at, queries)]
    owners = np.array([at for at, _ in found])
    most = values.max(axis=1, keepdims=True)
    shares = values[:, owners] / np.where(most > 0, most, 1)
    nothing = [None] * len(found)
    wordings = [
        AskedWording(query, index.term_weights(query), nothing, share)
        for query, share in zip(queries, shares.tolist(), strict=True)
    ]
    relevances = np.mean(scorer.score_passages([part for _, part in found], wordings), axis=0)
    by_text = np.zeros_like(by_words)
    np.maximum.at(by_text, owners, relevances)
    ranked: NDArray[np.float32] = by_words * (by_text[best].min() / by_words[best[-1]])
    ranked[best] = by_text[best]
    return ranked


def _passages(index: MapIndex, at: int, queries: Sequence[str]) -> list[Passage]:
    """Give the texts that may answer on a page; its names where the map has no text of it."""
    title = index.titles[at]
    parts = index.passages_about(at, queries)
    if not parts:
        return [Passage("; ".join((title, *index.names_about(at, queries))), title)]
    return [Passage(part.text, title, (part.heading,)) for part in parts]


def _link(known: KnownMap, at: int, queries: Sequence[str]) -> LinkCandidate:
    return LinkCandidate(
        source_url=known.page.url,
        url=known.index.urls[at],
        title=known.index.titles[at],
        description="; ".join(known.index.names_about(at, queries)),
        source_depth=known.page.depth,
        origin="map",
        found_in=_NAMES.get(known.mark.kind, "the site's search index"),
    )
