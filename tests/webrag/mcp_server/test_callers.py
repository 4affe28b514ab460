from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.errors import AccessDeniedError
from webrag.mcp_server.authorization.callers import (
    collection_name,
    collection_of_claims,
    needed_scopes,
)
from webrag.postgres.config import check_collection_name

texts = st.text(min_size=1, max_size=300)
bases = st.from_regex(r"[a-z_][a-z0-9_]{0,47}", fullmatch=True)


@given(base=bases, claim=texts, value=st.text(st.characters(), min_size=1))
def test_every_value_leads_to_a_name_that_a_collection_can_have(
    base: str, claim: str, value: str
) -> None:
    if not base.startswith("pg_"):
        assert check_collection_name(collection_name(base, claim, value)) != base


@given(st.sets(st.tuples(bases, texts, texts), min_size=2, max_size=20))
def test_no_two_values_lead_to_the_same_name(values: set[tuple[str, str, str]]) -> None:
    assert len({collection_name(*each) for each in values}) == len(values)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("webrag", "team", "Red"), ("webrag", "team", "red")),
        (("webrag", "team", "red-a"), ("webrag", "team", "red_a")),
        (("webrag", "team", "a" * 100 + "b"), ("webrag", "team", "a" * 100 + "c")),
        (("webrag", "team", "é"), ("webrag", "team", "e\u0301")),
        (("webrag", "team", "red"), ("webrag", "sub", "red")),
        (("webrag", "te", "amred"), ("webrag", "team", "red")),
        (("webrag_one_long", "team", "red"), ("webrag_one_long2", "team", "red")),
        (("webrag", "team", "\ud800"), ("webrag", "team", "\ud801")),
    ],
)
def test_values_that_look_alike_are_told_apart(one: Any, other: Any) -> None:
    assert collection_name(*one) != collection_name(*other)


def test_without_a_claim_in_the_settings_claims_say_nothing() -> None:
    assert collection_of_claims("webrag", None, {"team": "red"}) is None


@pytest.mark.parametrize("value", [None, "", 7, ["red"], {"a": 1}, True, "x" * 1001])
def test_claim_that_is_not_one_text_is_refused(value: object) -> None:
    with pytest.raises(AccessDeniedError, match="its claim 'team' must be one text"):
        collection_of_claims("webrag", "team", {"team": value})


@pytest.mark.parametrize(
    ("method", "name", "scopes"),
    [
        ("tools/call", "search", {"webrag:read"}),
        ("tools/call", "answer", {"webrag:read", "webrag:write"}),
        ("tools/call", "forget", {"webrag:read", "webrag:forget"}),
        ("tools/call", "unknown", {"webrag:read"}),
        ("tools/call", ["answer"], {"webrag:read"}),
        ("resources/read", "answer", {"webrag:read"}),
        (["tools/call"], "answer", {"webrag:read"}),
        (None, None, {"webrag:read"}),
    ],
)
def test_scopes_depend_on_the_tool_that_is_called(
    method: object, name: object, scopes: set[str]
) -> None:
    assert needed_scopes(method, name) == scopes
