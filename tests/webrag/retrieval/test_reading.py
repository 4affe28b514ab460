import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.corpus.models import PageText
from webrag.errors import InputError
from webrag.retrieval.reading import (
    PageExcerpt,
    ReadingPlace,
    cut_to_tokens,
    excerpt_at,
    headings_of,
    last_end,
)

MARKDOWN = """\
# Manual

An introduction.

## Setting up

Install it first.

```sh
# a comment, no heading
## nor this
```

### On *Linux* with `apt`

Run the command.

## Limits ##

The limit is 120 seconds.

The limit was lower once.
"""


def page(markdown: str = MARKDOWN) -> PageText:
    at = datetime(2026, 11, 20, tzinfo=UTC)
    return PageText(uuid.UUID(int=1), "https://docs.example.org/", "Manual", markdown, at, None)


def count_words(text: str) -> int:
    return len(text.split())


def read(place: ReadingPlace, max_tokens: int = 1000, markdown: str = MARKDOWN) -> PageExcerpt:
    return excerpt_at(page(markdown), place, max_tokens=max_tokens, count_tokens=count_words)


def test_headings_are_found_outside_code_and_without_markup() -> None:
    assert [(each.level, each.text) for each in headings_of(MARKDOWN)] == [
        (1, "Manual"),
        (2, "Setting up"),
        (3, "On Linux with apt"),
        (2, "Limits"),
    ]


def test_heading_offsets_are_those_of_their_lines() -> None:
    for each in headings_of(MARKDOWN):
        assert MARKDOWN[each.char_start :].startswith("#" * each.level + " ")


@pytest.mark.parametrize(
    "code",
    [
        "````\n```\n# inside\n```\n````",
        "~~~\n```\n# inside\n~~~",
        "```\n# inside\n```python\n# inside\n```",
        "- ```\n# inside\n```",
        "```\n# inside and never ended",
    ],
)
def test_lines_of_fenced_code_are_no_headings(code: str) -> None:
    assert headings_of(f"# Before\n\n{code}\n")[1:] == ()


def test_whole_page_is_read_when_it_fits() -> None:
    excerpt = read(ReadingPlace())

    assert (excerpt.text, excerpt.next_offset) == (MARKDOWN, None)


@pytest.mark.parametrize("heading", ["Limits", "limits", " LIMITS ", "limit"])
def test_page_is_read_from_a_heading(heading: str) -> None:
    assert read(ReadingPlace(heading=heading)).text.startswith("## Limits ##\n")


def test_heading_with_the_same_words_comes_before_one_that_holds_them() -> None:
    excerpt = read(ReadingPlace(heading="Use"), markdown="# How to use\n\nA.\n\n# Use\n\nB.\n")

    assert excerpt.text.startswith("# Use")


def test_unknown_heading_is_refused_with_those_near_to_it() -> None:
    with pytest.raises(InputError, match=r"no heading 'Seting up'\. Near to it: 'Setting up'"):
        read(ReadingPlace(heading="Seting up"))


def test_page_is_read_from_a_little_before_a_quotation() -> None:
    excerpt = read(ReadingPlace(quote="The limit was lower once."), max_tokens=18)

    assert excerpt.text.startswith("The limit is 120 seconds.")
    assert "The limit was lower once." in excerpt.text


def test_quotation_that_differs_a_little_is_read_with_a_note() -> None:
    excerpt = read(ReadingPlace(quote="The limit is 60 seconds."))

    assert "The limit is 120 seconds." in excerpt.text
    assert "similar" in excerpt.note


def test_quotation_of_another_page_is_refused() -> None:
    with pytest.raises(InputError, match="holds nothing like 'Elephants never forget"):
        read(ReadingPlace(quote="Elephants never forget their friends."))


def test_offset_beyond_the_page_is_refused_with_its_length() -> None:
    with pytest.raises(InputError, match=f"has {len(MARKDOWN)} characters"):
        read(ReadingPlace(offset=len(MARKDOWN)))


