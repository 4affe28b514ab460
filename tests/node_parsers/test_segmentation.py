from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.node_parser.webrag.outline import Piece
from llama_index.node_parser.webrag.segmentation import Segmenter, TokenCounter, trim


def words(text: str) -> list[str]:
    return text.split()


def segmenter(text: str) -> Segmenter:
    return Segmenter(text, TokenCounter(words))


def make(sizes: list[int], costs: list[float]) -> tuple[str, list[Piece]]:
    text, pieces = "", []
    for size, cost in zip(sizes, costs, strict=True):
        start = len(text)
        text += "w " * size
        pieces.append(Piece(start, len(text), size, cost, prose=False))
    return text, pieces


def sizes_of(groups: list[list[Piece]]) -> list[int]:
    return [sum(piece.tokens for piece in group) for group in groups]


@settings(max_examples=200, deadline=None)
@given(
    parts=st.lists(st.tuples(st.integers(1, 40), st.floats(0, 3)), min_size=1, max_size=300),
    limit=st.integers(5, 60),
)
def test_groups_cover_all_pieces_within_the_limit(
    parts: list[tuple[int, float]], limit: int
) -> None:
    text, pieces = make([size for size, _ in parts], [cost for _, cost in parts])

    groups = segmenter(text).split(pieces, limit)

    flat = [piece for group in groups for piece in group]
    assert (flat[0].start, flat[-1].end) == (0, len(text))
    assert all(before.end == after.start for before, after in pairwise(flat))
    assert max(sizes_of(groups)) <= limit


@pytest.mark.parametrize(
    ("sizes", "costs", "expected"),
    [
        pytest.param([10] * 30, [0.0] * 30, [100, 100, 100], id="full groups"),
        pytest.param([10] * 11, [0.0] * 11, [60, 50], id="even instead of a leftover"),
        pytest.param([40, 40, 40], [0, 0, 3.0], [40, 80], id="cheap place"),
        pytest.param([90, 3, 80], [0, -0.5, 5.0], [90, 83], id="heading goes with its text"),
        pytest.param([60, 70], [0, -0.5], [60, 70], id="what does not fit is apart"),
    ],
)
def test_cuts_are_where_they_cost_least(
    sizes: list[int], costs: list[float], expected: list[int]
) -> None:
    text, pieces = make(sizes, costs)

    assert sorted(sizes_of(segmenter(text).split(pieces, 100))) == sorted(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("One two. Three four.", ["One two.", "Three four."], id="full stop"),
        pytest.param("See Dr. Who. Then go", ["See Dr. Who.", "Then go"], id="abbreviation"),
        pytest.param("Is 1.5 it? Yes it", ["Is 1.5 it?", "Yes it"], id="number"),
        pytest.param("He: \u201cno.\u201d She is", ["He: \u201cno.\u201d", "She is"], id="quote"),
        pytest.param("one two three  \nfour five", ["one two three", "four five"], id="hard break"),
    ],
)
def test_prose_over_the_limit_is_cut_between_sentences(text: str, expected: list[str]) -> None:
    whole = Piece(0, len(text), len(text.split()), 0.0, prose=True)

    groups = segmenter(text).split([whole], 3)

    assert [text[group[0].start : group[-1].end].strip() for group in groups] == expected


def test_chinese_sentences_need_no_space() -> None:
    text = "\u4f60\u597d\u3002\u4e16\u754c\uff01"
    counter = TokenCounter(list)

    groups = Segmenter(text, counter).split([Piece(0, 6, 6, 0.0, prose=True)], 3)

    assert [text[g[0].start : g[-1].end] for g in groups] == [text[:3], text[3:]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  \n\n  a\n b \n", "  a\n b"),
        ("x  a ", "x  a"),
        ("\n", ""),
        ("\t code\n", "\t code"),
    ],
)
def test_trimming_keeps_the_indentation_of_the_first_line(text: str, expected: str) -> None:
    start, end = trim(text, 0, len(text))

    assert text[start:end] == expected


def test_trimming_drops_the_space_before_a_word_in_the_middle_of_a_line() -> None:
    assert trim("ab  cd", 2, 6) == (4, 6)


def test_long_runs_are_counted_in_parts() -> None:
    longest: list[int] = []

    def tokenizer(text: str) -> list[str]:
        longest.append(len(text))
        return list(text)

    counter = TokenCounter(tokenizer)

    assert counter.count("x" * 10_000) + counter.count("a" + " " * 10_000) == 20_001
    assert max(longest) <= 4096
