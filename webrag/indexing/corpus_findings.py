"""What an examination of a collection came to, and when that is a fault. Does no I/O."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from webrag.errors import WebRAGError
from webrag.indexing.page_check import PageFaults
from webrag.indexing.schema import CorpusMeta
from webrag.indexing.tables import SCHEMA_VERSION

__all__ = [
    "LOADING",
    "Check",
    "CorpusCheck",
    "absent_check",
    "model_check",
    "obstacle_check",
    "page_checks",
    "row_checks",
    "schema_check",
    "tables_check",
]

_Level = Literal["ok", "warn", "fail"]

_REINDEX = "Run `webrag reindex --force`."
_REFRESH = "Run `webrag ingest --refresh` with the URLs named."


class Check(BaseModel):
    """One thing that was examined.

    Attributes:
        name: What.
        level: `ok`, `warn` (works, but somebody should know) or `fail` (results are wrong or slow).
        found: What was found, one sentence.
        remedy: What to do about it; None when nothing need be done.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    level: _Level
    found: str
    remedy: str | None = None


class CorpusCheck(BaseModel):
    """Everything that was examined, in order."""

    model_config = ConfigDict(frozen=True)

    checks: tuple[Check, ...]

    @property
    def is_sound(self) -> bool:
        """Nothing failed."""
        return all(check.level != "fail" for check in self.checks)


LOADING = Check(
    name="indexes",
    level="warn",
    found="A large load is under way or was interrupted: there is no vector index yet, and"
    " searches compare with every chunk.",
    remedy="None needed: the load, or the next command that opens the collection, builds it.",
)
"""While a load has put the index off."""


def obstacle_check(error: WebRAGError) -> Check:
    """What kept the examination from going on."""
    return Check(name="database", level="fail", found=str(error), remedy=error.hint)


def absent_check(collection: str) -> Check:
    """There is no collection."""
    return Check(
        name="collection",
        level="warn",
        found=f"The collection {collection} does not exist yet.",
        remedy="Run `webrag ingest URL`, or name another with --collection.",
    )


def schema_check(meta: CorpusMeta) -> Check:
    """Which version the tables have."""
    model, dimensions = meta.embedding
    found = f"Schema version {meta.version}; vectors of {model} ({dimensions})."
    if meta.version < SCHEMA_VERSION:
        remedy = f"None needed: the next command that uses it brings it to {SCHEMA_VERSION}."
        return Check(name="schema", level="warn", found=found, remedy=remedy)
    return Check(name="schema", level="ok", found=found)


def tables_check(missing: list[str]) -> Check:
    """Some tables are missing."""
    return Check(
        name="tables",
        level="fail",
        found=f"Missing: {', '.join(missing)}.",
        remedy="Restore a backup, or `webrag drop` the collection and fetch its pages again.",
    )


def row_checks(row: Mapping[str, Any], embedding: tuple[str, int]) -> list[Check]:
    """Whether the numbers of rows fit together.

    Args:
        row: Them.
        embedding: Model and dimensions that are recorded.
    """
    counted = "{documents:,} pages, {parents:,} parents, {children:,} chunks.".format(**row)
    embedded = f"{row['children'] - row['unembedded']:,} of {row['children']:,} chunks."
    orphans = f"{row['orphans']:,} chunks without parent, {row['childless']:,} parents without"
    orphans += f" chunk, {row['pageless']:,} rows without page."
    return [
        Check(name="rows", level="ok", found=counted),
        _judged("embeddings", embedded, row["unembedded"], _REINDEX),
        _judged(
            "vector size",
            f"{row['dimensions']} dimensions; {embedding[1]} are recorded.",
            row["dimensions"] != embedding[1],
            _REINDEX,
        ),
        _judged("orphan rows", orphans, row["orphans"] + row["childless"] + row["pageless"]),
        _judged(
            "chunk counts", f"{row['miscounted']:,} pages differ.", row["miscounted"], _REFRESH
        ),
        _judged(
            "lexical index",
            f"{row['wordless']:,} pages without entries.",
            row["wordless"],
            _REFRESH,
        ),
    ]


def _judged(name: str, found: str, is_bad: Any, remedy: str = _REFRESH) -> Check:
    return Check(
        name=name,
        level="fail" if is_bad else "ok",
        found=found,
        remedy=remedy if is_bad else None,
    )


def page_checks(faults: PageFaults) -> list[Check]:
    """Whether the pages that were verified are as they should be."""
    scope = f"{faults.pages:,} of {faults.total:,} pages verified"
    named = {"offsets": faults.offsets, "texts": faults.hashes, "postings": faults.postings}
    return [
        _judged(
            name,
            f"{scope}, {len(urls):,} with faults{_some(urls)}.",
            urls,
        )
        for name, urls in named.items()
    ]


def _some(urls: list[str]) -> str:
    shown = ", ".join(urls[:3])
    return f" ({shown}{', ...' if len(urls) > 3 else ''})" if urls else ""


def model_check(
    embedding: tuple[str, int], wanted: tuple[str, int] | None, unfinished: tuple[str, int] | None
) -> Check:
    """Whether the collection was made with the model that is asked for.

    Args:
        embedding: Model and dimensions that are recorded.
        wanted: Those of the settings; None when they leave it to the corpus.
        unfinished: Those of a reindexing that is not done.
    """
    remedy = "Run `webrag reindex` with the model that is to be used."
    if unfinished is not None:
        found = f"A reindexing to {unfinished[0]} was interrupted, or is under way."
        return Check(name="model", level="warn", found=found, remedy=remedy)
    if wanted is not None and wanted != embedding:
        found = f"The settings ask for {wanted[0]} ({wanted[1]} dimensions)."
        return Check(name="model", level="fail", found=found, remedy=remedy)
    return Check(name="model", level="ok", found="The settings fit the collection.")
