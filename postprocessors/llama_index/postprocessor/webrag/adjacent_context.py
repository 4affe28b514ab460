"""Adds the nodes before and after good ones as context; it neither ranks nor removes any."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, Self, cast

from llama_index.core.bridge.pydantic import Field, model_validator
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
)
from llama_index.core.storage.docstore import BaseDocumentStore
from llama_index.core.utils import get_tokenizer
from llama_index.postprocessor.webrag.nodes import rescored
from llama_index.postprocessor.webrag.selection import fill_budget, neighbours_in_order
from llama_index.postprocessor.webrag.service_calls import run_blocking
from typing_extensions import override

_SIDES: Final = (NodeRelationship.PREVIOUS, NodeRelationship.NEXT)

_Known = dict[str, BaseNode]
# The ids of the neighbours of each match, by its own.
_Ways = dict[str, list[str]]
Load = Callable[[list[str]], Sequence[BaseNode] | Awaitable[Sequence[BaseNode]]]


class AdjacentContext(BaseNodePostprocessor):
    """Puts neighbours after the matched nodes, scored 0.0 and marked under `adjacent_key`.

    All given nodes come first, in their order and with their scores. Then come the neighbours of
    the first node, the nearest first and the one before ahead of the one after, then those of
    the second, and so on; none twice and none that was matched. Neighbours are found by the
    relations PREVIOUS and NEXT, which LlamaIndex's node parsers set; a missing one ends the way
    in its direction. One lookup is made for each step away, for all nodes together.

    Inputs are never changed; the result holds copies.

    Example:
        >>> AdjacentContext(docstore=index.docstore, radius=1).postprocess_nodes(nodes)
        >>> AdjacentContext(load=lambda ids: store.get_nodes(node_ids=ids))
    """

    docstore: BaseDocumentStore | None = Field(
        default=None, exclude=True, description="Where neighbours are looked up."
    )
    load: Load | None = Field(
        default=None,
        exclude=True,
        description="Instead of a docstore: a function, plain or `async def`, from node ids to "
        "the nodes that exist, in any order.",
    )
    radius: int = Field(default=1, ge=0, description="Neighbours on each side; 0 adds none.")
    min_score: float | None = Field(
        default=None, description="Nodes below it get no neighbours; None gives them to all."
    )
    max_tokens: int | None = Field(
        default=None, ge=0, description="Tokens of all neighbours together; None sets no limit."
    )
    tokenizer: Callable[[str], Sequence[object]] = Field(
        default_factory=get_tokenizer, exclude=True, description="Turns a text into its tokens."
    )
    adjacent_key: str = Field(
        default="is_adjacent", description="Metadata key that is true for added nodes."
    )

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if (self.docstore is None) == (self.load is None):
            raise ValueError("AdjacentContext needs either a docstore or a load function")
        return self

    @classmethod
    @override
    def class_name(cls) -> str:
        return "AdjacentContext"

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if inspect.iscoroutinefunction(self.load):
            return run_blocking(self._apostprocess_nodes(nodes, query_bundle))
        known, ways = self._begun(nodes)
        for missing in _steps(known, ways, self.radius):
            known |= {node.node_id: node for node in self._loaded(missing)}
        return self._together(nodes, known, ways)

    @override
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        known, ways = self._begun(nodes)
        for missing in _steps(known, ways, self.radius):
            known |= {node.node_id: node for node in await self._aloaded(missing)}
        return self._together(nodes, known, ways)

    def _loaded(self, ids: list[str]) -> Sequence[BaseNode]:
        if self.docstore is not None:
            return self.docstore.get_nodes(ids, raise_error=False)
        assert self.load is not None
        return cast("Sequence[BaseNode]", self.load(ids))

    async def _aloaded(self, ids: list[str]) -> Sequence[BaseNode]:
        if self.docstore is not None:
            return await self.docstore.aget_nodes(ids, raise_error=False)
        if inspect.iscoroutinefunction(self.load):
            return cast("Sequence[BaseNode]", await self.load(ids))
        return await asyncio.to_thread(self._loaded, ids)

    def _begun(self, nodes: Sequence[NodeWithScore]) -> tuple[_Known, _Ways]:
        strong = filter(self._is_strong, nodes)
        known = {item.node.node_id: item.node for item in nodes}
        return known, {item.node.node_id: [] for item in strong}

    def _together(
        self, nodes: Sequence[NodeWithScore], known: _Known, ways: _Ways
    ) -> list[NodeWithScore]:
        matched = {item.node.node_id for item in nodes}
        found = [known[each] for each in neighbours_in_order(ways.values(), matched)]
        return [rescored(item.node, item.score) for item in nodes] + self._within_budget(found)

    def _is_strong(self, item: NodeWithScore) -> bool:
        return self.min_score is None or (item.score is not None and item.score >= self.min_score)

    def _within_budget(self, found: Sequence[BaseNode]) -> list[NodeWithScore]:
        kept = found
        if self.max_tokens is not None:
            texts = (node.get_content(MetadataMode.LLM) for node in found)
            sizes = (len(self.tokenizer(text)) for text in texts)
            kept = [found[place] for place in fill_budget(sizes, self.max_tokens)]
        return [rescored(node, 0.0, {self.adjacent_key: True}) for node in kept]


def _steps(known: _Known, ways: _Ways, radius: int) -> Iterator[list[str]]:
    """Lead ways on; gives the ids that are to be `known`, as far as they exist, for each step."""
    # Where each way in one direction has got to; None where it has ended.
    tips: dict[tuple[str, NodeRelationship], BaseNode | None] = {
        (start, side): known[start] for start in ways for side in _SIDES
    }
    for _ in range(radius):
        steps = {way: _next_id(tip, way[1]) for way, tip in tips.items()}
        missing = {each for each in steps.values() if each is not None and each not in known}
        if missing:
            yield sorted(missing)
        for way, step in steps.items():
            tips[way] = known.get(step) if step is not None else None
            if step in known and step is not None:
                ways[way[0]].append(step)


def _next_id(tip: BaseNode | None, side: NodeRelationship) -> str | None:
    related = tip.relationships.get(side) if tip is not None else None
    return related.node_id if isinstance(related, RelatedNodeInfo) else None
