"""A corpus over real Postgres, small pages, a network, an embedding model that counts its work."""

import asyncio
import hashlib
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding, Embedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.node_parser.webrag import ParentChildNodeParser
from psycopg import sql
from psycopg.conninfo import make_conninfo

from webrag.corpus.acquirer import PageAcquirer
from webrag.corpus.indexer import Indexer
from webrag.corpus.pages import Corpus
from webrag.corpus.schema import ensure_schema
from webrag.embedding.embedder import Embedder
from webrag.ingestion.addresses import content_hash
from webrag.ingestion.models import NormalizedDocument, OutgoingLink
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database
from webrag.postgres.embedded.server import EmbeddedPostgres

DIMENSIONS = 16

GUIDE = """# Storage guide

Welcome to the storage guide. It explains how data is kept.

## Snapshots

A snapshot freezes the volume. Use `--no-snapshot` to turn it off.

| option | default |
| --- | --- |
| max_connections | 100 |

## Replication

Replicas follow the primary. Error E0502 means that a replica lags behind.

```sh
replicate --from primary
```
"""


class CountingEmbedding(BaseEmbedding):
    """Gives every text a vector of its own and remembers the texts it was asked for."""

    _texts: list[str] = PrivateAttr(default_factory=list)
    _mutex: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def texts(self) -> list[str]:
        return self._texts

    def _get_text_embedding(self, text: str) -> Embedding:
        with self._mutex:
            self._texts.append(text)
        return vector_of(text).tolist()

    def _get_query_embedding(self, query: str) -> Embedding:
        return vector_of(query).tolist()

    async def _aget_query_embedding(self, query: str) -> Embedding:
        return self._get_query_embedding(query)


def vector_of(text: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    vector = np.random.default_rng(seed).normal(size=DIMENSIONS)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


@pytest.fixture
def counting_embedding() -> CountingEmbedding:
    return CountingEmbedding(model_name="counting", embed_batch_size=4)


@pytest.fixture
async def corpus(database: Database) -> Corpus:
    await ensure_schema(database, embedding_model="counting", embedding_dimensions=DIMENSIONS)
    return Corpus(database)


@pytest.fixture
def indexer(corpus: Corpus, counting_embedding: CountingEmbedding) -> Indexer:
    parser = ParentChildNodeParser(parent_tokens=60, child_tokens=25)
    return Indexer(corpus, parser, Embedder(counting_embedding, DIMENSIONS))


@pytest.fixture
def make_document() -> Callable[..., NormalizedDocument]:
    """Builds pages: `make_document("https://a.test/x", markdown="...", links=["https://..."])`."""

    def make(
        url: str = "https://docs.test/guide",
        markdown: str = GUIDE,
        links: Sequence[str | OutgoingLink] = (),
        **changes: Any,
    ) -> NormalizedDocument:
        outgoing = tuple(
            OutgoingLink(url=link, anchor_text="see") if isinstance(link, str) else link
            for link in links
        )
        values: dict[str, Any] = {
            "url": url,
            "requested_url": url,
            "title": "Storage guide",
            "fetched_at": datetime(2026, 5, 1, tzinfo=UTC),
            "markdown": markdown,
            "html": "<h1>Storage guide</h1>",
            "links": outgoing,
            "content_hash": content_hash(markdown),
            "source": "builtin",
        }
        return NormalizedDocument(**values | changes)

    return make


class Site:
    """Stands for the network: answers with what it is told and remembers what was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[str, Any]] = []
        self.wants_fresh: list[bool] = []
        self.gate: asyncio.Event | None = None
        self.says: Callable[[], None] = lambda: None

    async def ingest(
        self,
        url: str,
        *,
        validators: Any = None,
        fresh: bool = False,
        on_fetched: Any = None,
        convert: Any = None,
    ) -> Any:
        self.asked.append((url, validators))
        self.wants_fresh.append(fresh)
        if self.gate is not None:
            await self.gate.wait()
        self.says()
        if isinstance(self.answer, Exception):
            raise self.answer
        if on_fetched is not None:
            await on_fetched()
        return self.answer


@pytest.fixture
def site(make_document: Callable[..., NormalizedDocument]) -> Any:
    return Site(make_document(etag='"1"', fetched_at=datetime.now(UTC)))


@pytest.fixture
def acquirer(site: Site, indexer: Indexer, corpus: Corpus) -> Any:
    return PageAcquirer(site, indexer.index, corpus)


class Server:
    """The shared embedded server, reached by a DSN like anybody's."""

    def __init__(self, postgres_dir: Path) -> None:
        self.embedded = EmbeddedPostgres(postgres_dir)
        self.embedded.ensure()
        self.postgres_dir = postgres_dir
        self.name = f"refusing_{uuid.uuid4().hex[:12]}"
        self.role = f"reader_{uuid.uuid4().hex[:12]}"

    def execute(self, *statements: str, dbname: str | None = None) -> None:
        conninfo = make_conninfo(self.embedded.conninfo, **({"dbname": dbname} if dbname else {}))
        with psycopg.connect(conninfo, autocommit=True) as connection:
            for statement in statements:
                connection.execute(sql.SQL(statement))

    def database(self, user: str = "postgres", **changes: float) -> Database:
        url = make_conninfo(self.embedded.conninfo, dbname=self.name, user=user)
        return Database(DatabaseConfig(url=url, data_dir=self.postgres_dir, **changes))


@pytest.fixture
def server(postgres_dir: Path) -> Iterator[Server]:
    """The server with a new, empty database and a role that may do nothing yet."""
    made = Server(postgres_dir)
    made.execute(
        f"create database {made.name} encoding 'UTF8' locale 'C' template template0",
        f"create role {made.role} login",
    )
    yield made
    made.execute(f"drop database {made.name} with (force)", f"drop role {made.role}")
    made.embedded.release()
