import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore
from llama_index.postprocessor.webrag import DepthDecay

from .conftest import node, texts


def test_each_link_costs_the_rate_down_to_the_floor() -> None:
    found = DepthDecay(rate=0.2, floor=0.5).postprocess_nodes(
        [node(str(depth), 1.0, depth=depth) for depth in range(5)]
    )

    assert [item.score for item in found] == pytest.approx([1.0, 0.8, 0.6, 0.5, 0.5])


def test_nearer_page_overtakes_a_slightly_better_one() -> None:
    found = DepthDecay().postprocess_nodes([node("far", 0.6, depth=3), node("near", 0.5, depth=0)])

    assert texts(found) == ["near", "far"]


@pytest.mark.parametrize("depth", [None, "2", -1, True, float("nan"), float("inf"), []])
def test_what_is_no_depth_counts_as_none(depth: Any) -> None:
    (found,) = DepthDecay(rate=0.5).postprocess_nodes([node("x", 0.5, depth=depth)])

    assert found.score == 0.5


def test_depth_is_read_under_the_named_key() -> None:
    (found,) = DepthDecay(depth_key="hops", rate=0.5).postprocess_nodes([node("x", 0.5, hops=1)])

    assert found.score == 0.25


@given(st.floats(-1e6, 1e6), st.integers(0, 9), st.integers(0, 9), st.floats(0, 1))
def test_deeper_is_never_better(score: float, near: int, far: int, rate: float) -> None:
    near, far = sorted((near, far))

    found = DepthDecay(rate=rate).postprocess_nodes(
        [node("near", score, depth=near), node("far", score, depth=far)]
    )

    assert texts(found) == ["near", "far"]


nodes = st.lists(
    st.builds(
        lambda score, depth: node("x", score, depth=depth),
        st.none() | st.floats(-1e6, 1e6),
        st.none() | st.integers() | st.floats() | st.text(max_size=2),
    ),
    max_size=8,
)


@given(nodes, st.floats(0, 1), st.floats(0.01, 1))
async def test_nothing_is_lost_scores_descend_and_inputs_stay(
    given_nodes: list[NodeWithScore], rate: float, floor: float
) -> None:
    before = copy.deepcopy(given_nodes)
    decay = DepthDecay(rate=rate, floor=floor)

    found = decay.postprocess_nodes(given_nodes)

    assert str(given_nodes) == str(before)
    assert str(found) == str(await decay.apostprocess_nodes(given_nodes))
    assert {item.node.node_id for item in found} == {item.node.node_id for item in given_nodes}
    scores = [item.get_score() for item in found]
    assert scores == sorted(scores, reverse=True)
