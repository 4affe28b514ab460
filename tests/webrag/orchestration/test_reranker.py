from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index.postprocessor.webrag.local_scoring import PassageScorer
from llama_index.postprocessor.webrag.rerank_features import Passage
from llama_index.postprocessor.webrag.wordings import AskedWording
from typing_extensions import override

from webrag.orchestration.confidence import SIMILARITY
from webrag.orchestration.models import ScoreProfile
from webrag.orchestration.ranking.reranker import ChunkReranker, child_nodes
from webrag.retrieval.models import WordingScores

from .conftest import build_chunk, build_match, build_result, local_rerank

PROFILE = ScoreProfile(name="test")


class ByTable(BaseNodePostprocessor):
    """Scores nodes by a table of texts and drops what is not in it."""

    table: dict[str, float]
    confidence: float | None = None

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        kept = [n for n in nodes if n.node.get_content() in self.table]
        extra = {} if self.confidence is None else {"confidence": self.confidence}
        return [
            NodeWithScore(
                node=n.node.model_copy(update={"metadata": {**n.node.metadata, **extra}}),
                score=self.table[n.node.get_content()],
            )
            for n in kept
        ]


class Broken(BaseNodePostprocessor):
    @override
    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
        raise KeyError("api_key")


class Instructed(BaseNodePostprocessor):
    """Notes the instruction it was given."""

    instruction: str | None = None
    _seen: list[str | None] = PrivateAttr(default_factory=list)

    @override
    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
        self._seen.append(self.instruction)
        return nodes


def two_chunks() -> Any:
    first = build_chunk(matches=(build_match("a", fused=0.9), build_match("b", fused=0.8)))
    second = build_chunk(matches=(build_match("c", fused=0.7),), raw_similarity=0.3)
    return build_result(first, second), first, second


async def test_chunk_takes_the_score_of_its_best_child() -> None:
    result, first, second = two_chunks()
    reranker = ChunkReranker(ByTable(table={"a": 0.1, "b": 0.6, "c": 0.4}), PROFILE)

    ranked, degraded = await reranker.rerank("q", result)

    assert [(item.chunk.chunk_id, item.reranked_score) for item in ranked] == [
        (first.chunk_id, 0.6),
        (second.chunk_id, 0.4),
    ]
    assert degraded is None


async def test_focus_becomes_the_child_the_scorer_liked_best() -> None:
    result, first, _ = two_chunks()

    ranked, _ = await ChunkReranker(ByTable(table={"a": 0.1, "b": 0.6}), PROFILE).rerank(
        "q", result
    )

    assert ranked[0].chunk.focus.text == "b"
    assert first.focus.text == "a"


async def test_chunk_whose_children_were_all_dropped_is_left_out() -> None:
    result, first, _ = two_chunks()

    ranked, _ = await ChunkReranker(ByTable(table={"b": 0.6}), PROFILE).rerank("q", result)

    assert [item.chunk.chunk_id for item in ranked] == [first.chunk_id]


async def test_at_most_top_n_chunks_are_kept() -> None:
    result, _, second = two_chunks()
    table = ByTable(table={"a": 0.1, "b": 0.2, "c": 0.4})

    ranked, _ = await ChunkReranker(table, PROFILE, top_n=1).rerank("q", result)

    assert [item.chunk.chunk_id for item in ranked] == [second.chunk_id]


async def test_rounding_beyond_the_unit_interval_is_cut() -> None:
    result, *_ = two_chunks()

    ranked, degraded = await ChunkReranker(
        ByTable(table={"a": 1.0 + 1e-7, "c": -1e-7}), PROFILE
    ).rerank("q", result)

    assert ([item.reranked_score for item in ranked], degraded) == ([1.0, 0.0], None)


