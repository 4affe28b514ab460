import asyncio
import copy
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.postprocessor.webrag import LocalRerank, TokenEncoder
from llama_index.postprocessor.webrag.local_scoring import calibrated
from llama_index.postprocessor.webrag.rerank_features import Passage
from llama_index.postprocessor.webrag.wordings import AskedWording
from numpy.typing import NDArray

ALPHABET = frozenset("abcdefghijklmnopqrstuvwxyz")


class LetterEncoder:
    """Embeds words by their letters, a token each: words that share letters are close."""

    _table = np.eye(26, dtype=np.float32)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.array(
            [[text.lower().count(letter) for letter in sorted(ALPHABET)] for text in texts],
            dtype=np.float32,
        ).reshape(len(texts), 26)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(lengths > 0, lengths, 1)

    def vectors_of(self, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
        return self._table[tokens]

    def encode_with_tokens(
        self, texts: Sequence[str]
    ) -> tuple[NDArray[np.float32], list[NDArray[np.int64]]]:
        letters = [{ord(c) - ord("a") for c in text.lower() if c in ALPHABET} for text in texts]
        return self.encode(texts), [np.array(sorted(each), np.int64) for each in letters]

    def token_vectors(self, text: str) -> tuple[list[str], NDArray[np.float32]]:
        letters = sorted({c for c in text.lower() if c in ALPHABET})
        return letters, self._table[[ord(c) - ord("a") for c in letters]]


class CountingEncoder(LetterEncoder):
    """Remembers every text it was given."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.encoded += texts
        return super().encode(texts)

    def token_vectors(self, text: str) -> tuple[list[str], NDArray[np.float32]]:
        self.encoded.append(text)
        return super().token_vectors(text)


def node(text: str, **metadata: object) -> NodeWithScore:
    return NodeWithScore(node=TextNode(text=text, metadata=metadata), score=0.5)


def texts(nodes: Sequence[NodeWithScore]) -> list[str]:
    return [each.node.get_content() for each in nodes]


PORT = "The server listens on port 5432. Set port in the configuration file to change it."
COLOUR = "Colours of the interface follow the theme."
LICENCE = "The licence permits redistribution."
QUESTION = "How do I change the port of the server?"


def test_the_node_that_answers_comes_first_without_any_encoder() -> None:
    ranked = LocalRerank(encoder=None).postprocess_nodes(
        [node(LICENCE), node(COLOUR), node(PORT)], query_str=QUESTION
    )

    assert texts(ranked)[0] == PORT


def test_the_node_that_answers_comes_first_with_an_encoder() -> None:
    ranked = LocalRerank(encoder=LetterEncoder()).postprocess_nodes(
        [node(LICENCE), node(COLOUR), node(PORT)], query_str=QUESTION
    )

    assert texts(ranked)[0] == PORT


def test_scores_lie_between_zero_and_one_and_descend() -> None:
    ranked = LocalRerank(encoder=LetterEncoder()).postprocess_nodes(
        [node(PORT), node(COLOUR), node(LICENCE)], query_str=QUESTION
    )

    scores = [each.score for each in ranked]
    assert all(0 < score < 1 for score in scores)
    assert scores == sorted(scores, reverse=True)


def test_inputs_are_never_changed() -> None:
    nodes = [node(PORT, title="Ports", heading_path=["Server"]), node(COLOUR)]
    before = copy.deepcopy(nodes)

    LocalRerank(encoder=LetterEncoder()).postprocess_nodes(nodes, query_str=QUESTION)

    assert nodes == before


def test_the_result_tells_the_sum_and_the_features() -> None:
    (ranked,) = LocalRerank(encoder=LetterEncoder()).postprocess_nodes(
        [node(PORT, similarity=0.4, page_lexical=1.0)], query_str=QUESTION
    )

    features = ranked.node.metadata["rerank_features"]
    assert features["similarity"] == 0.4
    assert features["page_lexical"] == 1.0
    assert len(features) == 8
    assert ranked.node.metadata["rerank_raw"] > 0
    assert ranked.node.metadata["similarity"] == 0.4


def test_what_is_added_to_the_metadata_stays_out_of_prompts_and_embeddings() -> None:
    (ranked,) = LocalRerank().postprocess_nodes([node(PORT)], query_str=QUESTION)

    assert "rerank" not in ranked.node.get_content(metadata_mode="llm")
    assert "rerank" not in ranked.node.get_content(metadata_mode="embed")


@pytest.mark.parametrize(
    ("raw", "expected"), [(6.5, 0.1), (8.6, 0.4), (10.7, 0.85), (13, 0.98)], ids=str
)
def test_the_score_is_calibrated(raw: float, expected: float) -> None:
    assert calibrated(raw) == pytest.approx(expected, abs=0.05)


def test_metadata_keys_are_fields() -> None:
    rerank = LocalRerank(page_lexical_key="page", raw_score_key="sum", features_key="why")

    (ranked,) = rerank.postprocess_nodes([node(PORT, page=0.25)], query_str=QUESTION)

    assert ranked.node.metadata["why"]["page_lexical"] == 0.25
    assert "sum" in ranked.node.metadata


def test_given_term_weights_replace_those_of_the_candidates() -> None:
    weights = {"colour": 5.0, "port": 0.1}
    nodes = [node(PORT, term_idf=weights), node(COLOUR, term_idf=weights)]

    ranked = LocalRerank().postprocess_nodes(nodes, query_str="port colours")

    assert texts(ranked)[0] == COLOUR


def test_the_users_analyser_decides_what_matches() -> None:
    def stem(text: str) -> list[str]:
        return [word[:4] for word in re.findall(r"\w+", text.lower())]

    nodes = [node("Nothing of that sort."), node("It was configured.")]

    ranked = LocalRerank(analyze=stem, analyze_question=stem).postprocess_nodes(
        nodes, query_str="configuration"
    )

    assert texts(ranked)[0] == "It was configured."


def test_top_n_keeps_the_best() -> None:
    ranked = LocalRerank(top_n=1).postprocess_nodes([node(LICENCE), node(PORT)], query_str=QUESTION)

    assert texts(ranked) == [PORT]


def test_equal_nodes_keep_their_order() -> None:
    nodes = [node(PORT, number=number) for number in range(5)]

    ranked = LocalRerank(encoder=LetterEncoder()).postprocess_nodes(nodes, query_str=QUESTION)

    assert [each.node.metadata["number"] for each in ranked] == [0, 1, 2, 3, 4]


def test_no_nodes_give_no_nodes() -> None:
    assert LocalRerank().postprocess_nodes([], query_str=QUESTION) == []


def test_a_missing_question_is_an_error() -> None:
    with pytest.raises(ValueError, match="query_str"):
        LocalRerank().postprocess_nodes([node(PORT)])


async def test_the_asynchronous_method_gives_the_same() -> None:
    rerank = LocalRerank(encoder=LetterEncoder())
    nodes = [node(LICENCE), node(PORT), node(COLOUR)]

    assert await rerank.apostprocess_nodes(
        nodes, query_bundle=QueryBundle(QUESTION)
    ) == rerank.postprocess_nodes(nodes, query_str=QUESTION)


async def test_concurrent_calls_with_a_tiny_cache_agree() -> None:
    rerank = LocalRerank(encoder=LetterEncoder(), cache_size=1)
    nodes = [node(LICENCE), node(PORT), node(COLOUR)]
    expected = rerank.postprocess_nodes(nodes, query_str=QUESTION)

    results = await asyncio.gather(
        *(rerank.apostprocess_nodes(nodes, query_str=QUESTION) for _ in range(8))
    )

    assert all(result == expected for result in results)


def test_a_second_call_gives_the_same_from_memory() -> None:
    rerank = LocalRerank(encoder=LetterEncoder())
    nodes = [node(LICENCE), node(PORT), node(COLOUR)]

    first = rerank.postprocess_nodes(nodes, query_str=QUESTION)

    assert rerank.postprocess_nodes(nodes, query_str=QUESTION) == first


def test_texts_that_differ_only_in_their_headings_are_told_apart() -> None:
    same = "It can be changed in the file."
    nodes = [node(same, heading_path=["Theme"]), node(same, heading_path=["Server port"])]

    ranked = LocalRerank().postprocess_nodes(nodes, query_str=QUESTION)

    assert ranked[0].node.metadata["heading_path"] == ["Server port"]


def test_the_bundled_default_needs_no_metadata_at_all() -> None:
    ranked = LocalRerank().postprocess_nodes([node("")], query_str="?!")

    assert 0 < ranked[0].score < 1


def test_any_object_with_the_four_methods_is_an_encoder() -> None:
    assert isinstance(LetterEncoder(), TokenEncoder)


def test_candidates_are_encoded_once_however_often_they_are_ranked() -> None:
    encoder = CountingEncoder()
    rerank = LocalRerank(encoder=encoder)
    nodes = [node(f"{PORT} {LICENCE} {number}.", similarity=0.4) for number in range(80)]
    rerank.postprocess_nodes(nodes, query_str="fill the memory")
    encoder.encoded.clear()

    rerank.postprocess_nodes(nodes, query_str=QUESTION)

    assert set(encoder.encoded) == {QUESTION, *QUESTION.split()}


def test_rare_words_of_the_question_weigh_more_token_by_token() -> None:
    nodes = [node("zzz", term_idf={"zzz": 9.0, "abc": 0.1}), node("abc")]

    first, second = LocalRerank(encoder=LetterEncoder()).postprocess_nodes(
        nodes, query_str="zzz abc"
    )

    assert texts([first, second]) == ["zzz", "abc"]
    assert similarity_of(first) > 0.9 > 0.1 > similarity_of(second)


@pytest.mark.parametrize("feature", ["window_similarity", "title_similarity"])
def test_rare_words_of_the_question_weigh_more_in_short_texts(feature: str) -> None:
    idf = {"zzz": 9.0, "abc": 0.1}
    nodes = [node("zzz", title="zzz", term_idf=idf), node("abc", title="abc")]

    ranked = LocalRerank(encoder=LetterEncoder()).postprocess_nodes(nodes, query_str="zzz abc abc")

    by_text = {each.node.get_content(): each.node.metadata["rerank_features"] for each in ranked}
    assert by_text["zzz"][feature] > 0.8 > 0.6 > by_text["abc"][feature]


def similarity_of(ranked: NodeWithScore) -> float:
    return float(ranked.node.metadata["rerank_features"]["token_similarity"])


@settings(max_examples=50)
@given(st.lists(st.text(max_size=300), max_size=6), st.text(max_size=100))
def test_every_node_comes_back_once_whatever_it_holds(contents: list[str], query: str) -> None:
    nodes = [node(content, title=content[:9]) for content in contents]

    ranked = LocalRerank(encoder=LetterEncoder()).postprocess_nodes(nodes, query_str=query)

    assert sorted(each.node.node_id for each in ranked) == sorted(n.node.node_id for n in nodes)
    assert all(0 <= each.score <= 1 for each in ranked)


def worded(question: str, *wordings: str) -> QueryBundle:
    return QueryBundle(question, custom_embedding_strs=list(wordings))


def test_embedding_strings_of_the_bundle_lead_to_what_the_question_does_not_name() -> None:
    nodes = [node(COLOUR), node(LICENCE), node(PORT)]
    bundle = QueryBundle(
        "Where do clients connect?", custom_embedding_strs=["Set port in the configuration file."]
    )

    ranked = LocalRerank().postprocess_nodes(nodes, query_bundle=bundle)

    assert texts(ranked)[0] == PORT


def test_score_under_wordings_is_the_mean_with_the_question_double() -> None:
    wording = "licence"
    one, other, both = [
        LocalRerank(encoder=LetterEncoder()).postprocess_nodes([node(PORT)], query_bundle=bundle)
        for bundle in (
            QueryBundle(QUESTION), QueryBundle(wording), worded(QUESTION, wording),
        )
    ]  # fmt: skip

    assert both[0].score == pytest.approx((2 * (one[0].score or 0) + (other[0].score or 0)) / 3)


def test_what_the_retriever_said_of_the_question_is_not_held_for_a_wording() -> None:
    told = node(PORT, similarity=1.0, page_lexical=1.0, term_idf={"elephant": 9.0})
    bundle = worded("elephant", QUESTION)

    (untold,), (scored,) = (
        LocalRerank().postprocess_nodes([each], query_bundle=bundle) for each in (node(PORT), told)
    )
    (alone,) = LocalRerank().postprocess_nodes([told], query_str="elephant")
    (plain,) = LocalRerank().postprocess_nodes([node(PORT)], query_str="elephant")

    of_wording = 3 * (untold.score or 0) - 2 * (plain.score or 0)
    assert scored.score == pytest.approx((2 * (alone.score or 0) + of_wording) / 3)


def test_the_question_alone_among_the_embedding_strings_changes_nothing() -> None:
    nodes = [node(COLOUR), node(PORT)]

    plain = LocalRerank().postprocess_nodes(nodes, query_bundle=QueryBundle(QUESTION))
    same = LocalRerank().postprocess_nodes(nodes, query_bundle=worded(QUESTION, QUESTION))

    assert [each.score for each in plain] == [each.score for each in same]


def test_wordings_scored_in_one_go_score_as_questions_of_their_own() -> None:
    rerank = LocalRerank(encoder=LetterEncoder())
    nodes = [node(PORT, title="Ports"), node(COLOUR, heading_path="Looks"), node(LICENCE)]
    asked = [
        AskedWording(QUESTION, {"port": 2.0, "server": 1.0}, (0.9, 0.1, 0.2), (1.0, 0.5, 0.0)),
        AskedWording("theme of colours", {}, (0.1, 0.8, 0.3), (0.2, 1.0, 0.0)),
    ]

    passages = [Passage(PORT, "Ports"), Passage(COLOUR, "", ("Looks",)), Passage(LICENCE)]
    rows = rerank.score_passages(passages, asked)

    for row, each in zip(rows, asked, strict=True):
        told = [
            NodeWithScore(
                node=n.node.model_copy(
                    update={
                        "metadata": {
                            **n.node.metadata,
                            "similarity": each.similarity[place],
                            "page_lexical": each.page_lexical[place],
                            "term_idf": each.idf,
                        }
                    }
                )
            )
            for place, n in enumerate(nodes)
        ]
        alone = rerank.postprocess_nodes(told, query_str=each.text)
        by_id = {n.node.node_id: n.score for n in alone}
        assert row == pytest.approx([by_id[n.node.node_id] for n in nodes])


def test_node_is_as_good_as_its_best_part_under_the_question_it_was_found_for() -> None:
    match = {"span": [0, len(PORT)], "heading_path": [], "told": {QUESTION: [0.9, 1.0]}}
    told = {"term_idf": {QUESTION: {"port": 2.0}}, "matches": [match]}
    whole = node(f"{PORT} {LICENCE * 20}", webrag_retrieved=told)
    part = node(PORT, similarity=0.9, page_lexical=1.0, term_idf={"port": 2.0})
    untold = node(f"{PORT} {LICENCE * 20}")

    def score(given: NodeWithScore, question: str) -> float | None:
        return LocalRerank().postprocess_nodes([given], query_str=question)[0].score

    assert score(whole, QUESTION) == score(part, QUESTION)
    assert score(whole, COLOUR) == score(untold, COLOUR)
