"""The parts of an open WebRAG as LlamaIndex components; it makes none that WebRAG lacks."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from webrag.ingestion.addresses import canonical_url
from webrag.lifetime import Lifetime

if TYPE_CHECKING:
    from llama_index.core import VectorStoreIndex
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.node_parser import NodeParser
    from llama_index.core.postprocessor.types import BaseNodePostprocessor

    from webrag.llamaindex.query_engine import WebRAGQueryEngine
    from webrag.llamaindex.retriever import WebRAGRetriever
    from webrag.llamaindex.store import CorpusVectorStore
    from webrag.orchestration.engine import OrchestratorEngine
    from webrag.retrieval.filters import ContentKind

__all__ = ["LlamaIndexComponents"]


class LlamaIndexComponents(Lifetime):
    """The part of WebRAG that composes with other software made for LlamaIndex.

    Every method needs an open WebRAG; what it gives works as long as that stays open, refuses
    with an `InputError` to read the corpus afterwards, and is not to be closed. Components have the
    synchronous and the asynchronous methods of their kind.
    """

    def retriever(
        self,
        *,
        source_urls: str | Sequence[str] | None = None,
        sites: str | Sequence[str] | None = None,
        years: int | Sequence[int] | None = None,
        fetched_since: datetime | None = None,
        has: "ContentKind | Sequence[ContentKind]" = (),
        retrieval_mode: Literal["chunk", "full_context", "auto"] = "chunk",
        top_k: int | None = None,
    ) -> "WebRAGRetriever":
        """Retrieval without reranking: both legs, fused, children merged into their parents.

        Args:
            source_urls: Only these pages.
            sites: Only pages of these hosts.
            years: Only pages published in these years.
            fetched_since: Only pages that their site delivered or confirmed then or later.
            has: Only passages that hold each of these kinds of content.
            retrieval_mode: As for `WebRAG.search`.
            top_k: Nodes at most; None gives all that fit the context budget.

        Raises:
            InputError: A filter, the mode or `top_k` cannot be used.
        """
        from webrag.llamaindex.retriever import WebRAGRetriever
        from webrag.retrieval.filters import SearchFilters

        filters = SearchFilters.of(
            source_urls=source_urls, sites=sites, years=years, fetched_since=fetched_since, has=has
        )
        return WebRAGRetriever(
            self._open_parts.searcher, filters=filters, mode=retrieval_mode, top_k=top_k
        )

    def query_engine(
        self,
        url: str | Sequence[str] | None = None,
        *,
        research_mode: Literal["fast", "deep"] = "fast",
        expansion_budget: int | None = None,
        max_quotes: int = 3,
    ) -> "WebRAGQueryEngine":
        """The whole loop: retrieval, reranking, link following, verbatim quotations.

        Args:
            url: Pages to start every query from; None searches what is stored.
            research_mode: As for `WebRAG.answer`.
            expansion_budget: As for `WebRAG.answer`.
            max_quotes: Quotations in the response text.

        Raises:
            InputError: A URL, the mode or a number cannot be used.
        """
        from webrag.llamaindex.query_engine import WebRAGQueryEngine

        named = [url] if isinstance(url, str) else url
        return WebRAGQueryEngine(
            self._open_parts.engine,
            urls=None if named is None else [canonical_url(each) for each in named],
            research_mode=research_mode,
            expansion_budget=expansion_budget,
            max_quotes=max_quotes,
        )

    def vector_store(self) -> "CorpusVectorStore":
        """The searched chunks, for LlamaIndex's own indexes and pipelines."""
        from webrag.llamaindex.store import CorpusVectorStore

        parts = self._open_parts
        return CorpusVectorStore.from_database(
            parts.database,
            embed_dim=parts.embedding.dimensions,
            embedding_model=parts.embedding.name,
        )

    def vector_index(self) -> "VectorStoreIndex":
        """An index over `vector_store` with `embed_model`; nothing is embedded."""
        from llama_index.core import VectorStoreIndex

        return VectorStoreIndex.from_vector_store(
            self.vector_store(), embed_model=self.embed_model()
        )

    def embed_model(self) -> "BaseEmbedding":
        """The embedding model the corpus is made with."""
        return self._open_parts.embedder.model

    def node_parser(self) -> "NodeParser":
        """What cuts pages into parents and children."""
        return self._open_parts.node_parser

    def reranker(self) -> "BaseNodePostprocessor | None":
        """The reranker in use, as a node postprocessor; None with `RERANKER_PROVIDER=none`."""
        return self._open_parts.reranker

    @property
    def engine(self) -> "OrchestratorEngine":
        """The orchestration engine, for composing it with other LlamaIndex parts."""
        return self._open_parts.engine
