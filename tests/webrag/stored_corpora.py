"""Corpora that an earlier WebRAG made, kept as dumps, and the pages they were made of.

`python -m tests.webrag.stored_corpora` makes the one of the current schema version by migrating the
newest, so that all hold the same text although pages are converted otherwise since; one that exists
is never made again, as what earlier versions wrote is what the test is about. What all of them
answer is written when `expected.json` has been deleted.
"""

import asyncio
import gzip
import json
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from webrag import WebRAG
from webrag.corpus.models import CorpusStatus
from webrag.corpus.schema import SCHEMA_VERSION
from webrag.errors import PageGoneError
from webrag.ingestion.models import FetchedPage
from webrag.postgres.database import Database
from webrag.postgres.embedded.cluster import find_programs
from webrag.postgres.embedded.server import EmbeddedPostgres
from webrag.settings import Settings

DATA = Path(__file__).parent / "data" / "stored_corpora"
EXPECTED = DATA / "expected.json"
SITE = "https://kiln.example"
PAGES = ("/", "/programs", "/wiring", "/log", "/scaling", "/scoring", "/llamaindex")
RECALLED = "/recall"
MISSING = "/missing"
QUESTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("What happens after a power cut?", {}),
    ("How hot does the stoneware program get?", {"has": "table"}),
    ("Which wire of the thermocouple is negative?", {}),
    ("How do I write a program of my own?", {"source_urls": f"{SITE}/programs"}),
    ("How many firings does the log keep and who deletes old ones?", {"top_k": 3}),
    ("What limits how many pages a corpus can hold?", {}),
    ("How is the confidence computed and which thresholds decide?", {}),
    ("How do I use the retriever with LlamaIndex?", {"has": "code"}),
)
_PLACEHOLDER = "stored_corpus"


class KilnSite:
    """The pages as their site delivers them, and those of it that were asked for."""

    name = "kiln"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.gone = {MISSING}

    async def fetch(self, url: str, **_: Any) -> FetchedPage:
        path = urlsplit(url).path
        self.asked.append(path)
        file = DATA / "pages" / f"{path.strip('/') or 'index'}.html"
        if path in self.gone or not file.exists():
            raise PageGoneError("The page does not exist.", url=url, status=404)
        text = file.read_text(encoding="utf-8")
        return FetchedPage(
            requested_url=url,
            url=url,
            status=200,
            kind="html",
            text=text,
            fetched_at=datetime.now(UTC),
            source=self.name,
        )

    async def aclose(self) -> None:
        pass


def dump_of(version: int) -> Path:
    """Where the corpus of a schema version is."""
    return DATA / f"version_{version}.sql.gz"


def dumps() -> list[Path]:
    """The stored corpora, oldest version first; all hold the same pages and answer the same."""
    return [dump_of(version) for version in range(SCHEMA_VERSION + 1) if dump_of(version).exists()]


async def restore(dump: Path, database: Database) -> None:
    """Put a stored corpus where the database's collection is; nothing may be there yet."""
    text = gzip.decompress(dump.read_bytes()).decode()
    statements = text.replace(_PLACEHOLDER, database.config.collection)

    async def work(connection: AsyncConnection[TupleRow]) -> None:
        await connection.execute(statements.encode())

    await database.run(work)


async def answers(rag: WebRAG) -> list[dict[str, Any]]:
    """What a corpus answers to the questions, without what differs from run to run."""
    found = []
    for question, filters in QUESTIONS:
        result = await rag.search(question, **filters)
        scores = {each.chunk.chunk_id: each.reranked_score for each in result.chunks}
        citations = [
            {
                "url": span.source_url,
                "place": [span.char_start, span.char_end],
                "text": span.verbatim_text,
                "score": round(scores[span.chunk_id], 6),
            }
            for span in result.citations
        ]
        found.append(
            {
                "question": question,
                "confidence": round(result.confidence, 6),
                "band": result.confidence_band,
                "citations": citations,
            }
        )
    return found


def counts(status: CorpusStatus) -> dict[str, Any]:
    """The numbers of a status."""
    return status.model_dump(
        include={
            "documents", "gone", "chunks", "tokens", "links", "failed", "outcomes",
            "embedding_model", "embedding_dimensions",
        }
    )  # fmt: skip


async def _make(dump: Path, data_dir: Path) -> None:
    settings = Settings(data_dir=data_dir, collection=_PLACEHOLDER)
    database = Database(settings.database_config())
    try:
        await restore(dumps()[-1], database)
    finally:
        await database.close()
    async with WebRAG(settings, page_source=KilnSite()) as rag:
        expected = {"status": counts(await rag.status()), "answers": await answers(rag)}
        text = await asyncio.to_thread(_dump, data_dir)
    dump.write_bytes(gzip.compress(text.encode(), mtime=0))
    if not EXPECTED.exists():
        found = json.dumps(expected, indent=1, ensure_ascii=False)
        EXPECTED.write_text(found + "\n", encoding="utf-8")


def _dump(data_dir: Path) -> str:
    server = EmbeddedPostgres(data_dir)
    server.ensure()
    try:
        command = [
            *(find_programs() / "pg_dump", server.conninfo, f"--schema={_PLACEHOLDER}"),
            *("--inserts", "--rows-per-insert=200", "--no-owner", "--no-privileges"),
        ]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    finally:
        server.release()
    # Without psql's own commands and the settings of the server it was made with.
    statements = done.stdout[done.stdout.index("CREATE SCHEMA") :]
    return statements[: statements.rindex(";") + 1] + "\n"


def main() -> None:
    """Make the corpus of the current schema version."""
    dump = dump_of(SCHEMA_VERSION)
    if dump.exists():
        raise SystemExit(f"{dump.name} is there already.")
    with tempfile.TemporaryDirectory() as data_dir:
        asyncio.run(_make(dump, Path(data_dir)))


if __name__ == "__main__":
    main()
