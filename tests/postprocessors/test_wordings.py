import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import QueryBundle
from llama_index.postprocessor.webrag.wordings import (
    MAX_WORDING_CHARS,
    MAX_WORDINGS,
    bundle_wordings,
    fitted_wordings,
)

from webrag import argument_checks


def test_limits_are_those_that_callers_are_held_to() -> None:
    strict = (argument_checks.MAX_WORDINGS, argument_checks.MAX_WORDING_CHARS)

    assert strict == (MAX_WORDINGS, MAX_WORDING_CHARS)


@pytest.mark.parametrize(
    ("texts", "fitted"),
    [
        pytest.param(["tabs", "spaces"], ("tabs", "spaces"), id="in their order"),
        pytest.param(["", " ", "?!", "\u200b", "tabs"], ("tabs",), id="nothing to search for"),
        pytest.param(["Why indent", "why  INDENT?"], (), id="the question again"),
        pytest.param(["Tabs", "tabs.", "tabs"], ("Tabs",), id="repetitions"),
        pytest.param(["a\0b \ud800c"], ("a b c",), id="what no table takes"),
        pytest.param(["x" * 501], ("x" * 500,), id="too long"),
        pytest.param(list("abcdefg"), tuple("abcde"), id="too many"),
        pytest.param(["two\n lines"], ("two lines",), id="white space"),
    ],
)
def test_what_can_count_is_kept(texts: list[str], fitted: tuple[str, ...]) -> None:
    assert fitted_wordings("why indent?", texts) == fitted


def test_wordings_beside_take_their_room() -> None:
    beside = ("one", "two", "three", "four")

    assert fitted_wordings("q", ["two", "five", "six"], beside=beside) == ("five",)


@given(
    texts=st.lists(st.text(max_size=600), max_size=9),
    beside=st.lists(st.text(max_size=20), max_size=7),
    at_most=st.integers(0, 7),
)
def test_there_are_never_more_than_five_in_all(
    texts: list[str], beside: list[str], at_most: int
) -> None:
    fitted = fitted_wordings("why indent?", texts, beside=beside, at_most=at_most)

    assert len(fitted) <= min(at_most, max(MAX_WORDINGS - len(beside), 0))
    assert argument_checks.checked_wordings("why indent?", fitted) == fitted


def test_embedding_strings_of_a_bundle_are_wordings_but_for_the_question() -> None:
    bundle = QueryBundle("why indent?", custom_embedding_strs=["Tabs are.", "why indent?"])

    assert bundle_wordings(bundle) == ("Tabs are.",)


def test_bundle_without_embedding_strings_has_no_wordings() -> None:
    assert bundle_wordings(QueryBundle("why indent?")) == ()
