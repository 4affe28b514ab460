"""Spans and events of a search, told by LlamaIndex's instrumentation and by nothing else."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from llama_index_instrumentation import get_dispatcher, root_dispatcher
from llama_index_instrumentation.event_handlers import NullEventHandler

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore

_dispatcher: Final = get_dispatcher("webrag")

span = _dispatcher.span
"""Gives each call of a function a span, named by it."""


class FoundPassage(NamedTuple):
    """A passage as listeners are told of it."""

    id: str
    text: str
    source_url: str
    score: float


def _is_heard() -> bool:
    """Events are made for listeners only: LlamaIndex takes a second to import."""
    handlers = [*root_dispatcher.event_handlers, *_dispatcher.event_handlers]
    return any(not isinstance(each, NullEventHandler) for each in handlers)


def _nodes(passages: Iterable[FoundPassage]) -> "list[NodeWithScore]":
    from llama_index.core.schema import NodeWithScore, TextNode

    return [
        NodeWithScore(
            node=TextNode(id_=each.id, text=each.text, metadata={"source_url": each.source_url}),
            score=each.score,
        )
        for each in passages
    ]


def tell_embedded(model: object, model_name: str, text: str, vector: Sequence[float]) -> None:
    """Tell that a question was embedded; LlamaIndex's own models tell it themselves."""
    if not _is_heard():
        return
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.instrumentation.events.embedding import (
        EmbeddingEndEvent,
        EmbeddingStartEvent,
    )

    if not isinstance(model, BaseEmbedding):
        _dispatcher.event(EmbeddingStartEvent(model_dict={"model_name": model_name}))
        _dispatcher.event(EmbeddingEndEvent(chunks=[text], embeddings=[list(vector)]))


def tell_retrieving(query: str) -> None:
    """Tell that a search begins."""
    if _is_heard():
        from llama_index.core.instrumentation.events.retrieval import RetrievalStartEvent

        _dispatcher.event(RetrievalStartEvent(str_or_query_bundle=query))


def tell_retrieved(query: str, passages: Iterable[FoundPassage]) -> None:
    """Tell the passages that a search found."""
    if _is_heard():
        from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent

        _dispatcher.event(RetrievalEndEvent(str_or_query_bundle=query, nodes=_nodes(passages)))


def tell_reranking(
    query: str, passages: Iterable[FoundPassage], *, top_n: int, model_name: str
) -> None:
    """Tell that passages are about to be scored."""
    if _is_heard():
        from llama_index.core.instrumentation.events.rerank import ReRankStartEvent

        _dispatcher.event(
            ReRankStartEvent(
                query=query, nodes=_nodes(passages), top_n=top_n, model_name=model_name
            )
        )


def tell_reranked(passages: Iterable[FoundPassage]) -> None:
    """Tell how passages were scored."""
    if _is_heard():
        from llama_index.core.instrumentation.events.rerank import ReRankEndEvent

        _dispatcher.event(ReRankEndEvent(nodes=_nodes(passages)))
