"""How long one statement may take and wait for a lock, and which work is exempt."""

from typing import Any

from psycopg import AsyncConnection

__all__ = ["LIMIT_SESSION", "lift_timeouts", "session_limits"]

# What the user's own role, database or DSN sets is kept.
LIMIT_SESSION = """
select set_config(name, given, false)
from (values ('statement_timeout', %s), ('lock_timeout', %s)) as wanted (name, given)
where current_setting(name) = '0'
"""


def session_limits(statement_timeout_s: float) -> tuple[str, str]:
    """Values of `LIMIT_SESSION`; a lock is waited for half as long as a statement may take."""
    return f"{statement_timeout_s * 1000:.0f}ms", f"{statement_timeout_s * 500:.0f}ms"


async def lift_timeouts(connection: AsyncConnection[Any]) -> None:
    """Let the rest of this transaction take its time.

    For what is as long as the corpus is large, and is asked for by a person: migrations, index
    builds, checks, and waiting for another process that does one of them.
    """
    await connection.execute(
        "select set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true)"
    )
