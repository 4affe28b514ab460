import asyncio
import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import MetadataMode, QueryBundle
from llama_index.postprocessor.cohere_rerank import CohereRerank as StockCohereRerank
from llama_index.postprocessor.webrag import (
    CohereRerank,
    RerankError,
    RerankInputError,
    RerankRefusedError,
    RerankResponseError,
    RerankTimeoutError,
    RerankUnavailableError,
)
from llama_index.postprocessor.webrag.remote_rerank import read_results
from pydantic import ValidationError

from .conftest import KEY, PROVIDERS, RerankServer, node, texts

NODES = [node("rank 20"), node("rank 90"), node("rank 50")]
QUERY = "which comes first?"
EVERY_PROVIDER = pytest.mark.parametrize("provider", PROVIDERS)

# What each provider documents, and whether asking again may help.
DOCUMENTED = [
    *(("cohere", status, False) for status in (400, 401, 402, 403, 404, 422, 498, 499)),
    *(("cohere", status, True) for status in (429, 500, 501, 503, 504)),
    *(("jina", status, False) for status in (401, 402)),
    *(("jina", status, True) for status in (429,)),
    *(("zeroentropy", status, False) for status in (400, 401, 403, 404, 422)),
    *(("zeroentropy", status, True) for status in (408, 409, 429, 500, 503)),
]


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("cohere", "COHERE_API_KEY"),
        ("jina", "JINAAI_API_KEY"),
        ("zeroentropy", "ZEROENTROPY_API_KEY"),
    ],
)
async def test_key_is_read_from_the_providers_own_variable(
    rerank_server: Any, provider: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "from-the-environment")

    rerank = rerank_server.rerank(provider, api_key=None)

    assert rerank.secret == "from-the-environment"
    assert "from-the-environment" not in repr(rerank)
    monkeypatch.delenv(variable)
    with pytest.raises(ValidationError, match=variable):
        rerank_server.rerank(provider, api_key=None)


@EVERY_PROVIDER
async def test_nodes_are_ordered_by_the_services_score(rerank_server: Any, provider: str) -> None:
    ranked = await rerank_server.rerank(provider).apostprocess_nodes(NODES, query_str=QUERY)

    assert [(item.text, item.score) for item in ranked] == [
        ("rank 90", 0.9),
        ("rank 50", 0.5),
        ("rank 20", 0.2),
    ]


@EVERY_PROVIDER
def test_synchronous_call_works_in_a_script(rerank_server: Any, provider: str) -> None:
    ranked = rerank_server.rerank(provider).postprocess_nodes(NODES, query_str=QUERY)

    assert texts(ranked) == ["rank 90", "rank 50", "rank 20"]


async def test_synchronous_call_works_inside_a_running_loop(rerank_server: RerankServer) -> None:
    rerank = rerank_server.rerank("jina")

    assert rerank.postprocess_nodes(NODES, query_str=QUERY) == await rerank.apostprocess_nodes(
        NODES, query_str=QUERY
    )


@EVERY_PROVIDER
async def test_key_goes_into_the_header_only(rerank_server: Any, provider: str) -> None:
    await rerank_server.rerank(provider).apostprocess_nodes(NODES, query_str=QUERY)

    (asked,) = rerank_server.asked
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["content-type"] == "application/json"
    assert KEY not in json.dumps(asked.body) + asked.path


@EVERY_PROVIDER
async def test_top_n_is_asked_for_and_kept(rerank_server: Any, provider: str) -> None:
    rerank = rerank_server.rerank(provider, top_n=2)

    assert texts(await rerank.apostprocess_nodes(NODES, query_str=QUERY)) == ["rank 90", "rank 50"]
    assert rerank_server.asked[0].body["top_n"] == 2


@EVERY_PROVIDER
async def test_top_n_beyond_the_nodes_keeps_all(rerank_server: Any, provider: str) -> None:
    ranked = await rerank_server.rerank(provider, top_n=9).apostprocess_nodes(
        NODES, query_str=QUERY
    )

    assert len(ranked) == 3
    assert rerank_server.asked[0].body["top_n"] == 3


