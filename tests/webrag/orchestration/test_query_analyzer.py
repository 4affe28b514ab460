import asyncio
import json
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms.mock import MockLLM
from typing_extensions import override

from webrag.orchestration.question.analyzer import QueryAnalyzer, known_wordings, with_constraints
from webrag.question import Question

GOOD = {
    "sub_queries": ["how snapshots work", "when snapshots expire"],
    "query_type": "how_to",
    "complexity": "moderate",
    "key_concepts": ["snapshots", "expiry"],
}


class ScriptedLLM(MockLLM):
    """Answers every chat with one text, or raises; remembers what it was asked."""

    _answer: Any = PrivateAttr()
    _asked: list[str] = PrivateAttr(default_factory=list)
    _delay_s: float = PrivateAttr()

    def __init__(self, answer: Any, delay_s: float = 0) -> None:
        super().__init__()
        self._answer = answer
        self._delay_s = delay_s

    @property
    def asked(self) -> list[str]:
        return self._asked

    @override
    async def achat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        self._asked.append(messages[-1].content)
        await asyncio.sleep(self._delay_s)
        if isinstance(self._answer, Exception):
            raise self._answer
        return ChatResponse(message=ChatMessage(role="assistant", content=self._answer))


def scripted(answer: Any, **options: Any) -> tuple[QueryAnalyzer, ScriptedLLM]:
    llm = ScriptedLLM(answer)
    return QueryAnalyzer(mode="llm", llm=llm, **options), llm


async def test_rules_split_and_name_the_kind() -> None:
    analysis, degraded = await QueryAnalyzer(mode="rule_based").analyze(
        Question.of("tabs vs spaces")
    )

    assert (analysis.sub_queries, analysis.query_type) == (("tabs", "spaces"), "comparison")
    assert (analysis.method, degraded) == ("rule_based", None)


async def test_mode_none_never_splits() -> None:
    analysis, _ = await QueryAnalyzer(mode="none").analyze(Question.of("tabs vs spaces"))

    assert (analysis.sub_queries, analysis.method) == (("tabs vs spaces",), "none")


async def test_mode_llm_without_a_model_silently_means_rules() -> None:
    analysis, degraded = await QueryAnalyzer(mode="llm").analyze(Question.of("tabs vs spaces"))

    assert (analysis.method, degraded) == ("rule_based", None)


async def test_model_answer_is_used() -> None:
    analyzer, _ = scripted(f"Sure!\n```json\n{json.dumps(GOOD)}\n```")

    analysis, degraded = await analyzer.analyze(Question.of("What about snapshots?"))

    assert analysis.sub_queries == ("how snapshots work", "when snapshots expire")
    assert (analysis.key_concepts, analysis.method) == (("snapshots", "expiry"), "llm")
    assert degraded is None


async def test_more_than_four_sub_queries_of_a_model_are_cut_to_four() -> None:
    analyzer, _ = scripted(json.dumps({**GOOD, "sub_queries": list("abcde")}))

    analysis, degraded = await analyzer.analyze(Question.of("What about snapshots?"))

    assert (analysis.sub_queries, analysis.method) == (tuple("abcd"), "llm")
    assert degraded is None


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("I cannot help with that.", id="no json"),
        pytest.param("{not json}", id="broken json"),
        pytest.param(json.dumps({**GOOD, "sub_queries": []}), id="no sub-query"),
        pytest.param(json.dumps({**GOOD, "sub_queries": [" ", ""]}), id="blank sub-queries"),
        pytest.param(json.dumps({**GOOD, "query_type": "poem"}), id="unknown kind"),
        pytest.param(RuntimeError("401 unauthorized"), id="the model's own error"),
        pytest.param("", id="empty"),
    ],
)
async def test_unusable_model_answer_falls_back_to_rules_and_says_so(answer: Any) -> None:
    analyzer, _ = scripted(answer)

    analysis, degraded = await analyzer.analyze(Question.of("tabs vs spaces"))

    assert (analysis.method, analysis.sub_queries) == ("rule_based", ("tabs", "spaces"))
    assert degraded is not None
    assert "patterns were used" in degraded


async def test_slow_model_is_given_up() -> None:
    analyzer = QueryAnalyzer(mode="llm", llm=ScriptedLLM("{}", delay_s=60), timeout_s=0.01)

    analysis, degraded = await analyzer.analyze(Question.of("tabs vs spaces"))

    assert analysis.method == "rule_based"
    assert degraded is not None
    assert "no answer within 0.01 s" in degraded


