"""Every setting changes something: one row for each, and a row is two lines long.

A row names a setting, two of its values and what differs. `asked`, `explored`, `fetched` and their
like run the product; `built` looks at the object that the wiring makes, for settings whose effect
would take long to show and is tested with the module that reads it.
"""

import ast
import asyncio
import gzip
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
import pytest_asyncio
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.postprocessor.webrag.local_scoring import CrossEncoderScorer
from llama_index_instrumentation import root_dispatcher
from mcp import Client
from pydantic import BaseModel, SecretStr

from tests.webrag.stored_corpora import PAGES, SITE, KilnSite, dumps, restore
from tests.webrag.wiring.tiny_bert import write_cross_encoder
from webrag import WebRAG
from webrag.answering.models import AnswerConfig
from webrag.corpus.schema import drop_collection
from webrag.embedding.bundled import BundledEmbedding
from webrag.errors import ConfigurationError, DeadlineError, PageGoneError, WebRAGError
from webrag.ingestion.addresses import file_url
from webrag.ingestion.browser import BrowserRenderer
from webrag.ingestion.fetch_context import received
from webrag.ingestion.files.source import FileAccess
from webrag.ingestion.http.fetcher import HttpFetcher
from webrag.ingestion.models import FetchConfig, FetchedPage, FirecrawlConfig, MappedLink
from webrag.mcp_server.authorization.gate import authorize
from webrag.mcp_server.http_server import http_app
from webrag.mcp_server.request_checks import allowed_names
from webrag.mcp_server.runtime import Runtime
from webrag.mcp_server.server import assemble_server, serve
from webrag.orchestration.confidence import LOCAL, quality
from webrag.orchestration.models import ExpansionConfig, OrchestrationConfig, OrchestrationResult
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database
from webrag.presentation.brief.models import BriefConfig
from webrag.retrieval.citation_checks import Citation
from webrag.retrieval.models import RetrievalConfig
from webrag.settings import Settings
from webrag.wiring.components import start_tracing
from webrag.wiring.embeddings import choose_embedding, choose_tokenizer
from webrag.wiring.language_models import choose_language_model
from webrag.wiring.page_sources import (
    builtin_source,
    choose_logins,
    choose_page_source,
    choose_renderer,
)
from webrag.wiring.rerankers import choose_reranker

ROOT = Path(__file__).parents[2]
QUESTION = "How is the confidence computed and which thresholds decide?"
KEY = "secret-key-of-a-test"
CONFIGS = (
    AnswerConfig,
    BriefConfig,
    DatabaseConfig,
    ExpansionConfig,
    FetchConfig,
    FirecrawlConfig,
    OrchestrationConfig,
    RetrievalConfig,
)


