"""Which Postgres to use and how: address, collection, limits. No I/O here."""

import re
from pathlib import Path

from pydantic import Field

from webrag.errors import ConfigurationError
from webrag.frozen import FrozenModel


class DatabaseConfig(FrozenModel):
    """Which Postgres to use and how.

    Attributes:
        url: `postgresql://` DSN of a server of the user's own; None starts the embedded one.
        data_dir: Where the embedded server keeps its files.
        collection: Schema name; one corpus per collection.
        pool_min_size: Connections kept open per event loop.
        pool_max_size: Connections at most per event loop.
        acquire_timeout_s: Longest wait for a free connection.
        statement_timeout_s: Longest time of one statement, half of it waiting for a lock; what
            the server sets for this user or database wins.
    """

    url: str | None = None
    data_dir: Path
    collection: str = "webrag"
    pool_min_size: int = Field(default=1, ge=1)
    pool_max_size: int = Field(default=10, ge=1)
    acquire_timeout_s: float = Field(default=10.0, gt=0)
    statement_timeout_s: float = Field(default=60.0, gt=0)


_COLLECTION_NAME = re.compile(r"[a-z_][a-z0-9_]{0,47}")

_RESERVED = frozenset({"public", "information_schema"})


def check_collection_name(collection: str) -> str:
    """The name itself when it can be a schema of ours.

    Raises:
        ConfigurationError: It cannot.
    """
    valid = _COLLECTION_NAME.fullmatch(collection) is not None
    if not valid or collection in _RESERVED or collection.startswith("pg_"):
        raise ConfigurationError(
            f"WEBRAG_COLLECTION is {collection!r}; allowed are 1 to 48 lower-case letters, digits"
            " and underscores, not starting with a digit or `pg_`, and not `public`."
        )
    return collection
