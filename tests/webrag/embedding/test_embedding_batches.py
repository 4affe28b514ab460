import itertools

from hypothesis import given
from hypothesis import strategies as st

from webrag.embedding.embedder import plan_batches

SIZES = st.lists(st.integers(0, 50), max_size=60)


def planned(sizes: list[int], texts: int, tokens: int | None) -> list[list[int]]:
    return [sizes[part] for part in plan_batches(sizes, most_texts=texts, most_tokens=tokens)]


@given(sizes=SIZES, texts=st.integers(1, 20), tokens=st.none() | st.integers(1, 100))
def test_batches_hold_every_text_once_in_order(
    sizes: list[int], texts: int, tokens: int | None
) -> None:
    assert [size for batch in planned(sizes, texts, tokens) for size in batch] == sizes


@given(sizes=SIZES, texts=st.integers(1, 20), tokens=st.integers(1, 100))
def test_batches_keep_to_both_limits(sizes: list[int], texts: int, tokens: int) -> None:
    batches = planned(sizes, texts, tokens)

    assert all(0 < len(batch) <= texts for batch in batches)
    assert all(sum(batch) <= tokens or len(batch) == 1 for batch in batches)


@given(sizes=SIZES, texts=st.integers(1, 20), tokens=st.integers(1, 100))
def test_no_batch_could_take_the_next_text(sizes: list[int], texts: int, tokens: int) -> None:
    batches = planned(sizes, texts, tokens)

    for batch, following in itertools.pairwise(batches):
        assert len(batch) == texts or sum(batch) + following[0] > tokens