async def test_model_is_told_what_is_known() -> None:
    analyzer, llm = scripted(json.dumps(GOOD))

    await analyzer.analyze(Question.of("What about snapshots?", known_context="they are copies"))

    assert "they are copies" in llm.asked[0]


async def test_model_is_not_asked_when_seconds_count() -> None:
    analyzer, llm = scripted(json.dumps(GOOD))

    analysis, _ = await analyzer.analyze(Question.of("tabs vs spaces"), use_model=False)

    assert (analysis.method, llm.asked) == ("rule_based", [])


async def test_intent_of_the_caller_is_taken_as_it_is() -> None:
    analysis, _ = await QueryAnalyzer().analyze(Question.of("tabs vs spaces", intent="exploratory"))

    assert analysis.query_type == "exploratory"


@pytest.mark.parametrize(
    ("constraint", "query"),
    [
        ("must include code examples", "boosting code examples"),
        ("in Python", "boosting Python"),
        ("should mention the defaults.", "boosting the defaults"),
        ("prioritize recent content", "boosting"),
        ("no blog posts", "boosting"),
        ("with no JavaScript", "boosting"),
        ("in no more than three sentences", "boosting"),
        ("should show code without comments", "boosting"),
        ("", "boosting"),
    ],
)
def test_constraints_that_name_content_are_appended(constraint: Any, query: str) -> None:
    assert with_constraints(["boosting"], [constraint]) == (query,)


@pytest.mark.parametrize(
    ("query", "complexity"),
    [
        ("What is the default port?", "simple"),
        ("tabs vs spaces", "moderate"),
        (" ".join(["word"] * 13), "moderate"),
        (" ".join(["word"] * 31), "complex"),
    ],
)
async def test_complexity_grows_with_parts_and_words(query: str, complexity: Any) -> None:
    analysis, _ = await QueryAnalyzer().analyze(Question.of(query))

    assert analysis.complexity == complexity


async def test_rules_offer_the_question_without_its_scene() -> None:
    query = "The main machine died. What do I run on the replica?"
    analyzer = QueryAnalyzer()
    analysis, _ = await analyzer.analyze(Question.of(query))

    offered, _ = await analyzer.alternatives(Question.of(query), analysis)

    assert offered == ("What do I run on the replica?",)


async def test_rules_offer_nothing_when_everything_was_tried() -> None:
    query = "It died. How do I change the port?"
    analyzer = QueryAnalyzer()
    analysis, _ = await analyzer.analyze(Question.of(query))

    offered, _ = await analyzer.alternatives(
        Question.of(query), analysis, tried=["how do I  change the PORT?"]
    )

    assert offered == ()


async def test_rules_offer_nothing_for_a_single_sentence() -> None:
    analyzer = QueryAnalyzer()
    analysis, _ = await analyzer.analyze(Question.of("How do I change the port?"))

    assert await analyzer.alternatives(Question.of("How do I change the port?"), analysis) == (
        (),
        None,
    )


async def test_rules_have_nothing_to_add_to_wordings_of_the_caller() -> None:
    query = "The main machine died. What do I run on the replica?"
    analyzer = QueryAnalyzer()
    analysis, _ = await analyzer.analyze(Question.of(query))

    offered = await analyzer.alternatives(
        Question.of(query, wordings=["promote a standby"]), analysis
    )

    assert offered == ((), None)


async def test_model_may_add_to_wordings_of_the_caller_but_not_repeat_them() -> None:
    analyzer, _ = scripted(json.dumps(GOOD))
    analysis, _ = await QueryAnalyzer().analyze(Question.of("What about snapshots?"))

    offered, _ = await analyzer.alternatives(
        Question.of("What about snapshots?", wordings=["How snapshots work?"]),
        analysis,
        tried=["How snapshots work?"],
    )

    assert offered == ("when snapshots expire",)


async def test_mode_none_offers_no_alternatives() -> None:
    analyzer = QueryAnalyzer(mode="none")
    analysis, _ = await analyzer.analyze(Question.of("How do I change the port?"))

    assert await analyzer.alternatives(Question.of("How do I change the port?"), analysis) == (
        (),
        None,
    )


async def test_model_offers_only_what_is_new() -> None:
    analyzer, llm = scripted(json.dumps(GOOD))
    analysis, _ = await QueryAnalyzer().analyze(Question.of("What about snapshots?"))

    offered, _ = await analyzer.alternatives(
        Question.of("What about snapshots?"),
        analysis,
        tried=["How snapshots work?"],
        reason="Low scores.",
    )

    assert offered == ("when snapshots expire",)
    assert "Low scores." in llm.asked[0]


