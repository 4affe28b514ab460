"""Requests of which only what a test is about is given."""

from typing import Any

from webrag.orchestration.config import ExpansionConfig
from webrag.orchestration.request import RunRequest
from webrag.retrieval.filters import NO_FILTERS

URL = "https://docs.test/guide"


def asked(urls: Any = URL, query: str = "What?", **values: Any) -> RunRequest:
    given = {
        "intent": None,
        "known_context": None,
        "constraints": None,
        "expansion_budget": None,
        "research_mode": "fast",
        "retrieval_mode": "chunk",
        "max_pages": None,
        "config": ExpansionConfig(),
    }
    return RunRequest.answer(urls, query, **{**given, **values})


def searched(query: str = "What?", **values: Any) -> RunRequest:
    given = {
        "filters": NO_FILTERS,
        "intent": None,
        "top_k": None,
        "retrieval_mode": "chunk",
    }
    return RunRequest.search(query, **{**given, **values})