@pytest.mark.parametrize(("provider", "status", "passing"), DOCUMENTED)
async def test_documented_error_is_raised_as_its_kind(
    rerank_server: Any, provider: str, status: int, passing: bool
) -> None:
    rerank_server.fail(*[status] * 3)
    rerank = rerank_server.rerank(provider)

    with pytest.raises(RerankError) as caught:
        await rerank.apostprocess_nodes(NODES, query_str=QUERY)

    expected = RerankUnavailableError if passing else RerankRefusedError
    assert (type(caught.value), caught.value.status) == (expected, status)
    assert len(rerank_server.asked) == (3 if passing else 1)
    assert str(caught.value).startswith(rerank.provider)


@EVERY_PROVIDER
async def test_wrong_key_is_refused(rerank_server: Any, provider: str) -> None:
    rerank = rerank_server.rerank(provider, api_key="another")

    with pytest.raises(RerankRefusedError, match=r"refused the key \(HTTP 401\)"):
        await rerank.apostprocess_nodes(NODES, query_str=QUERY)


def one(**changes: Any) -> dict[str, Any]:
    results = [{"index": index, "relevance_score": 0.5} for index in range(3)]
    results[1] |= changes
    return {"results": results}


SHAPES: dict[str, Any] = {
    "list": [],
    "null": None,
    "no results": {"id": "x"},
    "results null": {"results": None},
    "results object": {"results": {}},
    "too few": {"results": one()["results"][:2]},
    "too many": {"results": one()["results"] + one()["results"][:1]},
    "none": {"results": []},
    "not objects": {"results": [0.1, 0.2, 0.3]},
    "index twice": one(index=0),
    "index beyond": one(index=3),
    "index negative": one(index=-1),
    "index text": one(index="1"),
    "index float": one(index=1.0),
    "index true": one(index=True),
    "index missing": {"results": [{"relevance_score": 0.5}] * 3},
    "score above": one(relevance_score=1.5),
    "score below": one(relevance_score=-0.5),
    "score NaN": one(relevance_score=float("nan")),
    "score infinite": one(relevance_score=float("inf")),
    "score enormous": one(relevance_score=10**400),
    "score text": one(relevance_score="0.5"),
    "score null": one(relevance_score=None),
    "score true": one(relevance_score=True),
    "confidence above": one(confidence=2),
    "confidence text": one(confidence="high"),
}


@EVERY_PROVIDER
async def test_answer_that_is_no_ranking_is_an_error(rerank_server: Any, provider: str) -> None:
    bodies = [json.dumps(each) for each in SHAPES.values()]
    for body in (*bodies, b"", b"<html></html>", b'{"results": [{"ind'):
        rerank_server.answer(body)

        with pytest.raises(RerankResponseError, match="answered with"):
            await rerank_server.rerank(provider).apostprocess_nodes(NODES, query_str=QUERY)


def stay_silent(handler: BaseHTTPRequestHandler) -> None:
    handler.rfile.read(1)  # until the client goes away


@EVERY_PROVIDER
async def test_silent_service_fails_within_the_timeout(rerank_server: Any, provider: str) -> None:
    rerank_server.faults.append(stay_silent)

    with pytest.raises(RerankTimeoutError):
        await rerank_server.rerank(provider, timeout_s=0.15).apostprocess_nodes(
            NODES, query_str=QUERY
        )


def test_synchronous_failure_is_the_same_error(rerank_server: RerankServer) -> None:
    rerank_server.fail(402)

    with pytest.raises(RerankRefusedError, match="wants payment"):
        rerank_server.rerank("jina").postprocess_nodes(NODES, query_str=QUERY)


def test_rounding_beyond_the_range_is_cut_off() -> None:
    answer = {"results": [{"index": 0, "relevance_score": 1.0000002}]}

    assert read_results(answer, documents=1, wanted=1) == [(0, 1.0, None)]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["results", "index", "relevance_score", "confidence"]), inner
            )
        ),
        max_leaves=12,
    )
)
def test_reader_returns_a_ranking_or_complains(answer: Any) -> None:
    try:
        found = read_results(answer, documents=3, wanted=1)
    except ValueError:
        return
    assert all(0 <= index < 3 and 0 <= score <= 1 for index, score, _ in found)