@pytest.mark.parametrize("score", [7.0, -2.0, float("nan")])
async def test_scores_outside_the_unit_interval_are_refused_with_advice(score: float) -> None:
    result, *_ = two_chunks()

    ranked, degraded = await ChunkReranker(ByTable(table={"a": score, "c": 0.5}), PROFILE).rerank(
        "q", result
    )

    assert [item.reranked_score for item in ranked] == [0.5, 0.3]
    assert degraded is not None
    assert f"gave a score of {score:g}" in degraded
    assert "ScaledScores" in degraded


async def test_confidence_is_taken_from_metadata() -> None:
    result, *_ = two_chunks()
    table = ByTable(table={"a": 0.5}, confidence=0.7)

    ranked, _ = await ChunkReranker(table, PROFILE).rerank("q", result)

    assert ranked[0].confidence == 0.7


async def test_failing_scorer_leaves_raw_similarity_and_a_sentence() -> None:
    result, first, second = two_chunks()

    ranked, degraded = await ChunkReranker(Broken(), PROFILE).rerank("q", result)

    assert [(item.chunk.chunk_id, item.reranked_score) for item in ranked] == [
        (first.chunk_id, 0.5),
        (second.chunk_id, 0.3),
    ]
    assert degraded is not None
    assert "KeyError" in degraded


async def test_no_scorer_means_raw_similarity_without_a_sentence() -> None:
    result, *_ = two_chunks()

    ranked, degraded = await ChunkReranker(None, SIMILARITY).rerank("q", result)

    assert ([item.reranked_score for item in ranked], degraded) == ([0.5, 0.3], None)


@pytest.mark.parametrize("scorer", [None, Broken()])
async def test_without_a_scorer_that_works_the_order_of_the_search_stays(scorer: Any) -> None:
    by_words = build_chunk(score=0.9, raw_similarity=0.3)
    by_meaning = build_chunk(score=0.4, raw_similarity=0.6)

    ranked, _ = await ChunkReranker(scorer, SIMILARITY).rerank(
        "q", build_result(by_meaning, by_words)
    )

    assert [item.chunk.chunk_id for item in ranked] == [by_words.chunk_id, by_meaning.chunk_id]
    assert [item.reranked_score for item in ranked] == [0.6, 0.3]


async def test_nothing_retrieved_is_nothing_ranked() -> None:
    assert await ChunkReranker(Broken(), PROFILE).rerank("q", build_result()) == ((), None)


async def test_instruction_reaches_a_copy_of_scorers_that_take_one() -> None:
    result, *_ = two_chunks()
    scorer = Instructed()

    await ChunkReranker(scorer, PROFILE).rerank("q", result, instruction="prefer code")

    assert scorer._seen == ["prefer code"]
    assert scorer.instruction is None


def test_nodes_show_title_and_headings_but_no_numbers() -> None:
    match = build_match("the passage", heading_path=("Guide", "Lag"))
    (item,) = child_nodes(build_result(build_chunk(title="Manual", matches=(match,))))

    text = item.node.get_content(MetadataMode.EMBED)

    assert "Manual" in text
    assert "heading_path: Guide > Lag" in text
    assert "similarity" not in text
    assert item.node.get_content(MetadataMode.LLM) == "the passage"


async def test_local_reranker_finds_its_features_in_the_metadata() -> None:
    good = build_chunk(matches=(build_match("A replica may lag 512 megabytes."),))
    bad = build_chunk(matches=(build_match("The mascot is purple."),))
    result = build_result(bad, good, term_idf={"replica": 2.0, "lag": 2.0})

    ranked, degraded = await ChunkReranker(local_rerank(), PROFILE).rerank(
        "How far may a replica lag?", result
    )

    assert ranked[0].chunk.chunk_id == good.chunk_id
    assert degraded is None


@pytest.mark.parametrize("score", [-0.4, 0.0])
async def test_negative_similarity_counts_as_none(score: float) -> None:
    result = build_result(build_chunk(raw_similarity=score))

    ranked, _ = await ChunkReranker(None, SIMILARITY).rerank("q", result)

    assert ranked[0].reranked_score == 0.0


