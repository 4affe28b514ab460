"""Brings the pages of a portable file into a corpus: chunked and embedded here. Fetches nothing."""

import asyncio
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from webrag.errors import DatabaseUnavailableError, InputError, StorageError
from webrag.indexing.corpus import Corpus
from webrag.indexing.indexer import Indexer
from webrag.indexing.portable_corpus import (
    PortablePage,
    open_for_reading,
    read_header,
    read_pages,
)

__all__ = ["ImportReport", "import_corpus"]

_PAGES_AT_ONCE = 8


class ImportReport(BaseModel):
    """What an import did.

    Attributes:
        indexed: Pages that are new.
        updated: Pages of which the file had a newer version.
        unchanged: Pages stored already with the same text.
        kept: Pages of which the corpus has a newer version, which was kept.
        failed: Line number to the reason it was left out.
    """

    model_config = ConfigDict(frozen=True)

    indexed: int = 0
    updated: int = 0
    unchanged: int = 0
    kept: int = 0
    failed: dict[int, str] = Field(default_factory=dict)


async def import_corpus(
    corpus: Corpus,
    indexer: Indexer,
    path: Path,
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> ImportReport:
    """Store the pages of a file; each is stored completely or not at all.

    An unusable line is reported and the others go on. Repeating an import changes nothing.

    Args:
        corpus: Where to.
        indexer: Chunks, embeds and stores.
        path: What `export` wrote; compression is recognised.
        on_progress: Told how many lines are done, and how many the header promises.

    Raises:
        InputError: The file cannot be read or is no export.
        ProviderError: Embedding failed; what was stored before is kept.
        DatabaseUnavailableError: The database cannot be reached; the same holds.
    """
    with await asyncio.to_thread(open_for_reading, path) as file:
        header = await asyncio.to_thread(read_header, file, path)
        lines = read_pages(file)
        tally = _Tally(header.documents, on_progress)
        while batch := await asyncio.to_thread(lambda: list(islice(lines, _PAGES_AT_ONCE))):
            for number, page in batch:
                tally.add(number, await _outcome(corpus, indexer, page))
    return tally.report()


class _Tally:
    """Counts what became of the lines."""

    def __init__(self, promised: int, on_progress: Callable[[int, int], None] | None) -> None:
        self._promised = promised
        self._on_progress = on_progress
        self._counts = dict.fromkeys(("indexed", "updated", "unchanged", "kept"), 0)
        self._failed: dict[int, str] = {}
        self._done = 0
        self._last = 1

    def add(self, number: int, outcome: str) -> None:
        self._done += 1
        self._last = number
        if outcome in self._counts:
            self._counts[outcome] += 1
        else:
            self._failed[number] = outcome
        if self._on_progress is not None:
            self._on_progress(self._done, max(self._done, self._promised))

    def report(self) -> ImportReport:
        is_short = self._done < self._promised and self._last not in self._failed
        if is_short:
            self._failed[self._last + 1] = (
                f"The file ends after {self._done:,} of {self._promised:,} pages."
            )
        return ImportReport(**self._counts, failed=self._failed)


async def _outcome(corpus: Corpus, indexer: Indexer, page: PortablePage | str) -> str:
    """What became of a line, or why it was left out."""
    if isinstance(page, str):
        return page
    try:
        return await _store_page(corpus, indexer, page)
    except DatabaseUnavailableError:
        raise
    except (InputError, StorageError) as error:
        return str(error)


async def _store_page(corpus: Corpus, indexer: Indexer, page: PortablePage) -> str:
    stored = await corpus.page(page.url)
    if stored is not None and stored.url == page.url:
        seen = max(stored.fetched_at, stored.gone_at or stored.fetched_at)
        if seen >= page.last_seen:
            await _complete(corpus, stored.url, page)
            return "unchanged" if stored.content_hash == page.content_hash else "kept"
    outcome = await indexer.index(page.document(), depth=page.depth)
    await _complete(corpus, outcome.url, page)
    if page.gone_at is not None and outcome.url == page.url:
        await corpus.mark_gone(page.url, page.gone_at)
    return outcome.outcome


async def _complete(corpus: Corpus, url: str, page: PortablePage) -> None:
    await corpus.add_aliases(url, page.aliases)
    await corpus.lower_depth(url, page.depth)
