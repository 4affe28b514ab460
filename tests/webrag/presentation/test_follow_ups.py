import re
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from webrag.orchestration.models import (
    ExpansionDecision,
    ExpansionStep,
    NextLink,
    OrchestrationResult,
    RankedChunk,
)
from webrag.presentation.brief.models import BriefConfig
from webrag.presentation.brief.sections import follow_ups
from webrag.retrieval.models import CorpusStats
from webrag.tool_inputs import AnswerInput, IngestInput, ReadInput

MakeResult = Callable[..., OrchestrationResult]
DEPTH_CAP = ExpansionDecision(
    action="stop",
    reason="Reached all expansion rounds.",
    confidence="low",
    rule="depth_cap",
    rule_number=1,
)


def names(text: str) -> list[str]:
    return [line.removeprefix("- ").split(":")[0] for line in text.splitlines()]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, ["DEEP SEARCH", "REFINE QUERY"], id="fast answer"),
        pytest.param(
            {"partial": True},
            ["CONTINUE", "REFINE QUERY"],
            id="partial answer",
        ),
        pytest.param(
            {"rounds_allowed": 5, "rounds_ceiling": 5},
            ["REFINE QUERY"],
            id="deep answer that stopped at once",
        ),
        pytest.param(
            {"rounds_ceiling": 0},
            ["REFINE QUERY"],
            id="link following switched off",
        ),
        pytest.param(
            {"rounds_allowed": 3, "rounds_ceiling": 5, "confidence_band": "low"},
            ["ADD A SOURCE", "FULL CONTEXT", "REFINE QUERY"],
            id="deep answer that found little",
        ),
        pytest.param(
            {"mode": "full_context"},
            ["DEEP SEARCH", "REFINE QUERY"],
            id="full context already",
        ),
        pytest.param({"confidence_band": "high"}, [], id="answer that is sure"),
        pytest.param({"seed_urls": ()}, ["REFINE QUERY"], id="search that found much"),
        pytest.param(
            {"seed_urls": (), "wordings": {"firing time": {"firing": 1.0}}},
            [],
            id="search with wordings",
        ),
        pytest.param(
            {"seed_urls": (), "confidence_band": "low"},
            ["ADD A SOURCE", "REFINE QUERY"],
            id="search that found little",
        ),
    ],
)
def test_options_fit_how_the_run_ended(
    make_result: MakeResult,
    install_chunk: RankedChunk,
    fields: dict[str, Any],
    expected: list[str],
) -> None:
    assert names(follow_ups(make_result(install_chunk, **fields), BriefConfig())) == expected


def test_empty_corpus_is_to_be_filled_not_asked_in_other_words(make_result: MakeResult) -> None:
    nothing = CorpusStats(total_documents=0, total_parent_chunks=0, total_tokens=0)
    result = make_result(seed_urls=(), corpus_stats=nothing, confidence_band="none")

    assert names(follow_ups(result, BriefConfig())) == ["ADD A SOURCE"]


LINK = NextLink(
    url="https://docs.example.org/kilns", anchor="Kilns", heading=None, page_url=None, score=0.4
)


@pytest.mark.parametrize(
    ("links", "call"),
    [
        (
            (LINK,),
            "`answer` url=https://docs.example.org/kilns reads the likeliest page that is not "
            "stored (chance 0.40)",
        ),
        ((), "`answer` with the URL of a likely page"),
        (
            (replace(LINK, score=0.01),),
            "`ingest` url=https://docs.example.org/guide/install max_pages=200, then ask again",
        ),
    ],
)
def test_one_call_that_would_settle_it_is_named_where_little_was_found(
    make_result: MakeResult, install_chunk: RankedChunk, links: tuple[NextLink, ...], call: str
) -> None:
    result = make_result(install_chunk, seed_urls=(), confidence_band="none", next_links=links)

    assert f"ADD A SOURCE: {call}" in follow_ups(result, BriefConfig())


def test_a_site_is_stored_from_the_named_page_on(
    make_result: MakeResult, install_chunk: RankedChunk
) -> None:
    links = (replace(LINK, score=0.2),)
    named = ("https://docs.example.org/contents",)
    result = make_result(
        install_chunk, seed_urls=named, rounds_allowed=3, confidence_band="none", next_links=links
    )

    assert "ADD A SOURCE: `ingest` url=https://docs.example.org/contents max_pages" in follow_ups(
        result, BriefConfig()
    )


