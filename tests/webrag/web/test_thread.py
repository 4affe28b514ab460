from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.answering.models import AnswerCitation, AnswerPart, ManagerResult
from webrag.web.questions import Turn, goes_on, in_thread, thread_markdown

QUOTE = "The kernel is configured with make menuconfig."


def cited(title: str, heading: str | None = None) -> ManagerResult:
    values: dict[str, Any] = {
        "state": "success",
        "states": ("execute_plan", "success"),
        "query": "q",
        "answer": f"{QUOTE} [1]",
        "parts": (AnswerPart(text=QUOTE, citations=(1,)),),
        "confidence": 0.9,
        "final_reason": "confidence_high",
        "citations": (
            AnswerCitation(
                number=1,
                document_id=uuid4(),
                source_url="https://docs.test/kernel",
                title=title,
                section_heading=heading,
                verbatim_text=QUOTE,
                plain_text=QUOTE,
                token_start=0,
                token_end=1,
                char_start=0,
                char_end=len(QUOTE),
                chunk_id=uuid4(),
                link="https://docs.test/kernel#:~:text=The%20kernel",
            ),
        ),
    }
    return ManagerResult(**values)


KERNEL = Turn("How is the kernel configured?", cited("The kernel [manual]"))


@pytest.mark.parametrize(
    ("question", "understood"),
    [
        ("And how do I install it?", "How do I install the kernel?"),
        ("How do I install it?", "How do I install the kernel?"),
        ("What is its licence?", "What is the kernel licence?"),
        ("What about Debian?", "What about Debian kernel?"),
        ("Why?", "Why kernel?"),
        ("How is a Debian package built?", "How is a Debian package built?"),
        ("Does the driver load its firmware?", "Does the driver load its firmware?"),
    ],
)
def test_question_that_goes_on_keeps_the_subject(question: str, understood: str) -> None:
    assert in_thread(question, [KERNEL]) == understood


def test_subject_that_was_any_is_the_one_asked_about() -> None:
    branch = Turn("How do I rename a branch?", cited("git-branch manual"))

    assert in_thread("And how do I delete it?", [branch]) == "How do I delete the branch?"


def test_subject_that_no_page_names_is_the_thing_of_the_question() -> None:
    blinking = Turn("How do I blink an LED?", cited("The Embedded Rust Book", "Registers"))

    assert in_thread("And how do I debug it?", [blinking]) == "How do I debug the LED?"


def test_subject_is_kept_over_several_questions() -> None:
    earlier = [KERNEL, Turn("And how do I install it?", cited("Installing packages"))]

    assert in_thread("How do I remove it?", earlier) == "How do I remove the kernel?"


def test_subject_is_what_was_asked_last_about_something_else() -> None:
    earlier = [KERNEL, Turn("Which compilers build the driver?", cited("The driver"))]

    assert in_thread("How is it loaded?", earlier) == "How is the driver loaded?"


@pytest.mark.parametrize(
    ("result", "subject"),
    [
        (cited("Building", "Configure the kernel"), "the kernel configured"),
        (cited("Building"), "the kernel configured"),
        (None, "the kernel configured"),
    ],
)
def test_without_a_title_that_names_it_headings_and_then_all_words_count(
    result: ManagerResult | None, subject: str
) -> None:
    turn = Turn("How is the kernel configured?", result)

    assert in_thread("And how do I test it?", [turn]) == f"How do I test {subject}?"


@given(st.text(max_size=60))
def test_question_without_anything_before_stays_as_it_is(question: str) -> None:
    assert in_thread(question, []) == question


@given(st.text(max_size=60))
def test_every_question_can_be_understood_once_the_subject_is_known(question: str) -> None:
    understood = in_thread(question, [KERNEL])

    assert understood == question or "kernel" in understood
    assert goes_on(question) or understood == question


def test_thread_as_markdown_holds_every_question_answer_quotation_and_link() -> None:
    text = thread_markdown([KERNEL, Turn("Why?", None)])

    assert text == (
        "## How is the kernel configured?\n\n"
        f"{QUOTE} [1]\n\n"
        f"- [1] “{QUOTE}” — [The kernel \\[manual\\]](<https://docs.test/kernel#:~:text=The%20kernel>)"
        "\n\n## Why?\n\nNo answer.\n"
    )


def test_thread_as_markdown_tells_how_a_summarised_page_describes_itself() -> None:
    described = cited("Kernel").model_copy(update={"description": "All about the kernel."})

    text = thread_markdown([Turn("What is this?", described)])

    assert "beside its text: \u201cAll about the kernel.\u201d\n\n" in text
