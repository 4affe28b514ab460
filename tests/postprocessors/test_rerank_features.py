"""Features computed in bulk against their definitions, one passage at a time."""

import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.postprocessor.webrag.rerank_features import (
    FEATURES,
    FeatureExtractor,
    Passage,
    sentence_windows,
)
from llama_index.postprocessor.webrag.wordings import AskedWording

from webrag.embedding.bundled import BundledEmbedding
from webrag.lexical.analysis import analyze, query_terms

ENCODER = BundledEmbedding()
IDF = {"port": 3.0, "server": 1.5, "=max_connections": 6.0, "max": 2.0, "connect": 2.5}
QUESTIONS = [
    "How is the port of the server changed?",
    "What does max_connections limit?",
    "port",
    "the",
    "\U0001f642",
]
PASSAGES = [
    Passage("The server listens on port 5432. Set `port` in the file.", "Ports", ("Server",)),
    Passage(
        "A long list follows. " + "max_connections limits how many clients connect! " * 9,
        "Limits",
        ("Server", "Connections"),
    ),
    Passage("Colours follow the theme.\n\nSet one.", "Ports"),
    Passage("\u914d\u7f6e\u6587\u4ef6\u3002\u7aef\u53e3\u53f7\u3002", "\u9875"),
    Passage("-> ++", "", ("Symbols",)),
    Passage(""),
]
SIMILARITY = [None, 0.4, None, None, None, None]
PAGE_LEXICAL = [None, 1.0, None, None, None, None]


def asked(text: str, *, is_weighed: bool = True, only: slice = slice(None)) -> AskedWording:
    """A question with what is known of some passages under it."""
    idf = IDF if is_weighed else {}
    return AskedWording(text, idf, SIMILARITY[only], PAGE_LEXICAL[only])


def extractor() -> FeatureExtractor:
    return FeatureExtractor(ENCODER, analyze, query_terms, cache_size=10)


def features(question: AskedWording, passages: list[Passage]) -> np.ndarray:
    return extractor().features([question], passages)[0]


def defined(question: AskedWording, place: int) -> list[float]:
    """Every feature by its definition."""
    passage = PASSAGES[place]
    asked_terms = query_terms(question.text)
    weights = {term: question.idf[term] for term in asked_terms if term in question.idf}
    windows = sentence_windows(passage.text)
    vector = ENCODER.encode([question.text])[0]
    drawn = drawn_to_rare_words(vector, *weighted_tokens(question.text, weights))
    terms = analyze(passage.header) + [term for part in windows for term in analyze(part)]
    pairs = list(pairwise(asked_terms))
    similarity = question.similarity[place]
    page = question.page_lexical[place]
    if similarity is None:
        similarity = float(ENCODER.encode([passage.context])[0] @ vector)
    return [
        coverage(terms, weights),
        similarity,
        max(float(row @ drawn) for row in ENCODER.encode(windows)),
        max(coverage(analyze(part), weights) for part in windows),
        sum(pair in set(pairwise(terms)) for pair in pairs) / len(pairs) if pairs else 0.0,
        float(ENCODER.encode([passage.title])[0] @ drawn),
        np.nan if page is None else page,
        token_similarity(question.text, weights, passage, windows),
    ]


def coverage(terms: list[str], weights: dict[str, float]) -> float:
    found = sum(weight for term, weight in weights.items() if term in terms)
    return found / sum(weights.values()) if weights else 0.0


def token_similarity(
    text: str, weights: dict[str, float], passage: Passage, windows: list[str]
) -> float:
    rows = np.concatenate([ENCODER.token_vectors(t)[1] for t in [passage.header, *windows]])
    tokens, weight = weighted_tokens(text, weights)
    best = [max((cosine(token, row) for row in rows), default=0.0) for token in tokens]
    return float(np.dot(weight, best) / sum(weight)) if best else 0.0


