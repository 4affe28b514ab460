"""The corpus as a LlamaIndex retriever, and the orchestration engine as a query engine."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Final, NamedTuple

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.callbacks.base import EventContext
from llama_index.core.instrumentation.events.synthesis import (
    SynthesizeEndEvent,
    SynthesizeStartEvent,
)
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.postprocessor.webrag.wordings import bundle_wordings
from llama_index_instrumentation import get_dispatcher
from typing_extensions import override

from webrag.argument_checks import check_choice, checked_count
from webrag.concurrency import run_blocking, run_in_loop
from webrag.errors import InputError
from webrag.frozen import shared_fields
from webrag.llamaindex.stored_nodes import evidence_node
from webrag.orchestration.engine import OrchestratorEngine
from webrag.orchestration.judge import cited_units
from webrag.orchestration.models import RankedChunk
from webrag.question import Question, ResearchMode
from webrag.retrieval.filters import NO_FILTERS, SearchFilters
from webrag.retrieval.models import RETRIEVAL_MODES, RetrievalMode, RetrievalResult
from webrag.retrieval.search import Searcher

_NO_ANSWER: Final = "No answer was found: the pages that were searched seem not to hold one."

_dispatcher = get_dispatcher(__name__)


class _Evidence(NamedTuple):
    """The response to a query; `text` is the quotations, or that there are none."""

    text: str
    nodes: list[NodeWithScore]
    metadata: dict[str, Any]


class WebRAGQueryEngine(BaseQueryEngine):
    """Answers queries with verbatim quotations from web pages and what surrounds them.

    The response text is the quotations that may answer, numbered, or one sentence that says that
    nothing answers; its source nodes are all evidence, best first, with scores from 0 to 1; its
    metadata holds `abstained`, `citations`, `confidence`, `confidence_band`, `final_decision`,
    `degraded`, `warnings`, `description` and `partial`. It is a part for LlamaIndex: give it to a
    `QueryEngineTool`, a router or a sub-question engine.

    With an `llm` the response text is what LlamaIndex's response synthesizer has it write from the
    source nodes, as in stock engines; its words are not checked, and it is not asked when nothing
    answers.

    `custom_embedding_strs` of a query bundle count as other wordings of the question, the first
    five, each cut to 500 characters, so that `TransformQueryEngine` works with it. A
    `CustomQueryEngine` would be given the text of the question alone.

    Make it in the event loop its engine belongs to. `query` may be called anywhere; in that loop,
    which stands still meanwhile, pages are fetched by an engine made for the call, if there is one.
    """

    def __init__(
        self,
        engine: OrchestratorEngine,
        *,
        urls: str | Sequence[str] | None = None,
        research_mode: ResearchMode = "fast",
        expansion_budget: int | None = None,
        filters: SearchFilters = NO_FILTERS,
        similarity_top_k: int | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] = (),
        max_quotes: int = 3,
        llm: LLM | None = None,
        response_mode: ResponseMode | str = ResponseMode.COMPACT,
        streaming: bool = False,
        loop: asyncio.AbstractEventLoop | None = None,
        elsewhere: Callable[[], AbstractAsyncContextManager[OrchestratorEngine]] | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        """Wrap an engine.

        Args:
            engine: Does the work; not closed here.
            urls: Pages to start every query from; None searches what is stored.
            research_mode: As in `WebRAG.answer`.
            expansion_budget: As in `WebRAG.answer`.
            filters: Which stored pages and passages count, where no page is named.
            similarity_top_k: Source nodes at most, 1 or more; None for all evidence.
            node_postprocessors: Applied to the source nodes in their order, as in stock engines.
            max_quotes: Quotations in the response text at most, 1 or more.
            llm: Writes the response text; None to quote.
            response_mode: How it does, as in stock engines.
            streaming: Give the text in pieces: `query` a `StreamingResponse`, `aquery` an
                `AsyncStreamingResponse`.
            loop: The engine's event loop; None for the one that runs now.
            elsewhere: Makes an engine for another loop, as the pages of a `query` that stops this
                one cannot be fetched by what works in it; None to refuse such calls.
            callback_manager: LlamaIndex's.

        Raises:
            InputError: A URL or the mode cannot be used, a number is too small, `llm` is no
                LlamaIndex LLM, there is a `response_mode` without one, or filters with URLs.
        """
        for name, number in (("max_quotes", max_quotes), ("similarity_top_k", similarity_top_k)):
            if number is not None:
                checked_count(name, number, minimum=1)
        if llm is not None and not isinstance(llm, LLM):
            raise InputError(
                f"llm is {llm!r:.80}; it must be a LlamaIndex LLM, such as "
                "OpenAI(model='gpt-4o-mini')."
            )
        check_choice("response_mode", response_mode, [mode.value for mode in ResponseMode])
        if llm is None and response_mode != ResponseMode.COMPACT:
            raise InputError(
                "response_mode says how a model writes the text; give llm=..., too, or neither."
            )
        super().__init__(callback_manager)
        self._engine = engine
        self._asked = Question.of(
            "",
            urls=urls,
            research_mode=research_mode,
            expansion_budget=expansion_budget,
            top_k=similarity_top_k if urls is None else None,
            **shared_fields(Question, filters),
        )
        if urls is not None and self._asked.is_search:
            raise InputError("No URL was given: name at least one page to start from.")
        if urls is not None and filters != NO_FILTERS:
            raise InputError("Filters choose among stored pages; name pages or filter, not both.")
        self._similarity_top_k = similarity_top_k
        self._postprocessors = tuple(node_postprocessors)
        self._max_quotes = max_quotes
        self._streaming = streaming
        self._loop = loop or _running_loop()
        self._elsewhere = elsewhere
        self._synthesizer = llm and get_response_synthesizer(
            llm=llm,
            response_mode=ResponseMode(response_mode),
            streaming=streaming,
            callback_manager=callback_manager,
        )

    @override
    def _get_prompt_modules(self) -> PromptMixinType:
        return {"response_synthesizer": self._synthesizer} if self._synthesizer else {}

    @override
    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._awaited(query_bundle).nodes

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Give the source nodes of a query, after the postprocessors."""
        return (await self._evidence(query_bundle)).nodes

    @override
    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with self._telling_of(query_bundle) as event:
            evidence = self._awaited(query_bundle)
            if self._synthesizer and not evidence.metadata["abstained"]:
                written = self._synthesizer.synthesize(query_bundle, evidence.nodes)
            else:
                written = self._quoted(query_bundle, evidence, StreamingResponse, _in_one_piece)
            event.on_end(payload={EventPayload.RESPONSE: written})
        return _with_metadata(written, evidence)

    @override
    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with self._telling_of(query_bundle) as event:
            evidence = await self._evidence(query_bundle)
            if self._synthesizer and not evidence.metadata["abstained"]:
                written = await self._synthesizer.asynthesize(query_bundle, evidence.nodes)
            else:
                written = self._quoted(
                    query_bundle, evidence, AsyncStreamingResponse, _later_in_one_piece
                )
            event.on_end(payload={EventPayload.RESPONSE: written})
        return _with_metadata(written, evidence)

    def _telling_of(self, query_bundle: QueryBundle) -> AbstractContextManager[EventContext]:
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        return self.callback_manager.event(CBEventType.QUERY, payload=payload)

    def _quoted(
        self,
        query_bundle: QueryBundle,
        evidence: _Evidence,
        streaming: Callable[..., RESPONSE_TYPE],
        pieces: Callable[[str], object],
    ) -> RESPONSE_TYPE:
        """The response that quotes, or abstains; listeners hear of it as of a written one."""
        _dispatcher.event(SynthesizeStartEvent(query=query_bundle))
        response: RESPONSE_TYPE = Response(evidence.text, evidence.nodes)
        if self._streaming:
            response = streaming(pieces(evidence.text), evidence.nodes)
        _dispatcher.event(SynthesizeEndEvent(query=query_bundle, response=response))
        return response

    def _awaited(self, query_bundle: QueryBundle) -> _Evidence:
        running, work = _running_loop(), self._evidence(query_bundle)
        if self._loop is None or not self._loop.is_running():
            return run_in_loop(work) if running is None else run_blocking(work)
        if running is not self._loop:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        if self._asked.is_search:
            return run_blocking(work)
        work.close()
        if self._elsewhere is None:
            raise RuntimeError(
                "query() would block the event loop that has to fetch the pages: write "
                "`await engine.aquery(...)`, or call query() from a thread."
            )
        return run_blocking(self._evidence_elsewhere(query_bundle, self._elsewhere()))

    async def _evidence_elsewhere(
        self, query_bundle: QueryBundle, made: AbstractAsyncContextManager[OrchestratorEngine]
    ) -> _Evidence:
        async with made as engine:
            return await self._evidence(query_bundle, engine)

    async def _evidence(
        self, query_bundle: QueryBundle, engine: OrchestratorEngine | None = None
    ) -> _Evidence:
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.RETRIEVE, payload=payload) as event:
            wordings = bundle_wordings(query_bundle)
            asked = dict(self._asked) | {"text": query_bundle.query_str, "wordings": wordings}
            result = await (engine or self._engine).run(Question(**asked))
            matched = sorted(
                (item for item in result.chunks if not item.is_locality_expanded),
                key=lambda item: -item.reranked_score,
            )
            nodes = [
                NodeWithScore(
                    node=evidence_node(item.chunk), score=min(max(item.reranked_score, 0.0), 1.0)
                )
                for item in matched[: self._similarity_top_k]
            ]
            event.on_end(payload={EventPayload.NODES: nodes})
        for postprocessor in self._postprocessors:
            nodes = await postprocessor.apostprocess_nodes(nodes, query_bundle=query_bundle)
        by_id = {str(item.chunk.chunk_id): item for item in matched}
        kept = [by_id[node.node.node_id] for node in nodes if node.node.node_id in by_id]
        likely = [item for item in kept if _is_likely(item, result.likely_floor)]
        abstained = not nodes or result.confidence_band == "none"
        # Where the parts of a question together are answered, no passage need be likely alone.
        ids = {item.chunk.chunk_id for item in likely or kept[:1]}
        quotes = [] if abstained else cited_units(result, ids, most=self._max_quotes)
        text = "\n\n".join(
            f'[{number}] "{quote.verbatim_text}" ({quote.link})'
            for number, quote in enumerate(quotes, start=1)
        )
        metadata = {
            "abstained": abstained,
            "citations": [quote.model_dump(mode="json") for quote in quotes],
            "confidence": result.confidence,
            "confidence_band": result.confidence_band,
            "final_decision": result.final_decision.model_dump(),
            "degraded": list(result.degraded),
            "warnings": list(result.warnings),
            "description": result.description,
            "partial": result.partial,
        }
        return _Evidence(text or _NO_ANSWER, nodes, metadata)


