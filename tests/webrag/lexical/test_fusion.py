import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.lexical.bm25 import fuse_ranks, fuse_scores

CANDIDATES = st.lists(
    st.tuples(st.floats(0, 50), st.floats(-1, 1), st.floats(0, 1)), min_size=1, max_size=20
)


def test_score_fusion_equals_the_formula() -> None:
    fused = fuse_scores([4.0, 2.0], [0.0, 0.5], [1.0, 0.5], lexical_weight=0.4, page_weight=0.2)

    assert fused == pytest.approx([0.4 + 0.6 / 1.5 + 0.2, 0.2 + 0.6 + 0.1])


def test_score_fusion_without_any_word_hit_goes_by_meaning() -> None:
    assert fuse_scores([0.0, 0.0], [0.2, 0.8], [0.0, 0.0]).argmax() == 1


def test_rank_fusion_equals_the_formula() -> None:
    fused = fuse_ranks([3.0, 0.0, 1.0], [0.1, 0.9, 0.5])

    assert fused == pytest.approx([1 / 61 + 1 / 63, 1 / 61, 1 / 62 + 1 / 62])


def test_fusion_of_nothing_is_nothing() -> None:
    assert len(fuse_scores([], [], [])) == len(fuse_ranks([], [])) == 0


@given(CANDIDATES)
def test_fused_scores_stay_within_their_bound(candidates: list[tuple[float, float, float]]) -> None:
    lexical, similarity, page = zip(*candidates, strict=True)

    fused = fuse_scores(lexical, similarity, page, lexical_weight=0.4, page_weight=0.2)

    assert np.all((fused >= 0) & (fused <= 1.2 + 1e-9))


@given(CANDIDATES, st.randoms(use_true_random=False))
def test_fusion_does_not_depend_on_the_order_of_candidates(
    candidates: list[tuple[float, float, float]], random: np.random.Generator
) -> None:
    order = list(range(len(candidates)))
    random.shuffle(order)
    lexical, similarity, page = map(np.array, zip(*candidates, strict=True))

    shuffled = fuse_scores(lexical[order], similarity[order], page[order])
    ranked = fuse_ranks(lexical[order], similarity[order])

    assert shuffled == pytest.approx(fuse_scores(lexical, similarity, page)[order])
    assert ranked == pytest.approx(fuse_ranks(lexical, similarity)[order])


@given(CANDIDATES)
def test_more_words_never_lower_a_candidates_rank_among_the_others(
    candidates: list[tuple[float, float, float]],
) -> None:
    lexical, similarity, page = (list(column) for column in zip(*candidates, strict=True))
    before = fuse_scores(lexical, similarity, page)
    lexical[0] = max(lexical) + 1

    after = fuse_scores(lexical, similarity, page)

    assert sum(after > after[0] + 1e-9) <= sum(before > before[0] + 1e-9)
