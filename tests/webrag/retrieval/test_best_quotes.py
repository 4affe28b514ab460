import time
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from webrag.retrieval.quotes import best_apart, best_quotes

DEFINITIONS = """# Options

--jobs=njobs

Run so many recipes at the same time.

--silent

Do not print the recipes.
"""
LISTING = """To run the tests strictly one after another, pass this flag:

```sh
cargo test -- --test-threads=1
```

Other flags change other things.
"""
TABLE = "| Setting | Default |\n|---|---|\n| port | 5432 |\n| backlog | 128 |\n"
LIST = "Each of these stops the server:\n\n- Send it SIGTERM.\n- Press Control and C.\n"


def quoted(text: str, *questions: str, **options: int) -> list[str]:
    return [text[each.start : each.end] for each in best_quotes(text, 0, questions, {}, **options)]


@pytest.mark.parametrize(
    ("text", "question", "expected", "lead"),
    [
        pytest.param(
            DEFINITIONS,
            "how many jobs at the same time",
            "Run so many recipes at the same time.",
            "--jobs=njobs",
            id="definition-with-its-term",
        ),
        pytest.param(TABLE, "default of backlog", "backlog | 128", None, id="row"),
        pytest.param(
            LIST,
            "how to stop the server with Control C",
            "Press Control and C.",
            "Each of these stops the server:",
            id="item-with-its-lead-in",
        ),
    ],
)
def test_the_part_that_answers_is_quoted_with_what_names_its_subject(
    text: str, question: str, expected: str, lead: str | None
) -> None:
    best = best_quotes(text, 0, [question], {})[0]

    assert text[best.start : best.end] == expected
    assert (best.lead and text[slice(*best.lead)]) == lead


def test_a_listing_is_as_good_as_the_sentence_beside_it() -> None:
    found = quoted(LISTING, "run tests strictly one after another", most=2)

    assert "cargo test -- --test-threads=1" in found


def test_the_definition_of_an_option_comes_before_sentences_that_name_it() -> None:
    text = (
        "--keep-going  \nGo on after an error.\n\n"
        "--stop  \nEnd at once. Wins over --keep-going, whatever --keep-going does."
    )

    assert quoted(text, "What does --keep-going do?")[0] == "Go on after an error."


@pytest.mark.parametrize("text", ["# Ports", "# Ports\n\n## Ports below 1024\n", "Ports\n=====\n"])
def test_a_heading_is_never_quoted(text: str) -> None:
    assert quoted(text, "ports") == []


def test_other_wordings_find_what_the_question_does_not_name() -> None:
    text = "Bees sleep at night. A smoker calms the colony. Hives are made of wood."

    assert quoted(text, "How do I quieten them?", "smoker calms colony", max_chars=40)[0] == (
        "A smoker calms the colony."
    )


def test_offsets_are_those_of_the_page() -> None:
    best = best_quotes(DEFINITIONS, 1000, ["same time"], {})[0]

    assert DEFINITIONS[best.start - 1000 : best.end - 1000].endswith("at the same time.")
    assert best.lead is not None
    assert DEFINITIONS[best.lead[0] - 1000 : best.lead[1] - 1000] == "--jobs=njobs"


@given(
    st.text(alphabet="ab.*_`~[]()>|- :\n#<\\", max_size=80),
    st.integers(1, 100),
    st.integers(1, 4),
)
def test_quotations_are_parts_of_the_page_within_their_limit_and_apart(
    text: str, limit: int, most: int
) -> None:
    found = best_quotes(text, 0, ["a b", "ab"], {}, max_chars=limit, most=most)

    spans = sorted((each.start, each.end) for each in found)
    assert len(found) <= most
    assert all(0 <= start < end <= len(text) and end - start <= limit for start, end in spans)
    assert all(left[1] <= right[0] for left, right in pairwise(spans))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", ["A. ", "- a:\n", "a b:\n\n", "| a |\n", "大。", "`a` "])
def test_a_long_passage_of_small_parts_is_quoted_in_time(piece: str) -> None:
    text = piece * (20_000 // len(piece))
    started = time.perf_counter()

    best_quotes(text, 0, ["a long question about a"] * 6, {})

    assert time.perf_counter() - started < 10


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        pytest.param((3.0, 1.0), "port | 5432", id="the-question"),
        pytest.param((1.0, 3.0), "backlog | 128", id="another-wording"),
    ],
)
def test_the_variant_that_counts_most_chooses(weights: tuple[float, ...], expected: str) -> None:
    best = best_quotes(TABLE, 0, ["port", "backlog"], {}, weights=weights)[0]

    assert TABLE[best.start : best.end] == expected


def test_what_says_the_same_as_a_better_quotation_gives_way_to_what_says_more() -> None:
    first, again, other = "The port is 8080.", "The port is 8081.", "Any host can ask."
    text = f"{first}\n\n{again}\n\n{other}\n"
    meanings = {first: (0.8, 0.6), again: (0.8, 0.6), other: (0.75, -0.66)}

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([meanings.get(each, (1.0, 0.0)) for each in texts], dtype=np.float32)

    found = best_quotes(text, 0, ["wanted"], {}, most=2, encode=encode)

    assert {text[each.start : each.end] for each in found} == {first, other}


def test_the_best_apart_are_those_that_together_say_the_most() -> None:
    meanings = [(1.0, 0.0), (1.0, 0.0), (0.0, 1.0)]

    assert best_apart([1.0, 0.95, 0.9], meanings, 2) == [0, 2]
    assert best_apart([1.0, 0.95, 0.9], [(), (), ()], 2) == [0, 1]
    assert best_apart([1.0, 0.95, 0.6], meanings, 2) == [0, 1]
