import random
import time
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import grows_as_its_input
from webrag.retrieval.citation_checks import word_changes
from webrag.web.reading import changed_words

WORDS = st.lists(st.sampled_from("abcde"), max_size=40).map(" ".join)


def shuffled(size: int) -> str:
    words = list(map(str, range(size)))
    random.Random(size).shuffle(words)
    return " ".join(words)


# Each made difflib compare nearly every word with every other, again and again.
ATTACKS = {
    "one word": lambda size: ("a " * size, "a " * size + "b"),
    "two words, shifted": lambda size: ("a b " * size, "b a " * size),
    "runs that shrink": lambda size: ("a " * size, "a a a b " * (size // 4)),
    "another order": lambda size: (shuffled(size), shuffled(size + 1)),
    "nothing in common": lambda size: ("a " * size, "b " * size),
    "one in three": lambda size: ("a b c " * (size // 3), "c x a y b z " * (size // 6)),
}


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("compare", [word_changes, changed_words])
def test_cost_grows_with_the_length_of_the_texts(compare: object, attack: str) -> None:
    assert grows_as_its_input(lambda texts: compare(*texts), ATTACKS[attack], 20_000)  # type: ignore[operator]


@pytest.mark.parametrize("attack", ATTACKS)
def test_longest_texts_that_are_compared_take_no_second(attack: str) -> None:
    old, new = ATTACKS[attack](2_000)
    started = time.process_time()

    word_changes(old, new)

    assert time.process_time() - started < 1


@given(WORDS, WORDS)
def test_changes_hold_every_word_of_both_texts_in_order(old: str, new: str) -> None:
    changes = word_changes(old, new)

    assert " ".join(text for kind, text in changes if kind != "added") == old
    assert " ".join(text for kind, text in changes if kind != "removed") == new
    assert all(len(list(same)) == 1 for _, same in groupby(kind for kind, _ in changes))


@pytest.mark.parametrize("place", [0, 3_000, 4_999])
def test_one_word_of_a_long_text_is_the_only_change(place: int) -> None:
    words = shuffled(5_000).split()
    changed = [*words[:place], "another", *words[place + 1 :]]

    changes = word_changes(" ".join(words), " ".join(changed))

    assert [each for each in changes if each[0] != "same"] == [
        ("removed", words[place]),
        ("added", "another"),
    ]


def test_words_beyond_those_compared_are_removed_and_added() -> None:
    compared = " ".join(map(str, range(1_999)))

    changes = word_changes(f"x {compared} the end", f"y {compared} the end now")

    assert changes == (
        ("removed", "x"),
        ("added", "y"),
        ("same", compared),
        ("removed", "the end"),
        ("added", "the end now"),
    )


def test_longest_run_that_both_have_is_found_first() -> None:
    assert word_changes("x a b c d", "a x b c d x a") == (
        ("added", "a"),
        ("same", "x"),
        ("removed", "a"),
        ("same", "b c d"),
        ("added", "x a"),
    )