async def test_confidence_is_written_where_it_is_given(rerank_server: RerankServer) -> None:
    rerank_server.confidence = 0.75

    ranked = await rerank_server.rerank("zeroentropy").apostprocess_nodes(NODES, query_str=QUERY)

    assert {item.metadata["confidence"] for item in ranked} == {0.75}
    assert "confidence" not in ranked[0].node.get_content(MetadataMode.LLM)
    assert "confidence" not in ranked[0].node.get_content(MetadataMode.EMBED)


async def test_inputs_are_never_changed(rerank_server: RerankServer) -> None:
    rerank_server.confidence = 0.75
    nodes = [node("rank 1", title="Title"), node("rank 2")]
    before = copy.deepcopy(nodes)

    ranked = await rerank_server.rerank("cohere").apostprocess_nodes(nodes, query_str=QUERY)
    ranked[0].node.metadata["new"] = 1

    assert nodes == before


async def test_equal_scores_keep_their_order(rerank_server: RerankServer) -> None:
    nodes = [node(f"{name} rank 7") for name in "abc"]

    ranked = await rerank_server.rerank("jina").apostprocess_nodes(nodes, query_str=QUERY)

    assert texts(ranked) == texts(nodes)


async def test_nodes_without_text_come_last_and_are_not_sent(rerank_server: RerankServer) -> None:
    nodes = [node(" \n", title="Only a title"), node("rank 1")]

    ranked = await rerank_server.rerank("cohere").apostprocess_nodes(nodes, query_str=QUERY)

    assert [(item.text, item.score) for item in ranked] == [("rank 1", 0.01), (" \n", 0.0)]
    assert len(rerank_server.asked[0].body["documents"]) == 1


async def test_without_nodes_nothing_is_asked(rerank_server: RerankServer) -> None:
    rerank = rerank_server.rerank("cohere")

    assert await rerank.apostprocess_nodes([], query_str=QUERY) == []
    assert await rerank.apostprocess_nodes([node("")], query_str=QUERY) == [node_like("")]
    assert rerank_server.asked == []


class node_like(str):
    """Equal to a node with this text and score 0.0."""

    def __eq__(self, other: Any) -> bool:
        return bool(other.text == str(self) and other.score == 0.0)

    __hash__ = str.__hash__


@pytest.mark.parametrize("bundle", [None, QueryBundle(""), QueryBundle(" \n")])
async def test_missing_question_is_an_error(rerank_server: Any, bundle: Any) -> None:
    with pytest.raises(RerankInputError, match="the question is missing or blank"):
        await rerank_server.rerank("jina").apostprocess_nodes(NODES, query_bundle=bundle)


async def test_title_is_sent_with_the_text_and_long_texts_are_cut(
    rerank_server: RerankServer,
) -> None:
    rerank = rerank_server.rerank("cohere", max_document_chars=30)

    await rerank.apostprocess_nodes([node("rank 1 " * 50, title="Ports")], query_str=QUERY)

    (document,) = rerank_server.asked[0].body["documents"]
    assert document.startswith("title: Ports")
    assert len(document) <= 30


@EVERY_PROVIDER
async def test_headings_are_sent_as_text(rerank_server: Any, provider: str) -> None:
    nodes = [node("rank 1", heading_path=["Guide", "It's here"])]

    await rerank_server.rerank(provider).apostprocess_nodes(nodes, query_str=QUERY)

    (document,) = rerank_server.asked[0].body["documents"]
    assert document == "heading_path: Guide > It's here\n\nrank 1"


def test_cohere_reranker_is_llama_index_s_own() -> None:
    assert isinstance(CohereRerank(api_key=KEY), StockCohereRerank)


async def test_text_no_service_accepts_is_repaired(rerank_server: RerankServer) -> None:
    ranked = await rerank_server.rerank("cohere").apostprocess_nodes(
        [node("rank 5 \ud800 é 漢")], query_str="q \udfff"
    )

    assert ranked[0].score == 0.05
    assert rerank_server.asked[0].body["documents"] == ["rank 5 ? é 漢"]