def test_empty_page_is_read_as_nothing() -> None:
    excerpt = read(ReadingPlace(), markdown="")

    assert (excerpt.text, excerpt.next_offset, excerpt.headings) == ("", None, ())


@pytest.mark.parametrize(
    "place",
    [
        ReadingPlace(offset=1, heading="Limits"),
        ReadingPlace(quote="a", passage_id=uuid.UUID(int=1)),
        ReadingPlace(offset=-1),
        ReadingPlace(heading="  "),
        ReadingPlace(quote=""),
        ReadingPlace(quote="\ud800"),
    ],
)
def test_place_that_cannot_be_is_refused(place: ReadingPlace) -> None:
    with pytest.raises(InputError):
        place.check()


def test_excerpt_ends_with_a_paragraph() -> None:
    excerpt = read(ReadingPlace(), max_tokens=12)

    assert excerpt.text.endswith("Install it first.\n\n")


def test_excerpt_of_a_long_paragraph_ends_with_a_sentence() -> None:
    sentence = "One of many sentences that stand in a paragraph of some length, e.g. This one. "

    excerpt = read(ReadingPlace(), max_tokens=25, markdown=sentence * 20)

    assert excerpt.text == sentence


@pytest.mark.parametrize("text", ["Words go on and on " * 9, "x" * 99, "First. " + "and on " * 99])
def test_text_without_an_end_near_is_cut_between_words_or_where_it_must_be(text: str) -> None:
    end = last_end(text, 0, 60)

    assert 42 <= end <= 60
    assert " " not in text[:60] or text[end - 1] == " "


@given(st.text(st.sampled_from("aB \n."), min_size=1, max_size=80), st.data())
def test_text_ends_behind_its_start_and_not_behind_the_cut(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    stop = data.draw(st.integers(start + 1, len(text)))

    assert start < last_end(text, start, stop) <= stop


def test_heading_path_is_that_of_the_first_character() -> None:
    start = MARKDOWN.index("Run the command")

    assert read(ReadingPlace(offset=start)).heading_path == (
        "Manual",
        "Setting up",
        "On Linux with apt",
    )


@given(
    st.text(st.sampled_from("ab \n#`"), max_size=80),
    st.integers(1, 30),
    st.sampled_from([count_words, len, lambda text: len(text.encode()) // 3]),
)
def test_excerpts_one_after_the_other_are_the_whole_page(
    markdown: str, max_tokens: int, count: Callable[[str], int]
) -> None:
    offset: int | None = 0
    parts = []
    while offset is not None:
        excerpt = excerpt_at(
            page(markdown), ReadingPlace(offset=offset), max_tokens=max_tokens, count_tokens=count
        )
        assert markdown[excerpt.char_start : excerpt.char_end] == excerpt.text
        assert count(excerpt.text) <= max(max_tokens, count("ab"))
        parts.append(excerpt.text)
        offset = excerpt.next_offset

    assert "".join(parts) == markdown


@pytest.mark.parametrize("unit", ["word ", "x", "\n", "# h\n", "```\n", "漢字。"])
def test_cutting_reads_no_more_of_a_long_page_than_it_needs(unit: str) -> None:
    counted = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(text) // 4

    cut_to_tokens(unit * 1_000_000, 0, 500, count)

    assert sum(counted) < 100_000


def test_heading_that_is_not_there_is_refused_soon_among_thousands_that_repeat_themselves() -> None:
    headings = "\n\n".join(f"# {'ab ' * 60}{number}" for number in range(5_000))
    page = PageText(uuid.uuid4(), "https://a.test/", "A", headings, datetime.now(UTC), None)
    started = time.process_time()

    with pytest.raises(InputError, match="Near to it"):
        excerpt_at(page, ReadingPlace(heading="ba " * 60), max_tokens=100, count_tokens=len)

    assert time.process_time() - started < 5
