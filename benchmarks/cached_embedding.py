"""Vectors of the embedding that the settings choose, kept in a file so that runs can share them."""

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from numpy.typing import NDArray

from webrag.embedding.bundled import BundledEmbedding
from webrag.settings import load_settings
from webrag.wiring.embeddings import as_llamaindex, choose_embedding

BATCH = 32
EmbedWith = Callable[[BaseEmbedding], Callable[[list[str]], Sequence[object]]]


class CachedEmbedding:
    """The model of `EMBEDDING_PROVIDER` and `EMBEDDING_MODEL`; asks it for each text once."""

    def __init__(self, file: Path) -> None:
        self._choice = choose_embedding(load_settings(), None, BundledEmbedding())
        self._file = file
        self._model: BaseEmbedding | None = None
        self.name = self._choice.name
        self.dimensions = self._choice.dimensions
        with closing(self._open()) as database, database:
            database.execute("create table if not exists vectors (key blob primary key, v blob)")

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of passages, of length 1."""
        return self._vectors("text", texts, lambda model: model.get_text_embedding_batch)

    def encode_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of questions, of length 1; some models want other words before them."""
        return self._vectors("query", texts, lambda model: model.get_agg_embedding_from_queries)

    def _vectors(
        self, kind: str, texts: Sequence[str], embed_with: EmbedWith
    ) -> NDArray[np.float32]:
        keys = [
            hashlib.blake2b(f"{self.name}\0{kind}\0{text}".encode(), digest_size=16).digest()
            for text in texts
        ]
        known = self._known(keys)
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        # Texts of one length are embedded together: a batch takes as long as its longest text.
        waiting = sorted(new, key=lambda key: len(new[key]))
        step = BATCH if kind == "text" else 1
        for start in range(0, len(waiting), step):
            batch = waiting[start : start + step]
            known |= self._embed(batch, [new[key] for key in batch], embed_with)
        found = np.stack([known[key] for key in keys])
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return np.asarray(found / np.maximum(lengths, 1e-12), np.float32)

    def _embed(
        self,
        keys: Sequence[bytes],
        texts: list[str],
        embed_with: EmbedWith,
    ) -> dict[bytes, NDArray[np.float32]]:
        if self._model is None:
            self._model = as_llamaindex(self._choice.load())
            self._model.embed_batch_size = BATCH
        found = np.asarray(embed_with(self._model)(texts), np.float32).reshape(len(texts), -1)
        with closing(self._open()) as database, database:
            rows = [(key, row.tobytes()) for key, row in zip(keys, found, strict=True)]
            database.executemany("insert or replace into vectors values (?, ?)", rows)
        return dict(zip(keys, found, strict=True))

    def _known(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        with closing(self._open()) as database:
            rows = (
                database.execute("select v from vectors where key = ?", [key]).fetchone()
                for key in keys
            )
            return {
                key: np.frombuffer(row[0], np.float32)
                for key, row in zip(keys, rows, strict=True)
                if row is not None
            }

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._file, timeout=60)
