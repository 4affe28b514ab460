"""Markdown of every kind, and a small corpus of real pages over real Postgres."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st
from llama_index.node_parser.webrag import ParentChildNodeParser

from webrag.corpus.indexer import Indexer
from webrag.corpus.models import AcquiredPage
from webrag.corpus.pages import Corpus
from webrag.corpus.schema import drop_collection, ensure_schema
from webrag.embedding.bundled import BundledEmbedding
from webrag.embedding.embedder import Embedder
from webrag.ingestion.addresses import content_hash
from webrag.ingestion.models import NormalizedDocument
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database
from webrag.retrieval.models import RetrievalConfig
from webrag.retrieval.search import Searcher

PAGES = {
    "https://docs.test/ports": (
        "Ports",
        """# Ports

The server listens on one port, 5432 by default.

## Changing the port

Set `listen_port` in the configuration file and restart the server. The new port is used for
every connection. Error E0502 means that the port is taken by another process.

| setting | default |
| --- | --- |
| listen_port | 5432 |
| listen_backlog | 128 |
""",
    ),
    "https://docs.test/backup": (
        "Backups",
        """# Backups

A backup copies the whole database while it is in use.

## Restoring

Stop the server, copy the files back and start it again. Restoring takes as long as copying.

```sh
restore --from latest
```
""",
    ),
    "https://other.test/theme": (
        "Themes",
        """# Themes

Colours and fonts of the interface follow the theme. A dark theme is included.
""",
    ),
}


@pytest.fixture(scope="session")
def markdown() -> st.SearchStrategy[str]:
    """Markdown with all kinds of blocks, whole and cut, and arbitrary text."""
    blocks = [
        "# Title\n\n",
        "Some **bold** text, a `code span` and \\*stars\\*. Another sentence, e.g. this one.\n\n",
        "> quoted\n> lines\n\n",
        "- item one\n- item two\n  - nested\n\n",
        "1. step\n2. *other* step\n\n",
        "| a | b |\n|---|---|\n| one | two<br>three |\n\n",
        "```sh\n# not a heading\nls -l\n```\n\n",
        "    indented code\n\n",
        "<div>raw</div>\n\n",
        "```\n",
        "| cut | row |\n",
        "Ünïcode 日本語。次の文。 🙂\r\n",
    ]
    return st.lists(st.sampled_from(blocks) | st.text(max_size=40), max_size=8).map("".join)


class Filled(NamedTuple):
    """How a corpus is filled, by its first user, and searched."""

    add_page: Callable[..., Awaitable[AcquiredPage]]
    make_searcher: Callable[..., Searcher]


@pytest.fixture
def embedder() -> Embedder:
    return bundled()


def bundled() -> Embedder:
    return Embedder(BundledEmbedding(), 256)


@pytest.fixture
async def corpus(database: Database, embedder: Embedder) -> Corpus:
    """An empty corpus."""
    await ensure_schema(
        database, embedding_model=embedder.model_name, embedding_dimensions=embedder.dimensions
    )
    return Corpus(database)


def adding(corpus: Corpus, embedder: Embedder) -> Callable[..., Awaitable[AcquiredPage]]:
    """Indexes a page: `await add("https://a.test/x", "Title", "# Title ...", depth=1)`."""
    parser = ParentChildNodeParser(parent_tokens=90, child_tokens=45)
    indexer = Indexer(corpus, parser, embedder)

    async def add(
        url: str, title: str, markdown: str, *, depth: int = 0, **changes: Any
    ) -> AcquiredPage:
        values: dict[str, Any] = {
            "url": url,
            "requested_url": url,
            "title": title,
            "fetched_at": datetime(2026, 5, 1, tzinfo=UTC),
            "markdown": markdown,
            "content_hash": content_hash(markdown),
            "source": "builtin",
        }
        return await indexer.index(NormalizedDocument(**values | changes), depth=depth)

    return add


@pytest.fixture
def add_page(corpus: Corpus, embedder: Embedder) -> Callable[..., Awaitable[AcquiredPage]]:
    """Indexes a page of the test's own corpus, as `adding` says."""
    return adding(corpus, embedder)


@asynccontextmanager
async def stored_once(postgres_dir: Path) -> AsyncIterator[Filled]:
    """A corpus for several tests that only read it."""
    name = f"test_{uuid.uuid4().hex[:16]}"
    database, embedder = Database(DatabaseConfig(data_dir=postgres_dir, collection=name)), bundled()
    await ensure_schema(
        database, embedding_model=embedder.model_name, embedding_dimensions=embedder.dimensions
    )
    yield Filled(adding(Corpus(database), embedder), searchers(database, embedder))
    await drop_collection(database)
    await database.close()


@pytest.fixture
async def pages(add_page: Callable[..., Awaitable[AcquiredPage]]) -> list[str]:
    """Three pages of two sites; their URLs."""
    for url, (title, text) in PAGES.items():
        await add_page(url, title, text)
    return list(PAGES)


@pytest.fixture
def make_searcher(database: Database, embedder: Embedder) -> Callable[..., Searcher]:
    """Builds a searcher: `make_searcher(context_budget=100)`."""
    return searchers(database, embedder)


def searchers(database: Database, embedder: Embedder) -> Callable[..., Searcher]:
    return lambda **config: Searcher(database, embedder, RetrievalConfig(**config))