class ByQuestion(BaseNodePostprocessor):
    """Scores nodes by a table of questions and texts; an absent text is dropped."""

    tables: dict[str, dict[str, float]]

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        assert query_bundle is not None
        table = self.tables[query_bundle.query_str]
        return [
            NodeWithScore(node=n.node, score=table[n.node.get_content()])
            for n in nodes
            if n.node.get_content() in table
        ]


def told(similarity: float = 0.5) -> WordingScores:
    return WordingScores(similarity=similarity, lexical=2.0, page_lexical=0.25, fused=0.7)


def with_wordings(*texts: str, count: int = 2) -> Any:
    """A chunk for each text, retrieved for wordings called w1, w2 and so on as well."""
    chunks = [
        build_chunk(matches=(build_match(text, wordings=(told(),) * count),)) for text in texts
    ]
    wordings = {f"w{n}": {f"term{n}": 2.0} for n in range(1, count + 1)}
    return build_result(*chunks, wordings=wordings, term_idf={"own": 1.0})


async def test_chunk_is_scored_under_every_wording_with_the_question_double() -> None:
    tables = {"q": {"a": 0.2, "b": 0.6}, "w1": {"a": 0.8, "b": 0.1}, "w2": {"a": 0.8, "b": 0.1}}
    scorer = ByQuestion(tables=tables)

    ranked, _ = await ChunkReranker(scorer, PROFILE).rerank("q", with_wordings("a", "b"))

    assert [item.chunk.focus.text for item in ranked if item.chunk.focus] == ["a", "b"]
    assert [item.reranked_score for item in ranked] == pytest.approx([0.5, 0.35])
    assert [item.wording_scores for item in ranked] == [(0.2, 0.8, 0.8), (0.6, 0.1, 0.1)]


async def test_chunk_names_the_wording_that_scored_it_best() -> None:
    tables = {"q": {"a": 0.2, "b": 0.6}, "w1": {"a": 0.3, "b": 0.1}, "w2": {"a": 0.8, "b": 0.6}}
    scorer = ByQuestion(tables=tables)

    ranked, _ = await ChunkReranker(scorer, PROFILE).rerank("q", with_wordings("a", "b"))

    best = {item.chunk.matches[0].text: item.best_wording for item in ranked}
    assert best == {"a": "w2", "b": None}


async def test_what_a_reranker_leaves_out_under_one_wording_scores_nothing_there() -> None:
    scorer = ByQuestion(tables={"q": {"a": 0.8}, "w1": {}, "w2": {"b": 0.4}})

    ranked, _ = await ChunkReranker(scorer, PROFILE).rerank("q", with_wordings("a", "b"))

    assert [item.wording_scores for item in ranked] == [(0.8, 0.0, 0.0), (0.0, 0.0, 0.4)]


async def test_wordings_without_a_reranker_are_weighed_by_similarity() -> None:
    match = build_match("a", similarity=0.5, wordings=(told(0.8), told(0.2)))
    result = with_wordings().model_copy(update={"chunks": (build_chunk(matches=(match,)),)})

    ranked, _ = await ChunkReranker(None, SIMILARITY).rerank("q", result)

    assert ranked[0].reranked_score == pytest.approx(0.5)
    assert ranked[0].best_wording == "w1"


async def test_wrong_wordings_keep_what_the_question_finds_near_its_place() -> None:
    names = [f"passage {n}" for n in range(12)]
    own = {"right": 0.9, **dict.fromkeys(names, 0.1)}
    wrong = {"right": 0.0, **{name: 0.9 - n / 100 for n, name in enumerate(names)}}
    scorer = ByQuestion(tables={"q": own, **{f"w{n}": wrong for n in range(1, 6)}})

    ranked, _ = await ChunkReranker(scorer, PROFILE).rerank(
        "q", with_wordings("right", *names, count=5)
    )

    places = [item.chunk.matches[0].text for item in ranked]
    assert places.index("right") == 2


