import asyncio
from typing import Any

import pytest
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.callbacks import (
    CallbackManager,
    CBEventType,
    EventPayload,
    LlamaDebugHandler,
)
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.llms import CustomLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import TransformQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.tools import QueryEngineTool
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.base import BaseEvent
from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_instrumentation.span_handlers import SimpleSpanHandler
from typing_extensions import override

from tests.webrag.orchestration.conftest import AT_SEED, MANUAL, ONE_LINK_AWAY, Lab
from tests.webrag.orchestration.conftest import lab as lab
from tests.webrag.orchestration.conftest import manual as manual
from webrag.errors import InputError
from webrag.llamaindex.query_engine import WebRAGQueryEngine, WebRAGRetriever
from webrag.orchestration.models import ScoreProfile
from webrag.orchestration.ranking.reranker import ChunkReranker
from webrag.retrieval.filters import SearchFilters


async def test_response_quotes_the_page_with_its_address(lab: Lab, static_site: Any) -> None:
    site = static_site(dict(MANUAL))

    response = await WebRAGQueryEngine(lab.engine(), urls=site + "/").aquery(AT_SEED)

    markdown = await lab.corpus.markdown(site + "/")
    citations = response.metadata["citations"]
    assert "7411" in str(response)
    assert f"{site}/#:~:text=" in str(response)
    assert 1 <= len(citations) <= 3
    assert all(e["verbatim_text"] == markdown[e["char_start"] : e["char_end"]] for e in citations)
    assert response.source_nodes[0].node.metadata["source_url"] == site + "/"
    assert response.metadata["confidence_band"] == "high"


async def test_without_urls_the_stored_corpus_is_searched(lab: Lab, static_site: Any) -> None:
    site = static_site(dict(MANUAL))
    await lab.acquirer.acquire(site + "/install.html")

    response = await WebRAGQueryEngine(lab.engine()).aquery(ONE_LINK_AWAY)

    assert "system account" in str(response)


async def test_nothing_found_is_said_in_the_text(lab: Lab) -> None:
    response = await WebRAGQueryEngine(lab.engine()).aquery("anything")

    assert str(response).startswith("No answer was found")
    assert (response.metadata["abstained"], response.source_nodes) == (True, [])


async def test_a_question_that_nothing_answers_is_not_answered_with_quotations(
    lab: Lab, static_site: Any
) -> None:
    site = static_site(dict(MANUAL))
    engine = WebRAGQueryEngine(lab.engine(), urls=site + "/", llm=Guessing(passage="made up"))

    response = await engine.aquery("Which dinosaurs lived in Mongolia in the Cretaceous?")

    assert str(response).startswith("No answer was found")
    assert response.metadata["citations"] == []


async def test_sources_are_best_first_with_scores_within_zero_and_one(
    lab: Lab, static_site: Any
) -> None:
    site = static_site(dict(MANUAL))
    await lab.acquirer.acquire(site + "/")
    await lab.acquirer.acquire(site + "/install.html")

    response = await WebRAGQueryEngine(lab.engine()).aquery(ONE_LINK_AWAY)

    scores = [float(node.score or 0) for node in response.source_nodes]
    assert len(scores) > 1
    assert scores == sorted(scores, reverse=True)
    assert 0 <= scores[-1] <= scores[0] <= 1


async def test_a_model_writes_the_text_from_the_sources(lab: Lab, static_site: Any) -> None:
    site = static_site(dict(MANUAL))
    engine = WebRAGQueryEngine(lab.engine(), urls=site + "/", llm=Guessing(passage="It is 7411."))

    response = await engine.aquery(AT_SEED)

    assert str(response) == "It is 7411."
    assert response.metadata["citations"]
    assert response.source_nodes


async def test_the_name_of_a_model_is_no_model(lab: Lab) -> None:
    with pytest.raises(InputError, match="llm is 'gpt-4o-mini'; it must be a LlamaIndex LLM"):
        WebRAGQueryEngine(lab.engine(), llm="gpt-4o-mini")  # type: ignore[arg-type]


