"""Finds the pages that are to be forgotten, has that confirmed, and deletes them."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from webrag.argument_checks import FORGOTTEN_UNASKED, moment_before
from webrag.corpus.queries import find_pages
from webrag.corpus.schema import update_schema
from webrag.corpus.writer import clear_attempts, lock_pages
from webrag.errors import InputError
from webrag.frozen import FrozenModel
from webrag.ingestion.addresses import canonical_url, is_file, page_address, site_of
from webrag.postgres.database import Connection, Database


class ForgetReport(FrozenModel):
    """Canonical URLs of the pages that were deleted, and named URLs that are not stored."""

    removed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


# The rows of a page that was loaded with others stand on some hundred disk pages. To pack these for
# the log, as the embedded server does, takes 100 ms; to write them as they are takes 3.
_IMAGES_AS_THEY_ARE = """
select set_config('wal_compression', 'off', true) where current_setting('is_superuser') = 'on'
"""


async def _urls_to_forget(
    database: Database,
    *,
    site: str | None = None,
    fetched_before: datetime | None = None,
    below: str = "",
) -> list[str]:
    rows = await database.fetch(
        "select url from {documents} where (%(site)s::text is null or site = %(site)s)"
        " and (%(before)s::timestamptz is null or fetched_at < %(before)s)"
        " and starts_with(url, %(below)s) order by url",
        {"site": site, "before": fetched_before, "below": below},
    )
    return [url for (url,) in rows]


async def forget_page(
    database: Database, url: str, *, fetched_before: datetime | None = None
) -> bool:
    """Delete a page with everything made from it, or what became of one that never came.

    False when neither is there, or the page is not that old.
    """
    statement = (
        "delete from {documents} where url = %(url)s"
        " and (%(before)s::timestamptz is null or fetched_at < %(before)s)"
        " returning requested_url"
    )

    async def work(connection: Connection) -> bool:
        await lock_pages(connection, [url])
        await connection.execute(_IMAGES_AS_THEY_ARE)
        removed = await connection.fetch(statement, {"url": url, "before": fetched_before})
        if not removed:
            return fetched_before is None and await clear_attempts(connection, [url])
        await clear_attempts(connection, {url, *removed[0]})
        await connection.change("delete from {past_pages} where url = %s", (url,))
        return True

    return await database.run(work)


async def forget(
    database: Database,
    urls: str | Sequence[str] | None = None,
    *,
    site: str | None = None,
    older_than: timedelta | None = None,
    confirm: Callable[[Sequence[str]], bool] | bool | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> ForgetReport:
    """Delete pages, by URL or by conditions, once they are confirmed; as `WebRAG.forget`."""
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
    if urls:
        known = await database.run(lambda connection: find_pages(connection, urls))
        missing = [url for url in urls if url not in known]
        failed = "select url from {page_outcomes} where url = any(%s)"
        found = dict.fromkeys(page.url for page in known.values())
        found |= {url: None for (url,) in await database.fetch(failed, (missing,))}
        unknown = []
        for url in missing:
            if url not in found:
                files = await _urls_to_forget(database, below=f"{url}/") if is_file(url) else []
                found.update(dict.fromkeys(files))
                unknown += [] if files else [url]
        return list(found), tuple(unknown)
    if site is not None:
        site = site_of(canonical_url(site if "://" in site else f"https://{site}/"))
    return await _urls_to_forget(database, site=site, fetched_before=before), ()