@pytest.mark.parametrize(("score", "other"), [(0.9, "/kilns reads the likeliest"), (0.1, "/guide")])
def test_a_fast_answer_names_the_link_that_likely_helps(
    make_result: MakeResult, install_chunk: RankedChunk, score: float, other: str
) -> None:
    links = (replace(LINK, score=score),)
    result = make_result(install_chunk, rounds_allowed=0, confidence_band="none", next_links=links)

    line = follow_ups(result, BriefConfig()).splitlines()[0]

    assert line.startswith(
        '- DEEP SEARCH: `answer` with research_mode="deep" follows more links, or'
    )
    assert f"docs.example.org{other}" in line


def test_beside_what_probably_answers_no_site_is_offered_to_be_stored(
    make_result: MakeResult, install_chunk: RankedChunk
) -> None:
    links = (replace(LINK, score=0.1),)
    result = make_result(install_chunk, rounds_allowed=0, next_links=links)

    assert "max_pages" not in follow_ups(result, BriefConfig())


@pytest.mark.parametrize("rounds_allowed", [0, 3])
def test_a_reader_may_stop_where_every_link_was_followed(
    make_result: MakeResult, install_chunk: RankedChunk, rounds_allowed: int
) -> None:
    result = make_result(
        install_chunk,
        rounds_allowed=rounds_allowed,
        total_iterations=2,
        confidence_band="none",
        next_links=(),
    )

    assert "ADD A SOURCE: No link is left to follow: stop here, or" in follow_ups(
        result, BriefConfig()
    )


def test_a_reader_is_not_told_to_stop_where_links_failed(
    make_result: MakeResult, install_chunk: RankedChunk
) -> None:
    step = ExpansionStep.model_construct(
        candidates_expanded=(), candidates_failed={LINK.url: "HTTP 503"}
    )
    result = make_result(
        install_chunk, total_iterations=1, rounds_allowed=3, confidence_band="none", next_links=()
    ).model_copy(update={"expansion_steps": (step,)})

    assert "stop here" not in follow_ups(result, BriefConfig())


def test_exhausted_expansion_can_be_continued_with_a_larger_budget(
    make_result: MakeResult, install_chunk: RankedChunk
) -> None:
    result = make_result(install_chunk, rounds_allowed=1, final_decision=DEPTH_CAP)

    assert "`answer` with expansion_budget=3" in follow_ups(result, BriefConfig())


def test_no_more_rounds_are_offered_than_the_configuration_allows(
    make_result: MakeResult, install_chunk: RankedChunk
) -> None:
    result = make_result(
        install_chunk, rounds_allowed=4, rounds_ceiling=5, final_decision=DEPTH_CAP
    )

    assert "`answer` with expansion_budget=5" in follow_ups(result, BriefConfig())


@pytest.mark.parametrize(
    ("limits", "is_offered"),
    [
        ({}, True),
        ({"full_context_threshold": 12_340}, True),
        ({"full_context_threshold": 12_339}, False),
        ({"token_budget": 13_000}, False),
    ],
)
def test_reading_whole_is_offered_within_the_threshold_and_the_budget(
    make_result: MakeResult, install_chunk: RankedChunk, limits: dict[str, Any], is_offered: bool
) -> None:
    result = make_result(install_chunk, confidence_band="low")

    text = follow_ups(result, BriefConfig(**limits))

    assert ("FULL CONTEXT" in names(text)) is is_offered


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"confidence_band": "low", "rounds_allowed": 5, "rounds_ceiling": 5},
        {"rounds_allowed": 2, "rounds_ceiling": 5, "final_decision": DEPTH_CAP},
    ],
)
def test_model_is_told_arguments_that_the_tools_list(
    make_result: MakeResult, install_chunk: RankedChunk, fields: dict[str, Any]
) -> None:
    text = follow_ups(make_result(install_chunk, **fields), BriefConfig(caller="mcp"))

    told = set(re.findall(r"(\w+)=", text))
    listed = (
        tool.model_json_schema()["properties"] for tool in (AnswerInput, IngestInput, ReadInput)
    )
    assert told <= set(chain.from_iterable(listed))
    assert "REFINE QUERY" in names(text)


def test_command_line_is_told_commands(make_result: MakeResult, install_chunk: RankedChunk) -> None:
    text = follow_ups(make_result(install_chunk), BriefConfig(caller="cli"))

    assert "`webrag answer URL QUESTION --deep`" in text
    assert "research_mode" not in text
