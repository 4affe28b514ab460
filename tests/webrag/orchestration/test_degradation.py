"""Whole runs while something they need is down, slow or talking nonsense; every failure is real."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from llama_index.embeddings.openai import OpenAIEmbedding
from llama_index.llms.openai_like import OpenAILike
from llama_index.node_parser.webrag import ParentChildNodeParser
from llama_index.postprocessor.webrag import JinaRerank

from webrag.corpus.acquirer import PageAcquirer
from webrag.corpus.indexer import Indexer
from webrag.corpus.pages import Corpus
from webrag.corpus.schema import ensure_schema
from webrag.embedding.embedder import Embedder, EmbeddingLimits
from webrag.errors import ProviderError
from webrag.ingestion.http.fetcher import HttpFetcher
from webrag.ingestion.models import FetchConfig
from webrag.ingestion.service import IngestionService
from webrag.orchestration.confidence import JINA
from webrag.orchestration.engine import OrchestratorEngine
from webrag.orchestration.models import OrchestrationConfig, OrchestrationResult
from webrag.orchestration.question.analyzer import QueryAnalyzer
from webrag.orchestration.ranking.reranker import ChunkReranker
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database
from webrag.presentation.brief.brief import format_brief
from webrag.presentation.brief.models import BriefConfig
from webrag.question import Question
from webrag.retrieval.models import RetrievalConfig
from webrag.retrieval.search import Searcher

from .conftest import AT_SEED, ENCODER, MANUAL, ONE_LINK_AWAY, TWO_LINKS_AWAY, InProcess, Lab
from .fake_services import FakeServices, running_services

FAULTS = [429, 500, "slow", "garbage", "empty", "broken"]


@pytest.fixture
def services() -> Iterator[FakeServices]:
    with running_services() as running:
        running.vector = lambda text: ENCODER.get_text_embedding(text)
        yield running


class Stack(NamedTuple):
    """An engine that embeds through a service, and what it stores."""

    engine: OrchestratorEngine
    acquirer: PageAcquirer


@pytest.fixture
async def embedding_by_service(lab: Lab, database: Database, services: FakeServices) -> Any:
    model = OpenAIEmbedding(
        model_name="m", api_key="none", api_base=services.url, max_retries=0, timeout=5
    )
    await model.aget_query_embedding("The first call sets the client up.")
    embedder = Embedder(model, ENCODER.dimensions, limits=EmbeddingLimits(timeout_s=1.5))
    fetch = FetchConfig(allowed_hosts=("127.0.0.1",))
    ingestion = IngestionService(HttpFetcher(fetch), InProcess())
    acquirer = PageAcquirer(
        ingestion, Indexer(lab.corpus, ParentChildNodeParser(), embedder).index, lab.corpus
    )
    searcher = Searcher(database, embedder, RetrievalConfig(full_context_threshold=500))
    yield Stack(lab.engine(acquirer=acquirer, searcher=searcher), acquirer)
    await ingestion.aclose()


def brief(result: OrchestrationResult) -> str:
    return format_brief(result, BriefConfig(), count_tokens=lambda text: len(text) // 4)


def named(result: OrchestrationResult, words: str) -> bool:
    """Whether the result and the brief both say so."""
    return any(words in sentence for sentence in result.degraded) and words in brief(result)


@pytest.mark.parametrize("fault", FAULTS)
async def test_reranker_that_fails_is_named_and_replaced_by_similarity(
    lab: Lab, static_site: Any, services: FakeServices, fault: Any
) -> None:
    services.faults["rerank"] = fault
    reranker = JinaRerank(
        api_key="key", base_url=services.url, timeout_s=0.5, max_retries=0, backoff_s=0.01
    )
    engine = lab.engine(reranker=ChunkReranker(reranker, JINA))

    result = await engine.run(Question.of(AT_SEED, urls=static_site(dict(MANUAL)) + "/"))

    assert named(result, "keep the order of the search")
    assert "7411" in result.chunks[0].chunk.text


@pytest.mark.parametrize("fault", [429, "slow", "garbage"])
async def test_language_model_that_fails_is_named_and_replaced_by_patterns(
    lab: Lab, static_site: Any, services: FakeServices, fault: Any
) -> None:
    services.faults["chat"] = fault
    llm = OpenAILike(
        model="m", api_base=services.url, api_key="none", is_chat_model=True, max_retries=0
    )
    analyzer = QueryAnalyzer(llm=llm, timeout_s=0.5)

    result = await lab.engine(analyzer=analyzer).run(
        Question.of(AT_SEED, urls=static_site(dict(MANUAL)) + "/")
    )

    assert named(result, "patterns were used")
    assert result.query_analysis.method == "rule_based"


@pytest.mark.parametrize("fault", FAULTS)
async def test_stored_page_is_given_whole_when_the_question_cannot_be_embedded(
    embedding_by_service: Stack, static_site: Any, services: FakeServices, fault: Any
) -> None:
    site = static_site(dict(MANUAL))
    await embedding_by_service.acquirer.acquire(site + "/")
    services.faults["embeddings"] = fault

    result = await embedding_by_service.engine.run(
        Question.of(AT_SEED, urls=site + "/", research_mode="deep")
    )

    assert named(result, "given as they are, unranked")
    assert any("7411" in item.chunk.text for item in result.chunks)
    assert (result.partial, result.confidence_band) == (True, "none")
    assert result.final_decision.rule == "provider_failed"
    assert site.paths == ["/"]


async def test_pages_too_large_to_be_given_whole_are_searched_once(
    embedding_by_service: Stack, static_site: Any, services: FakeServices
) -> None:
    beds = [f"Bed {n} holds {n} rows of turnips, sown in the {n}th week." for n in range(60)]
    site = static_site({"/": "<main>" + "".join(f"<p>{each}</p>" for each in beds)})
    await embedding_by_service.acquirer.acquire(site + "/")
    services.asked["embeddings"].clear()

    result = await embedding_by_service.engine.run(
        Question.of("How many rows has bed 37?", urls=site + "/", retrieval_mode="auto")
    )

    assert result.mode == "chunk"
    assert len(services.asked["embeddings"]) == 1


async def test_pages_that_cannot_be_embedded_end_the_expansion(
    embedding_by_service: Stack, static_site: Any, services: FakeServices
) -> None:
    def route(_request: Any) -> Any:
        services.faults["embeddings"] = 500
        return 200, {"Content-Type": "text/html"}, MANUAL["/install.html"]

    pages = {path: text for path, text in MANUAL.items() if path == "/"}
    site = static_site({**pages, **{path: route for path in MANUAL if path != "/"}})

    result = await embedding_by_service.engine.run(
        Question.of(ONE_LINK_AWAY, urls=site + "/", research_mode="deep")
    )

    assert named(result, "No more pages can be indexed")
    assert named(result, "The evidence is what was found before")
    assert result.chunks
    assert result.partial


async def test_search_of_stored_pages_reports_the_embedding_that_failed(
    embedding_by_service: Stack, services: FakeServices
) -> None:
    services.faults["embeddings"] = 500

    with pytest.raises(ProviderError, match="embedding model"):
        await embedding_by_service.engine.run(Question.of("anything"))


@pytest.fixture
async def own_database(tmp_path: Path) -> Any:
    """A server of the test's own, which it may kill."""
    database = Database(DatabaseConfig(data_dir=tmp_path, collection="degraded"))
    await ensure_schema(
        database, embedding_model=ENCODER.model_name, embedding_dimensions=ENCODER.dimensions
    )
    yield database
    await database.close()


