"""A LlamaIndex query engine over the orchestration engine; it writes no prose of its own."""

import asyncio
from collections.abc import Sequence
from typing import Literal

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import RESPONSE_TYPE, Response
from llama_index.core.callbacks import CallbackManager
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.postprocessor.webrag.wordings import bundle_wordings
from typing_extensions import override

from webrag.concurrency import in_background
from webrag.errors import InputError
from webrag.orchestration.engine import OrchestratorEngine
from webrag.orchestration.models import OrchestrationResult, RankedChunk
from webrag.orchestration.request import check_research
from webrag.retrieval.citations import extract_citation, finest_quote
from webrag.retrieval.models import CitationSpan

__all__ = ["WebRAGQueryEngine"]


class WebRAGQueryEngine(BaseQueryEngine):
    """Answers queries with verbatim quotations from web pages and what surrounds them.

    The response text is the best quotations, numbered; its source nodes are all evidence, best
    first; its metadata holds `citations`, `confidence`, `confidence_band`, `final_decision`,
    `degraded`, `warnings` and `partial`. It is a part for LlamaIndex: give it to a
    `QueryEngineTool`, a router or a sub-question engine.

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
        research_mode: Literal["fast", "deep"] = "fast",
        expansion_budget: int | None = None,
        max_quotes: int = 3,
        max_quote_chars: int = 400,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        """Wrap an engine.

        Args:
            engine: Does the work; not closed here.
            urls: Pages to start every query from; None searches what is stored.
            research_mode: As in `OrchestratorEngine.run`.
            expansion_budget: As in `OrchestratorEngine.run`.
            max_quotes: Quotations in the response text.
            max_quote_chars: Length of each at most.
            callback_manager: LlamaIndex's.

        Raises:
            InputError: The mode is unknown, or a number is too small.
        """
        check_research(research_mode, expansion_budget)
        if max_quotes < 1:
            raise InputError(f"max_quotes is {max_quotes}; it must be 1 or more.")
        super().__init__(callback_manager)
        self._engine = engine
        self._urls = urls
        self._research_mode = research_mode
        self._expansion_budget = expansion_budget
        self._max_quotes = max_quotes
        self._max_quote_chars = max_quote_chars
        self._loop = _running_loop()

    @override
    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    @override
    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        if _running_loop() is not None:
            raise RuntimeError(
                "query() would block the event loop it was called in; use `await aquery(...)`."
            )
        work = self._aquery(query_bundle)
        if self._loop is not None and self._loop.is_running():
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        return asyncio.run(work)

    @override
    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        result = await self._research(query_bundle)
        matched = sorted(
            (item for item in result.chunks if not item.is_locality_expanded),
            key=lambda item: -item.reranked_score,
        )
        quotes = await in_background(self._quotes, result, matched)
        text = "\n\n".join(
            f'[{number}] "{quote.verbatim_text}" ({quote.link})'
            for number, quote in enumerate(quotes, start=1)
        )
        return Response(
            response=text or None,
            source_nodes=[_node(item) for item in matched],
            metadata={
                "citations": [quote.model_dump(mode="json") for quote in quotes],
                "confidence": result.confidence,
                "confidence_band": result.confidence_band,
                "final_decision": result.final_decision.model_dump(),
                "degraded": list(result.degraded),
                "warnings": list(result.warnings),
                "partial": result.partial,
            },
        )

    async def _research(self, query_bundle: QueryBundle) -> OrchestrationResult:
        query, wordings = query_bundle.query_str, bundle_wordings(query_bundle)
        if self._urls is None:
            return await self._engine.search(query, wordings=wordings)
        return await self._engine.run(
            self._urls,
            query,
            wordings=wordings,
            research_mode=self._research_mode,
            expansion_budget=self._expansion_budget,
        )

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


def _asked(item: RankedChunk, result: OrchestrationResult) -> tuple[str, dict[str, float]]:
    """What the passage scored best under, the question or another wording, with its weights."""
    best = item.best_wording
    if best is None or best not in result.wordings:
        return result.query, result.term_idf
    return best, result.wordings[best]


def _node(item: RankedChunk) -> NodeWithScore:
    chunk = item.chunk
    return NodeWithScore(
        node=TextNode(
            id_=str(chunk.chunk_id),
            text=chunk.text,
            metadata={
                "source_url": chunk.source_url,
                "title": chunk.title,
                "heading_path": list(chunk.heading_path),
                "fetched_at": chunk.fetched_at.isoformat(),
            },
            start_char_idx=chunk.char_start,
            end_char_idx=chunk.char_end,
        ),
        score=item.reranked_score,
    )


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
