import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.argument_checks import checked_count, checked_seconds, moment_before
from webrag.errors import InputError

NOW = datetime(2026, 5, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    "age",
    [
        timedelta(days=-1),
        timedelta(microseconds=-1),
        timedelta(0),
        timedelta.min,
        timedelta.max,
        timedelta(days=800_000),
        30,
        -1.0,
        math.nan,
        math.inf,
        "30d",
        True,
        NOW,
    ],
    ids=repr,
)
def test_age_that_names_no_moment_of_the_past_is_refused(age: Any) -> None:
    with pytest.raises(InputError, match=r"^older_than is .*[.]$"):
        moment_before("older_than", age, NOW)


@given(st.timedeltas(min_value=timedelta(microseconds=1), max_value=timedelta(days=700_000)))
def test_age_names_a_moment_of_the_past(age: timedelta) -> None:
    assert moment_before("older_than", age, NOW) == NOW - age < NOW


@pytest.mark.parametrize("value", [-1, -(10**30), 0, True, 1.0, 1.5, math.nan, "3", None, [1]])
def test_count_that_is_no_whole_number_or_too_small_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"^top_k is .* 1[.]$"):
        checked_count("top_k", value, minimum=1)


@pytest.mark.parametrize("value", [1, 2, 10**30])
def test_count_from_the_minimum_up_is_accepted(value: int) -> None:
    checked_count("top_k", value, minimum=1)


@pytest.mark.parametrize("value", [-1, -0.1, math.nan, -math.inf, True, "3", timedelta(1)])
def test_time_that_is_negative_or_no_number_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"^deadline_s is .*; give seconds from 0 up"):
        checked_seconds("deadline_s", value)


@pytest.mark.parametrize("value", [0, 0.5, 30, math.inf])
def test_time_from_zero_up_is_accepted(value: float) -> None:
    checked_seconds("deadline_s", value)