async def test_database_that_is_killed_in_the_middle_of_a_run_is_started_again(
    lab: Lab, own_database: Database, tmp_path: Path, static_site: Callable[..., Any]
) -> None:
    killed: list[int] = []

    def route(_request: Any) -> Any:
        if not killed:
            pid = next(tmp_path.rglob("postmaster.pid")).read_text().split()[0]
            killed.append(int(pid))
            os.kill(killed[0], signal.SIGKILL)
        return 200, {"Content-Type": "text/html"}, MANUAL["/operations.html"]

    site = static_site({**MANUAL, "/operations.html": route})
    embedder = Embedder(ENCODER, ENCODER.dimensions)
    corpus = Corpus(own_database)
    ingestion = IngestionService(
        HttpFetcher(FetchConfig(allowed_hosts=("127.0.0.1",))), InProcess()
    )
    engine = lab.engine(
        corpus=corpus,
        acquirer=PageAcquirer(
            ingestion, Indexer(corpus, ParentChildNodeParser(), embedder).index, corpus
        ),
        searcher=Searcher(own_database, embedder, RetrievalConfig()),
        config=OrchestrationConfig(),
    )

    result = await engine.run(Question.of(TWO_LINKS_AWAY, urls=site + "/", research_mode="deep"))

    await ingestion.aclose()
    assert killed
    assert any("512 megabytes" in item.chunk.text for item in result.chunks)