class FallingScores(BaseNodePostprocessor):
    """Scores passages from .6 downwards in the order they come, each with a confidence of .5."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        del query_bundle
        for place, item in enumerate(nodes):
            item.node.metadata["confidence"] = 0.5
            item.score = max(0.6 - 0.06 * place, 0.0)
        return nodes


def page(words: str, *links: tuple[str, str]) -> str:
    anchors = " ".join(f'<a href="{url}">{text}</a>' for url, text in links)
    return (
        f"<html><head><title>{words}</title></head><body><main><h1>{words}</h1><p>This page is"
        f" about {words}, told at some length so that it counts. {anchors}</p></main></body></html>"
    )


START = "https://links.example/"
LINKED = {
    START: page(
        "glazes",
        ("/one", "Celadon glaze recipes"),
        ("/five", "Tin glaze"),
        ("/two", "Shino glaze"),
        ("/three", "Ash glaze"),
        ("/four", "Salt glaze"),
        ("https://other.example/celadon", "Celadon glaze, elsewhere"),
    ),
    **{f"{START}{name}": page(name) for name in ("one", "two", "three", "five")},
    f"{START}four": page("four"),
    "https://other.example/celadon": page("celadon"),
}


class LinkedSite:
    """Pages with links among them; lists its pages like a mapping service, too."""

    name = "linked"

    def __init__(self) -> None:
        self.limits: list[int] = []

    async def fetch(self, url: str, **_: Any) -> FetchedPage:
        if url not in LINKED:
            raise PageGoneError("The page does not exist.", url=url, status=404)
        received(len(LINKED[url]))
        return FetchedPage(
            requested_url=url, url=url, status=200, kind="html", text=LINKED[url],
            fetched_at=datetime.now(UTC), source=self.name,
        )  # fmt: skip

    async def map(self, _url: str, *, limit: int = 100, **_: Any) -> list[MappedLink]:
        self.limits.append(limit)
        return []

    async def aclose(self) -> None:
        pass


class ChangingSite:
    """A page that says something else each time it is asked for."""

    name = "changing"

    def __init__(self) -> None:
        self.times = 0

    async def fetch(self, url: str, **_: Any) -> FetchedPage:
        self.times += 1
        text = f"<title>Kiln</title><main><p>{FIRED.format(self.times)}</p></main>"
        return FetchedPage(
            requested_url=url, url=url, status=200, kind="html", text=text,
            fetched_at=datetime.now(UTC), source=self.name,
        )  # fmt: skip

    async def aclose(self) -> None:
        pass


FIRED = "The kiln is fired for {} hours at a time."
CELADON = "Which celadon glaze recipes are there?"
# No rule but the one that follows links before it tries anything else.
CURIOUS = {
    "token_budget_saturation_ratio": 0.0001, "redundancy_ceiling": 0.0,
    "score_thresholds": {"confidence_floor": 1.0, "score_cliff_threshold": 1.0,
                         "answered_score": 1.0, "plateau_variance_threshold": 0.0},
}  # fmt: skip


class Lab:
    """A stored corpus that nobody changes, one of the test's own, an empty one, and web servers."""

    def __init__(
        self, database: Database, collection_kept: str, static_site: Callable[..., Any]
    ) -> None:
        self.database = database
        self.collection_kept = collection_kept
        self.serve = static_site

    @asynccontextmanager
    async def kept(self, settings: Settings, **parts: Any) -> AsyncIterator[WebRAG]:
        searched = settings.model_copy(update={"collection": self.collection_kept})
        async with WebRAG(searched, page_source=KilnSite(), **parts) as rag:
            yield rag

    @asynccontextmanager
    async def stored(self, settings: Settings, **parts: Any) -> AsyncIterator[WebRAG]:
        await restore(dumps()[-1], self.database)
        async with self._opened(settings, KilnSite(), parts) as rag:
            yield rag

    @asynccontextmanager
    async def empty(self, settings: Settings, source: Any) -> AsyncIterator[WebRAG]:
        async with self._opened(settings, source, {"reranker": FallingScores()}) as rag:
            yield rag

    @asynccontextmanager
    async def _opened(
        self, settings: Settings, source: Any, parts: dict[str, Any]
    ) -> AsyncIterator[WebRAG]:
        async with WebRAG(settings, page_source=source, **parts) as rag:
            yield rag
            await rag.drop_collection()


Observe = Callable[[Lab, Settings], Awaitable[Any]]


class Row(NamedTuple):
    """One setting, two values, how to see what differs, and what else is set."""

    setting: str
    values: tuple[Any, Any]
    observe: Observe
    also: Mapping[str, Any] = MappingProxyType({})


def built(make: Callable[[Settings], Any]) -> Observe:
    async def observe(_: Lab, settings: Settings) -> Any:
        return await asyncio.to_thread(make, settings)

    return observe


def asked(look: Callable[[OrchestrationResult], Any], **options: Any) -> Observe:
    """A search in the stored corpus, with the scores of `FallingScores`."""

    async def observe(lab: Lab, settings: Settings) -> Any:
        reranker = FallingScores()
        async with lab.kept(settings, reranker=reranker, score_profile="local") as rag:
            return look(await rag.search(QUESTION, **options))

    return observe


def retrieved(look: Callable[[list[Any]], Any], *, depth: int = 0) -> Observe:
    """Retrieval alone from the stored corpus, whose pages are this far from a named one."""

    async def observe(lab: Lab, settings: Settings) -> Any:
        async with lab.stored(settings) if depth else lab.kept(settings) as rag:
            if depth:
                statement = f"update {settings.collection}.documents set depth = {depth}"
                await lab.database.run(lambda connection: connection.execute(statement.encode()))
            return look(await rag.retriever().aretrieve(QUESTION))

    return observe


def decided(look: Callable[[OrchestrationResult], Any]) -> Observe:
    """A deep answer from stored pages."""

    async def observe(lab: Lab, settings: Settings) -> Any:
        reranker = FallingScores()
        async with lab.stored(settings, reranker=reranker, score_profile="local") as rag:
            urls = [SITE + path for path in PAGES]
            return look(await rag.answer(urls, QUESTION, research_mode="deep"))

    return observe


def explored(look: Callable[[OrchestrationResult], Any]) -> Observe:
    """A deep answer that begins with an empty corpus and follows links."""

    async def observe(lab: Lab, settings: Settings) -> Any:
        async with lab.empty(settings.model_copy(update=CURIOUS), LinkedSite()) as rag:
            return look(await rag.answer(START, CELADON, research_mode="deep"))

    return observe


