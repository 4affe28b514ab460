import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.postprocessor.webrag import ScaledScores
from pydantic import ValidationError

from .conftest import node, texts


class Given(BaseNodePostprocessor):
    """Writes these scores into the nodes it is given, in place, as cross-encoders do."""

    scores: list[float | None]

    def _postprocess_nodes(
        self,
        nodes: list[NodeWithScore],
        query_bundle: QueryBundle | None = None,
    ) -> list[NodeWithScore]:
        for item, score in zip(nodes, self.scores, strict=True):
            item.score = score
        return nodes


def scaled(scores: list[float | None], **fields: Any) -> list[float | None]:
    nodes = [node(str(place), 0.5) for place in range(len(scores))]
    found = ScaledScores(reranker=Given(scores=scores), **fields).postprocess_nodes(nodes)
    return [item.score for item in found]


def test_logits_become_probabilities() -> None:
    assert scaled([0.0, 2.0, -1000.0, 1000.0]) == pytest.approx([0.5, 0.8808, 0.0, 1.0], abs=1e-4)


def test_grades_become_shares_of_their_range() -> None:
    assert scaled([1, 5.5, 10, 12], scale=(1, 10)) == [0.0, 0.5, 1.0, 1.0]


def test_missing_score_counts_as_the_lowest() -> None:
    assert scaled([None, float("nan")]) == [0.0, 0.0]


def test_nodes_that_were_passed_in_are_left_alone() -> None:
    nodes = [node("a", 0.25)]
    before = copy.deepcopy(nodes)

    ScaledScores(reranker=Given(scores=[3.0])).postprocess_nodes(nodes)

    assert nodes == before


async def test_asynchronous_result_is_the_same() -> None:
    nodes = [node("a", 0.1), node("b", 0.2)]
    rerank = ScaledScores(reranker=Given(scores=[1.0, -1.0]))

    assert await rerank.apostprocess_nodes(nodes) == rerank.postprocess_nodes(nodes)


def test_order_of_the_reranker_is_kept() -> None:
    found = ScaledScores(reranker=Given(scores=[-3.0, 3.0])).postprocess_nodes(
        [node("first", 0.1), node("second", 0.9)]
    )

    assert texts(found) == ["first", "second"]


def test_range_must_rise() -> None:
    with pytest.raises(ValidationError, match="lower score first"):
        ScaledScores(reranker=Given(scores=[]), scale=(1, 1))


@given(st.lists(st.floats(allow_nan=True) | st.none()))
def test_every_score_lies_between_0_and_1(scores: list[float | None]) -> None:
    assert all(0 <= (score or 0) <= 1 for score in scaled(scores))
