"""An embedding server on loopback that speaks OpenAI's protocol."""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

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

    def answer(self, body: bytes) -> tuple[int, dict[str, str], str]:
        asked = json.loads(body)
        texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
        with self.mutex:
            self.requests += 1
            is_held = self.holds_from is not None and self.requests >= self.holds_from
        if is_held:
            self.held.wait()
        time.sleep(self.delay_s)
        with self.mutex:
            self.texts += texts
        data = [
            {"object": "embedding", "index": n, "embedding": vector_of(text)}
            for n, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        listed = {"object": "list", "model": asked["model"], "data": data, "usage": usage}
        return 200, {"Content-Type": "application/json", "Connection": "close"}, json.dumps(listed)


def vector_of(text: str) -> list[float]:
    """Words in common make vectors alike."""
    total = sum(map(_word_vector, text.lower().split()), np.zeros(DIMENSIONS))
    return (total / (np.linalg.norm(total) or 1.0)).tolist()


@cache
def _word_vector(word: str) -> Any:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=DIMENSIONS)


@pytest.fixture
def embedding_service(static_site: Callable[..., Any]) -> Iterator[EmbeddingService]:
    """A running embedding server on loopback; `.url` is its base URL."""
    service = EmbeddingService()
    site = static_site({"/v1/embeddings": lambda request: service.answer(request.body)})
    service.url = f"{site}/v1"
    yield service
    service.held.set()