async def map_limits(lab: Lab, settings: Settings) -> Any:
    site = LinkedSite()
    async with lab.empty(settings.model_copy(update=CURIOUS), site) as rag:
        await rag.answer(START, CELADON, research_mode="deep")
    return site.limits


async def readable_file(_: Lab, settings: Settings) -> Any:
    """Whether a server, which takes no names, may read this file."""
    access = FileAccess(map(Path, settings.allow_dirs), takes_names=False)
    try:
        return str(access.resolve(file_url(Path(__file__))))
    except WebRAGError as error:
        return type(error).__name__


HEADERS = SecretStr('{"wiki.example": {"X-Key": "t0ken-9876543210"}}')


async def served_login(_: Lab, settings: Settings) -> Any:
    """What a server, whose callers are others, sends to a host that has a login."""
    logins = choose_logins(settings, is_own_user=False)
    return logins.headers_for("https://wiki.example/")


def fetched(path: str = "/", *, look: str = "outcome", local: bool = True) -> Observe:
    """A fetch of the built-in fetcher from a site with a page of each kind."""

    async def observe(lab: Lab, settings: Settings) -> Any:
        site = lab.serve(
            {
                "/": page("plain"),
                "/hop": lambda _: (302, {"Location": "/hop2"}, ""),
                "/hop2": lambda _: (302, {"Location": "/"}, ""),
                "/slow": lambda _: time.sleep(0.4) or (200, {"Content-Type": "text/html"}, "slow"),
                "/long": page("long " * 2_000),
                "/packed": lambda _: (
                    200,
                    {"Content-Type": "text/html", "Content-Encoding": "gzip"},
                    gzip.compress(page("packed " * 2_000).encode()),
                ),
            }
        )
        own = settings.allowing([urlsplit(site).netloc]) if local else settings
        fetcher = HttpFetcher(own.fetch_config())
        try:
            outcome = (await fetcher.fetch(site + path)).text[:20]
        except WebRAGError as error:
            outcome = type(error).__name__
        finally:
            await fetcher.aclose()
        return outcome if look == "outcome" else [each.headers[look] for each in site.requests]

    return observe


class TwoVersions(LinkedSite):
    """A page with a Markdown version beside it."""

    async def fetch(self, url: str, **_: Any) -> FetchedPage:
        link = '<link rel="alternate" type="text/markdown" href="/page.md"></head>'
        is_markdown = url.endswith(".md")
        return FetchedPage(
            requested_url=url, url=url, status=200, kind="markdown" if is_markdown else "html",
            text="# Page\n\nThe version in Markdown is about glazes, told at some length."
            if is_markdown else page("glazes").replace("</head>", link),
            fetched_at=datetime.now(UTC), source=self.name,
        )  # fmt: skip


async def read_text(lab: Lab, settings: Settings) -> Any:
    async with lab.empty(settings, TwoVersions()) as rag:
        await rag.ingest(f"{START}page")
        found = await rag.search("glazes")
    return [each.chunk.text for each in found.chunks]


class EmptyFrame(TwoVersions):
    """Has a page whose text scripts write."""

    async def fetch(self, url: str, **options: Any) -> FetchedPage:
        page = await super().fetch(url, **options)
        script = "document.getElementById('app').innerHTML = '<p>Glazes hold at cone six.</p>'"
        frame = f"<title>Kiln</title><div id=app></div><script>{script}</script>"
        return page.model_copy(update={"text": frame, "kind": "html"})


async def read_shell(lab: Lab, settings: Settings) -> Any:
    async with lab.empty(settings, EmptyFrame()) as rag:
        return str(await rag.ingest(f"{START}page"))


def chosen_browser(settings: Settings) -> Any:
    renderer = choose_renderer(
        settings, builtin_source(settings.fetch_config(), SimpleNamespace, SimpleNamespace)
    )
    assert isinstance(renderer, BrowserRenderer)
    return renderer.executable


async def recrawled(lab: Lab, settings: Settings) -> Any:
    await restore(dumps()[-1], lab.database)
    site = KilnSite()
    async with WebRAG(settings, page_source=site) as rag:
        await rag.ingest(f"{SITE}/log")
        await rag.drop_collection()
    return site.asked


async def disappeared(lab: Lab, settings: Settings) -> Any:
    """Whether a quotation that a page has lost is found in its earlier text."""
    site = ChangingSite()
    async with lab.empty(settings, site) as rag:
        await rag.ingest(f"{SITE}/page")
        await rag.ingest(f"{SITE}/page", refresh=True)
        citation = Citation(url=f"{SITE}/page", quote=FIRED.format(1))
        (check,) = await rag.verify(citation, live=False)
    return check.last_seen_at is not None


