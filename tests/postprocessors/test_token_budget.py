import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import MetadataMode, NodeWithScore
from llama_index.postprocessor.webrag import TokenBudget

from .conftest import node, texts


def budget(tokens: int, **fields: Any) -> TokenBudget:
    return TokenBudget(**{"max_tokens": tokens, "tokenizer": str.split, **fields})


def test_longest_run_within_the_budget_is_kept() -> None:
    given_nodes = [node("one two"), node("three"), node("four five"), node("six")]

    assert texts(budget(4).postprocess_nodes(given_nodes)) == ["one two", "three"]


def test_budget_may_be_used_up_exactly() -> None:
    assert len(budget(3).postprocess_nodes([node("one two"), node("three")])) == 2


def test_first_node_is_kept_even_when_it_is_too_long() -> None:
    assert texts(budget(0).postprocess_nodes([node("one two"), node("three")])) == ["one two"]


def test_nothing_stays_nothing() -> None:
    assert budget(5).postprocess_nodes([]) == []


def test_rendering_that_is_counted_can_be_chosen() -> None:
    given_nodes = [node("one"), node("two", title="a b c d e f")]

    assert len(budget(4).postprocess_nodes(given_nodes)) == 1
    assert len(budget(4, metadata_mode=MetadataMode.NONE).postprocess_nodes(given_nodes)) == 2


def test_default_tokenizer_is_the_one_of_llama_index() -> None:
    found = TokenBudget(max_tokens=7).postprocess_nodes([node("word " * 6), node("word " * 6)])

    assert len(found) == 1


def test_negative_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="max_tokens"):
        budget(-1)


nodes = st.lists(st.integers(0, 9).map(lambda count: node("word " * count)), max_size=8)


@given(nodes, st.integers(0, 40))
async def test_result_is_a_prefix_that_fits_or_one_node_and_inputs_stay(
    given_nodes: list[NodeWithScore], tokens: int
) -> None:
    before = copy.deepcopy(given_nodes)
    keep = budget(tokens)

    found = keep.postprocess_nodes(given_nodes)

    assert given_nodes == before
    assert found == await keep.apostprocess_nodes(given_nodes)
    assert found == given_nodes[: len(found)]
    spent = sum(len(text.split()) for text in texts(found))
    assert spent <= tokens or len(found) == 1
    if len(found) < len(given_nodes):
        assert spent + len(given_nodes[len(found)].text.split()) > tokens
