"""Six providers behind their real clients, and a server on loopback that fails in many ways."""

import base64
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.postprocessor.webrag import CohereRerank, JinaRerank, ZeroEntropyRerank

from tests.loopback import QuietHandler, serving
from webrag.answering.language_model import ask
from webrag.embedding.embedder import Embedder, EmbeddingLimits
from webrag.embedding.served import ServedEmbedding
from webrag.ingestion.firecrawl.source import FirecrawlSource
from webrag.ingestion.models import FirecrawlConfig
from webrag.wiring.served_language_model import ServedLanguageModel

KEY = "sk-canary-A7b/9Zq+4Lm2=Rt6Yh8Wx3"
REFUSED = "refused connection"
# Port 9 discards, where it is open at all.
NOBODY = "http://127.0.0.1:9"
_SLOW_S = 1.5


def echoes(key: str = KEY) -> str:
    """What a service that repeats the key may say."""
    basic = base64.b64encode(f"user:{key}".encode()).decode()
    return (
        f"key {key}, Authorization: Bearer {key}, Basic {basic}, ?key={quote(key, safe='')}, "
        f"{key[:7]}***{key[-4:]}, {key[:12]}, {base64.b64encode(key.encode()).decode()}"
    )


Fault = Callable[[QuietHandler], None]


def _status(status: int, **headers: str) -> Fault:
    said = json.dumps({"success": False, "error": {"message": echoes()}, "detail": echoes()})
    given = {"Content-Type": "application/json", "X-Echo": quote(echoes()), **headers}
    return lambda handler: handler.send(status, said.encode(), given)


def _body(body: str | bytes) -> Fault:
    data = body.encode() if isinstance(body, str) else body
    return lambda handler: handler.send(200, data)


def _reset(handler: QuietHandler) -> None:
    handler.close_connection = True
    handler.connection.close()


def _slow_headers(handler: QuietHandler) -> None:
    time.sleep(_SLOW_S)
    _reset(handler)


def _slow_body(handler: QuietHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(15):
        handler.wfile.write(b" ")
        time.sleep(_SLOW_S / 15)


FAULTS: dict[str, Fault] = {
    REFUSED: _reset,  # nobody is asked
    "reset": _reset,
    "slow headers": _slow_headers,
    "slow body": _slow_body,
    "401": _status(401),
    "403": _status(403),
    "429 with Retry-After": _status(429, **{"Retry-After": "60"}),
    "429 without": _status(429),
    "500": _status(500),
    "malformed JSON": _body(f"<html>{echoes()}</html>"),
    "truncated JSON": _body('{"success": true, "results": [{"index": 0, "relev'),
    "wrong shape": _body(json.dumps({"unexpected": echoes()})),
    "huge body": _body(b'{"error": "' + b"x" * 20_000_000),
}


@contextmanager
def faulty_server(fault: Fault) -> Iterator[str]:
    """A server that has nothing else to give."""

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            self.read_body()
            try:
                fault(self)
            except OSError:  # the client has gone
                self.close_connection = True

        do_GET = do_DELETE = do_POST

    with serving(Handler) as url:
        yield url


async def _public(_host: str, _port: int) -> list[str]:
    return ["93.184.215.14"]


async def _firecrawl(url: str, timeout_s: float) -> str:
    config: dict[str, Any] = {"api_url": url, "api_key": KEY, "timeout_s": timeout_s}
    source = FirecrawlSource(FirecrawlConfig(**config, backoff_s=0.01), resolver=_public)
    try:
        return (await source.fetch("https://page.test/")).text
    finally:
        await source.aclose()


async def _embedding(url: str, timeout_s: float) -> str:
    model = ServedEmbedding(
        "m", api_key=KEY, api_base=f"{url}/v1", timeout=timeout_s / 2, backoff_s=0.01
    )
    async with model:
        limits = EmbeddingLimits(timeout_s=timeout_s)
        return str(await Embedder(model, 2, limits=limits).embed_documents(["text"]))


async def _language_model(url: str, timeout_s: float) -> str:
    model: Any = ServedLanguageModel(
        model="m",
        api_base=f"{url}/v1",
        api_key=KEY,
        is_chat_model=True,
        max_retries=0,
        timeout=timeout_s / 2,
    )
    try:
        return await ask(model, [("user", "why?")])
    finally:
        await model._get_aclient().close()


def _reranker(kind: type[BaseNodePostprocessor]) -> Callable[[str, float], Awaitable[str]]:
    async def rerank(url: str, timeout_s: float) -> str:
        reranker = kind(api_key=KEY, base_url=url, timeout_s=timeout_s, backoff_s=0.01)
        nodes = [NodeWithScore(node=TextNode(text=text)) for text in ("one", "two")]
        return str(await reranker.apostprocess_nodes(nodes, query_str="why?"))

    return rerank


PROVIDERS: dict[str, Callable[[str, float], Awaitable[str]]] = {
    "firecrawl": _firecrawl,
    "embedding": _embedding,
    "language model": _language_model,
    "zeroentropy": _reranker(ZeroEntropyRerank),
    "cohere": _reranker(CohereRerank),
    "jina": _reranker(JinaRerank),
}
