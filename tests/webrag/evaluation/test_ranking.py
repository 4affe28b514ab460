import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.evaluation.retrieval.metrics import MRR, NDCG, HitRate

from webrag.evaluation.metrics import hit_rate, ndcg, reciprocal_rank

IDS = st.sampled_from("abcdefgh")
ONCE = st.lists(IDS, min_size=1, max_size=8, unique=True)


@given(ONCE, ONCE)
def test_figures_equal_those_of_llama_index(expected: list[str], retrieved: list[str]) -> None:
    given_ids = {"expected_ids": expected, "retrieved_ids": retrieved}

    assert hit_rate(expected, retrieved) == HitRate().compute(**given_ids).score
    assert reciprocal_rank(expected, retrieved) == pytest.approx(MRR().compute(**given_ids).score)
    assert ndcg(expected, retrieved) == pytest.approx(NDCG().compute(**given_ids).score)


@given(ONCE, ONCE)
def test_ndcg_stays_between_nothing_and_the_best_order(
    expected: list[str], retrieved: list[str]
) -> None:
    assert 0.0 <= ndcg(expected, retrieved) <= 1.0
    assert ndcg(expected, expected) == pytest.approx(1.0)


def test_nothing_retrieved_scores_nothing() -> None:
    assert (hit_rate(["a"], []), reciprocal_rank(["a"], []), ndcg(["a"], [])) == (0.0, 0.0, 0.0)
