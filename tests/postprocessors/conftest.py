"""A server on loopback that speaks the published interfaces of the reranking services."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.postprocessor.webrag import (
    CohereRerank,
    JinaRerank,
    RemoteRerank,
    ZeroEntropyRerank,
)

KEY = "key-0123456789"
PROVIDERS: dict[str, tuple[type[RemoteRerank], str]] = {
    "zeroentropy": (ZeroEntropyRerank, "/v1"),
    "cohere": (CohereRerank, ""),
    "jina": (JinaRerank, "/v1"),
}
# Fields a request may have, and those it must have, by path.
_FIELDS = {
    "/v1/models/rerank": (
        {"model", "query", "documents"},
        {"top_n", "latency"},
    ),
    "/v2/rerank": ({"model", "query", "documents"}, {"top_n", "max_tokens_per_doc", "priority"}),
    "/v1/rerank": ({"model", "query", "documents"}, {"top_n", "return_documents"}),
}


class Asked(NamedTuple):
    """A request the server received; header names are lower case, the client is its port."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    client: int


Fault = tuple[int, dict[str, str], bytes] | Callable[[BaseHTTPRequestHandler], None]


class RerankServer:
    """Answers as the services do; `faults` come first, one for each request."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.faults: list[Fault] = []
        self.asked: list[Asked] = []
        self.confidence: float | None = None

    def rerank(self, provider: str, **fields: Any) -> RemoteRerank:
        """A reranker of this provider that asks this server and hardly waits."""
        kind, prefix = PROVIDERS[provider]
        settings = {"api_key": KEY, "base_url": self.url + prefix, "backoff_s": 0.01, **fields}
        return kind(**settings)

    def fail(self, *statuses: int, headers: dict[str, str] | None = None) -> None:
        """Answer the next requests with these statuses."""
        for status in statuses:
            self.faults.append((status, headers or {}, b'{"message": "as documented"}'))

    def answer(self, body: bytes | str | dict[str, Any]) -> None:
        """Answer the next request with this body and status 200."""
        if isinstance(body, dict):
            body = json.dumps(body)
        self.faults.append((200, {}, body.encode() if isinstance(body, str) else body))

    def respond(self, asked: Asked) -> tuple[int, dict[str, str], bytes]:
        if asked.path not in _FIELDS:
            return 404, {}, b'{"message": "404 page not found"}'
        if asked.headers.get("authorization") != f"Bearer {KEY}":
            return 401, {}, b'{"message": "invalid api token"}'
        needed, optional = _FIELDS[asked.path]
        if not needed <= asked.body.keys() <= needed | optional:
            return 422, {}, b'{"message": "unexpected fields"}'
        if not asked.body["documents"] or not all(d.strip() for d in asked.body["documents"]):
            return 400, {}, b'{"message": "document at index 0 cannot be empty"}'
        return 200, {}, json.dumps({"results": self._results(asked.body)}).encode()

    def _results(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        extra = {} if self.confidence is None else {"confidence": self.confidence}
        results = [
            {"index": index, "relevance_score": relevance(text), **extra}
            for index, text in enumerate(body["documents"])
        ]
        results.sort(key=lambda result: -result["relevance_score"])
        return results[: body.get("top_n")]


def relevance(text: str) -> float:
    """What the server thinks of a text: the number in it as hundredths."""
    found = re.search(r"\d+", text)
    return int(found[0]) / 100 if found else 0.0


@pytest.fixture
def rerank_server() -> Iterator[RerankServer]:
    """A running server; it and all its connections are closed after the test."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.path, headers, json.loads(body), self.client_address[1])
            server.asked.append(asked)
            fault = server.faults.pop(0) if server.faults else server.respond(asked)
            if callable(fault):
                fault(self)
                self.close_connection = True
            else:
                self.send(*fault)

        def send(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep the test output quiet."""

    class Server(ThreadingHTTPServer):
        daemon_threads = False

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that went away is part of some tests."""

    http = Server(("127.0.0.1", 0), Handler)
    server = RerankServer(f"http://127.0.0.1:{http.server_port}")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    http.shutdown()
    http.server_close()
    thread.join()


def node(text: str, score: float | None = 0.5, **metadata: Any) -> NodeWithScore:
    return NodeWithScore(node=TextNode(text=text, metadata=metadata), score=score)


def texts(nodes: list[NodeWithScore]) -> list[str]:
    return [item.node.get_content() for item in nodes]
