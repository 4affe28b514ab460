"""Chat, embedding and reranking services on one loopback port, as their interfaces are published.

Faults are set per service and stay until they are taken away. `open_requests` counts requests that
have been read but not answered and whose client is still there.
"""

import json
import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.loopback import QuietHandler, serving

_SERVICES = {
    "/v1/chat/completions": "chat",
    "/v1/embeddings": "embeddings",
    "/v1/rerank": "rerank",
}


class FakeServices:
    """What the services answer, and what they were asked.

    Attributes:
        texts: Answers of the chat model, in turn; the last one is repeated.
        faults: Service to an HTTP status, or `slow`, `garbage`, `empty`, `broken`.
        asked: Decoded requests by service.
        vector: Vector of every text.
        delay_s: What an answer takes.
    """

    def __init__(self) -> None:
        self.url = ""
        self.texts: list[str] = []
        self.faults: dict[str, int | str] = {}
        self.asked: dict[str, list[Any]] = {name: [] for name in _SERVICES.values()}
        self.vector: Any = lambda _text: [1.0] * 8
        self.delay_s = 0.0
        self.open_requests = 0
        self.released = threading.Event()
        self.mutex = threading.Lock()

    def answer(self, service: str, body: Any) -> dict[str, Any]:
        if service == "chat":
            turn = min(len(self.asked["chat"]), len(self.texts)) - 1
            message = {"role": "assistant", "content": self.texts[turn]}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return {
                "id": "1",
                "object": "chat.completion",
                "created": 1,
                "model": body["model"],
                "choices": [choice],
            }
        if service == "embeddings":
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            data = [
                {"object": "embedding", "index": n, "embedding": self.vector(text)}
                for n, text in enumerate(texts)
            ]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            return {"object": "list", "model": body["model"], "data": data, "usage": usage}
        results = [
            {"index": n, "relevance_score": 1 / (n + 2)} for n in range(len(body["documents"]))
        ]
        return {"model": body["model"], "usage": {"total_tokens": 1}, "results": results}


@contextmanager
def running_services() -> Iterator[FakeServices]:
    """Run them while the block runs; `url` ends with `/v1`."""
    services = FakeServices()
    with serving(type("Handler", (_Handler,), {"services": services})) as base_url:
        services.url = f"{base_url}/v1"
        try:
            yield services
        finally:
            services.released.set()


class _Handler(QuietHandler):
    services: FakeServices

    def do_POST(self) -> None:
        body = json.loads(self.read_body())
        service = _SERVICES[self.path]
        with self.services.mutex:
            self.services.asked[service].append(body)
            self.services.open_requests += 1
        try:
            self._serve(service, body)
        finally:
            with self.services.mutex:
                self.services.open_requests -= 1

    def _serve(self, service: str, body: Any) -> None:
        fault = self.services.faults.get(service)
        if fault == "slow":
            self._wait_for_the_client_to_leave()
            return
        if fault == "broken":
            self.connection.close()
            return
        if isinstance(fault, int):
            self.send(fault, json.dumps({"error": {"message": "as documented"}}).encode())
            return
        time.sleep(self.services.delay_s)
        strange = {"garbage": "<html>a proxy</html>", "empty": "{}"}
        text = strange.get(str(fault)) or json.dumps(self.services.answer(service, body))
        self.send(200, text.encode())

    def _wait_for_the_client_to_leave(self) -> None:
        while not self.services.released.is_set():
            readable, _, _ = select.select([self.connection], [], [], 0.005)
            if readable and not self.connection.recv(1):
                return
