import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from webrag.orchestration.models import (
    AnswerUnit,
    ExpansionStep,
    OrchestrationResult,
    RankedChunk,
)
from webrag.presentation.answer import AnswerDocument, CitationDocument
from webrag.presentation.brief.brief import format_brief
from webrag.presentation.brief.models import BriefConfig
from webrag.presentation.results import (
    ResultDocument,
    ResultLink,
    ResultPassage,
    ResultQuotation,
    best_passages,
    format_result,
    result_document,
)

MakeResult = Callable[..., OrchestrationResult]
MakeChunk = Callable[..., RankedChunk]
MakeUnit = Callable[..., AnswerUnit]

COMMAND_LINE = Path(__file__).parents[3] / "docs/reference/command-line.md"


@pytest.fixture
def chunks(
    install_chunk: RankedChunk, timeout_chunk: RankedChunk, retries_chunk: RankedChunk
) -> Sequence[RankedChunk]:
    """Grouped by page as results are: not in the order of rank."""
    return retries_chunk, install_chunk, timeout_chunk


def shown(result: OrchestrationResult, at_most: int | None = None) -> str:
    return format_result(result, best_passages(result, BriefConfig(), at_most=at_most))


def test_best_quotation_comes_first_with_its_link_and_the_confidence_in_words(
    make_result: MakeResult, chunks: Sequence[RankedChunk]
) -> None:
    lines = shown(make_result(*chunks, confidence=0.9, confidence_band="high")).splitlines()

    assert lines[0] == "Confidence high: this very likely answers the question."
    assert lines[2].startswith('"')
    best = max(chunks, key=lambda item: item.reranked_score)
    link = next(line.strip() for line in lines if "://" in line)
    assert link.startswith(best.chunk.source_url)


@pytest.mark.parametrize(
    ("text", "query", "line"),
    [
        ("--jobs  \nRun so many recipes at once.\n", "What does --jobs do?", "    Below: --jobs"),
        (
            "| Name | Default |\n|---|---|\n| port | 5432 |\n",
            "default of port",
            "    Columns: Name | Default",
        ),
    ],
)
def test_what_names_the_subject_of_a_quotation_is_shown_below_it(
    make_result: MakeResult, make_chunk: MakeChunk, text: str, query: str, line: str
) -> None:
    assert line in shown(make_result(make_chunk(text, text), query=query)).splitlines()


def test_result_fits_a_screen_and_tells_where_the_rest_is(
    make_result: MakeResult, chunks: Sequence[RankedChunk]
) -> None:
    text = shown(make_result(*chunks, confidence=0.9, confidence_band="high"), at_most=1)

    assert len(text.splitlines()) < 60
    assert "2 more passages: --full." in text
    assert re.search(r"webrag read --passage [0-9a-f-]{36}$", text)


def test_the_first_three_quotations_are_shown_in_their_order_wherever_they_stand(
    make_result: MakeResult,
    make_unit: MakeUnit,
    install_chunk: RankedChunk,
    timeout_chunk: RankedChunk,
) -> None:
    first = make_unit(install_chunk, "Run `pip install kiln`.")
    second = make_unit(timeout_chunk, "The default is 120 seconds.")
    third = make_unit(install_chunk, "Building from source needs a C compiler.")
    fourth = make_unit(install_chunk, "Kiln needs Python 3.11 or newer.")
    result = make_result(
        install_chunk, timeout_chunk, units=(first, second, third, fourth), confidence_band="high"
    )

    assert re.findall(r'"(.+?)"', shown(result)) == [
        "Run `pip install kiln`.",
        "The default is 120 seconds.",
        "Building from source needs a C compiler.",
    ]


def test_what_answers_nothing_prints_less(
    make_result: MakeResult, chunks: Sequence[RankedChunk]
) -> None:
    lengths = [
        len(shown(make_result(*chunks, confidence=0.5, confidence_band=band)).splitlines())
        for band in ("low", "none")
    ]

    assert lengths[1] < lengths[0]


def test_nothing_found_is_said_with_the_reason(make_result: MakeResult) -> None:
    result = make_result(confidence=0.0, confidence_band="none", warnings=("Nothing is stored.",))

    assert shown(result) == (
        "Nothing was found.\nNote: Nothing is stored.\n"
        "To follow links from there: webrag answer https://docs.example.org/guide/install"
        " 'How do I set the timeout of a firing?' --deep"
    )


def test_links_that_were_followed_in_vain_are_not_to_be_followed_again(
    make_result: MakeResult, make_step: Callable[..., ExpansionStep]
) -> None:
    step = make_step(candidates_expanded=("https://docs.example.org/guide/run",))
    result = make_result(confidence_band="none", expansion_steps=(step,))

    last = shown(result).splitlines()[-1]

    site = "webrag ingest https://docs.example.org/guide/install --max-pages 200"
    assert last == f"To store more of its site: {site}"


def test_words_that_stand_for_others_are_told_in_every_form(
    make_result: MakeResult, chunks: Sequence[RankedChunk], count_tokens: Callable[[str], int]
) -> None:
    result = make_result(*chunks, also_searched={"vidoe": "video"})

    brief = format_brief(result, BriefConfig(), count_tokens=count_tokens)

    assert "Also searched: video (for vidoe)" in shown(result).splitlines()
    assert "Also searched: video (for vidoe)" in brief.splitlines()
    assert result_document(result, []).also_searched == {"vidoe": "video"}


def test_passages_of_the_document_are_in_the_order_of_rank_and_hold_each_text_once(
    make_result: MakeResult, chunks: Sequence[RankedChunk]
) -> None:
    result = make_result(*chunks)
    document = result_document(result, best_passages(result, BriefConfig()))

    matched = [each.relevance for each in document.passages if not each.is_adjacent]
    assert matched == sorted(matched, reverse=True)
    assert [each.rank for each in document.passages] == [1, 2, 3]
    text = json.dumps(document.model_dump(mode="json"))
    for each in document.passages:
        assert text.count(json.dumps(each.text)[1:-1]) == 1


def test_quotations_of_the_document_stand_in_their_passage(
    make_result: MakeResult, chunks: Sequence[RankedChunk]
) -> None:
    result = make_result(*chunks)
    document = result_document(result, best_passages(result, BriefConfig()))

    quoted = [(each, quote) for each in document.passages for quote in each.quotations]
    assert quoted
    for passage, quote in quoted:
        start = quote.char_start - passage.char_start
        assert passage.text[start : quote.char_end - passage.char_start] == quote.text


def test_document_within_a_budget_keeps_the_best_passages(
    make_result: MakeResult, chunks: Sequence[RankedChunk]
) -> None:
    document = result_document(make_result(*chunks), [])

    assert document.within(1, len).passages == document.passages[:1]
    assert document.within(10**6, len).passages == document.passages


@pytest.mark.parametrize(
    "model",
    [
        ResultDocument,
        ResultPassage,
        ResultQuotation,
        ResultLink,
        AnswerDocument,
        CitationDocument,
    ],
)
def test_every_field_of_the_document_is_documented(model: type) -> None:
    described = COMMAND_LINE.read_text("utf-8").partition("## JSON")[2]
    titles = {
        ResultDocument: "The object",
        ResultPassage: "A passage",
        ResultQuotation: "A quotation of a passage",
        ResultLink: "A link that was not followed",
        AnswerDocument: "The answer",
        CitationDocument: "A citation",
    }
    rows = described.partition(f"| {titles[model]} |")[2].partition("\n\n")[0]

    assert re.findall(r"^\| `(\w+)` \|", rows, re.M) == list(model.model_fields)  # type: ignore[attr-defined]