async def test_text_can_be_streamed(lab: Lab, static_site: Any) -> None:
    site = static_site(dict(MANUAL))
    engine = WebRAGQueryEngine(lab.engine(), urls=site + "/", streaming=True)

    response = await engine.aquery(AT_SEED)
    in_a_thread = await asyncio.to_thread(engine.query, AT_SEED)

    assert isinstance(response, AsyncStreamingResponse)
    assert isinstance(in_a_thread, StreamingResponse)
    streamed = "".join([piece async for piece in response.async_response_gen()])
    assert "7411" in streamed
    assert streamed == str(in_a_thread)


async def test_what_a_model_writes_can_be_streamed(lab: Lab, static_site: Any) -> None:
    site = static_site(dict(MANUAL))
    engine = WebRAGQueryEngine(
        lab.engine(), urls=site + "/", llm=Guessing(passage="It is 7411."), streaming=True
    )

    response = await engine.aquery(AT_SEED)

    assert isinstance(response, AsyncStreamingResponse)
    assert "".join([piece async for piece in response.async_response_gen()]) == "It is 7411."


async def test_other_threads_may_query_synchronously(lab: Lab, static_site: Any) -> None:
    site = static_site(dict(MANUAL))
    engine = WebRAGQueryEngine(lab.engine(), urls=[site + "/"])

    response = await asyncio.to_thread(engine.query, AT_SEED)

    assert "7411" in str(response)


async def test_synchronous_query_for_pages_in_the_event_loop_is_refused(lab: Lab) -> None:
    with pytest.raises(RuntimeError, match="aquery"):
        WebRAGQueryEngine(lab.engine(), urls="https://docs.test/").query("anything")


async def test_stored_pages_are_queried_synchronously_in_the_event_loop(
    lab: Lab, static_site: Any
) -> None:
    site = static_site(dict(MANUAL))
    await lab.acquirer.acquire(site + "/")
    engine = WebRAGQueryEngine(lab.engine())

    assert str(engine.query(AT_SEED)) == str(await engine.aquery(AT_SEED))
    assert [each.node.node_id for each in engine.retrieve(QueryBundle(AT_SEED))]


async def test_only_passages_that_may_answer_are_quoted(lab: Lab, static_site: Any) -> None:
    site = static_site(dict(MANUAL))
    await lab.acquirer.acquire(site + "/")
    await lab.acquirer.acquire(site + "/install.html")
    profile = ScoreProfile(name="own", mediocre_score_floor=0.3, answered_score=0.6)
    engine = WebRAGQueryEngine(lab.engine(reranker=ChunkReranker(ByNumber(), profile)))

    response = await engine.aquery(f"{AT_SEED} {ONE_LINK_AWAY}")

    assert len(response.source_nodes) > 1
    quoted = {each["source_url"] for each in response.metadata["citations"]}
    assert quoted == {site + "/"}
    assert "7411" in str(response)


class ByNumber(BaseNodePostprocessor):
    """Scores what names the port high, and all else low."""

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return [
            NodeWithScore(node=each.node, score=0.9 if "7411" in each.node.get_content() else 0.1)
            for each in nodes
        ]


class Last(BaseNodePostprocessor):
    """Keeps the last node only."""

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return nodes[-1:]


async def test_postprocessors_choose_what_is_quoted(lab: Lab, static_site: Any) -> None:
    site = static_site(dict(MANUAL))
    await lab.acquirer.acquire(site + "/")
    await lab.acquirer.acquire(site + "/install.html")
    worst = (await WebRAGQueryEngine(lab.engine()).aquery(ONE_LINK_AWAY)).source_nodes[-1].node

    response = await WebRAGQueryEngine(lab.engine(), node_postprocessors=[Last()]).aquery(
        ONE_LINK_AWAY
    )

    assert [each.node.node_id for each in response.source_nodes] == [worst.node_id]
    assert all(quote["chunk_id"] == worst.node_id for quote in response.metadata["citations"])