async def tables_of(lab: Lab, settings: Settings) -> Any:
    async with lab.empty(settings, LinkedSite()) as rag:
        return (await rag.status()).collection


async def tools_of(_: Lab, settings: Settings) -> Any:
    tools = await assemble_server(settings).server.list_tools()
    return [(tool.name, tool.meta) for tool in tools]


class StuckSite(LinkedSite):
    """Never gives a page."""

    async def fetch(self, _url: str, **_: Any) -> FetchedPage:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")


async def gave_up(lab: Lab, settings: Settings) -> str:
    """What is said of the page that never comes, and how long it was waited for."""
    async with lab.empty(settings, StuckSite()) as rag:
        with pytest.raises(DeadlineError) as caught:
            await rag.answer(START, CELADON)
        return str(caught.value)


def let_in(settings: Settings) -> int:
    """How many of five requests to one host begin at once."""

    async def count() -> int:
        gate, begun = HttpFetcher(settings.fetch_config())._gate, []

        async def enter(number: int) -> None:
            async with gate.turn("one.example"):
                begun.append(number)
                await asyncio.Event().wait()

        tasks = [asyncio.create_task(enter(number)) for number in range(5)]
        for _ in range(50):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return len(begun)

    return asyncio.run(count())


async def long_statement(_: Lab, settings: Settings) -> str:
    database = Database(settings.database_config())
    try:
        await database.run(lambda connection: connection.execute("select pg_sleep(0.5)"))
    except WebRAGError as error:
        return type(error).__name__
    finally:
        await database.close()
    return "done"


