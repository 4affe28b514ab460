from collections.abc import Sequence

import pytest

from webrag.web.questions import questions_from


@pytest.mark.parametrize(
    ("heading", "question"),
    [
        ("## How to work with SQLite URIs", "How to work with SQLite URIs?"),
        ("### Why is it slow?", "Why is it slow?"),
        ("### What is soot", "What is soot?"),
        ("## Where the ash goes", "What does “Stove manual” say about where the ash goes?"),
        ("## Cleaning the stove", "What does “Stove manual” say about cleaning the stove?"),
        ("## 4.1. Cleaning the stove", "What does “Stove manual” say about cleaning the stove?"),
        ("## SQLite URI options", "What does “Stove manual” say about SQLite URI options?"),
        ("## `open()` and *modes*", "What does “Stove manual” say about open() and modes?"),
    ],
)
def test_heading_becomes_a_question(heading: str, question: str) -> None:
    assert list(questions_from("Stove manual — Example", f"# Stove manual\n\n{heading}\n")) == [
        question
    ]


@pytest.mark.parametrize(
    "markdown",
    [
        "## See also",
        "## Introduction to this",
        "## 3.2 Words",
        "## Stove manual",
        "## Parts",
        "# Only the title here",
        "```sh\n## a comment of code\n```",
        "## a b c d e f g h i j k",
        "## Chapter 64 - Option Index",
    ],
)
def test_what_nobody_asks_about_is_left_out(markdown: str) -> None:
    found: Sequence[str] = list(questions_from("Stove manual", markdown))

    assert found == []


def test_index_of_a_manual_is_not_asked_about() -> None:
    assert list(questions_from("Option Index", "## Options of the stove")) == []
