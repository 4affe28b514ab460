"""A LlamaIndex query engine over the orchestration engine; it writes no prose of its own."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Any, Final, NamedTuple

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.postprocessor.webrag.wordings import bundle_wordings
from typing_extensions import override

from webrag.concurrency import in_background, run_in_loop
from webrag.errors import InputError
from webrag.llamaindex.stored_nodes import evidence_node
from webrag.orchestration.engine import OrchestratorEngine
from webrag.orchestration.models import OrchestrationResult, RankedChunk
from webrag.question import Question, ResearchMode
from webrag.retrieval.citations import extract_citation, finest_quote
from webrag.retrieval.models import CitationSpan

_NO_ANSWER: Final = "No answer was found: the pages that were searched seem not to hold one."


class _Evidence(NamedTuple):
    """What answers a query, `text` being the quotations, or that there are none."""

    text: str
    nodes: list[NodeWithScore]
    metadata: dict[str, Any]


class WebRAGQueryEngine(BaseQueryEngine):
    """Answers queries with verbatim quotations from web pages and what surrounds them.

    The response text is the best quotations, numbered, or one sentence that says that nothing
    answers; its source nodes are all evidence, best first, with scores from 0 to 1; its metadata
    holds `abstained`, `citations`, `confidence`, `confidence_band`, `final_decision`, `degraded`,
    `warnings` and `partial`. It is a part for LlamaIndex: give it to a `QueryEngineTool`, a router
    or a sub-question engine.

    With an `llm` the response text is what LlamaIndex's response synthesizer has it write from the
    source nodes, as in stock engines; its words are not checked, and it is not asked when nothing
    answers.

    `custom_embedding_strs` of a query bundle count as other wordings of the question, the first
    five, each cut to 500 characters, so that `TransformQueryEngine` works with it.

    Make it in the event loop its engine belongs to. `query` is for other threads: it hands the
    work to that loop and waits.
    """

    def __init__(
        self,
        engine: OrchestratorEngine,
        *,
        urls: str | Sequence[str] | None = None,
        research_mode: ResearchMode = "fast",
        expansion_budget: int | None = None,
        max_quotes: int = 3,
        max_quote_chars: int = 400,
        llm: LLM | None = None,
        streaming: bool = False,
        loop: asyncio.AbstractEventLoop | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        """Wrap an engine.

        Args:
            engine: Does the work; not closed here.
            urls: Pages to start every query from; None searches what is stored.
            research_mode: As in `WebRAG.answer`.
            expansion_budget: As in `WebRAG.answer`.
            max_quotes: Quotations in the response text.
            max_quote_chars: Length of each at most.
            llm: Writes the response text; None to quote.
            streaming: Give the text in pieces: `query` a `StreamingResponse`, `aquery` an
                `AsyncStreamingResponse`.
            loop: The engine's event loop; None for the one that runs now.
            callback_manager: LlamaIndex's.

        Raises:
            InputError: A URL or the mode cannot be used, a number is too small, or `llm` is no
                LlamaIndex LLM.
        """
        if max_quotes < 1:
            raise InputError(f"max_quotes is {max_quotes}; it must be 1 or more.")
        if llm is not None and not isinstance(llm, LLM):
            raise InputError(
                f"llm is {llm!r:.80}; it must be a LlamaIndex LLM, such as "
                "OpenAI(model='gpt-4o-mini')."
            )
        super().__init__(callback_manager)
        self._engine = engine
        self._asked = Question.of(
            "", urls=urls, research_mode=research_mode, expansion_budget=expansion_budget
        )
        if urls is not None and self._asked.is_search:
            raise InputError("No URL was given: name at least one page to start from.")
        self._max_quotes = max_quotes
        self._max_quote_chars = max_quote_chars
        self._streaming = streaming
        self._loop = loop or _running_loop()
        self._synthesizer = llm and get_response_synthesizer(
            llm=llm, streaming=streaming, callback_manager=callback_manager
        )

    @override
    def _get_prompt_modules(self) -> PromptMixinType:
        return {"response_synthesizer": self._synthesizer} if self._synthesizer else {}

    @override
    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        if _running_loop() is not None:
            raise RuntimeError(
                "query() would block the event loop it was called in: write "
                "`await engine.aquery(...)`, as in a notebook, or call query() from a thread."
            )
        evidence = self._awaited(query_bundle)
        if self._synthesizer and not evidence.metadata["abstained"]:
            written = self._synthesizer.synthesize(query_bundle, evidence.nodes)
            return _with_metadata(written, evidence)
        if self._streaming:
            return StreamingResponse(
                _in_one_piece(evidence.text), evidence.nodes, evidence.metadata
            )
        return Response(evidence.text, evidence.nodes, evidence.metadata)

    @override
    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        evidence = await self._evidence(query_bundle)
        if self._synthesizer and not evidence.metadata["abstained"]:
            written = await self._synthesizer.asynthesize(query_bundle, evidence.nodes)
            return _with_metadata(written, evidence)
        if self._streaming:
            return AsyncStreamingResponse(
                _later_in_one_piece(evidence.text), evidence.nodes, evidence.metadata
            )
        return Response(evidence.text, evidence.nodes, evidence.metadata)

    def _awaited(self, query_bundle: QueryBundle) -> _Evidence:
        work = self._evidence(query_bundle)
        if self._loop is not None and self._loop.is_running():
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        return run_in_loop(work)

    async def _evidence(self, query_bundle: QueryBundle) -> _Evidence:
        result = await self._research(query_bundle)
        matched = sorted(
            (item for item in result.chunks if not item.is_locality_expanded),
            key=lambda item: -item.reranked_score,
        )
        abstained = result.confidence_band == "none" and not any(
            _is_likely(item, result.likely_floor) for item in matched
        )
        quotes = [] if abstained else await in_background(self._quotes, result, matched)
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
            "partial": result.partial,
        }
        return _Evidence(text or _NO_ANSWER, [_node(item) for item in matched], metadata)

    async def _research(self, query_bundle: QueryBundle) -> OrchestrationResult:
        asked = {"text": query_bundle.query_str, "wordings": bundle_wordings(query_bundle)}
        return await self._engine.run(Question(**dict(self._asked) | asked))

    def _quotes(
        self, result: OrchestrationResult, matched: Sequence[RankedChunk]
    ) -> list[CitationSpan]:
        quotes: list[CitationSpan] = []
        for item in matched[: self._max_quotes]:
            focus = item.chunk.focus
            text, offset = (
                (focus.text, focus.char_start)
                if focus
                else (item.chunk.text, item.chunk.char_start)
            )
            asked, weights = _asked(item, result)
            span = finest_quote(text, offset, asked, weights, max_chars=self._max_quote_chars)
            quote = span and extract_citation(item.chunk, *span)
            if quote:
                quotes.append(quote)
        return quotes


def _is_likely(item: RankedChunk, floor: float) -> bool:
    """Whether a passage may answer by one wording of the question, whatever the others say.

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


def _asked(item: RankedChunk, result: OrchestrationResult) -> tuple[str, dict[str, float]]:
    """What the passage scored best under, the question or another wording, with its weights."""
    best = item.best_wording
    if best is None or best not in result.wordings:
        return result.query, result.term_idf
    return best, result.wordings[best]


def _node(item: RankedChunk) -> NodeWithScore:
    return NodeWithScore(
        node=evidence_node(item.chunk), score=min(max(item.reranked_score, 0.0), 1.0)
    )


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
