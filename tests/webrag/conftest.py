"""The parts of a corpus, and an embedding server on loopback that speaks OpenAI's protocol."""

import hashlib
import json
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from tests.corpus_fixtures import acquirer as acquirer
from tests.corpus_fixtures import corpus as corpus
from tests.corpus_fixtures import counting_embedding as counting_embedding
from tests.corpus_fixtures import indexer as indexer
from tests.corpus_fixtures import make_document as make_document
from tests.corpus_fixtures import server as server
from tests.corpus_fixtures import site as site
from tests.loopback import QuietHandler, serving

DIMENSIONS = 48


class EmbeddingService:
    """What an OpenAI-compatible server answers, and what it was asked.

    Attributes:
        holds_from: Number of the first request that waits for `held`; None answers all at once.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.requests = 0
        self.url = ""
        self.delay_s = 0.0
        self.holds_from: int | None = None
        self.held = threading.Event()
        self.mutex = threading.Lock()

    def answer(self, body: bytes) -> str:
        asked = json.loads(body)
        texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
        with self.mutex:
            self.requests += 1
            is_held = self.holds_from is not None and self.requests >= self.holds_from
        if is_held:
            self.held.wait(timeout=60)
        time.sleep(self.delay_s)
        with self.mutex:
            self.texts += texts
        data = [
            {"object": "embedding", "index": n, "embedding": vector_of(text)}
            for n, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return json.dumps({"object": "list", "model": asked["model"], "data": data, "usage": usage})


def vector_of(text: str) -> list[float]:
    """Words in common make vectors alike."""
    total = np.zeros(DIMENSIONS)
    for word in text.lower().split():
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
        total += np.random.default_rng(seed).normal(size=DIMENSIONS)
    return (total / (np.linalg.norm(total) or 1.0)).tolist()


@pytest.fixture
def embedding_service() -> Iterator[EmbeddingService]:
    """A running embedding server on loopback; `.url` is its base URL."""
    answers = EmbeddingService()

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            self.send(200, answers.answer(self.read_body()).encode())

    with serving(Handler) as base_url:
        answers.url = f"{base_url}/v1"
        try:
            yield answers
        finally:
            answers.held.set()  # the server's threads are waited for
