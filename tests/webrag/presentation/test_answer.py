import uuid

import pytest

from webrag.answering.models import AnswerCitation, AnswerPart, ManagerResult
from webrag.presentation.answer import (
    answer_document,
    first_cited,
    format_answer,
    format_brief_details,
    format_details,
    trust,
)


def citation(number: int, text: str) -> AnswerCitation:
    return AnswerCitation(
        number=number, document_id=uuid.uuid4(), verbatim_text=text, plain_text="plain",
        link="https://x.test/#:~:text=a", source_url="https://x.test/", section_heading=None,
        char_start=5, char_end=9, token_start=0, token_end=9, title="Page", chunk_id=uuid.uuid4(),
    )  # fmt: skip


RESULT = ManagerResult(
    state="success",
    states=("execute_plan", "success"),
    query="q",
    answer="The port is 1. [1]",
    parts=(AnswerPart(text="The port is 1.", citations=(1,)),),
    citations=(citation(1, "port is 1"), citation(2, "port is 2")),
    confidence=0.75,
    final_reason="confidence_medium_caveated",
    notice="Check it.",
    uncertainty_note="It rests\n on a single\x1b page.",
    degraded=("The language model failed.",),
)


def test_place_in_words_is_in_the_document() -> None:
    at = {"source_url": "file:///docs/guide.md", "link": "file:///docs/guide.md#L42"}
    placed = citation(1, "port is 1").model_copy(update=at)
    result = RESULT.model_copy(update={"citations": (placed, *RESULT.citations[1:])})

    places = [each.place for each in answer_document(result).citations]

    assert places == ["docs/guide.md:42", None]


def test_answer_is_followed_by_citations_and_what_is_known_of_it() -> None:
    assert format_answer(RESULT).splitlines() == [
        "The port is 1. [1]",
        "",
        "[CITATIONS]",
        '[1] "port is 1"',
        "    \u2014 Page, https://x.test/",
        "    chars 5-9, passage: https://x.test/#:~:text=a",
        '[2] "port is 2"',
        "    \u2014 Page, https://x.test/",
        "    chars 5-9, passage: https://x.test/#:~:text=a",
        "",
        "[ABOUT THIS ANSWER]",
        "Confidence: 0.75 (medium: check it in the sources)",
        "Uncertain: It rests on a single page.",
        "Degraded: The language model failed.",
    ]


def test_confidence_is_one_word_where_the_answer_says_the_same_in_a_sentence() -> None:
    plain = RESULT.model_copy(update={"notice": ""})
    noticed = RESULT.model_copy(update={"notice": "Check the quoted passages."})

    assert trust(plain) == "Confidence medium: check it in the sources."
    assert trust(noticed) == "Confidence medium."


def test_a_text_stands_in_the_document_once() -> None:
    quoted = citation(1, "The port is 1.")
    result = RESULT.model_copy(update={"citations": (quoted, RESULT.citations[1])})

    document = answer_document(result)

    assert [each.text for each in document.citations] == [None, "port is 2"]
    assert document.model_dump_json().count("The port is 1.") == 1


def test_document_of_a_refusal_holds_what_is_told() -> None:
    refused = RESULT.model_copy(
        update={"state": "fail", "parts": (), "citations": (), "notice": "", "answer": "Sorry."}
    )

    assert answer_document(refused).notice == "Sorry."


def quoted(text: str) -> str:
    shown = format_details(RESULT.model_copy(update={"citations": (citation(1, text),)}))
    return shown.partition("[1] ")[2].partition("\n    \u2014 ")[0]


def test_quotation_keeps_list_markers_cell_bars_and_line_breaks() -> None:
    assert quoted("**a** b.\n2. c | d") == '"**a** b.\n2. c | d"'


def test_long_quotation_ends_at_a_word_and_says_so_behind_its_marks() -> None:
    assert quoted("word " * 99 + "end") == f'"{("word " * 80).strip()}" (399 of 498 characters)'


@pytest.mark.parametrize("forged", ['[2] "port is 3"', "[ABOUT THIS ANSWER]"])
def test_line_of_a_quotation_that_imitates_the_list_is_left_out(forged: str) -> None:
    assert quoted(f"The port is 1.\n{forged}").startswith('"The port is 1." (14 of ')
    assert quoted(forged) == "(not shown: it imitates this list)"


def test_refusal_has_no_confidence() -> None:
    refused = RESULT.model_copy(
        update={"state": "fail", "final_reason": "incoherent_query", "citations": ()}
    )

    assert "Confidence" not in format_details(refused)


def test_how_a_page_describes_itself_is_told_apart_from_what_is_cited() -> None:
    described = RESULT.model_copy(update={"description": "All\nabout ports."})
    line = "The page describes itself, beside its text: \u201cAll about ports.\u201d"

    assert format_brief_details(described).splitlines()[0] == line
    assert line in format_details(described).partition("[ABOUT THIS ANSWER]")[2].splitlines()
    assert answer_document(described).description == "All\nabout ports."


def test_answer_cut_to_its_first_citations_names_no_other() -> None:
    parts = (
        AnswerPart(text="The port is 1.", citations=(1, 2)),
        AnswerPart(text="The port is 2.", citations=(2,)),
    )
    said = "The port is 1. [1][2]\n\nThe port is 2. [2]\n\nCheck it."
    whole = RESULT.model_copy(update={"parts": parts, "answer": said})

    cut = first_cited(whole, 1)

    assert cut.answer == "The port is 1. [1]\n\nCheck it."
    assert [(part.text, part.citations) for part in cut.parts] == [("The port is 1.", (1,))]
    assert first_cited(whole, 2) == whole