def _is_likely(item: RankedChunk, floor: float) -> bool:
    """Tell if a passage may answer by one wording of the question, whatever the others say.

    A guessed answer finds what a question in other words, or in another language, does not.
    """
    return max((item.reranked_score, *item.wording_scores)) >= floor


def _with_metadata(response: RESPONSE_TYPE, evidence: _Evidence) -> RESPONSE_TYPE:
    response.metadata = {**(response.metadata or {}), **evidence.metadata}
    return response


def _in_one_piece(text: str) -> Generator[str, None, None]:
    yield text


async def _later_in_one_piece(text: str) -> AsyncGenerator[str, None]:
    yield text


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class WebRAGRetriever(BaseRetriever):
    """Gives parents of the corpus as nodes, best first, in any LlamaIndex pipeline.

    Scores lie between 0 and 1 and compare within one result.

    A node's text is exactly what the page holds from `start_char_idx` to `end_char_idx`; its
    metadata name the page with its dates and its depth, the headings, the rich-content flags and,
    under `focus`, the offsets of the passage that matched best. Only the text goes to language
    models and embeddings.

    `custom_embedding_strs` of a query bundle, where query transforms such as `HyDEQueryTransform`
    write, count as other wordings of the question: the first five, each cut to 500 characters.

    Args:
        searcher: Searches the corpus.
        filters: What may be returned; see `SearchFilters.of`.
        mode: As for `Searcher.retrieve`.
        top_k: Nodes at most; None gives all that fit the context budget.
        callback_manager: LlamaIndex's own.

    Raises:
        InputError: The mode is unknown, or `top_k` is below 1.
    """

    def __init__(
        self,
        searcher: Searcher,
        *,
        filters: SearchFilters = NO_FILTERS,
        mode: RetrievalMode = "chunk",
        top_k: int | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        check_choice("retrieval_mode", mode, RETRIEVAL_MODES)
        if top_k is not None:
            checked_count("top_k", top_k, minimum=1)
        super().__init__(callback_manager=callback_manager)
        self._searcher = searcher
        self._filters = filters
        self._mode: RetrievalMode = mode
        self._top_k = top_k

    @override
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return run_blocking(self._aretrieve(query_bundle))

    @override
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        result = await self._searcher.retrieve(
            query_bundle.query_str,
            wordings=bundle_wordings(query_bundle),
            filters=self._filters,
            mode=self._mode,
            tells=False,
        )
        return self._nodes(query_bundle.query_str, result)

    def _nodes(self, query: str, result: RetrievalResult) -> list[NodeWithScore]:
        # Stable: in full-context mode all scores are equal and reading order stays.
        best_first = sorted(result.chunks, key=lambda chunk: -chunk.score)[: self._top_k]
        best = self._searcher.best_score if result.mode == "chunk" else 1.0
        return [
            NodeWithScore(
                node=evidence_node(chunk, {query: result.term_idf} | result.wordings),
                score=min(max(chunk.score / best, 0.0), 1.0),
            )
            for chunk in best_first
        ]
