from hypothesis import given
from hypothesis import strategies as st
from llama_index.node_parser.webrag.rich_content import Intervals

RANGES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)), max_size=12)


@given(ranges=RANGES, start=st.integers(0, 40), size=st.integers(1, 10))
def test_touching_means_sharing_a_number(
    ranges: list[tuple[int, int]], start: int, size: int
) -> None:
    pairs = [(begin, begin + length) for begin, length in ranges]
    numbers = {number for begin, end in pairs for number in range(begin, max(end, begin + 1))}

    touched = Intervals(pairs).touches(start, start + size)

    assert touched == bool(numbers & set(range(start, start + size)))
