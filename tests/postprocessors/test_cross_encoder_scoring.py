from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.postprocessor.webrag import CrossEncoderRerank, RerankTimeoutError
from llama_index.postprocessor.webrag.local_scoring import (
    CrossEncoderScorer,
    seconds_per_pair,
)
from llama_index.postprocessor.webrag.rerank_features import Passage
from llama_index.postprocessor.webrag.wordings import AskedWording


class Clock:
    """A clock that a model winds on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Model:
    """The number that a passage holds is its logit; the question is remembered."""

    def __init__(self, clock: Clock, pair_s: float = 0.1) -> None:
        self.clock = clock
        self.pair_s = pair_s
        self.read: list[tuple[str, str]] = []

    def __call__(self, question: str, passages: Sequence[str]) -> list[float]:
        self.clock.now += self.pair_s * len(passages)
        self.read += [(question, passage) for passage in passages]
        return [float(passage.split()[-1]) for passage in passages]


class ByOrder:
    """Likes the first passage best and the last one least."""

    def score_passages(
        self, passages: Sequence[Passage], wordings: Sequence[AskedWording]
    ) -> list[list[float]]:
        return [[1 - at / (len(passages) + 1) for at in range(len(passages))] for _ in wordings]


def passages(*logits: float) -> list[Passage]:
    return [Passage(f"{logit:g}") for logit in logits]


def asked(*texts: str) -> list[AskedWording]:
    return [AskedWording(text, {}, [], []) for text in texts]


def scorer(model: Model, *, timeout_s: float = 1.0, pair_s: float = 0.1) -> CrossEncoderScorer:
    return CrossEncoderScorer(
        model, ByOrder(), pair_s=pair_s, timeout_s=timeout_s, name="tiny", clock=model.clock
    )


def test_score_is_the_logistic_function_of_the_logit() -> None:
    model = Model(Clock())

    assert scorer(model).score_passages(passages(0, 800, -800), asked("q")) == [[0.5, 1.0, 0.0]]


def test_title_and_headings_are_read_with_the_text() -> None:
    model = Model(Clock())

    scorer(model).score_passages([Passage("1", "Kettle", ("Care", "Filter"))], asked("q"))

    assert model.read == [("q", "Kettle\nCare > Filter\n1")]


def test_only_the_most_promising_that_fit_are_read() -> None:
    model = Model(Clock())

    scorer(model, timeout_s=0.65).score_passages(passages(*range(20)), asked("q"))

    assert [passage.strip() for _, passage in model.read] == ["0", "1", "2", "3", "4", "5"]


def test_wordings_share_the_time() -> None:
    model = Model(Clock())

    scorer(model, timeout_s=1.25).score_passages(passages(*range(20)), asked("q", "other"))

    assert len(model.read) == 12
    assert {question for question, _ in model.read} == {"q", "other"}


def test_passages_that_were_not_read_follow_in_the_other_order() -> None:
    model = Model(Clock())

    [scores] = scorer(model, timeout_s=0.55).score_passages(
        passages(0, 1, -1, 2, 3, 9, 9, 9), asked("q")
    )

    assert max(scores[5:]) < min(scores[:5])
    assert scores[5:] == sorted(scores[5:], reverse=True)


def test_nothing_is_read_after_the_time_is_over() -> None:
    model = Model(Clock(), pair_s=1.0)  # ten times slower than it was when it was measured

    scorer(model, timeout_s=2.0).score_passages(passages(*range(20)), asked("q"))

    assert len(model.read) == 8


def test_too_slow_a_model_is_an_error_that_says_how_many_fit() -> None:
    model = Model(Clock())

    with pytest.raises(RerankTimeoutError, match=r"tiny reads 3 of 20 passages in 0\.35 s"):
        scorer(model, timeout_s=0.35).score_passages(passages(*range(20)), asked("q"))
    assert model.read == []


def test_model_that_has_become_too_slow_is_an_error() -> None:
    model = Model(Clock(), pair_s=1.0)

    with pytest.raises(RerankTimeoutError, match="reads 0 of 20"):
        scorer(model, timeout_s=2.0).score_passages(passages(*range(20)), asked("q", "other"))


def test_few_passages_need_little_time() -> None:
    model = Model(Clock())

    assert scorer(model, timeout_s=0.2).score_passages(passages(0), asked("q")) == [[0.5]]


def test_no_passages_need_no_model() -> None:
    model = Model(Clock())

    assert scorer(model).score_passages([], asked("q")) == [[]]
    assert model.read == []


@given(
    st.lists(st.floats(-30, 30), min_size=5, max_size=40),
    st.floats(0.5, 5.0),
)
def test_scores_lie_between_0_and_1_and_keep_the_order_of_what_was_read(
    logits: list[float], timeout_s: float
) -> None:
    model = Model(Clock())

    [scores] = scorer(model, timeout_s=timeout_s).score_passages(passages(*logits), asked("q"))

    assert all(0 <= score <= 1 for score in scores)
    count = len(model.read)
    read = sorted(range(count), key=lambda at: scores[at])
    told = [float(f"{logits[at]:g}") for at in read]
    assert told == sorted(told) or len(set(scores[:count])) < count
    assert max(scores[count:], default=0) <= min(scores[:count])


def test_speed_is_measured_after_the_first_call() -> None:
    clock = Clock()
    model = Model(clock, pair_s=0.25)

    def model_with_words(question: str, texts: Sequence[str]) -> list[float]:
        clock.now += 100.0 * (not model.read)  # what is only done once
        return model(question, ["1"] * len(texts))

    assert seconds_per_pair(model_with_words, clock=clock) == pytest.approx(0.25)


def test_postprocessor_orders_nodes_and_changes_none() -> None:
    nodes = [NodeWithScore(node=TextNode(text=text), score=0.1) for text in ("1", "3", "2")]
    rerank = CrossEncoderRerank(scorer=scorer(Model(Clock())), top_n=2)

    ranked = rerank.postprocess_nodes(nodes, query_str="q")

    assert [item.node.get_content() for item in ranked] == ["3", "2"]
    assert [item.score for item in nodes] == [0.1] * 3


def test_postprocessor_reads_other_wordings_too() -> None:
    model = Model(Clock())
    nodes = [NodeWithScore(node=TextNode(text="1"))]

    CrossEncoderRerank(scorer=scorer(model)).postprocess_nodes(
        nodes, query_bundle=QueryBundle("q", custom_embedding_strs=["other"])
    )

    assert [question for question, _ in model.read] == ["q", "other"]
