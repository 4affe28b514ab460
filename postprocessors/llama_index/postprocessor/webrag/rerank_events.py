"""Tells LlamaIndex's listeners of a reranking, as its own rerankers do."""

from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher

_dispatcher = get_dispatcher(__name__)


def tell_reranking(
    query: QueryBundle, nodes: list[NodeWithScore], *, top_n: int | None, model_name: str
) -> None:
    """Tell that nodes are about to be scored."""
    kept = len(nodes) if top_n is None else top_n
    _dispatcher.event(ReRankStartEvent(query=query, nodes=nodes, top_n=kept, model_name=model_name))


def told_reranked(nodes: list[NodeWithScore]) -> list[NodeWithScore]:
    """Give the nodes back, having told how they were scored."""
    _dispatcher.event(ReRankEndEvent(nodes=nodes))
    return nodes
