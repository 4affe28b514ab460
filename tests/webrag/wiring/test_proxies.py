"""No client of a service uses a proxy that nobody configured for WebRAG, and each can use one."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.postprocessor.webrag import RerankError

from tests.loopback import QuietHandler, serving
from webrag.answering.language_model import ask, stream
from webrag.answering.manager import in_span
from webrag.embedding.bundled import BundledEmbedding
from webrag.errors import ConfigurationError, WebRAGError
from webrag.ingestion.firecrawl.source import FirecrawlSource
from webrag.ingestion.http.fetcher import HttpFetcher
from webrag.settings import Settings, load_settings
from webrag.wiring.components import start_tracing
from webrag.wiring.embeddings import choose_embedding
from webrag.wiring.language_models import choose_language_model
from webrag.wiring.rerankers import choose_reranker

KEY = "sk-canary-0123456789"
VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
# A name that no test can resolve: whoever reaches it did so through a proxy.
FAR = "http://far.test"


class Proxy(list[str]):
    """Targets of the requests that a proxy received; `url` is its address."""

    url = ""


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    received = Proxy()

    class Handler(QuietHandler):
        def _note(self) -> None:
            received.append(f"{self.command} {self.path}")
            self.read_body()
            self.send(400, b"{}")

        do_GET = do_POST = do_PATCH = do_CONNECT = do_HEAD = _note

    with serving(Handler) as base_url:
        received.url = base_url
        yield received


@pytest.fixture(scope="module")
def bundled() -> BundledEmbedding:
    return BundledEmbedding()


async def public_resolver(_host: str, _port: int) -> list[str]:
    return ["93.184.215.14"]


async def scrape(settings: Settings, _: Any) -> None:
    config = settings.firecrawl_config()
    assert config is not None
    source = FirecrawlSource(config, resolver=public_resolver)
    try:
        await source.fetch("https://page.test/")
    finally:
        await source.aclose()


async def batch(settings: Settings, _: Any) -> None:
    config = settings.firecrawl_config()
    assert config is not None
    source = FirecrawlSource(config, resolver=public_resolver)
    await source.fetch_many(["https://page.test/", "https://page.test/2"])
    await source.aclose()


async def map_site(settings: Settings, _: Any) -> None:
    config = settings.firecrawl_config()
    assert config is not None
    source = FirecrawlSource(config, resolver=public_resolver)
    try:
        await source.map("https://page.test/")
    finally:
        await source.aclose()


async def embed(settings: Settings, bundled: Any) -> None:
    async with choose_embedding(settings, None, bundled).load() as model:  # type: ignore[attr-defined]
        model.backoff_s = 0.001
        await model.aget_text_embedding("text")


async def embed_synchronously(settings: Settings, bundled: Any) -> None:
    async with choose_embedding(settings, None, bundled).load() as model:  # type: ignore[attr-defined]
        model.backoff_s = 0.001
        model.get_text_embedding("text")


async def answer(settings: Settings, _: Any) -> None:
    model: Any = choose_language_model(settings)
    model.max_retries = 0
    try:
        await ask(model, [("user", "why?")])
    finally:
        await model._get_aclient().close()


async def answer_streaming(settings: Settings, _: Any) -> None:
    model: Any = choose_language_model(settings)
    model.max_retries = 0
    try:
        async for _piece in stream(model, [("user", "why?")]):
            pass
    finally:
        await model._get_aclient().close()


async def rerank(settings: Settings, bundled: Any) -> None:
    reranker, _ = choose_reranker(settings, bundled)
    assert reranker is not None
    chosen: Any = reranker.model_copy(update={"base_url": FAR, "backoff_s": 0.001})
    await chosen.apostprocess_nodes([NodeWithScore(node=TextNode(text="one"))], query_str="why?")


async def trace(settings: Settings, _: Any) -> None:
    async def step() -> str:
        return "done"

    async with AsyncExitStack() as stack:
        start_tracing(settings, stack)
        await in_span("answer", step)


MODEL = {"orchestration_llm_api_key": KEY, "orchestration_llm_base_url": f"{FAR}/v1"}
Use = Callable[[Settings, Any], Awaitable[None]]
CLIENTS: dict[str, tuple[Use, dict[str, Any]]] = {
    "firecrawl scrape": (scrape, {"firecrawl_api_key": KEY, "firecrawl_api_url": FAR}),
    "firecrawl batch": (batch, {"firecrawl_api_key": KEY, "firecrawl_api_url": FAR}),
    "firecrawl map": (map_site, {"firecrawl_api_key": KEY, "firecrawl_api_url": FAR}),
    "embedding": (
        embed,
        {
            "embedding_provider": "openai",
            "embedding_api_key": KEY,
            "embedding_base_url": f"{FAR}/v1",
        },
    ),
    "embedding, synchronous": (
        embed_synchronously,
        {
            "embedding_provider": "openai",
            "embedding_api_key": KEY,
            "embedding_base_url": f"{FAR}/v1",
        },
    ),
    "answers": (answer, MODEL),
    "question analysis": (
        answer_streaming,
        MODEL,
    ),
    "zeroentropy": (rerank, {"zeroentropy_api_key": KEY, "reranker_provider": "zeroentropy"}),
    "cohere": (rerank, {"cohere_api_key": KEY, "reranker_provider": "cohere"}),
    "jina": (rerank, {"jina_api_key": KEY, "reranker_provider": "jina"}),
    "langsmith": (
        trace,
        {"tracing": "langsmith", "langsmith_api_key": KEY, "langsmith_endpoint": FAR},
    ),
    "opentelemetry": (trace, {"tracing": "opentelemetry", "otel_exporter_otlp_endpoint": FAR}),
}
EVERY_CLIENT = pytest.mark.parametrize("client", CLIENTS)


async def use(client: str, bundled: BundledEmbedding, **settings: Any) -> None:
    """Use it, whatever comes of it: nobody answers properly here."""
    work, own = CLIENTS[client]
    made = load_settings(**own, **settings)
    with suppress(WebRAGError, RerankError):
        await work(made, bundled)


def set_variables(monkeypatch: pytest.MonkeyPatch, proxy: Proxy) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, proxy.url)


@EVERY_CLIENT
async def test_proxy_of_the_environment_gets_nothing(
    client: str, proxy: Proxy, bundled: BundledEmbedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_variables(monkeypatch, proxy)

    await use(client, bundled)

    assert proxy == []


@EVERY_CLIENT
async def test_proxy_of_the_environment_is_used_when_that_is_set(
    client: str, proxy: Proxy, bundled: BundledEmbedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_variables(monkeypatch, proxy)

    await use(client, bundled, proxy="environment")

    assert any(FAR in target for target in proxy)


@EVERY_CLIENT
async def test_proxy_that_is_set_is_used(
    client: str, proxy: Proxy, bundled: BundledEmbedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    await use(client, bundled, proxy=proxy.url)

    assert any(FAR in target for target in proxy)


async def test_server_on_this_machine_is_asked_without_the_proxy(
    proxy: Proxy, bundled: BundledEmbedding
) -> None:
    settings = load_settings(
        proxy=proxy.url,
        embedding_provider="openai",
        embedding_api_key=KEY,
        embedding_base_url="http://127.0.0.1:9/v1",
    )

    with pytest.raises(WebRAGError, match="could not be reached"):
        await embed(settings, bundled)

    assert proxy == []


@pytest.mark.parametrize("chosen", [None, "environment", "url"])
async def test_pages_are_fetched_directly_whatever_is_set(
    chosen: str | None, proxy: Proxy, static_site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_variables(monkeypatch, proxy)
    site = static_site({"/": "<h1>Page</h1><p>Text.</p>"})
    host = site.url.removeprefix("http://")
    settings = load_settings(allow_hosts=host, proxy=proxy.url if chosen == "url" else chosen)
    fetcher = HttpFetcher(settings.fetch_config())

    page = await fetcher.fetch(site.url + "/")
    await fetcher.aclose()

    assert "Page" in page.text
    assert proxy == []


@pytest.mark.parametrize(
    "value", ["socks5://proxy.test:1", "proxy.test:3128", "env", "http://", "http://p.test:x"]
)
def test_unusable_proxy_is_refused(value: str) -> None:
    with pytest.raises(ConfigurationError, match="must be `environment`, or a URL"):
        load_settings(proxy=value)


def test_password_of_a_proxy_is_not_shown() -> None:
    settings = load_settings(proxy="http://me:hunter2hunter2@proxy.test:3128")

    assert settings.shown("proxy") == "http://me:********@proxy.test:3128"
    assert "hunter2" not in repr(settings)
