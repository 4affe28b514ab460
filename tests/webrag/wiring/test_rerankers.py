from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.postprocessor.webrag import (
    CohereRerank,
    JinaRerank,
    LocalRerank,
    RemoteRerank,
    ZeroEntropyRerank,
)
from llama_index.postprocessor.webrag.local_scoring import LocalScorer

from tests.postprocessors.conftest import KEY, RerankServer
from tests.postprocessors.conftest import rerank_server as rerank_server
from webrag.embedding.bundled import BundledEmbedding
from webrag.ingestion.http.fetcher import HttpFetcher
from webrag.ingestion.models import FetchConfig
from webrag.orchestration.confidence import PROFILES
from webrag.orchestration.ranking.reranker import ChunkReranker
from webrag.settings import Settings
from webrag.wiring.rerankers import as_postprocessor, choose_reranker, local_scorer

from ..orchestration.conftest import build_chunk, build_match, build_result

BUILTIN = HttpFetcher(FetchConfig())
BUNDLED = BundledEmbedding()
KINDS = {"zeroentropy": ZeroEntropyRerank, "cohere": CohereRerank, "jina": JinaRerank}
NAMES = tuple(KINDS)


@contextmanager
def environment(**values: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setenv(name, value)
        yield


def choose(**values: str) -> tuple[Any, str]:
    with environment(**values):
        reranker, profile = choose_reranker(Settings(), BUNDLED)
    return reranker, profile.name


def key_of(reranker: RemoteRerank) -> str:
    return reranker.api_key.get_secret_value()


def test_local_reranker_is_chosen_without_any_key() -> None:
    reranker, profile = choose()

    assert (type(reranker), profile) == (LocalScorer, "local")


@pytest.mark.parametrize("name", NAMES)
def test_key_chooses_its_reranker_and_score_profile(name: str) -> None:
    reranker, profile = choose(**{f"{name.upper()}_API_KEY": KEY})

    assert (type(reranker), profile, key_of(reranker)) == (KINDS[name], name, KEY)
    assert PROFILES[name].name == name


def test_first_of_several_keys_decides() -> None:
    keys = {f"{name.upper()}_API_KEY": KEY for name in NAMES}

    assert type(choose(**keys)[0]) is ZeroEntropyRerank
    del keys["ZEROENTROPY_API_KEY"]
    assert type(choose(**keys)[0]) is CohereRerank


@pytest.mark.parametrize(("provider", "kind"), [("local", LocalScorer), ("none", type(None))])
def test_named_provider_wins_over_keys(provider: str, kind: type) -> None:
    reranker, _ = choose(RERANKER_PROVIDER=provider, COHERE_API_KEY=KEY)

    assert type(reranker) is kind


@pytest.mark.parametrize("name", NAMES)
def test_named_provider_without_a_key_leaves_the_order_of_the_search(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    others = {f"{other.upper()}_API_KEY": KEY for other in NAMES if other != name}

    assert choose(RERANKER_PROVIDER=name, **others) == (None, "similarity")
    assert f"RERANKER_PROVIDER={name} needs a key" in caplog.text
    assert f"{name.upper()}_API_KEY" in caplog.text


@pytest.mark.parametrize("name", NAMES)
def test_rerankers_own_key_belongs_to_the_named_provider(name: str) -> None:
    shared = {f"{name.upper()}_API_KEY": "shared"}

    reranker, _ = choose(RERANKER_PROVIDER=name, RERANKER_API_KEY=KEY, **shared)

    assert (type(reranker), key_of(reranker)) == (KINDS[name], KEY)


def test_key_that_belongs_to_nobody_is_named_in_a_warning(caplog: Any) -> None:
    reranker, _ = choose(RERANKER_API_KEY=KEY)

    assert type(reranker) is LocalScorer
    assert "RERANKER_API_KEY is not used" in caplog.text
    assert KEY not in caplog.text


def test_model_that_is_not_used_is_named_in_a_warning(caplog: Any) -> None:
    choose(RERANKER_MODEL="zerank-1")

    assert "RERANKER_MODEL is not used" in caplog.text


def test_model_can_be_chosen() -> None:
    reranker, _ = choose(COHERE_API_KEY=KEY, RERANKER_MODEL="rerank-multilingual-v3.0")

    assert reranker.model == "rerank-multilingual-v3.0"


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("zeroentropy", "zerank-2"),
        ("cohere", "rerank-v3.5"),
        ("jina", "jina-reranker-v2-base-multilingual"),
    ],
)
def test_default_model_is_the_documented_one(name: str, model: str) -> None:
    assert choose(**{f"{name.upper()}_API_KEY": KEY})[0].model == model


def chunk_reranker(server: RerankServer, name: str) -> ChunkReranker:
    """What the application would use with a key, asking the server on loopback."""
    chosen, _ = choose(**{f"{name.upper()}_API_KEY": KEY})
    address = server.rerank(name).base_url
    copy = chosen.model_copy(update={"base_url": address, "backoff_s": 0.0})
    return ChunkReranker(copy, PROFILES[name])


def result() -> Any:
    weak = build_chunk(title=None, matches=(build_match("rank 20"), build_match("rank 30")))
    strong = build_chunk(title=None, matches=(build_match("rank 80"),), raw_similarity=0.1)
    return build_result(weak, strong)


@pytest.mark.parametrize("name", NAMES)
async def test_chunks_are_ranked_by_the_service(rerank_server: RerankServer, name: str) -> None:
    ranked, degraded = await chunk_reranker(rerank_server, name).rerank(
        "which?", result(), instruction="Prefer code."
    )

    assert degraded is None
    assert [item.reranked_score for item in ranked] == [0.8, 0.3]
    assert "Prefer code." in str(rerank_server.asked[0].body)


async def test_confidence_of_the_service_arrives(rerank_server: RerankServer) -> None:
    rerank_server.confidence = 0.6

    ranked, _ = await chunk_reranker(rerank_server, "zeroentropy").rerank("which?", result())

    assert {item.confidence for item in ranked} == {0.6}


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (401, "refused the key (HTTP 401)"),
        (402, "wants payment for the account of this key (HTTP 402): as documented"),
        (429, "refused the request because of its rate limit (HTTP 429): as documented"),
        (503, "failed (HTTP 503): as documented"),
    ],
)
@pytest.mark.parametrize("name", NAMES)
async def test_failing_service_leaves_similarity_and_names_provider_and_cause(
    rerank_server: RerankServer, name: str, status: int, cause: str
) -> None:
    rerank_server.fail(*[status] * 3)
    reranker = chunk_reranker(rerank_server, name)

    ranked, degraded = await reranker.rerank("which?", result())

    assert [item.reranked_score for item in ranked] == [0.5, 0.1]
    assert degraded is not None
    assert f"{KINDS[name].provider} {cause}); passages keep the order of the search" in degraded
    assert KEY not in degraded


def test_local_rerank_alone_scores_as_the_engine_does() -> None:
    told = ["Set listen_port to change the port.", "Ports close at night.", "Bakes recipes."]
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in told]
    engine = as_postprocessor(local_scorer(BUNDLED))
    assert engine is not None

    alone, own = (
        [(each.text, each.score) for each in reranker.postprocess_nodes(nodes, query_str=told[0])]
        for reranker in (LocalRerank(), engine)
    )

    assert alone == own