async def test_question_larger_than_a_request_is_an_error(rerank_server: RerankServer) -> None:
    rerank = rerank_server.rerank("zeroentropy")

    with pytest.raises(RerankInputError, match="a request may have 5,000,000"):
        await rerank.apostprocess_nodes(NODES, query_str="why " * 2_000_000)
    assert rerank_server.asked == []


async def test_question_counts_once_for_each_passage(rerank_server: RerankServer) -> None:
    rerank = rerank_server.rerank("zeroentropy")
    question = "why " * (5_000_000 // (4 * len(NODES)))

    with pytest.raises(RerankInputError, match="a request may have 5,000,000"):
        await rerank.apostprocess_nodes(NODES, query_str=question)
    assert rerank_server.asked == []


@EVERY_PROVIDER
def test_key_is_never_shown(rerank_server: Any, provider: str) -> None:
    rerank = rerank_server.rerank(provider)

    shown = [repr(rerank), str(rerank), str(rerank.to_dict()), rerank.to_json()]

    assert not any(KEY in each for each in shown)


@pytest.mark.parametrize("key", ["", "two words", "schlüssel", "line\nbreak"])
def test_unusable_key_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ValidationError, match="printable ASCII") as caught:
        CohereRerank(api_key=key)

    assert not key or key not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["", "rerank.example", "ftp://x", "https://", "http://me:pw@x", "http://x?a=1"]
)
def test_unusable_address_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="base_url"):
        CohereRerank(api_key=KEY, base_url=url)


async def test_slash_at_the_end_of_the_address_does_not_matter(rerank_server: Any) -> None:
    rerank = rerank_server.rerank("jina", base_url=rerank_server.url + "/v1/")

    assert await rerank.apostprocess_nodes(NODES, query_str=QUERY)


async def test_copies_share_the_circuit_breaker(rerank_server: RerankServer) -> None:
    rerank = rerank_server.rerank("cohere")
    rerank_server.fail(*[401] * 5)
    for number in range(5):
        twin = rerank.model_copy(update={"instruction": str(number)})
        with pytest.raises(RerankRefusedError):
            await twin.apostprocess_nodes(NODES, query_str=QUERY)

    with pytest.raises(RerankUnavailableError, match="not asked again"):
        await rerank.apostprocess_nodes(NODES, query_str=QUERY)


async def test_instances_do_not_share_the_circuit_breaker(rerank_server: RerankServer) -> None:
    rerank_server.fail(*[401] * 5)
    first = rerank_server.rerank("cohere")
    for _ in range(5):
        with pytest.raises(RerankRefusedError):
            await first.apostprocess_nodes(NODES, query_str=QUERY)

    assert await rerank_server.rerank("cohere").apostprocess_nodes(NODES, query_str=QUERY)


async def test_open_reranker_serves_many_calls_at_once(rerank_server: RerankServer) -> None:
    async with rerank_server.rerank("jina") as rerank:
        calls = [rerank.apostprocess_nodes(NODES, query_str=QUERY) for _ in range(8)]
        answers = await asyncio.gather(*calls)

    assert {tuple(texts(answer)) for answer in answers} == {("rank 90", "rank 50", "rank 20")}


async def test_open_reranker_can_be_called_from_other_threads(rerank_server: Any) -> None:
    async with rerank_server.rerank("jina") as rerank:
        with ThreadPoolExecutor(4) as threads:
            calls = [
                asyncio.get_running_loop().run_in_executor(
                    threads, lambda: rerank.postprocess_nodes(NODES, query_str=QUERY)
                )
                for _ in range(4)
            ]
            answers = await asyncio.gather(*calls)

    assert all(len(answer) == 3 for answer in answers)


def test_error_survives_pickling() -> None:
    error = RerankUnavailableError("Cohere failed.", provider="Cohere", status=503, attempts=3)

    twin = pickle.loads(pickle.dumps(error))

    assert (str(twin), twin.provider, twin.status) == ("Cohere failed.", "Cohere", 503)
