"""What the local reranker sees of a question and a passage: eight numbers; it ranks nothing."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from llama_index.postprocessor.webrag.passage_words import sentence_windows
from llama_index.postprocessor.webrag.question_vectors import emphasised, weighted_tokens
from llama_index.postprocessor.webrag.token_vocabulary import (
    TokenVocabulary,
    best_cosines,
    normalised,
)
from numpy.typing import NDArray

__all__ = [
    "FEATURES",
    "BatchTokenEncoder",
    "FeatureExtractor",
    "Passage",
    "Question",
    "TokenEncoder",
]

FEATURES = (
    "coverage",
    "similarity",
    "window_similarity",
    "window_coverage",
    "bigrams",
    "title_similarity",
    "page_lexical",
    "token_similarity",
)

Analyze = Callable[[str], Sequence[str]]
Matrix = NDArray[np.float32]


@runtime_checkable
class TokenEncoder(Protocol):
    """A static embedding: whole texts and tokens of a fixed vocabulary live in one space."""

    def encode(self, texts: Sequence[str]) -> Matrix:
        """Embed texts, as an L2-normalised array of shape (len(texts), dimensions)."""

    def token_vectors(self, text: str) -> tuple[Sequence[str], Matrix]:
        """Give the distinct tokens of a text and their vectors, not normalised."""


@runtime_checkable
class BatchTokenEncoder(TokenEncoder, Protocol):
    """One that tokenises many texts at once; a cold call then takes a third of the time."""

    @property
    def token_table(self) -> Matrix:
        """Vector of every token, not normalised."""

    def encode_with_tokens(
        self, texts: Sequence[str]
    ) -> tuple[Matrix, Sequence[NDArray[np.int64]]]:
        """As `encode`, and per text its distinct tokens as rows of `token_table`."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A candidate and what is known of it beforehand; None means unknown.

    Attributes:
        text: What would be quoted.
        title: Title of its page.
        headings: Headings above it, outermost first.
        similarity: Cosine with the question by the retriever's own embedding.
        page_lexical: Lexical score of its whole page relative to the best page, [0, 1].
    """

    text: str
    title: str = ""
    headings: tuple[str, ...] = ()
    similarity: float | None = None
    page_lexical: float | None = None

    @property
    def header(self) -> str:
        """Title and headings."""
        return "\n".join(part for part in (self.title, " > ".join(self.headings)) if part)

    @property
    def context(self) -> str:
        """Title, headings and text."""
        return f"{self.header}\n{self.text}"


@dataclass(frozen=True, slots=True)
class Question:
    """A question.

    Attributes:
        terms: Index terms without the words questions are put in, distinct, in order.
        idf: Weight of each term; terms that are not in it do not count. None to weigh them by
            the candidates.
    """

    text: str
    terms: tuple[str, ...]
    idf: Mapping[str, float] | None = None


class _Profile(NamedTuple):
    """The part of a passage's features that no question changes."""

    terms: frozenset[str]
    bigrams: frozenset[tuple[str, str]]
    windows: tuple[frozenset[str], ...]
    window_vectors: Matrix
    title_vector: Matrix
    tokens: NDArray[np.int64]


