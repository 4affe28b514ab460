import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore
from llama_index.postprocessor.webrag import RedundancyFilter

from .conftest import node, texts

PORT = "The server listens on port 5432 unless another port is set in the configuration file."
COLOUR = "Colours of the interface follow the theme that was chosen in the preferences."
nodes = st.lists(
    st.builds(
        node,
        st.lists(st.sampled_from(["red", "green", "blue"]), max_size=6).map(" ".join),
        st.none() | st.floats(-1e6, 1e6),
    ),
    max_size=8,
)


def test_repetition_with_the_lower_score_is_left_out() -> None:
    found = RedundancyFilter().postprocess_nodes(
        [node(PORT.upper() + "!", 0.4), node(COLOUR, 0.5), node(PORT, 0.9)]
    )

    assert texts(found) == [PORT, COLOUR]


def test_first_of_equally_good_repetitions_stays() -> None:
    found = RedundancyFilter().postprocess_nodes([node(PORT, page=1), node(PORT, page=2)])

    assert [item.metadata["page"] for item in found] == [1]


def test_ceiling_of_one_keeps_repetitions() -> None:
    assert len(RedundancyFilter(ceiling=1.0).postprocess_nodes([node(PORT), node(PORT)])) == 2


def test_diversity_prefers_what_is_new() -> None:
    near = PORT + " Restart it after the change to the port for the change to take effect."
    given_nodes = [node(PORT, 0.9), node(near, 0.88), node(COLOUR, 0.85), node("Else.", 0.1)]

    plain = RedundancyFilter(diversity=0).postprocess_nodes(given_nodes)
    diverse = RedundancyFilter(diversity=0.5).postprocess_nodes(given_nodes)

    assert texts(plain)[:2] == [PORT, near]
    assert texts(diverse)[:2] == [PORT, COLOUR]


def test_top_n_keeps_the_first_chosen() -> None:
    found = RedundancyFilter(top_n=1).postprocess_nodes([node(COLOUR, 0.2), node(PORT, 0.9)])

    assert [(item.text, item.score) for item in found] == [(PORT, 0.9)]


@pytest.mark.parametrize("field", [{"ceiling": 1.1}, {"diversity": -0.1}, {"top_n": 0}])
def test_settings_out_of_range_are_refused(field: Any) -> None:
    with pytest.raises(ValueError, match=next(iter(field))):
        RedundancyFilter(**field)


@given(nodes, st.floats(0, 1), st.floats(0, 1))
async def test_result_is_a_selection_without_repetitions_and_inputs_stay(
    given_nodes: list[NodeWithScore], ceiling: float, diversity: float
) -> None:
    before = copy.deepcopy(given_nodes)
    keep = RedundancyFilter(ceiling=ceiling, diversity=diversity)

    found = keep.postprocess_nodes(given_nodes)

    assert given_nodes == before
    assert found == await keep.apostprocess_nodes(given_nodes)
    assert keep.postprocess_nodes(found) == found or diversity
    ids = [item.node.node_id for item in found]
    assert len(set(ids)) == len(ids)
    assert set(ids) <= {item.node.node_id for item in given_nodes}
    assert bool(found) == bool(given_nodes)


@given(nodes)
def test_without_diversity_scores_descend(given_nodes: list[NodeWithScore]) -> None:
    found = RedundancyFilter(diversity=0).postprocess_nodes(given_nodes)

    scores = [item.score or 0.0 for item in found]
    assert scores == sorted(scores, reverse=True)
