"""What the last attempt at each page came to, as steps of a transaction; it opens none.

A URL has at most one row: the page's own, or, while nothing could be stored for it, the failure's.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from psycopg import sql

from webrag.indexing.models import LastOutcome
from webrag.indexing.schema import table
from webrag.indexing.steps import Execute, Steps

__all__ = ["Attempt", "clear_attempts", "note_attempt"]

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
    reason = None if attempt.reason is None else attempt.reason[:_MAX_REASON_CHARS]
    yield Execute(
        sql.SQL(
            """
            insert into {outcomes} (url, outcome, at, reason, status)
            values (%s, %s, %s, %s, %s)
            on conflict (url) do update
            set outcome = excluded.outcome, at = excluded.at, reason = excluded.reason,
                status = excluded.status
            """
        ).format(outcomes=table(collection, "page_outcomes")),
        (url, attempt.outcome, attempt.at, reason, attempt.status),
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