class FeatureExtractor:
    """Computes features, remembering what does not depend on the question.

    Thread-safe. The whole list is read at once: a cold call costs little more than tokenising.

    Args:
        analyze: Turns a text into index terms, in order.
        encoder: Static embedding; None leaves the features of meaning unknown.
        cache_size: Passages remembered, about 40 KB each.
    """

    def __init__(self, analyze: Analyze, encoder: TokenEncoder | None, cache_size: int) -> None:
        self._analyze = analyze
        self._encoder = encoder
        self._cache_size = cache_size
        self._cache: OrderedDict[tuple[str, str], _Profile] = OrderedDict()
        self._lock = threading.Lock()
        self._vocabulary = TokenVocabulary()

    def extract(self, question: Question, passages: Sequence[Passage]) -> NDArray[np.float64]:
        """Features as an array of shape (len(passages), 8), columns as in `FEATURES`.

        All lie in [-1, 1], most in [0, 1]. NaN marks what is unknown.
        """
        profiles = self._profiles(passages)
        weights = _weights(question, profiles)
        columns = {
            "coverage": [_coverage(profile.terms, weights) for profile in profiles],
            "window_coverage": [
                max((_coverage(window, weights) for window in profile.windows), default=0.0)
                for profile in profiles
            ],
            "bigrams": [_bigram_share(profile.bigrams, question.terms) for profile in profiles],
            "page_lexical": [_known(passage.page_lexical) for passage in passages],
            "similarity": [_known(passage.similarity) for passage in passages],
        }
        table = np.full((len(passages), len(FEATURES)), np.nan)
        for name, values in columns.items():
            table[:, FEATURES.index(name)] = values
        if self._encoder is not None and len(passages):
            self._add_meaning(self._encoder, table, question, passages, profiles)
        return table

    def _add_meaning(
        self,
        encoder: TokenEncoder,
        table: NDArray[np.float64],
        question: Question,
        passages: Sequence[Passage],
        profiles: Sequence[_Profile],
    ) -> None:
        idf = _weights(question, profiles)
        wanted, weights = weighted_tokens(question.text, idf, self._analyze, encoder.token_vectors)
        plain = encoder.encode([question.text])[0]
        vector = emphasised(plain, wanted, weights)
        starts = np.cumsum([0, *(len(profile.windows) for profile in profiles)])[:-1]
        cosines = np.concatenate([profile.window_vectors for profile in profiles]) @ vector
        table[:, FEATURES.index("window_similarity")] = np.maximum.reduceat(cosines, starts)
        titles = np.stack([profile.title_vector for profile in profiles])
        table[:, FEATURES.index("title_similarity")] = titles @ vector
        table[:, FEATURES.index("token_similarity")] = self._token_similarity(
            wanted, weights, profiles
        )
        column = table[:, FEATURES.index("similarity")]
        unknown = np.flatnonzero(np.isnan(column)).tolist()
        if unknown:
            column[unknown] = encoder.encode([passages[i].context for i in unknown]) @ plain

    def _token_similarity(
        self, wanted: Matrix, weights: NDArray[np.float64], profiles: Sequence[_Profile]
    ) -> NDArray[np.float64]:
        """Mean over the question's tokens of the best cosine in the passage, weighted by word."""
        if not weights.sum():
            return np.zeros(len(profiles))
        tokens = [profile.tokens for profile in profiles]
        best = best_cosines(wanted, tokens, self._normalised_tokens)
        return np.asarray(weights / weights.sum() @ best, dtype=np.float64)

    def _profiles(self, passages: Sequence[Passage]) -> list[_Profile]:
        keys = [(passage.title, passage.context) for passage in passages]
        with self._lock:
            known = {key: self._cache[key] for key in keys if key in self._cache}
        missing = {
            key: passage for key, passage in zip(keys, passages, strict=True) if key not in known
        }
        known.update(self._build(missing))
        with self._lock:
            for key in keys:
                self._cache[key] = known[key]
                self._cache.move_to_end(key)
            while len(self._cache) > self._cache_size:
                self._cache.popitem(last=False)
        return [known[key] for key in keys]

    def _build(
        self, passages: Mapping[tuple[str, str], Passage]
    ) -> dict[tuple[str, str], _Profile]:
        windows = [sentence_windows(passage.text) for passage in passages.values()]
        headers = [passage.header for passage in passages.values()]
        vectors, tokens = self._read([part for parts in windows for part in parts] + headers)
        titles = self._vectors([passage.title for passage in passages.values()])
        stops = np.cumsum([0, *(len(parts) for parts in windows)])
        built = {}
        for i, key in enumerate(passages):
            parts = [self._analyze(part) for part in windows[i]]
            terms = [term for part in [self._analyze(headers[i]), *parts] for term in part]
            own = slice(int(stops[i]), int(stops[i + 1]))
            built[key] = _Profile(
                terms=frozenset(terms),
                bigrams=frozenset(pairwise(terms)),
                windows=tuple(map(frozenset, parts)),
                window_vectors=vectors[own],
                title_vector=titles[i],
                tokens=np.unique(np.concatenate([tokens[stops[-1] + i], *tokens[own]])),
            )
        return built

    def _read(self, texts: Sequence[str]) -> tuple[Matrix, Sequence[NDArray[np.int64]]]:
        """Vectors and token numbers of texts."""
        encoder = self._encoder
        if isinstance(encoder, BatchTokenEncoder):
            return encoder.encode_with_tokens(texts)
        if encoder is None:
            return self._vectors(texts), [np.zeros(0, np.int64)] * len(texts)
        number = self._vocabulary.number
        return self._vectors(texts), [number(*encoder.token_vectors(text)) for text in texts]

    def _normalised_tokens(self, numbers: NDArray[np.int64]) -> Matrix:
        if isinstance(self._encoder, BatchTokenEncoder):
            return normalised(self._encoder.token_table[numbers])
        return self._vocabulary.vectors(numbers)

    def _vectors(self, texts: Sequence[str]) -> Matrix:
        if self._encoder is None or not texts:
            return np.zeros((len(texts), 0), np.float32)
        return self._encoder.encode(texts)


def _weights(question: Question, profiles: Sequence[_Profile]) -> dict[str, float]:
    if question.idf is not None:
        return {term: question.idf[term] for term in question.terms if term in question.idf}
    total = len(profiles)
    counts = {term: sum(term in profile.terms for profile in profiles) for term in question.terms}
    return {
        term: float(np.log1p((total - count + 0.5) / (count + 0.5)))
        for term, count in counts.items()
    }


def _coverage(found: frozenset[str], weights: Mapping[str, float]) -> float:
    total = sum(weights.values())
    if total <= 0:
        return 0.0
    return sum(weight for term, weight in weights.items() if term in found) / total


def _bigram_share(found: frozenset[tuple[str, str]], terms: Sequence[str]) -> float:
    wanted = list(pairwise(terms))
    return sum(pair in found for pair in wanted) / len(wanted) if wanted else 0.0


def _known(value: float | None) -> float:
    return np.nan if value is None else value
