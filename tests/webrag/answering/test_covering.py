from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from webrag.answering.covering import Said, asked_parts, covering, names_of, needs_of
from webrag.answering.models import ExecutionPlan


def plan(question: str) -> ExecutionPlan:
    return ExecutionPlan(
        original_query=question,
        revised_query=question,
        coherence="coherent",
        sub_queries=(question,),
    )


@pytest.fixture
def judge(make_evidence: Callable[..., Any], make_gathered: Callable[..., Any]) -> Any:
    def run(question: str, *said: str, quality: float = 0.99) -> Any:
        gathered = make_gathered(make_evidence("\n\n".join(said)))
        texts = [Said(each, "The manual", quality) for each in said]
        return covering(plan(question), gathered, texts, None)

    return run


def test_sentence_that_holds_what_is_asked_is_surer_than_one_that_does_not(judge: Any) -> None:
    question = "What is the default depth of a search?"

    right = judge(question, "The default depth of a search is 7.")
    wrong = judge(question, "The 7 colours of the sky are nice.")

    assert right.confidence > wrong.confidence + 0.2


def test_answer_without_a_value_where_one_is_asked_is_one_in_part(judge: Any) -> None:
    found = judge("What is the default depth?", "The default depth can be changed.")

    assert found.ceiling < 0.7


def test_value_that_stands_beside_what_is_asked_is_not_high(judge: Any) -> None:
    question = "How large is the batch of a unity build?"

    about = judge(question, "The batch of a unity build is 8 files large.")
    beside = judge(
        question, "The batch of a unity build is large.", "Version 3 fixes 12 other things."
    )

    assert about.ceiling == 1.0
    assert beside.ceiling < 0.8


def test_value_that_nothing_calls_the_default_is_not_high(judge: Any) -> None:
    question = "What is the default depth of a search?"

    told = judge(question, "The depth of a search is 7 by default.")
    untold = judge(question, "The depth of a search was 7 in this run.")

    assert told.ceiling == 1.0
    assert untold.ceiling < 0.8


def test_answer_that_never_names_the_option_is_no_answer(judge: Any) -> None:
    found = judge("What does the crf of libfoo264 do?", "The crf of libfoo265 sets the quality.")

    assert found.confidence < 0.5


@pytest.mark.parametrize(
    ("wordings", "ceiling"),
    [
        pytest.param(["shape of a Sollip kernel", "Sollip weights"], 0.45, id="shared-by-all"),
        pytest.param(["shape of a Sollip kernel", "form of weights"], 1.0, id="not-in-all"),
        pytest.param(["shape of a Sollip kernel"], 1.0, id="one-wording"),
    ],
)
def test_answer_without_the_word_of_every_wording_is_of_something_else(
    make_evidence: Any, make_gathered: Any, wordings: list[str], ceiling: float
) -> None:
    text = "Each kernel has a form."
    idf = {"sollip": 7.0, "form": 2.0, "kernel": 2.0, "weight": 1.0}
    asked = dict.fromkeys(wordings, idf)
    gathered = replace(make_gathered(make_evidence(text)), term_idf=idf, wordings=asked)

    question = plan("What is the form of the Sollip kernel?")

    found = covering(question, gathered, [Said(text, "Kernels", 0.99)], None)
    named = covering(question, gathered, [Said(text, "The Sollip kernel", 0.99)], None)

    assert found.ceiling == ceiling
    assert named.ceiling == 1.0


def test_part_nothing_speaks_of_is_named(judge: Any) -> None:
    found = judge(
        "How do I run tests faster, skip slow modules and colour failures?",
        "Use --jobs to run tests faster.",
        "Skip slow modules with --skip.",
    )

    assert found.missing == ("colour failures",)
    assert found.confidence < 0.7


def test_nothing_said_covers_nothing(judge: Any) -> None:
    assert judge("What is the default depth?").confidence == 0.0


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("How do I run it faster, quieter and with a limit?", 3),
        ("Which ports are open and closed?", 0),
        ("In the old format, which sign, before a name, means all?", 0),
        ("Is it fast, which is odd, and why?", 0),
    ],
)
def test_only_lists_have_parts(question: str, parts: int) -> None:
    assert len(asked_parts(question)) == parts


def test_each_of_several_names_is_a_need() -> None:
    assert needs_of(plan("What do --fast and --loud do?")) == ("--fast", "--loud")


def test_acronyms_are_no_names_of_something_particular() -> None:
    assert names_of("Does HTTP need --tls or LOG_LEVEL?") == {"--tls", "log_level"}
