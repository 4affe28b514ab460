"""The address of a Postgres, the collection in it, and limits. No I/O here."""

import re
from pathlib import Path

from pydantic import Field

from webrag.errors import ConfigurationError
from webrag.frozen import FrozenModel, Seconds


class DatabaseConfig(FrozenModel):
    """A collection in a Postgres, and how much it may be asked for."""

    url: str | None = Field(
        default=None,
        description="`postgresql://` DSN of a server of the user's own; None starts the embedded"
        " one.",
    )
    data_dir: Path = Field(description="Folder of the embedded server's files.")
    collection: str = Field(
        default="webrag", description="Corpus to work on; each collection is a schema of its own."
    )
    pool_max_size: int = Field(
        default=10, ge=1, le=100, description="Connections kept at most per event loop."
    )
    acquire_timeout_s: Seconds = Field(
        default=10.0, description="Longest wait for a free database connection."
    )
    statement_timeout_s: Seconds = Field(
        default=60.0,
        description="Longest time of one read or write, half of it waiting for others; what the"
        " server sets for the user or the database wins.",
    )


_COLLECTION_NAME = re.compile(r"(?!pg_|public\Z|information_schema\Z)[a-z_][a-z0-9_]{0,47}")


def check_collection_name(collection: str) -> str:
    """The name itself when it can be a schema of ours; else it is refused."""
    if _COLLECTION_NAME.fullmatch(collection) is None:
        raise ConfigurationError(
            f"WEBRAG_COLLECTION is {collection!r}; allowed are 1 to 48 lower-case letters, digits"
            " and underscores, not starting with a digit or `pg_`, and not `public`."
        )
    return collection