async def test_patterns_offer_wordings_when_the_model_fails_and_it_is_named() -> None:
    analyzer, _ = scripted(RuntimeError("503"))
    query = "The disk is full. How do snapshots expire?"
    analysis, _ = await QueryAnalyzer().analyze(Question.of(query))

    offered, degraded = await analyzer.alternatives(Question.of(query), analysis)

    assert offered == ("How do snapshots expire?",)
    assert degraded is not None
    assert "503" in degraded


async def test_model_writes_wordings_in_the_same_answer() -> None:
    analyzer, llm = scripted(json.dumps(GOOD | {"wordings": ["indent_style", "Use soft tabs."]}))

    analysis, _ = await analyzer.analyze(Question.of("tabs vs spaces"))

    assert analysis.wordings == ("indent_style", "Use soft tabs.")
    assert len(llm.asked) == 1


@pytest.mark.parametrize(
    ("offered", "used"),
    [
        pytest.param(["a1", "b2", "c3", "d4"], ("a1", "b2", "c3"), id="too many"),
        pytest.param(["x" * 900], ("x" * 500,), id="too long"),
        pytest.param(["", " \u200b", "tabs vs spaces?"], (), id="nothing new"),
        pytest.param(["soft\x1b[2Jtabs\n"], ("soft [2Jtabs",), id="control characters"),
        pytest.param([1, None, {"a": 1}, "soft tabs"], ("soft tabs",), id="no texts"),
        pytest.param("soft tabs", (), id="no list"),
        pytest.param(None, (), id="null"),
    ],
)
async def test_wordings_of_a_model_are_fitted_and_cost_no_second_request(
    offered: Any, used: tuple[str, ...]
) -> None:
    analyzer, llm = scripted(json.dumps(GOOD | {"wordings": offered}))

    analysis, degraded = await analyzer.analyze(Question.of("tabs vs spaces"))

    assert (analysis.wordings, analysis.method, degraded) == (used, "llm", None)
    assert len(llm.asked) == 1


async def test_wordings_of_the_caller_leave_no_room_for_those_of_a_model() -> None:
    analyzer, _ = scripted(json.dumps(GOOD | {"wordings": ["indent_style"]}))

    analysis, _ = await analyzer.analyze(Question.of("tabs vs spaces", wordings=["soft tabs"]))

    assert analysis.wordings == ()


KNOWN = "Python uses the off-side rule. Fine. Tabs count as eight columns; mixing is an error."


async def test_what_is_known_counts_as_wordings_without_a_model() -> None:
    analysis, _ = await QueryAnalyzer().analyze(Question.of("tabs vs spaces", known_context=KNOWN))

    assert analysis.wordings == (
        "Python uses the off-side rule.",
        "Tabs count as eight columns;",
        "mixing is an error.",
    )


async def test_what_is_known_counts_as_wordings_when_the_model_fails() -> None:
    analyzer, _ = scripted(ValueError("gone"))

    analysis, _ = await analyzer.analyze(Question.of("tabs vs spaces", known_context=KNOWN))

    assert len(analysis.wordings) == 3


async def test_what_is_known_is_no_wording_where_a_model_was_told_it() -> None:
    analyzer, _ = scripted(json.dumps(GOOD))

    analysis, _ = await analyzer.analyze(Question.of("tabs vs spaces", known_context=KNOWN))

    assert analysis.wordings == ()


@pytest.mark.parametrize(
    ("given", "room"), [(0, 3), (1, 3), (2, 3), (3, 2), (4, 1), (5, 0)]
)  # fmt: skip
async def test_what_is_known_takes_the_room_the_caller_left(given: int, room: int) -> None:
    wordings = [f"wording {place}" for place in range(given)]

    analysis, _ = await QueryAnalyzer().analyze(
        Question.of("tabs vs spaces", wordings=wordings, known_context=KNOWN * 3)
    )

    assert len(analysis.wordings) == room


@pytest.mark.parametrize(
    ("known", "texts"),
    [
        (None, ()),
        ("", ()),
        ("Nothing.", ()),
        ("I do not know it.", ()),
        ("- port 7411\n- a unix socket", ("- port 7411", "- a unix socket")),
        ("See https://a.test/x?y=1 for ports", ("See https://a.test/x?y=1 for ports",)),
    ],
)
def test_only_sentences_that_name_something_are_wordings(
    known: str | None, texts: tuple[str, ...]
) -> None:
    assert known_wordings(known) == texts
