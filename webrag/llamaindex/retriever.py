"""The corpus as a LlamaIndex retriever; the searching itself is `Searcher`'s."""

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.postprocessor.webrag.wordings import bundle_wordings
from typing_extensions import override

from webrag.argument_checks import check_choice, checked_count
from webrag.concurrency import run_blocking
from webrag.llamaindex.stored_nodes import evidence_node
from webrag.retrieval.filters import NO_FILTERS, SearchFilters
from webrag.retrieval.models import RETRIEVAL_MODES, RetrievalMode, RetrievalResult
from webrag.retrieval.search import Searcher


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
        )
        return self._nodes(result)

    def _nodes(self, result: RetrievalResult) -> list[NodeWithScore]:
        # Stable: in full-context mode all scores are equal and reading order stays.
        best_first = sorted(result.chunks, key=lambda chunk: -chunk.score)[: self._top_k]
        best = self._searcher.best_score if result.mode == "chunk" else 1.0
        return [
            NodeWithScore(node=evidence_node(chunk), score=min(max(chunk.score / best, 0.0), 1.0))
            for chunk in best_first
        ]
