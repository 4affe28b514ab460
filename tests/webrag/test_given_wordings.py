from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.argument_checks import MAX_WORDING_CHARS, MAX_WORDINGS, checked_wordings
from webrag.errors import InputError

QUESTION = "How is the port changed?"


@pytest.mark.parametrize(
    ("given_wordings", "kept"),
    [
        (None, ()),
        ([], ()),
        ("listen_port", ("listen_port",)),
        (["listen_port", "  server port  "], ("listen_port", "server port")),
        (["", " \n\t", "\u200b\u2060", "port"], ("port",)),
        ([QUESTION, "how is  the PORT changed", "port"], ("port",)),
        (["port", "Port?", "PORT."], ("port",)),
        (["a"] * 40, ("a",)),
        (["x" * 500], ("x" * 500,)),
        (["%s'; --", "->"], ("%s'; --", "->")),
    ],
    ids=repr,
)
def test_empty_and_repeated_wordings_are_left_out(given_wordings: Any, kept: Any) -> None:
    assert checked_wordings(QUESTION, given_wordings) == kept


@pytest.mark.parametrize(
    ("given_wordings", "message"),
    [
        (["x" * 501], r"^Wording 1 has 501 characters; at most 500 are allowed\.$"),
        (["a", "y" * 90_000], r"^Wording 2 has 90,000 characters"),
        (list("abcdef"), r"^More than 5 different wordings were given; at most 5 are allowed\.$"),
        ([str(n) for n in range(100_000)], r"at most 5 are allowed\.$"),
        ([3], r"^Wording 1 is of type int; it must be text\.$"),
        ([None], r"^Wording 1 is of type NoneType"),
        (["a\x00b"], r"^Wording 1 holds a NUL character"),
        (["\ud800"], r"^Wording 1 holds half of a surrogate pair"),
        ({"a": "b"}, r"^wordings is of type dict; give a list of texts\.$"),
        (7, r"^wordings is of type int; give a list of texts\.$"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_unusable_wordings_are_refused_in_a_sentence(given_wordings: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        checked_wordings(QUESTION, given_wordings)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)))
def test_wordings_that_are_kept_are_few_distinct_and_kept_again(texts: list[str]) -> None:
    try:
        kept = checked_wordings(QUESTION, texts)
    except InputError:
        assert len(set(texts)) > MAX_WORDINGS
        return

    assert len(set(kept)) == len(kept) <= MAX_WORDINGS
    assert all(0 < len(each) <= MAX_WORDING_CHARS for each in kept)
    assert checked_wordings(QUESTION, kept) == kept