class SlowMemory:
    """A memory whose answers take a moment."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def status(self, *_: Any, **__: Any) -> Any:
        await asyncio.sleep(0.3)
        raise PageGoneError("The page does not exist.", url=START)

    def count_tokens(self, text: str) -> int:
        return len(text)

    async def ingest(self, urls: list[str], *, on_page: Any, **_: Any) -> Any:
        await asyncio.sleep(0.3)
        on_page(urls[0], PageGoneError("The page does not exist.", url=urls[0]))
        return SimpleNamespace(pages=(), failed={}, degraded=())


def called(tool: str, arguments: dict[str, Any]) -> Observe:
    """What a client of the MCP server gets."""

    async def observe(_: Lab, settings: Settings) -> Any:
        async with Client(assemble_server(settings, load=SlowMemory).server) as client:
            result = await client.call_tool(tool, arguments)
        return result.content[0].text, result.structured_content

    return observe


async def structured_reply(lab: Lab, settings: Settings) -> Any:
    await restore(dumps()[-1], lab.database)
    memory = WebRAG(settings, page_source=KilnSite())
    async with Client(assemble_server(settings, load=lambda: memory).server) as client:
        result = await client.call_tool("search", {"query": QUESTION})
    async with memory:
        await memory.drop_collection()
    return result.structured_content is None


def config(name: str, field: str, **options: Any) -> Observe:
    return built(lambda settings: getattr(getattr(settings, f"{name}_config")(**options), field))


def language_model(settings: Settings, choose: Callable[[Settings], Any]) -> Any:
    model = choose(settings)
    return model and (model.api_base, model.api_key, model.model)


def reranker_of(settings: Settings) -> Any:
    ranks, profile = choose_reranker(settings, BundledEmbedding())
    secret = getattr(ranks, "api_key", None)
    shown = secret.get_secret_value() if hasattr(secret, "get_secret_value") else secret
    return type(ranks).__name__, getattr(ranks, "model", None), shown, profile.name


def time_of_cross_encoder(settings: Settings) -> float:
    with TemporaryDirectory() as place:
        folder = write_cross_encoder(Path(place) / "tiny")
        own = {"reranker_provider": "cross_encoder", "reranker_model": str(folder)}
        ranks, _ = choose_reranker(settings.model_copy(update=own), BundledEmbedding())
    assert isinstance(ranks, CrossEncoderScorer)
    return ranks.timeout_s


def embedding_of(settings: Settings) -> Any:
    choice = choose_embedding(settings, None, BundledEmbedding())
    model = choice.load()
    where = getattr(model, "api_base", ""), getattr(model, "api_key", "")
    return choice.name, choice.dimensions, where


def refusal(settings: Settings) -> str:
    with pytest.raises(ConfigurationError) as caught:
        choose_tokenizer(settings)
    return str(caught.value)


async def traced(_: Lab, settings: Settings) -> Any:
    async with AsyncExitStack() as stack:
        try:
            start_tracing(settings, stack)
        except ConfigurationError as error:
            return str(error)
        tracer = getattr(root_dispatcher.span_handlers[-1], "_tracer", None)
        processors = getattr(getattr(tracer, "span_processor", None), "_span_processors", ())
        exporters = [each.span_exporter for each in processors]
        return len(stack._exit_callbacks), [
            (e._endpoint, dict(e._client._headers)) for e in exporters
        ]


async def refused_to_serve(_: Lab, settings: Settings) -> Any:
    """What the server says when its port is taken, and how much it would have logged."""
    root, own = logging.getLogger(), logging.getLogger("webrag")
    handlers, levels = list(root.handlers), (root.level, own.level)
    with socket.socket() as taken:
        with suppress(OSError):
            taken.bind((settings.mcp_bind_host, settings.mcp_port))
            taken.listen()
        try:
            with pytest.raises(ConfigurationError) as caught:
                serve(settings)
            return str(caught.value), own.level
        finally:
            root.handlers[:] = handlers
            root.setLevel(levels[0])
            own.setLevel(levels[1])


def inside(value: Any) -> Any:
    """What an object of WebRAG is made of, in a form that can be compared."""
    if isinstance(value, list | tuple | set | frozenset | dict):
        items = value.items() if isinstance(value, dict) else value
        return sorted(map(str, map(inside, items)))
    if not type(value).__module__.startswith("webrag"):
        return repr(value) if type(value).__module__ in ("builtins", "pathlib") else type(value)
    names = [*getattr(value, "__dict__", {}), *getattr(type(value), "__slots__", ())]
    return [(name, inside(getattr(value, name))) for name in sorted(names)]


def access_of(settings: Settings) -> Any:
    """Who is let in over HTTP, and how much they may do."""

    async def load() -> Any:
        raise AssertionError("nothing is opened")

    access = authorize(settings, Runtime(load), lambda _: load)
    return inside(access)


def keeps_sessions(settings: Settings) -> bool:
    served = settings.model_copy(update={"mcp_transport": "streamable-http"})
    assembled = assemble_server(served)
    http_app(assembled, served)
    return not assembled.server.session_manager.stateless


SPLITTING = built(lambda settings: language_model(settings, choose_language_model))
RERANKING, EMBEDDING = built(reranker_of), built(embedding_of)
ADMITTING = built(access_of)
SECURITY = built(lambda settings: allowed_names(settings))
ISSUER = "https://issuer.example/"
TOKEN_FILES = tuple(Path(__file__).parent / "data" / f"tokens_{name}.txt" for name in "ab")
SERVED = {"embedding_provider": "openai_compatible", "embedding_base_url": "http://127.0.0.1:1/v1",
          "embedding_model": "m", "embedding_dimensions": 8}  # fmt: skip


def signal(name: str) -> Observe:
    return asked(lambda result: getattr(result.final_signals, name))


def rules(result: OrchestrationResult) -> list[str]:
    return [*(step.rule for step in result.expansion_steps), result.final_decision.rule]


def obtained(result: OrchestrationResult) -> tuple[str, ...]:
    return tuple(url for url in result.urls_fetched if url != START)


def adjacent(result: OrchestrationResult) -> int:
    return sum(item.is_locality_expanded for item in result.chunks)


# Neither saturated, a cliff, a plateau, answered nor low: only the mean confidence decides.
UNDECIDED = {
    f"score_thresholds.{name}": value
    for name, value in {"score_cliff_threshold": 1.0, "plateau_variance_threshold": 0.0,
                        "mediocre_score_floor": 0.55, "answered_score": 1.0}.items()
}  # fmt: skip

ROWS = (
    # Thresholds of the evaluator.
    Row("score_thresholds.score_cliff_threshold", (0.0, 1.0), signal("is_cliff")),
    Row("score_thresholds.plateau_variance_threshold", (0.0, 1.0), signal("is_plateau")),
    Row("score_thresholds.mediocre_score_floor", (0.05, 0.9), asked(lambda r: r.likely_floor)),
    Row("score_thresholds.confidence_floor", (0.0, 1.0), decided(rules), UNDECIDED),
    Row("score_thresholds.near_top_delta", (0.0, 1.0), signal("chunks_above_threshold")),
    Row("score_thresholds.answered_score", (0.55, 0.95),
        built(lambda settings: quality(0.54, settings.thresholds(LOCAL)))),
    Row("token_budget_saturation_ratio", (0.0001, 1.0), signal("is_saturated")),
    Row("redundancy_ceiling", (0.0, 1.0), asked(lambda r: len(r.chunks))),
    Row("orchestration.score_cliff_rank_k", (2, 5), signal("score_at_k")),
    Row("orchestration.plateau_top_n", (3, 10), signal("score_mean")),
    Row("orchestration.diminishing_return_delta", (0.0, 1.0),
        config("orchestration", "diminishing_return_delta")),
    # Retrieval and ranking.
    Row("retrieval_full_context_threshold", (100, 30_000),
        asked(lambda r: r.mode, retrieval_mode="auto")),
    Row("retrieval_context_budget", (1_000, 30_000), asked(lambda r: len(r.chunks))),
    Row("retrieval_top_k_children_limit", (1, 80), retrieved(len)),
    Row("retrieval_similarity_floor", (0.0, 1.0), retrieved(len)),
    Row("retrieval_depth_decay_rate", (0.0, 0.1),
        retrieved(lambda nodes: max(node.score for node in nodes), depth=1)),
    Row("retrieval_depth_floor", (0.0, 1.0),
        retrieved(lambda nodes: max(node.score for node in nodes), depth=5)),
    Row("retrieval_hnsw_ef_search", (1, 200), config("retrieval", "hnsw_ef_search")),
    Row("retrieval.fusion_method", ("score", "rrf"),
        retrieved(lambda nodes: [round(node.score, 3) for node in nodes])),
    Row("retrieval.lexical_weight", (0.1, 0.9),
        retrieved(lambda nodes: [round(node.score, 3) for node in nodes])),
    Row("orchestration.reranker_top_n", (1, 20), asked(lambda r: len(r.chunks)),
        {"orchestration.locality_enabled": False}),
    Row("reranker_provider", ("local", "none"), RERANKING),
    Row("reranker_api_key", ("one", "two"), RERANKING, {"reranker_provider": "jina"}),
    Row("zeroentropy_api_key", (None, KEY), RERANKING),
    Row("cohere_api_key", (None, KEY), RERANKING),
    Row("jina_api_key", (None, KEY), RERANKING),
    Row("reranker_model", (None, "another"), RERANKING, {"jina_api_key": KEY}),
    Row("reranker_timeout", (0.5, 100.0), built(time_of_cross_encoder)),
    Row("orchestration.locality_enabled", (False, True), decided(adjacent),
        {"orchestration.reranker_top_n": 1}),
    Row("orchestration.locality_radius", (0, 3), decided(adjacent),
        {"orchestration.reranker_top_n": 1}),
    # Questions.
    Row("decomposition_mode", ("none", "rule_based"),
        asked(lambda r: r.query_analysis.method)),
    Row("orchestration_llm_base_url", ("http://a.example/v1", "http://b.example/v1"), SPLITTING),
    Row("orchestration_llm_api_key", (None, KEY), SPLITTING),
    Row("orchestration_llm_model", ("one", "two"), SPLITTING, {"orchestration_llm_api_key": KEY}),
    Row("orchestration_timeout", (1.0, 2.0), gave_up),
    # Following links.
    Row("max_expansion_depth", (1, 3), explored(lambda r: r.total_iterations)),
    Row("max_candidates_per_iteration", (1, 5), explored(lambda r: len(obtained(r))),
        {"max_expansion_depth": 1}),
    Row("orchestration.expansion.candidates_to_score_per_iteration", (1, 20),
        explored(lambda r: len(obtained(r))),
        {"max_expansion_depth": 1}),
    Row("orchestration.expansion.map_limit", (3, 9), map_limits),
    Row("orchestration.expansion.site_map.enabled", (False, True), config("expansion", "site_map")),
    Row("orchestration.expansion.site_map.max_bytes", (1_000, 10_000_000),
        config("expansion", "site_map")),
    Row("orchestration.expansion.site_map.timeout_s", (1.0, 5.0), config("expansion", "site_map")),
    Row("orchestration.expansion.site_map.fresh_s", (60.0, 86_400.0),
        config("expansion", "site_map")),
    Row("orchestration.expansion.min_candidate_score", (0.0, 1.0),
        explored(lambda r: len(obtained(r))),
        {"max_expansion_depth": 1}),
    Row("expansion_scope", ("same_site", "any"), explored(obtained)),
    Row("expansion_allowed_domains", (("links.example",), ("other.example",)), explored(obtained),
        {"expansion_scope": "allow_list"}),
    Row("max_pages_per_run", (1, 10), explored(lambda r: len(obtained(r)))),
    Row("max_bytes_per_run", (1, 20_000_000), explored(lambda r: len(obtained(r))),
        {"max_candidates_per_iteration": 1}),
    Row("expansion_iteration_timeout", (1.0, 30.0), config("expansion", "iteration_timeout_s")),
    # Fetching.
    Row("allow_hosts", ((), ("127.0.0.1",)), fetched(local=False)),
    Row("allow_dirs", ((), (str(Path(__file__).parent),)), readable_file),
    Row("allow_logins", ((), ("wiki.example",)), served_login, {"login_headers": HEADERS}),
    Row("login_headers", (None, HEADERS), served_login, {"allow_logins": ("wiki.example",)}),
    Row("user_agent", ("One/1", "Two/2"), fetched(look="user-agent")),
    Row("fetching.timeout_s", (0.1, 20.0), fetched("/slow")),
    Row("fetching.max_wire_bytes", (1_024, 5_000_000), fetched("/long")),
    Row("fetching.max_decoded_bytes", (1_024, 10_000_000), fetched("/packed")),
    Row("fetching.max_redirects", (1, 5), fetched("/hop")),
    Row("fetching.prefer_markdown", (False, True), read_text),
    Row("fetching.host_concurrency", (1, 4), built(let_in), {"fetching.host_delay_s": 0.0}),
    Row("fetching.host_delay_s", (0.0, 60.0), built(let_in)),
    Row("fetching.extraction_timeout_s", (1.0, 10.0), config("fetch", "extraction_timeout_s")),
    Row("keep_versions", (0, 1), disappeared),
    Row("recrawl_after", (0.0, "never"), recrawled),
    Row("firecrawl_api_key", (None, KEY),
        built(lambda s: choose_page_source(s, HttpFetcher(s.fetch_config())).source.name)),
    Row("firecrawl_api_url", ("http://127.0.0.1:1", "http://127.0.0.1:2"),
        config("firecrawl", "api_url")),
    # Embedding.
    Row("models", ("bundled", "small"),
        built(lambda settings: choose_embedding(settings, None, BundledEmbedding()).name)),
    Row("embedding_provider", ("bundled", "openai"), EMBEDDING, {"openai_api_key": KEY}),
    Row("embedding_model", ("m", "n"), EMBEDDING, SERVED),
    Row("embedding_dimensions", (8, 16), EMBEDDING, SERVED),
    Row("embedding_base_url", ("http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"), EMBEDDING,
        SERVED),
    Row("embedding_api_key", (None, KEY), EMBEDDING, SERVED),
    Row("openai_api_key", (None, KEY), EMBEDDING),
    Row("embedding_tokenizer_kind", ("tiktoken", "huggingface"), built(refusal),
        {"embedding_tokenizer_name": "/nowhere/tokenizer.json"}),
    Row("embedding_tokenizer_name", ("cl100k_base", "o200k_base"),
        built(lambda s: list(choose_tokenizer(s)("Kiln controllers")))),
    # Database and command line.
    Row("database_url", (None, "postgresql://127.0.0.1:1/x"),
        built(lambda s: Database(s.database_config()).description)),
    Row("database_pool_size", (1, 10), config("database", "pool_max_size")),
    Row("database_acquire_timeout", (1.0, 10.0), config("database", "acquire_timeout_s")),
    Row("database_statement_timeout", (0.1, 60.0), long_statement),
    Row("data_dir", (Path("/a"), Path("/b")), config("database", "data_dir")),
    Row("collection", ("settings_matter_a", "settings_matter_b"), tables_of),
    # MCP server.
    Row("mcp_transport", ("stdio", "streamable-http"),
        built(lambda s: assemble_server(s).access is None)),
    Row("mcp_host", ("127.0.0.1", "192.0.2.1"), SECURITY),
    Row("mcp_port", (8_001, 8_002), refused_to_serve, {"mcp_transport": "streamable-http"}),
    Row("mcp_stateless", (False, True), built(keeps_sessions)),
    Row("mcp_auth_token", (None, KEY), ADMITTING),
    Row("mcp_tokens_file", TOKEN_FILES, ADMITTING),
    Row("mcp_oauth_issuer", (None, ISSUER), ADMITTING),
    Row("mcp_oauth_audience", (("a",), ("b",)), ADMITTING, {"mcp_oauth_issuer": ISSUER}),
    Row("mcp_oauth_jwks_url", (None, f"{ISSUER}keys"), ADMITTING, {"mcp_oauth_issuer": ISSUER}),
    Row("collection_claim", ("sub", "team"), ADMITTING, {"mcp_oauth_issuer": ISSUER}),
    Row("mcp_max_open_collections", (1, 9), ADMITTING),
    Row("mcp_calls_per_minute", (None, 1), ADMITTING),
    Row("mcp_calls_per_day", (None, 1), ADMITTING),
    Row("mcp_pages_per_day", (None, 1), ADMITTING),
    Row("mcp_bytes_per_day", (None, 1), ADMITTING),
    # What each client does with it is tried in wiring/test_proxies.py.
    Row("proxy", (None, "http://proxy.example:8080"), built(lambda s: s.service_proxy)),
    Row("mcp_public_url", (None, "https://rag.example"), SECURITY),
    Row("mcp_allowed_hosts", ((), ("rag.example",)), SECURITY),
    Row("mcp_allowed_origins", ((), ("https://app.example",)), SECURITY),
    Row("mcp_response_token_budget", (5_000, 20_000), tools_of),
    Row("mcp_tool_timeout", (0.1, 30.0), called("status", {})),
    Row("mcp_soft_deadline", (0.1, 20.0), called("ingest", {"url": [START]})),
    Row("mcp_log_level", ("ERROR", "INFO"), refused_to_serve,
        {"mcp_transport": "streamable-http"}),
    Row("mcp_structured_output", (False, True), structured_reply),
    Row("mcp_enable_forget", (False, True), tools_of),
    # Answers and tracing.
    Row("agent_rerank_recency_boost", (0.0, 1.0), config("answer", "rerank_recency_boost")),
    Row("answering.recent_year_window", (1, 10), config("answer", "recent_year_window")),
    Row("answering.max_sentences", (1, 5), config("answer", "max_sentences")),
    Row("agent_reflection_temperature", (0.0, 1.0), config("answer", "reflection_temperature")),
    Row("tracing", ("off", "opentelemetry"), traced),
    Row("langsmith_api_key", (None, KEY), traced, {"tracing": "langsmith"}),
    Row("langsmith_endpoint", ("http://a.example", "http://b.example"), traced,
        {"tracing": "langsmith", "langsmith_api_key": KEY}),
    Row("langsmith_project", ("one", "two"), traced,
        {"tracing": "langsmith", "langsmith_api_key": KEY}),
    Row("otel_exporter_otlp_endpoint", (None, "http://127.0.0.1:1/v1/traces"), traced,
        {"tracing": "opentelemetry"}),
)  # fmt: skip
BROWSER_ROWS = (
    Row("browser", ("auto", "never"), read_shell),
    Row("browser_path", (None, Path("/bin/false")), built(chosen_browser)),
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def collection_kept(postgres_dir: Path) -> AsyncIterator[str]:
    """A stored corpus, restored once for all tests that only search it."""
    name = f"test_{uuid4().hex[:16]}"
    database = Database(DatabaseConfig(data_dir=postgres_dir, collection=name))
    await restore(dumps()[-1], database)
    yield name
    await drop_collection(database)
    await database.close()


@pytest.fixture
def lab(database: Database, collection_kept: str, static_site: Callable[..., Any]) -> Lab:
    return Lab(database, collection_kept, static_site)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.setting)
async def test_setting_changes_something(row: Row, lab: Lab) -> None:
    first, second = [await row.observe(lab, given(row, value, lab)) for value in row.values]

    assert first != second


@pytest.mark.parametrize("row", BROWSER_ROWS, ids=lambda row: row.setting)
@pytest.mark.usefixtures("_chromium_on_path")
async def test_setting_of_the_browser_changes_something(row: Row, lab: Lab) -> None:
    await test_setting_changes_something(row, lab)


@pytest.fixture
def _chromium_on_path(chromium: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chromium").symlink_to(chromium)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)


def given(row: Row, value: Any, lab: Lab) -> Settings:
    config = lab.database.config
    own = {"data_dir": config.data_dir, "collection": config.collection, "recrawl_after": "never"}
    values = {**own, **row.also, row.setting: value}
    return Settings(**nested({name: each for name, each in values.items() if each is not None}))


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of parts, named with dots, as the arguments that Settings takes."""
    arguments: dict[str, Any] = {}
    for path, value in values.items():
        *parts, name = path.split(".")
        place = arguments
        for part in parts:
            place = place.setdefault(part, {})
        place[name] = value
    return arguments


def test_every_setting_has_a_row() -> None:
    named = [row.setting for row in ROWS + BROWSER_ROWS]

    assert len(set(named)) == len(named)
    assert {name.partition(".")[0] for name in named} == set(Settings.model_fields) - {"origins"}


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.__name__)
def test_every_number_that_the_settings_fill_is_read(config: type[BaseModel]) -> None:
    """By a name like its own: a configuration that nobody reads would make a setting idle."""
    assert set(config.model_fields) - read_names() == set()


@cache
def read_names() -> set[str]:
    return {
        node.attr
        for path in (ROOT / "webrag").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