def weighted_tokens(text: str, weights: dict[str, float]) -> tuple[list[np.ndarray], list[float]]:
    tokens, weight = [], []
    for word in dict.fromkeys(text.split()):
        for vector in ENCODER.token_vectors(word)[1]:
            tokens.append(vector)
            weight.append(max((weights.get(term, 0.0) for term in analyze(word)), default=0.0))
    return tokens, weight if any(weight) else [1.0] * len(tokens)


def drawn_to_rare_words(
    vector: np.ndarray, tokens: list[np.ndarray], weight: list[float]
) -> np.ndarray:
    if not tokens:
        return vector
    rare = sum(one * token for one, token in zip(weight, tokens, strict=True))
    both = vector + rare / np.linalg.norm(rare)
    return both / np.linalg.norm(both)


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


@pytest.mark.parametrize("text", QUESTIONS)
def test_features_are_what_they_are_defined_to_be(text: str) -> None:
    table = features(asked(text), PASSAGES)

    expected = [defined(asked(text), place) for place in range(len(PASSAGES))]
    np.testing.assert_allclose(table, expected, atol=1e-6)


@pytest.mark.parametrize("text", QUESTIONS)
def test_features_do_not_depend_on_the_passages_beside(text: str) -> None:
    together = features(asked(text), PASSAGES)

    places = [slice(at, at + 1) for at in range(len(PASSAGES))]
    alone = [features(asked(text, only=each), PASSAGES[each])[0] for each in places]

    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_remembered_passages_give_the_same_features() -> None:
    remembering = extractor()
    remembering.features([AskedWording("another question", IDF)], PASSAGES[:3])

    (table,) = remembering.features([asked(QUESTIONS[0])], PASSAGES)

    np.testing.assert_allclose(table, features(asked(QUESTIONS[0]), PASSAGES), atol=1e-6)
    assert table.shape == (len(PASSAGES), len(FEATURES))


@settings(max_examples=200)
@given(st.text(alphabet="ab .!?\n\t\r\u00a0\u3002", max_size=400))
def test_windows_are_the_sentences_joined_up_to_their_size(text: str) -> None:
    sentences = re.split(r"(?<=[.!?])\s+|\s*\n\s*|(?<=\u3002)", text)

    expected: list[str] = []
    for sentence in sentences:
        joined = f"{expected[-1]} {sentence}".strip() if expected else sentence.strip()
        if expected and expected[-1] and len(joined) > 220:
            expected.append(sentence)
        else:
            expected[-1:] = [joined]
    expected = [each for each in expected if each] or [""]

    assert sentence_windows(text) == expected


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(QUESTIONS), min_size=1, max_size=5), st.booleans())
def test_several_questions_have_the_features_that_each_has_alone(
    texts: list[str], is_weighed: bool
) -> None:
    questions = [asked(text, is_weighed=is_weighed) for text in texts]
    shared = extractor()

    together = shared.features(questions, PASSAGES)

    alone = [shared.features([each], PASSAGES)[0] for each in questions]
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_what_is_known_under_one_question_is_computed_under_another() -> None:
    told = asked(QUESTIONS[0], only=slice(2))
    untold = AskedWording(QUESTIONS[1], IDF)

    one, other = extractor().features([told, untold], PASSAGES[:2])

    np.testing.assert_allclose(one, features(told, PASSAGES[:2]), atol=1e-6)
    np.testing.assert_allclose(other, features(untold, PASSAGES[:2]), atol=1e-6)


def test_passages_are_gone_through_once_however_many_questions_there_are() -> None:
    class Counted(tuple[str, ...]):
        passes = 0

        def __iter__(self) -> Iterator[str]:
            Counted.passes += 1
            return super().__iter__()

    counting = extractor()
    counting.features([AskedWording("port", IDF)], PASSAGES)
    counting._cache.update(
        (key, profile._replace(terms=Counted(profile.terms)))
        for key, profile in counting._cache.items()
    )
    questions = [AskedWording(text, IDF) for text in QUESTIONS]

    Counted.passes = 0
    counting.features(questions, PASSAGES)

    assert Counted.passes == len(PASSAGES)
