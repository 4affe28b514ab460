import pytest

from webrag.answering.planning import Planner, revised
from webrag.orchestration.question.analyzer import QueryAnalyzer
from webrag.question import Question


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Hi team, could you please tell me how a task is cancelled? Thanks!",
         "how a task is cancelled?"),
        ("I'd like to know   what a port is", "what a port is"),
        ("Hello", "Hello"),
        ("please", "please"),
        ("git rebase -i", "git rebase -i"),
        ("Can you rename a branch?", "Can you rename a branch?"),
    ],
)  # fmt: skip
def test_query_is_revised_without_its_small_talk(query: str, expected: str) -> None:
    assert revised(query) == expected


async def test_question_that_holds_two_is_split() -> None:
    plan, degraded = await Planner(QueryAnalyzer(mode="rule_based")).plan(
        Question.of("What is the default port, and how do I change the log level?")
    )

    assert len(plan.sub_queries) == 2
    assert degraded is None


async def test_wordings_of_the_caller_are_part_of_the_plan() -> None:
    plan, _ = await Planner(QueryAnalyzer(mode="rule_based")).plan(
        Question.of("How do I rename a branch?", wordings=["git branch -m"])
    )

    assert plan.wordings == ("git branch -m",)
