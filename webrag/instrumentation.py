"""Spans and events of a search, told by LlamaIndex's instrumentation and by nothing else."""

import functools
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from llama_index_instrumentation import get_dispatcher, root_dispatcher
from llama_index_instrumentation.event_handlers import NullEventHandler

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore

S = TypeVar("S", bound=Callable[..., Coroutine[Any, Any, Any]])

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


def retrieval(found: Callable[[Any], Iterable[FoundPassage]]) -> Callable[[S], S]:
    """Give each call of a search a span, and tell its query and the passages it found."""

    def with_events(search: S) -> S:
        @functools.wraps(search)
        async def retrieve(searcher: Any, query: str, **limits: Any) -> Any:
            if not _is_heard():
                return await search(searcher, query, **limits)
            from llama_index.core.instrumentation.events import retrieval as events

            _dispatcher.event(events.RetrievalStartEvent(str_or_query_bundle=query))
            result = await search(searcher, query, **limits)
            nodes = _nodes(found(result))
            _dispatcher.event(events.RetrievalEndEvent(str_or_query_bundle=query, nodes=nodes))
            return result

        return cast(S, span(retrieve))

    return with_events


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
