from typing import Any

import pytest

from webrag.answering.planning import answer_request
from webrag.errors import InputError


def test_addresses_are_canonical_and_years_sorted() -> None:
    request = answer_request("q", url="HTTP://X.test/a#b", years=[2025, 2019, 2025])

    assert (request.urls, request.requested_years) == (("http://x.test/a",), (2019, 2025))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        pytest.param({"deep": True}, "give a URL", id="deep-without-url"),
        pytest.param({"expansion_budget": 2}, "it needs deep", id="rounds-without-deep"),
        pytest.param(
            {"expansion_budget": 0, "deep": True, "url": "http://x.test/"}, "1 or more", id="rounds"
        ),
        pytest.param({"years": [20_250]}, "give years up to", id="year"),
        pytest.param({"years": [True]}, "give years up to", id="no-year"),
        pytest.param({"url": "not a url"}, "not a url", id="url"),
        pytest.param({"url": [f"http://x.test/{n}" for n in range(21)]}, "at most 20", id="urls"),
    ],
)
def test_unusable_value_is_named(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        answer_request("q", **values)


def test_empty_question_is_left_to_the_manager() -> None:
    assert answer_request("").query == ""