async def test_sources_are_as_many_as_wanted_and_of_the_pages_wanted(
    lab: Lab, static_site: Any
) -> None:
    site = static_site(dict(MANUAL))
    await lab.acquirer.acquire(site + "/")
    await lab.acquirer.acquire(site + "/install.html")
    wanted = SearchFilters.of(source_urls=site + "/install.html")

    few = await WebRAGQueryEngine(lab.engine(), similarity_top_k=1).aquery(ONE_LINK_AWAY)
    of_one = await WebRAGQueryEngine(lab.engine(), filters=wanted).aquery(ONE_LINK_AWAY)

    assert len(few.source_nodes) == 1
    assert {each.node.metadata["source_url"] for each in of_one.source_nodes} == {
        site + "/install.html"
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"similarity_top_k": 0}, "similarity_top_k is 0"),
        ({"response_mode": "refined"}, "response_mode is 'refined'; it must be one of refine"),
        ({"response_mode": "refine"}, "give llm="),
        (
            {"urls": "https://docs.test/", "filters": SearchFilters.of(years=2020)},
            "name pages or filter",
        ),
    ],
)
async def test_what_does_not_fit_is_refused(
    lab: Lab, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        WebRAGQueryEngine(lab.engine(), **options)


async def test_response_mode_says_how_the_model_writes(lab: Lab, static_site: Any) -> None:
    site = static_site(dict(MANUAL))
    await lab.acquirer.acquire(site + "/")
    engine = WebRAGQueryEngine(
        lab.engine(), llm=Guessing(passage="It is 7411."), response_mode="accumulate"
    )

    assert str(await engine.aquery(AT_SEED)).startswith("Response 1: It is 7411.")


async def test_callbacks_hear_of_the_query_and_of_what_was_retrieved(
    lab: Lab, static_site: Any
) -> None:
    site = static_site(dict(MANUAL))
    await lab.acquirer.acquire(site + "/")
    heard = LlamaDebugHandler(print_trace_on_end=False)
    engine = WebRAGQueryEngine(lab.engine(), callback_manager=CallbackManager([heard]))

    response = await engine.aquery(AT_SEED)

    assert len(heard.get_event_pairs(CBEventType.QUERY)) == 1
    (retrieval,) = heard.get_event_pairs(CBEventType.RETRIEVE)
    assert retrieval[1].payload is not None
    assert retrieval[1].payload[EventPayload.NODES] == response.source_nodes


class Listening(BaseEventHandler):
    """Keeps the events it is told of."""

    heard: list[Any] = []  # noqa: RUF012  pydantic copies it

    @override
    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        self.heard.append(event)


async def test_listeners_hear_of_every_step_of_a_query(lab: Lab, static_site: Any) -> None:
    site = static_site(dict(MANUAL))
    await lab.acquirer.acquire(site + "/")
    listener, spans = Listening(), SimpleSpanHandler()
    root_dispatcher.add_event_handler(listener)
    root_dispatcher.add_span_handler(spans)
    try:
        response = await WebRAGQueryEngine(lab.engine()).aquery(AT_SEED)
    finally:
        root_dispatcher.event_handlers.remove(listener)
        root_dispatcher.span_handlers.remove(spans)

    kinds = [event.class_name() for event in listener.heard]
    assert kinds == [
        "QueryStartEvent",
        "RetrievalStartEvent",
        "EmbeddingStartEvent",
        "EmbeddingEndEvent",
        "RetrievalEndEvent",
        "ReRankStartEvent",
        "ReRankEndEvent",
        "SynthesizeStartEvent",
        "SynthesizeEndEvent",
        "QueryEndEvent",
    ]
    ranked = listener.heard[6].nodes
    best = max(ranked, key=lambda each: each.score)
    assert best.node.node_id == response.source_nodes[0].node.node_id
    named = {each.id_.split("-")[0]: each for each in spans.completed_spans}
    assert named["Embedder.embed_query"].parent_id == named["Searcher.retrieve"].id_
    assert {"WebRAGQueryEngine.aquery", "ResearchRun.rank"} <= named.keys()


async def test_listeners_hear_of_a_retriever_s_search_once(lab: Lab, static_site: Any) -> None:
    await lab.acquirer.acquire(static_site(dict(MANUAL)) + "/")
    listener = Listening()
    root_dispatcher.add_event_handler(listener)
    try:
        nodes = await WebRAGRetriever(lab.searcher).aretrieve(AT_SEED)
    finally:
        root_dispatcher.event_handlers.remove(listener)

    kinds = [event.class_name() for event in listener.heard]
    assert kinds == [
        "RetrievalStartEvent",
        "EmbeddingStartEvent",
        "EmbeddingEndEvent",
        "RetrievalEndEvent",
    ]
    assert listener.heard[-1].nodes == nodes


async def test_listeners_hear_of_no_retrieval_where_a_search_is_refused(lab: Lab) -> None:
    listener = Listening()
    root_dispatcher.add_event_handler(listener)
    try:
        with pytest.raises(InputError, match="context_budget"):
            await lab.searcher.retrieve("port", context_budget=0)
    finally:
        root_dispatcher.event_handlers.remove(listener)

    assert [each.class_name() for each in listener.heard] == ["SpanDropEvent"]


async def test_engine_serves_as_a_tool(lab: Lab, static_site: Any) -> None:
    site = static_site(dict(MANUAL))
    tool = QueryEngineTool.from_defaults(
        WebRAGQueryEngine(lab.engine(), urls=site + "/"), name="manual", description="The manual"
    )

    output = await tool.acall(input=AT_SEED)

    assert "7411" in output.content


class Guessing(CustomLLM):
    """Writes the same passage whatever it is asked."""

    passage: str

    @property
    @override
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    @override
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self.passage)

    @override
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        for end in range(1, len(self.passage) + 1):
            yield CompletionResponse(text=self.passage[:end], delta=self.passage[end - 1])


