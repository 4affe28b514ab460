from collections.abc import Callable
from typing import Any

import pytest

from webrag.orchestration.models import ExpansionStep, OrchestrationResult, RankedChunk
from webrag.presentation.follow_ups import follow_ups
from webrag.presentation.models import BriefConfig

MakeResult = Callable[..., OrchestrationResult]


def names(text: str) -> list[str]:
    return [line.removeprefix("- ").split(":")[0] for line in text.splitlines()]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param(
            {},
            ["DEEP SEARCH", "FULL CONTEXT", "FOLLOW-UP SEARCH", "REFINE QUERY"],
            id="fast answer",
        ),
        pytest.param(
            {"partial": True},
            ["CONTINUE", "FULL CONTEXT", "FOLLOW-UP SEARCH", "REFINE QUERY"],
            id="partial answer",
        ),
        pytest.param(
            {"mode": "full_context"},
            ["DEEP SEARCH", "FOLLOW-UP SEARCH", "REFINE QUERY"],
            id="full context already",
        ),
        pytest.param(
            {"seed_urls": ()}, ["FOLLOW-UP SEARCH", "REFINE QUERY"], id="search that found much"
        ),
        pytest.param(
            {"seed_urls": (), "confidence_band": "low"},
            ["FOLLOW-UP SEARCH", "ADD A SOURCE", "REFINE QUERY"],
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


def test_exhausted_expansion_can_be_continued_with_a_larger_budget(
    make_result: MakeResult, make_step: Callable[..., ExpansionStep], install_chunk: RankedChunk
) -> None:
    result = make_result(
        install_chunk, expansion_steps=(make_step(),), expansion_budget=1, total_iterations=1
    )

    assert "`answer` with expansion_budget=3" in follow_ups(result, BriefConfig())


def test_command_line_is_told_commands(make_result: MakeResult, install_chunk: RankedChunk) -> None:
    text = follow_ups(make_result(install_chunk), BriefConfig(caller="cli"))

    assert "`webrag answer URL QUESTION --deep`" in text
    assert "research_mode" not in text
