"""Looking after a corpus: forget, export, import, check, reindex, drop. Answers no questions.

`WebRAG` documents each for its callers. All but `import_pages` and `clear` need a database only, so
that they also work where the settings do not fit the collection and WebRAG cannot be opened.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from webrag.argument_checks import FORGOTTEN_UNASKED, moment_before
from webrag.corpus.maintenance.checking import CorpusCheck, check_corpus
from webrag.corpus.maintenance.exporting import ExportReport, export_corpus
from webrag.corpus.maintenance.forgetting import (
    ForgetReport,
    forget_page,
    stored_urls,
    urls_to_forget,
)
from webrag.corpus.maintenance.importing import ImportReport, import_corpus
from webrag.corpus.maintenance.reembedding import (
    ReindexReport,
    chunk_ranges,
    prepare_reembedding,
    reembed,
)
from webrag.corpus.models import CollectionSize
from webrag.corpus.schema import (
    collection_sizes,
    corpus_embedding,
    ensure_schema,
    update_schema,
)
from webrag.corpus.schema import drop_collection as drop_tables
from webrag.embedding.known_models import EmbeddingChoice
from webrag.errors import InputError
from webrag.ingestion.addresses import canonical_url, page_address, site_of
from webrag.postgres.config import check_collection_name
from webrag.postgres.database import Database
from webrag.settings import Settings
from webrag.wiring.embeddings import choose_embedding, load_embedder
from webrag.wiring.jobs import open_queue

if TYPE_CHECKING:
    from webrag.jobs.models import Job

    # WebRAG has the parts when it calls; forgetting a page needs none of what they import.
    from webrag.wiring.assembly import Parts

Progress = Callable[[int, int], None]
"""Told what is done, and of how many."""

_SAMPLE = 100

_PARTS = 16  # of a collection, embedded by as many workers at once


async def forget(
    database: Database,
    urls: str | Sequence[str] | None = None,
    *,
    site: str | None = None,
    older_than: timedelta | None = None,
    confirm: Callable[[Sequence[str]], bool] | bool | None = None,
    on_progress: Progress | None = None,
) -> ForgetReport:
    """Delete pages, by URL or by conditions, once they are confirmed.

    Raises:
        InputError: Nothing was named, URLs and conditions were, one cannot be used, or many pages
            would go unconfirmed; nothing was deleted.
    """
    wanted = [urls] if isinstance(urls, str) else list(urls or ())
    wanted = list(dict.fromkeys(page_address(url) for url in wanted))
    if bool(wanted) == (site is not None or older_than is not None):
        raise InputError(
            "Name the pages to forget: URLs, or a site, an age, or both of the latter."
        )
    now = datetime.now(UTC)
    before = None if older_than is None else moment_before("older_than", older_than, now)
    if await update_schema(database) is None:
        return ForgetReport(unknown=tuple(wanted))
    found, unknown = await _pages_to_forget(database, wanted, site, before)
    if not found or not _is_confirmed(confirm, found):
        return ForgetReport(unknown=unknown)
    removed = []
    for done, url in enumerate(found, 1):
        if await forget_page(database, url, fetched_before=before):
            removed.append(url)
        if on_progress is not None:
            on_progress(done, len(found))
    return ForgetReport(removed=tuple(removed), unknown=unknown)


async def export_pages(
    database: Database,
    path: Path,
    *,
    overwrite: bool = False,
    with_logins: bool = False,
    on_progress: Progress | None = None,
) -> ExportReport:
    """Write every page, as of one moment, to a portable file; as `export_corpus`."""
    await update_schema(database)
    return await export_corpus(
        database, path, overwrite=overwrite, with_logins=with_logins, on_progress=on_progress
    )


async def import_pages(
    parts: "Parts", path: Path, *, on_progress: Progress | None = None
) -> ImportReport:
    """Store the pages of a portable file, chunked and embedded with the parts."""
    return await import_corpus(parts.corpus, parts.indexer(), path, on_progress=on_progress)


async def check(
    database: Database,
    settings: Settings,
    *,
    everything: bool = False,
    on_progress: Progress | None = None,
) -> CorpusCheck:
    """Examine the database and what is stored, also against the model that the settings name."""
    wanted = None
    if settings.embedding_provider != "auto":
        choice = await _embedding(settings, await corpus_embedding(database))
        wanted = (choice.name, choice.dimensions)
    return await check_corpus(
        database,
        wanted=wanted,
        sample=None if everything else _SAMPLE,
        on_progress=on_progress,
    )


async def reindex(
    database: Database,
    settings: Settings,
    *,
    force: bool = False,
    on_progress: Progress | None = None,
) -> ReindexReport:
    """Embed the stored text again with the model that a new collection would get.

    Raises:
        ConfigurationError: The settings choose no usable model.
        ProviderError: Embedding failed.
        StorageError: Another process is reindexing the collection.
    """
    choice = await _embedding(settings, await corpus_embedding(database) if force else None)
    async with AsyncExitStack() as stack:
        embedder, _ = await load_embedder(settings, choice, stack)
        return await reembed(database, embedder, choice.name, force=force, on_progress=on_progress)


async def enqueue_reindex(
    database: Database, settings: Settings, *, force: bool = False
) -> "list[Job]":
    """Let workers embed the stored text again with the model that a new collection would get.

    Raises:
        ConfigurationError: The settings choose no usable model, or the extra `workers` is not
            installed.
        InputError: The collection does not exist, or a job for another model has not ended.
        StorageError: Another process is reindexing the collection.
    """
    queue = open_queue(database)
    found = await update_schema(database)
    choice = await _embedding(settings, found if force else None)
    wanted = (choice.name, choice.dimensions)
    if found == wanted and not force:
        return []
    under_way = await queue.unfinished_embedding() if found else None
    if under_way is None:
        await prepare_reembedding(database, wanted)
        return await queue.enqueue_embedding(wanted, await chunk_ranges(database, _PARTS))
    if under_way.request.embedding and under_way.request.embedding.wanted != wanted:
        raise InputError(
            f"Job {under_way.id} makes {under_way.request.subject}; it has not ended.",
            hint=f"Wait for it, or cancel it with `webrag jobs cancel {under_way.id}`.",
        )
    return [under_way]


async def collections(database: Database, only: str | None = None) -> list[CollectionSize]:
    """Every collection of the database, or one, with its number of pages, in alphabetical order."""
    return await collection_sizes(database, only)


async def drop_collection(
    database: Database, name: str, *, confirm: Callable[[CollectionSize], bool] | None = None
) -> bool:
    """Delete a collection with everything in it; False when there is none, or not confirmed."""
    name = check_collection_name(name)
    sizes = {each.name: each for each in await collection_sizes(database)}
    if name not in sizes or (confirm is not None and not confirm(sizes[name])):
        return False
    return await drop_tables(database, name)


async def clear(parts: "Parts") -> None:
    """Delete every page of the collection the parts work on; its tables stay, empty."""
    await drop_tables(parts.database)
    await ensure_schema(
        parts.database,
        embedding_model=parts.embedding.name,
        embedding_dimensions=parts.embedding.dimensions,
    )


async def _embedding(settings: Settings, existing: tuple[str, int] | None) -> EmbeddingChoice:
    return await asyncio.to_thread(choose_embedding, settings, existing)


def _is_confirmed(
    confirm: Callable[[Sequence[str]], bool] | bool | None, found: Sequence[str]
) -> bool:
    if callable(confirm):
        return confirm(found)
    if confirm is None and len(found) > FORGOTTEN_UNASKED:
        raise InputError(
            f"This would forget {len(found):,} pages; more than {FORGOTTEN_UNASKED} are forgotten"
            " only when that is confirmed.",
            hint="Pass confirm=True, or a function that is told the URLs and decides.",
        )
    return confirm is not False


async def _pages_to_forget(
    database: Database, urls: Sequence[str], site: str | None, before: datetime | None
) -> tuple[list[str], tuple[str, ...]]:
    """Canonical URLs of what is stored, and what was named and is not."""
    if urls:
        known = await stored_urls(database, urls)
        unknown = tuple(url for url in urls if url not in known)
        return list(dict.fromkeys(known.values())), unknown
    named = None if site is None else _site(site)
    return await urls_to_forget(database, site=named, fetched_before=before), ()


def _site(given: str) -> str:
    return site_of(canonical_url(given if "://" in given else f"https://{given}/"))