@pytest.mark.parametrize("include_original", [True, False])
async def test_a_hypothetical_document_leads_to_what_the_question_does_not_name(
    lab: Lab, static_site: Any, include_original: bool
) -> None:
    site = static_site(dict(MANUAL))
    await lab.acquirer.acquire(site + "/install.html")
    guess = "The installer creates a system account of its own for the server. " * 30
    hyde = HyDEQueryTransform(llm=Guessing(passage=guess), include_original=include_original)
    engine = WebRAGQueryEngine(lab.engine())
    question = "Wem gehoert der Dienst?"

    alone = await engine.aquery(question)
    response = await TransformQueryEngine(engine, query_transform=hyde).aquery(question)

    assert "system account" in str(response)
    assert response.metadata["confidence"] > alone.metadata["confidence"]


class OnlyGuesses(BaseNodePostprocessor):
    """Finds every passage of middling worth for a guessed answer, and of none for a question."""

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        asked = query_bundle.query_str if query_bundle else ""
        return [
            NodeWithScore(node=each.node, score=0.0 if asked.endswith("?") else 0.15)
            for each in nodes
        ]


@pytest.mark.parametrize(("answered", "abstained"), [(0.2, False), (0.99, True)])
async def test_scorer_that_finds_nothing_relevant_on_its_own_scale_is_believed(
    lab: Lab, static_site: Any, answered: float, abstained: bool
) -> None:
    site = static_site(dict(MANUAL))
    await lab.acquirer.acquire(site + "/install.html")
    profile = ScoreProfile(
        name="own", mediocre_score_floor=answered - 0.01, answered_score=answered
    )
    engine = WebRAGQueryEngine(lab.engine(reranker=ChunkReranker(OnlyGuesses(), profile)))
    question = QueryBundle(ONE_LINK_AWAY, custom_embedding_strs=["system account"])

    response = await engine.aquery(question)

    assert response.source_nodes
    assert response.metadata["abstained"] is abstained


async def test_quotation_comes_from_the_wording_that_found_the_passage(
    lab: Lab, static_site: Any
) -> None:
    said = "The receiver listens on socket 7411 unless it was told otherwise"
    filler = [
        f"Chapter {n} of the guide explains how entries are kept and sorted" for n in range(6)
    ]
    body = "".join(f"<p>{each}.</p>" for each in [*filler, said, *filler])
    site = static_site({"/guide.html": f"<h1>Guide to the entries</h1>{body}"})
    await lab.acquirer.acquire(site + "/guide.html")
    engine = WebRAGQueryEngine(lab.engine(), max_quotes=1)
    question = QueryBundle("Wo lauscht der Empfaenger?", custom_embedding_strs=["receiver socket"])

    response = await engine.aquery(question)

    assert "7411" in str(response)
