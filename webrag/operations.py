"""Looking after a corpus: forget, export, import, check, reindex, drop. Answers no questions."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from webrag.argument_checks import FORGOTTEN_UNASKED, moment_before
from webrag.errors import InputError
from webrag.ingestion.addresses import canonical_url, site_of
from webrag.lifetime import Lifetime

if TYPE_CHECKING:
    from webrag.corpus.maintenance.checking import CorpusCheck
    from webrag.corpus.maintenance.exporting import ExportReport
    from webrag.corpus.maintenance.forgetting import ForgetReport
    from webrag.corpus.maintenance.importing import ImportReport
    from webrag.corpus.maintenance.reembedding import ReindexReport
    from webrag.corpus.models import CollectionSize
    from webrag.postgres.database import Database

__all__ = ["CorpusOperations", "Progress"]

Progress = Callable[[int, int], None]
"""Told what is done, and of how many."""

_SAMPLE = 100


class CorpusOperations(Lifetime):
    """The part of WebRAG that looks after stored pages.

    Only `import_corpus` and `clear` need an open WebRAG; the others also work on one that is not
    open, or cannot be opened because the settings do not fit the collection.
    """

    async def forget(
        self,
        urls: str | Sequence[str] | None = None,
        *,
        site: str | None = None,
        older_than: timedelta | None = None,
        confirm: Callable[[Sequence[str]], bool] | bool | None = None,
        on_progress: Progress | None = None,
    ) -> "ForgetReport":
        """Delete pages with everything made from them; they can be fetched again.

        Args:
            urls: These pages, by any URL they are known by; goes with no other condition.
            site: Pages of this host (`host` or `host:port`).
            older_than: Pages that their site last delivered or confirmed longer ago than this; a
                positive time span.
            confirm: True, or a function that is told the URLs before anything is deleted; nothing
                is when it says False. Without it more than 20 pages are refused.
            on_progress: Told how many pages are deleted.

        Raises:
            InputError: Nothing was named, URLs and conditions were, one cannot be used, or more
                than 20 pages would go and nothing was said to confirm it; nothing was deleted.
        """
        from webrag.corpus.maintenance.forgetting import ForgetReport, forget_page
        from webrag.corpus.schema import update_schema

        wanted = [urls] if isinstance(urls, str) else list(urls or ())
        wanted = list(dict.fromkeys(canonical_url(url) for url in wanted))
        if bool(wanted) == (site is not None or older_than is not None):
            raise InputError(
                "Name the pages to forget: URLs, or a site, an age, or both of the latter."
            )
        now = datetime.now(UTC)
        before = None if older_than is None else moment_before("older_than", older_than, now)
        async with self._some_database() as database:
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

    async def export_corpus(
        self, path: Path, *, overwrite: bool = False, on_progress: Progress | None = None
    ) -> "ExportReport":
        """Write every page, as of one moment, to a portable file; compressed if it ends with .gz.

        Raises:
            InputError: The file exists, cannot be written, or nothing is stored.
        """
        from webrag.corpus.maintenance.exporting import export_corpus
        from webrag.corpus.schema import update_schema

        async with self._some_database() as database:
            await update_schema(database)
            return await export_corpus(database, path, overwrite=overwrite, on_progress=on_progress)

    async def import_corpus(
        self, path: Path, *, on_progress: Progress | None = None
    ) -> "ImportReport":
        """Store the pages of a portable file, chunked and embedded here; repeating it is harmless.

        Raises:
            InputError: The file cannot be read or is no export.
            ProviderError: Embedding failed; what was stored before is kept.
        """
        from webrag.corpus.maintenance.importing import import_corpus

        parts = await self._current_parts()
        return await import_corpus(parts.corpus, parts.indexer, path, on_progress=on_progress)

    async def check_corpus(
        self, *, everything: bool = False, on_progress: Progress | None = None
    ) -> "CorpusCheck":
        """Examine the database and what is stored; nothing is changed.

        Args:
            everything: Verify every page, not a sample.
            on_progress: Told how many pages are verified.
        """
        from webrag.corpus.maintenance.checking import check_corpus
        from webrag.corpus.schema import corpus_embedding
        from webrag.embedding.bundled import BundledEmbedding
        from webrag.wiring.embeddings import choose_embedding

        wanted = None
        async with self._some_database() as database:
            if self.settings.embedding_provider != "auto":
                existing = await corpus_embedding(database)
                choice = await asyncio.to_thread(
                    choose_embedding, self.settings, existing, BundledEmbedding()
                )
                wanted = (choice.name, choice.dimensions)
            return await check_corpus(
                database,
                wanted=wanted,
                sample=None if everything else _SAMPLE,
                on_progress=on_progress,
            )

    async def reindex(
        self, *, force: bool = False, on_progress: Progress | None = None
    ) -> "ReindexReport":
        """Embed the stored text again with the model that a new collection would get.

        The old vectors serve until the new ones are complete. A call that ends early loses
        nothing: the next one goes on where it stopped.

        Args:
            force: Renew the vectors although the model is the same.
            on_progress: Told how many chunks are done.

        Raises:
            ConfigurationError: The settings choose no usable model.
            ProviderError: Embedding failed.
            StorageError: Another process is reindexing the collection.
        """
        from webrag.corpus.maintenance.reembedding import reembed
        from webrag.corpus.schema import corpus_embedding
        from webrag.embedding.bundled import BundledEmbedding
        from webrag.embedding.embedder import Embedder
        from webrag.wiring.embeddings import choose_embedding
        from webrag.wiring.tokenizer import choose_tokenizer

        async with self._some_database() as database:
            existing = await corpus_embedding(database) if force else None
            choice = await asyncio.to_thread(
                choose_embedding, self.settings, existing, BundledEmbedding()
            )
            model = await asyncio.to_thread(choice.load)
            tokenize = await asyncio.to_thread(choose_tokenizer, self.settings)
            async with model if isinstance(model, AbstractAsyncContextManager) else nullcontext():
                return await reembed(
                    database,
                    Embedder(
                        model,
                        choice.dimensions,
                        limits=choice.limits,
                        count_tokens=lambda text: len(tokenize(text)),
                    ),
                    choice.name,
                    force=force,
                    on_progress=on_progress,
                )

    async def collections(self) -> "list[CollectionSize]":
        """Every collection of the database with its number of pages, in alphabetical order."""
        from webrag.corpus.schema import collection_sizes

        async with self._some_database() as database:
            return await collection_sizes(database)

    async def drop_collection(
        self,
        collection: str | None = None,
        *,
        confirm: "Callable[[CollectionSize], bool] | None" = None,
    ) -> bool:
        """Delete a collection with everything in it; False when there is none, or not confirmed.

        Args:
            collection: Its name; None is the one in use, and closes this WebRAG.
            confirm: Told name and size before anything is deleted.
        """
        from webrag.corpus.schema import collection_sizes, drop_collection
        from webrag.postgres.config import check_collection_name

        own = self.settings.collection
        name = check_collection_name(own if collection is None else collection)
        async with self._some_database() as database:
            sizes = {each.name: each for each in await collection_sizes(database)}
            if name not in sizes or (confirm is not None and not confirm(sizes[name])):
                return False
            dropped = await drop_collection(database, name)
        if name == own:
            await self.close()
        return dropped

    async def clear(self) -> None:
        """Delete every page of the collection; it stays open, and empty."""
        from webrag.corpus.schema import drop_collection, ensure_schema

        parts = self._open_parts
        await drop_collection(parts.database)
        await ensure_schema(
            parts.database,
            embedding_model=parts.embedding.name,
            embedding_dimensions=parts.embedding.dimensions,
        )


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
    database: "Database", urls: Sequence[str], site: str | None, before: datetime | None
) -> tuple[list[str], tuple[str, ...]]:
    """Canonical URLs of what is stored, and what was named and is not."""
    from webrag.corpus.maintenance.forgetting import stored_urls, urls_to_forget

    if urls:
        known = await stored_urls(database, urls)
        unknown = tuple(url for url in urls if url not in known)
        return list(dict.fromkeys(known.values())), unknown
    named = None if site is None else _site(site)
    return await urls_to_forget(database, site=named, fetched_before=before), ()


def _site(given: str) -> str:
    return site_of(canonical_url(given if "://" in given else f"https://{given}/"))
