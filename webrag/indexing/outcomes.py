"""What the last attempt at each page came to, as steps of a transaction; it opens none.

A URL has at most one row: the page's own, or, while nothing could be stored for it, the failure's.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from psycopg import sql

from webrag.indexing.models import LastOutcome
from webrag.indexing.schema import table
from webrag.indexing.steps import Execute, Steps

__all__ = ["Attempt", "clear_attempts", "note_attempt", "note_attempts"]

_MAX_REASON_CHARS = 500


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one attempt at a page came to.

    Attributes:
        reason: Why it failed, or why the page is gone; None otherwise.
        status: HTTP status of the answer, None when there was none.
    """

    outcome: LastOutcome
    at: datetime
    reason: str | None = None
    status: int | None = None


def note_attempt(collection: str, url: str, attempt: Attempt) -> Steps[None]:
    """Remember an attempt in place of the one before."""
    return note_attempts(collection, {url: attempt})


def note_attempts(collection: str, attempts: Mapping[str, Attempt]) -> Steps[None]:
    """Remember the attempts at several pages, by URL, each in place of the one before."""
    rows = [
        (url, each.outcome, each.at, each.reason and each.reason[:_MAX_REASON_CHARS], each.status)
        for url, each in sorted(attempts.items())  # in one order, so that nobody deadlocks
    ]
    yield Execute(
        sql.SQL(
            """
            insert into {outcomes} (url, outcome, at, reason, status)
            select * from unnest(%s::text[], %s::text[], %s::timestamptz[], %s::text[], %s::int[])
            on conflict (url) do update
            set outcome = excluded.outcome, at = excluded.at, reason = excluded.reason,
                status = excluded.status
            """
        ).format(outcomes=table(collection, "page_outcomes")),
        [list(column) for column in zip(*rows, strict=True)],
    )


def clear_attempts(collection: str, urls: Iterable[str]) -> Steps[None]:
    """Forget what came of these URLs: they are known as another page now, or not at all."""
    wanted = sorted(set(urls))
    if wanted:
        yield Execute(
            sql.SQL("delete from {} where url = any(%s)").format(
                table(collection, "page_outcomes")
            ),
            (wanted,),
        )
