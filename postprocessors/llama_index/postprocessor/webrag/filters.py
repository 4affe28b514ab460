"""Postprocessors that need neither a model nor a service: filters, score changes, neighbours."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Any, Final, Literal, Self

from llama_index.core.bridge.pydantic import Field, SerializeAsAny, model_validator
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
from llama_index.postprocessor.webrag.base import Postprocessor
from llama_index.postprocessor.webrag.selection import (
    age_s,
    choose_distinct,
    depth_weight,
    fill_budget,
    neighbours_in_order,
    shares_of_range,
    shingles,
    within_budget,
)
from typing_extensions import override


class RedundancyFilter(Postprocessor):
    """Maximal marginal relevance with the Jaccard similarity of word 3-shingles.

    Nodes are chosen one by one: next comes the one with the highest `1 - diversity` times its
    relevance minus `diversity` times its similarity to what was already chosen. Relevance is the
    score, scaled so that the best is 1 and the worst 0. A node more similar than `ceiling` to a
    chosen one is left out. The best node is always chosen, and scores stay as they are, so with
    a diversity the result is not sorted by score. Equal nodes keep their order.

    No model and no embedding is needed. Inputs are never changed; the result holds copies.

    Example:
        >>> RedundancyFilter(top_n=5).postprocess_nodes(nodes)
    """

    top_n: int | None = Field(default=None, ge=1, description="Nodes kept; None keeps all.")
    ceiling: float = Field(
        default=0.85, ge=0, le=1, description="Similarity above which a node is a repetition."
    )
    diversity: float = Field(
        default=0.3, ge=0, le=1, description="Weight of novelty; 0 orders by relevance alone."
    )
    metadata_mode: MetadataMode = Field(
        default=MetadataMode.NONE, description="Which rendering of the nodes is compared."
    )

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        sets = [shingles(item.node.get_content(self.metadata_mode)) for item in nodes]
        chosen = choose_distinct(
            [score_of(item) for item in nodes],
            sets,
            ceiling=self.ceiling,
            diversity=self.diversity,
            top_n=self.top_n,
        )
        return [rescored(nodes[at].node, nodes[at].score) for at in chosen]


class TokenBudget(Postprocessor):
    """Keeps the longest run of nodes, from the first, whose tokens stay within the budget.

    The first node is always kept, even when it alone exceeds the budget: no answer would be
    worse. Order and scores stay as they are. Inputs are never changed; the result holds copies.

    Example:
        >>> TokenBudget(max_tokens=4000).postprocess_nodes(nodes)
    """

    max_tokens: int = Field(ge=0, description="Tokens of all kept nodes together.")
    tokenizer: Callable[[str], Sequence[Any]] = Field(
        default_factory=get_tokenizer, exclude=True, description="Turns a text into its tokens."
    )
    metadata_mode: MetadataMode = Field(
        default=MetadataMode.LLM, description="Which rendering of the nodes is counted."
    )

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        sizes = (len(self.tokenizer(item.node.get_content(self.metadata_mode))) for item in nodes)
        kept = within_budget(sizes, self.max_tokens)
        return [rescored(item.node, item.score) for item in nodes[:kept]]


_DAY_S: Final = 86_400.0


class RecencyBoost(Postprocessor):
    """Adds up to `weight` to the score of recent nodes and sorts by the sum.

    With `window_days`, nodes at most that old get the whole weight and older ones nothing; else
    the weight halves every `half_life_days`. Scores within [0, 1] count as they are; others are
    first mapped to [0, 1], the best to 1 and the worst to 0. So a node is never lifted above one
    whose score, so mapped, is better by more than `weight`. Nodes without a date that can be read
    get nothing, dates in the future count as now. Equal sums keep their order.

    Inputs are never changed; the result holds copies.

    Example:
        >>> RecencyBoost(weight=0.1, half_life_days=180).postprocess_nodes(nodes)
    """

    date_keys: list[str] = Field(
        default=["published_at", "modified_at"],
        description="Metadata keys, the first that holds a date counts: a datetime, a date, ISO "
        "8601 text, or a year as whole number.",
    )
    weight: float = Field(default=0.05, ge=0, le=1, description="What the newest nodes get.")
    half_life_days: float = Field(
        default=365.0, gt=0, allow_inf_nan=False, description="Age at which half of it is left."
    )
    window_days: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="Age up to which nodes count as new."
    )
    now: datetime | None = Field(
        default=None, description="When ages are counted from, with time zone; None is now."
    )

    @model_validator(mode="after")
    def _check_now(self) -> Self:
        if self.now is not None and self.now.tzinfo is None:
            raise ValueError("now needs a time zone")
        return self

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        now = self.now or datetime.now(UTC)
        base = [score_of(item) for item in nodes]
        if any(score < 0 or score > 1 for score in base):
            base = shares_of_range(base)
        sums = [
            score + self.weight * self._freshness(item, now)
            for score, item in zip(base, nodes, strict=True)
        ]
        order = sorted(range(len(nodes)), key=lambda at: -sums[at])
        return [rescored(nodes[at].node, sums[at]) for at in order]

    def _freshness(self, item: NodeWithScore, now: datetime) -> float:
        dates = (parse_date(item.node.metadata.get(key)) for key in self.date_keys)
        found = next((each for each in dates if each is not None), None)
        if found is None:
            return 0.0
        age = age_s(found, now) / _DAY_S
        if self.window_days is not None:
            return float(age <= self.window_days)
        return math.pow(0.5, age / self.half_life_days)


def parse_date(value: Any) -> datetime | None:
    """Give the instant a metadata value stands for, in UTC without a zone; None for no date."""
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        elif isinstance(value, int) and not isinstance(value, bool):
            value = date(value, 1, 1)
    except (ValueError, OverflowError):
        return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


class DepthDecay(Postprocessor):
    """Multiplies each score by `max(1 - depth * rate, floor)` and sorts by the product.

    Depth is how many links a page is away from the one named; a node without a depth counts as
    0. A negative score is divided instead, so that deeper is never better. Equal products keep
    their order. Inputs are never changed; the result holds copies.

    Example:
        >>> DepthDecay(rate=0.2).postprocess_nodes(nodes)
    """

    depth_key: str = Field(default="depth", description="Metadata key of the page's depth.")
    rate: float = Field(default=0.1, ge=0, le=1, description="What one link costs.")
    floor: float = Field(default=0.5, gt=0, le=1, description="Least multiplier.")

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        lowered = [rescored(item.node, self._lowered(item)) for item in nodes]
        return sorted(lowered, key=lambda item: -score_of(item))

    def _lowered(self, item: NodeWithScore) -> float:
        score = score_of(item)
        depth = _depth(item.node.metadata.get(self.depth_key))
        weight = depth_weight(depth, rate=self.rate, floor=self.floor)
        return score * weight if score >= 0 else score / weight


def _depth(value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < math.inf else 0.0


class ScaledScores(Postprocessor):
    """Runs a reranker and maps its scores to [0, 1], for whatever compares them with thresholds.

    Cross-encoders give logits, whose logistic function is a probability; a language model asked
    for a grade gives one from 1 to 10. The order stays as the reranker made it, and what lies
    beyond a range counts as its end. A score that is missing or not a number becomes 0.0. The
    result holds copies.

    Example:
        >>> ScaledScores(reranker=LLMRerank(top_n=20), scale=(0, 10))
    """

    reranker: SerializeAsAny[BaseNodePostprocessor] = Field(description="Gives the scores.")
    scale: Literal["logistic"] | tuple[float, float] = Field(
        default="logistic",
        description="`logistic`, or the lowest and the highest score the reranker can give.",
    )

    @model_validator(mode="after")
    def _check_scale(self) -> Self:
        if self.scale != "logistic" and not self.scale[0] < self.scale[1]:
            raise ValueError("scale must name a lower score first, then a higher one.")
        return self

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return self._scaled(self.reranker.postprocess_nodes(_copies(nodes), query_bundle))

    @override
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        ranked = await self.reranker.apostprocess_nodes(_copies(nodes), query_bundle)
        return self._scaled(ranked)

    def _scaled(self, nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        return [rescored(item.node, self._unit(item.score)) for item in nodes]

    def _unit(self, score: float | None) -> float:
        if score is None or math.isnan(score):
            return 0.0
        if self.scale == "logistic":
            return 0.5 * (1 + math.tanh(float(score) / 2))  # never overflows
        low, high = self.scale
        return (min(max(float(score), low), high) - low) / (high - low)


def _copies(nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    """Some rerankers write their scores into the nodes they are given."""
    return [rescored(item.node, item.score) for item in nodes]


_SIDES: Final = (NodeRelationship.PREVIOUS, NodeRelationship.NEXT)

_Known = dict[str, BaseNode]
# The ids of the neighbours of each match, by its own.
_Ways = dict[str, list[str]]


class AdjacentContext(Postprocessor):
    """Puts neighbours after the matched nodes, scored 0.0 and marked under `adjacent_key`.

    All given nodes come first, in their order and with their scores. Then come the neighbours of
    the first node, the nearest first and the one before ahead of the one after, then those of
    the second, and so on; none twice and none that was matched. Neighbours are found by the
    relations PREVIOUS and NEXT, which LlamaIndex's node parsers set; a missing one ends the way
    in its direction. One lookup is made for each step away, for all nodes together.

    Inputs are never changed; the result holds copies.

    Example:
        >>> AdjacentContext(docstore=index.docstore, radius=1).postprocess_nodes(nodes)
    """

    docstore: BaseDocumentStore = Field(exclude=True, description="Where neighbours are looked up.")
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

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        known, ways = self._begun(nodes)
        for missing in _steps(known, ways, self.radius):
            found = self.docstore.get_nodes(missing, raise_error=False)
            known |= {node.node_id: node for node in found}
        return self._together(nodes, known, ways)

    @override
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        known, ways = self._begun(nodes)
        for missing in _steps(known, ways, self.radius):
            found = await self.docstore.aget_nodes(missing, raise_error=False)
            known |= {node.node_id: node for node in found}
        return self._together(nodes, known, ways)

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


def rescored(
    node: BaseNode, score: float | None, added: Mapping[str, Any] | None = None
) -> NodeWithScore:
    """A copy of a node with this score and `added` metadata, which no rendering shows."""
    extra = dict(added or {})
    copy = node.model_copy(
        update={
            "metadata": {**node.metadata, **extra},
            "excluded_embed_metadata_keys": [*node.excluded_embed_metadata_keys, *extra],
            "excluded_llm_metadata_keys": [*node.excluded_llm_metadata_keys, *extra],
        }
    )
    return NodeWithScore(node=copy, score=score)


def score_of(item: NodeWithScore) -> float:
    """The score; 0.0 where there is none."""
    return 0.0 if item.score is None else item.score
