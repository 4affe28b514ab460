"""Questions of which only what a test is about is given."""

from typing import Any

from webrag.question import Question

URL = "https://docs.test/guide"


def asked(urls: Any = URL, query: str = "What?", **values: Any) -> Question:
    return Question.of(query, urls=urls, **values)


def searched(query: str = "What?", **values: Any) -> Question:
    return Question.of(query, **values)
