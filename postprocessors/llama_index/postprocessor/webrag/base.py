"""The base of all postprocessors: their names, and what listeners hear of a reranking."""

from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from typing_extensions import override

_dispatcher = get_dispatcher(__name__)


class Postprocessor(BaseNodePostprocessor):
    """A postprocessor named as its class here is, and so are the classes that users derive."""

    @classmethod
    @override
    def class_name(cls) -> str:
        return next(c.__name__ for c in cls.__mro__ if c.__module__.startswith(f"{__package__}."))


class Reranker(Postprocessor):
    """A postprocessor that tells listeners how it scores, as LlamaIndex's own do."""

    def _tell_start(
        self, query: QueryBundle, nodes: list[NodeWithScore], *, top_n: int | None, model: str
    ) -> None:
        kept = len(nodes) if top_n is None else top_n
        _dispatcher.event(ReRankStartEvent(query=query, nodes=nodes, top_n=kept, model_name=model))

    def _told(self, ranked: list[NodeWithScore]) -> list[NodeWithScore]:
        """The nodes themselves, of which listeners have heard."""
        _dispatcher.event(ReRankEndEvent(nodes=ranked))
        return ranked
