"""A corpus over real Postgres, small pages, and an embedding model that counts its work."""

import hashlib
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding, Embedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.node_parser.webrag import ParentChildNodeParser

from webrag.indexing.corpus import Corpus
from webrag.indexing.database import Database
from webrag.indexing.embedder import Embedder
from webrag.indexing.indexer import Indexer
from webrag.indexing.schema import ensure_schema
from webrag.ingestion.links import content_hash
from webrag.ingestion.models import NormalizedDocument, OutgoingLink

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
