from collections.abc import Callable
from typing import Any

import pytest

from webrag.orchestration.models import ExpansionDecision, OrchestrationResult
from webrag.presentation.brief.sections import answer_line, stats
from webrag.retrieval.models import CorpusStats

MakeResult = Callable[..., OrchestrationResult]
NOTHING_STORED = CorpusStats(total_documents=0, total_parent_chunks=0, total_tokens=0)
DEPTH_CAP = ExpansionDecision(
    action="stop", reason="Deep enough.", confidence="high", rule="depth_cap", rule_number=1
)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"mode": "full_context"}, "Mode: full_context"),
        ({}, "Note: No expansion performed (single iteration)."),
        (
            {"total_iterations": 3, "expansion_budget": 3},
            "Note: Expansion budget exhausted (reached 3 of 3 iterations).",
        ),
        (
            {"total_iterations": 5, "final_decision": DEPTH_CAP},
            "Note: Expansion reached maximum depth (5). Results may benefit from a more specific "
            "query or a different seed URL.",
        ),
        (
            {"partial": True},
            "Partial: a deadline cut the run short; repeating the call continues from what is "
            "stored.",
        ),
        ({"degraded": ("No reranker.",)}, "Degraded: No reranker."),
        ({"warnings": ("a\n[STATS]",)}, "Note: a [STATS]"),
        (
            {"page_sources": {"https://e.org/": "firecrawl", "https://e.org/a": "builtin"}},
            "Fetched by: builtin (1), firecrawl (1)",
        ),
        (
            {"urls_fetched": tuple(f"https://e.org/{n}" for n in range(7))},
            "URLs fetched: 7 (https://e.org/0, https://e.org/1, https://e.org/2, https://e.org/3, "
            "https://e.org/4, and 2 more)",
        ),
    ],
)
def test_stats_hold_the_line(make_result: MakeResult, fields: dict[str, Any], line: str) -> None:
    assert line in stats(make_result(**fields), detail="full").splitlines()


def test_brief_stats_do_not_repeat_what_the_trace_and_the_options_say(
    make_result: MakeResult,
) -> None:
    told = stats(make_result(total_iterations=3, expansion_budget=3))

    assert "Stop reason" not in told
    assert "Note: " not in told


@pytest.mark.parametrize(("band", "is_told"), [("medium", False), ("low", True), ("none", True)])
def test_stats_say_how_many_pages_of_a_site_are_stored_where_something_may_be_missing(
    make_result: MakeResult, band: str, is_told: bool
) -> None:
    result = make_result(confidence_band=band)
    counts = {"stored_of_sites": {"docs.example.org": 1_075, "a.test": 1}}
    result = result.model_copy(
        update={"corpus_stats": result.corpus_stats.model_copy(update=counts)}
    )

    line = "Stored of these sites: docs.example.org (1,075 pages), a.test (1 page)"
    assert (line in stats(result).splitlines()) is is_told


def test_built_in_fetcher_alone_is_not_worth_a_line(make_result: MakeResult) -> None:
    assert "Fetched by" not in stats(make_result(page_sources={"https://e.org/": "builtin"}))


def test_no_expansion_is_not_noted_when_it_was_switched_off(make_result: MakeResult) -> None:
    assert "No expansion" not in stats(make_result(expansion_budget=0))


def test_no_expansion_is_not_noted_for_a_search(make_result: MakeResult) -> None:
    assert "No expansion" not in stats(make_result(seed_urls=()))


@pytest.mark.parametrize("name", ["Expansion iterations", "URLs fetched", "Pages matched"])
def test_stats_print_no_zeros(make_result: MakeResult, name: str) -> None:
    result = make_result(urls_fetched=(), total_iterations=0)

    assert f"{name}:" not in stats(result)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (
            {"confidence": 0.0, "confidence_band": "none", "corpus_stats": NOTHING_STORED},
            "Confidence: none (no stored page was searched).",
        ),
        (
            {"confidence_band": "high", "confidence": 0.91, "absent_words": ("kilns",)},
            "Confidence: high (0.91): the first quotations very likely answer.",
        ),
        (
            {"absent_words": ("GPU", "Wire\nshark")},
            "Confidence: medium (0.72): the quotations probably answer. None of the 3 pages "
            "searched has: GPU, Wire shark.",
        ),
    ],
)
def test_first_line_says_how_sure_and_what_no_page_has(
    make_result: MakeResult, fields: dict[str, Any], line: str
) -> None:
    assert answer_line(make_result(**fields)) == line


@pytest.mark.parametrize(("detail", "is_told"), [("brief", False), ("full", True)])
def test_the_time_of_each_phase_is_told_on_demand(
    make_result: MakeResult, detail: Any, is_told: bool
) -> None:
    assert ("ingestion: 410ms" in stats(make_result(), detail=detail)) is is_told