def test_nodes_of_a_wording_carry_its_numbers_and_weights() -> None:
    (node,) = child_nodes(with_wordings("a"), wording=2)

    assert node.score == 0.7
    assert node.node.metadata["page_lexical"] == 0.25
    assert node.node.metadata["term_idf"] == {"term2": 2.0}


async def test_result_without_wordings_names_none() -> None:
    result, *_ = two_chunks()

    ranked, _ = await ChunkReranker(ByTable(table={"a": 0.1}), PROFILE).rerank("q", result)

    assert [(item.wording_scores, item.best_wording) for item in ranked] == [((), None)]


class AtOnce(ByQuestion):
    """Scores all wordings in one call, and nothing in calls of their own."""

    _asked: list[AskedWording] = PrivateAttr(default_factory=list)

    @override
    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
        raise AssertionError("asked for one wording alone")

    def score_passages(
        self, passages: Sequence[Passage], wordings: Sequence[AskedWording]
    ) -> list[list[float]]:
        self._asked += wordings
        tables = [self.tables[each.text] for each in wordings]
        return [[table.get(each.text, 0.0) for each in passages] for table in tables]


@pytest.mark.parametrize(
    "tables",
    [
        {"q": {"a": 0.2, "b": 0.6}, "w1": {"a": 0.8, "b": 0.1}, "w2": {"a": 0.8, "b": 0.1}},
        {"q": {"a": 0.8}, "w1": {}, "w2": {"b": 0.4}},
        {"q": {"a": 0.5, "b": 0.5}, "w1": {"a": 0.5, "b": 0.5}, "w2": {"a": 0.5, "b": 0.5}},
        {"q": {"a": 1.7, "b": 0.5}, "w1": {}, "w2": {}},
    ],
)
async def test_scorer_of_all_wordings_at_once_ranks_as_one_that_is_asked_for_each(
    tables: dict[str, dict[str, float]],
) -> None:
    result = with_wordings("a", "b")

    at_once = await ChunkReranker(AtOnce(tables=tables), PROFILE).rerank("q", result)
    apart = await ChunkReranker(ByQuestion(tables=tables), PROFILE).rerank("q", result)

    assert at_once[0] == apart[0]
    assert (at_once[1] is None) == (apart[1] is None)


async def test_scorer_of_all_wordings_at_once_is_told_what_is_known_under_each() -> None:
    scorer = AtOnce(tables={"q": {"a": 0.5}, "w1": {"a": 0.5}})
    match = build_match("a", similarity=0.5, wordings=(told(0.8),))
    result = with_wordings(count=1).model_copy(update={"chunks": (build_chunk(matches=(match,)),)})

    await ChunkReranker(scorer, PROFILE).rerank("q", result)

    question, wording = scorer._asked
    assert (question.text, question.idf, question.similarity) == ("q", {"own": 1.0}, [0.5])
    assert (wording.text, wording.idf) == ("w1", {"term1": 2.0})
    assert (wording.similarity, wording.page_lexical) == ([0.8], [0.25])


async def test_local_reranker_scores_wordings_as_in_calls_of_their_own() -> None:
    local = local_rerank()
    assert isinstance(local, PassageScorer)
    result = with_wordings("The port is set in the file.", "Colours follow the theme.")

    ranked, _ = await ChunkReranker(local, PROFILE).rerank("How is the port set?", result)

    for place, text in enumerate(["How is the port set?", "w1", "w2"]):
        alone = local.postprocess_nodes(child_nodes(result, wording=place), query_str=text)
        by_text = {each.node.get_content(): each.score for each in alone}
        for item in ranked:
            assert item.chunk.focus is not None
            assert item.wording_scores[place] == pytest.approx(by_text[item.chunk.focus.text])
