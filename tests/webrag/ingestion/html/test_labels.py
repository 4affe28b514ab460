"""Short pages keep what stands below their labels."""

from collections.abc import Callable
from typing import Any

import pytest

Convert = Callable[..., Any]


@pytest.mark.parametrize(
    "facts",
    [
        {"Hours": "Mon-Fri 9-17", "Phone": "020 1234"},
        {"Status": "Deprecated.", "Cook time": "45 minutes", "Temperature": "1222 C"},
    ],
)
def test_values_stay_below_their_labels(convert: Convert, facts: dict[str, str]) -> None:
    posts = "".join(
        f"<div class=post><div class=post-meta>{label}</div>"
        f"<div class=post-body><p>{value}</p></div></div>"
        for label, value in facts.items()
    )

    text = convert(f"<main><h1>Office</h1>{posts}</main>").markdown

    assert [each for each in (*facts, *facts.values()) if each not in text] == []
