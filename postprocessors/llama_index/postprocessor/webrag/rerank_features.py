"""Describes a passage under a question by eight numbers, for the local reranker."""

import re
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from llama_index.postprocessor.webrag.token_vectors import (
    TokenEncoder,
    best_cosines,
    distinct_tokens,
    dot_products,
    emphasised,
    weighted_tokens,
)
from llama_index.postprocessor.webrag.wordings import AskedWording
from numpy.typing import NDArray

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

# About two sentences: the span in which an answer usually stands. One sentence loses references,
# whole chunks dilute it.
_WINDOW_CHARS = 220
_BREAK = re.compile(r"(?<=[.!?])\s++|(?<!\s)[^\S\n]*+\n\s*+|(?<=[\u3002\uff01\uff1f])")
# The same without the last: beginning with white space, it is found three times as fast.
_SPACED_BREAK = re.compile(r"\s(?:(?<=[.!?]\s)\s*+|(?<=\n)\s*+|(?<!\s\s)[^\S\n]*+\n\s*+)")

Analyze = Callable[[str], Sequence[str]]
Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Passage:
    """A candidate: what would be quoted, its page's title, and the headings above it."""

    text: str
    title: str = ""
    headings: tuple[str, ...] = ()

    @property
    def header(self) -> str:
        """Title and headings."""
        return "\n".join(part for part in (self.title, " > ".join(self.headings)) if part)

    @property
    def context(self) -> str:
        """Title, headings and text."""
        return f"{self.header}\n{self.text}"


class TermHits(NamedTuple):
    """Terms of a question that a passage and its windows hold, and pairs that follow each other."""

    terms: frozenset[str]
    windows: tuple[frozenset[str], ...]
    bigrams: frozenset[tuple[str, str]]


class _Profile(NamedTuple):
    """The part of a passage's features that no question changes."""

    terms: tuple[str, ...]
    window_starts: tuple[int, ...]
    window_vectors: Matrix
    title_vector: Matrix
    tokens: NDArray[np.int64]


@dataclass(eq=False, repr=False)
class FeatureExtractor:
    """Computes features, remembering what does not depend on the question; thread-safe.

    The whole list is read at once: a cold call costs little more than tokenising. A remembered
    passage takes about 10 KB. Without an encoder the features of meaning are unknown.
    """

    encoder: TokenEncoder | None
    analyze: Analyze
    analyze_question: Analyze
    _: KW_ONLY
    cache_size: int = 4096
    _cache: OrderedDict[tuple[str, str], _Profile] = field(default_factory=OrderedDict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _building: threading.Lock = field(default_factory=threading.Lock, init=False)

    def features(
        self, questions: Sequence[AskedWording], passages: Sequence[Passage]
    ) -> list[NDArray[np.float64]]:
        """Give the features of passages under each wording of a question.

        Each array has the shape (len(passages), 8), columns as in `FEATURES`; all values lie in
        [-1, 1], most in [0, 1], and NaN marks what is unknown. The passages are gone through once
        for all: another question costs a fraction of the first. Terms without a weight do not
        count; where a question knows no weights, they are weighed by the candidates.
        """
        profiles = self._profiles(passages)
        terms = [tuple(dict.fromkeys(self.analyze_question(each.text))) for each in questions]
        wanted = frozenset(term for own in terms for term in own)
        hits = [find_hits(each.terms, each.window_starts, wanted) for each in profiles]
        weights = [
            _weights(own, question.idf, hits)
            for question, own in zip(questions, terms, strict=True)
        ]
        tables = [
            _words_table(*known, hits) for known in zip(questions, terms, weights, strict=True)
        ]
        if self.encoder is not None and len(passages):
            self._add_meaning(self.encoder, tables, questions, weights, passages, profiles)
        return tables

    def _add_meaning(
        self,
        encoder: TokenEncoder,
        tables: Sequence[NDArray[np.float64]],
        questions: Sequence[AskedWording],
        weights: Sequence[Mapping[str, float]],
        passages: Sequence[Passage],
        profiles: Sequence[_Profile],
    ) -> None:
        plain = encoder.encode([question.text for question in questions])
        tokens = [
            weighted_tokens(question.text, own, self.analyze, encoder.token_vectors)
            for question, own in zip(questions, weights, strict=True)
        ]
        vectors = np.stack(
            [emphasised(vector, *own) for vector, own in zip(plain, tokens, strict=True)]
        )
        starts = np.cumsum([0, *(len(profile.window_starts) for profile in profiles)])[:-1]
        windows = np.concatenate([profile.window_vectors for profile in profiles])
        cosines = np.maximum.reduceat(dot_products(windows, vectors), starts)
        titles = np.stack([profile.title_vector for profile in profiles])
        named = dot_products(titles, vectors)
        similar = _token_similarity(encoder, tokens, profiles)
        for place, table in enumerate(tables):
            table[:, FEATURES.index("window_similarity")] = cosines[:, place]
            table[:, FEATURES.index("title_similarity")] = named[:, place]
            table[:, FEATURES.index("token_similarity")] = similar[place]
        self._add_unknown(encoder, tables, plain, passages)

    def _add_unknown(
        self,
        encoder: TokenEncoder,
        tables: Sequence[NDArray[np.float64]],
        plain: Matrix,
        passages: Sequence[Passage],
    ) -> None:
        """Cosines with the questions' own vectors where no retriever told them."""
        columns = [table[:, FEATURES.index("similarity")] for table in tables]
        missing = np.isnan(np.stack(columns))
        places = np.flatnonzero(missing.any(axis=0))
        if not len(places):
            return
        contexts = encoder.encode([passages[i].context for i in places.tolist()])
        found = dot_products(contexts, plain)
        for column, own, cosines in zip(columns, missing, found.T, strict=True):
            column[own] = cosines[own[places]]

    def _profiles(self, passages: Sequence[Passage]) -> list[_Profile]:
        keys = [(passage.title, passage.context) for passage in passages]
        by_key = dict(zip(keys, passages, strict=True))
        known = self._remembered(by_key)
        if len(known) < len(by_key):
            # Wordings of one question ask for the same passages at the same time: whoever comes
            # second waits and finds them read.
            with self._building:
                known = self._remembered(by_key)
                missing = {key: each for key, each in by_key.items() if key not in known}
                known.update(self._build(missing) if missing else {})
                self._remember(known)
        else:
            self._remember(known)
        return [known[key] for key in keys]

    def _remembered(self, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], _Profile]:
        with self._lock:
            return {key: self._cache[key] for key in keys if key in self._cache}

    def _remember(self, profiles: Mapping[tuple[str, str], _Profile]) -> None:
        with self._lock:
            for key, profile in profiles.items():
                self._cache[key] = profile
                self._cache.move_to_end(key)
            while len(self._cache) > self.cache_size:
                self._cache.popitem(last=False)

    def _build(
        self, passages: Mapping[tuple[str, str], Passage]
    ) -> dict[tuple[str, str], _Profile]:
        windows = [sentence_windows(passage.text) for passage in passages.values()]
        parts = [part for own in windows for part in own]
        headers = _numbered(passage.header for passage in passages.values())
        titles = _numbered(passage.title for passage in passages.values())
        vectors, tokens = self._read([*parts, *headers, *titles])
        ends = np.cumsum([len(own) for own in windows]).tolist()
        spans = [(end - len(own), end) for own, end in zip(windows, ends, strict=True)]
        own_headers = [len(parts) + headers[passage.header] for passage in passages.values()]
        own_tokens = distinct_tokens(
            [
                [tokens[header], *tokens[start:end]]
                for header, (start, end) in zip(own_headers, spans, strict=True)
            ]
        )
        built = {}
        for (key, passage), (start, end), own in zip(
            passages.items(), spans, own_tokens, strict=True
        ):
            terms, starts = self._terms(passage.header, parts[start:end])
            built[key] = _Profile(
                terms=terms,
                window_starts=starts,
                # Copies: a view would keep the vectors of the whole batch.
                window_vectors=vectors[start:end].copy(),
                title_vector=vectors[len(parts) + len(headers) + titles[passage.title]].copy(),
                tokens=own,
            )
        return built

    def _terms(
        self, header: str, windows: Sequence[str]
    ) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Terms of the header and of each window in turn, and where the windows begin."""
        terms = list(self.analyze(header))
        starts = []
        for window in windows:
            starts.append(len(terms))
            terms += self.analyze(window)
        return tuple(terms), tuple(starts)

    def _read(self, texts: Sequence[str]) -> tuple[Matrix, Sequence[NDArray[np.int64]]]:
        if self.encoder is None:
            return np.zeros((len(texts), 0), np.float32), [np.zeros(0, np.int64)] * len(texts)
        return self.encoder.encode_with_tokens(texts)


def _token_similarity(
    encoder: TokenEncoder,
    wanted: Sequence[tuple[Matrix, NDArray[np.float64]]],
    profiles: Sequence[_Profile],
) -> list[NDArray[np.float64]]:
    """Per question the mean of its tokens' best cosines in each passage, weighted by word."""
    filled = [vectors for vectors, weights in wanted if weights.sum()]
    if not filled:
        return [np.zeros(len(profiles)) for _ in wanted]
    tokens = [profile.tokens for profile in profiles]
    best = best_cosines(np.concatenate(filled), tokens, encoder.vectors_of)
    means, start = [], 0
    for vectors, weights in wanted:
        total = weights.sum()
        if not total:
            means.append(np.zeros(len(profiles)))
            continue
        own = best[start : start + len(vectors)]
        means.append(np.asarray(weights / total @ own, dtype=np.float64))
        start += len(vectors)
    return means


def _numbered(texts: Iterable[str]) -> dict[str, int]:
    """A number for each distinct text; passages of one page share title and headings."""
    return {text: number for number, text in enumerate(dict.fromkeys(texts))}


def _weights(
    terms: Sequence[str], idf: Mapping[str, float], hits: Sequence[TermHits]
) -> dict[str, float]:
    if idf:
        return {term: idf[term] for term in terms if term in idf}
    total = len(hits)
    counts = {term: sum(term in hit.terms for hit in hits) for term in terms}
    return {
        term: float(np.log1p((total - count + 0.5) / (count + 0.5)))
        for term, count in counts.items()
    }


def _words_table(
    question: AskedWording,
    terms: Sequence[str],
    weights: Mapping[str, float],
    hits: Sequence[TermHits],
) -> NDArray[np.float64]:
    """Features of words and what was known; those of meaning are NaN."""
    # Most windows hold the same few terms, or none.
    held = {found for hit in hits for found in (hit.terms, *hit.windows)}
    shares = {found: coverage(found, weights) for found in held}
    columns = {
        "coverage": [shares[hit.terms] for hit in hits],
        "window_coverage": [
            max((shares[window] for window in hit.windows), default=0.0) for hit in hits
        ],
        "bigrams": [bigram_share(hit.bigrams, terms) for hit in hits],
    }
    known = {"page_lexical": question.page_lexical, "similarity": question.similarity}
    for name, told in known.items():
        columns[name] = [np.nan if value is None else value for value in told or [None] * len(hits)]
    table = np.full((len(hits), len(FEATURES)), np.nan)
    for name, values in columns.items():
        table[:, FEATURES.index(name)] = values
    return table


def find_hits(
    terms: Sequence[str], window_starts: Sequence[int], wanted: frozenset[str]
) -> TermHits:
    """Find wanted terms among those of a passage, whose windows start at ascending places."""
    places = [place for place, term in enumerate(terms) if term in wanted]
    windows: list[set[str]] = [set() for _ in window_starts]
    for place in places:
        window = bisect_right(window_starts, place) - 1
        if window >= 0:
            windows[window].add(terms[place])
    return TermHits(
        frozenset(terms[place] for place in places),
        tuple(map(frozenset, windows)),
        frozenset((terms[a], terms[b]) for a, b in pairwise(places) if b == a + 1),
    )


def coverage(found: frozenset[str], weights: Mapping[str, float]) -> float:
    """Share of the weight of the question's terms that was found."""
    total = sum(weights.values()) if found else 0.0
    if total <= 0:
        return 0.0
    return sum(weight for term, weight in weights.items() if term in found) / total


def bigram_share(found: frozenset[tuple[str, str]], terms: Sequence[str]) -> float:
    """Share of the question's neighbouring terms that are neighbours in the passage."""
    wanted = list(pairwise(terms))
    return sum(pair in found for pair in wanted) / len(wanted) if wanted else 0.0


def sentence_windows(text: str) -> list[str]:
    """Neighbouring sentences or lines, joined up to the window size; at least one window."""
    windows: list[str] = []
    current = ""
    for sentence in (_SPACED_BREAK if text.isascii() else _BREAK).split(text):
        joined = f"{current} {sentence}".strip()
        if current and len(joined) > _WINDOW_CHARS:
            windows.append(current)
            current = sentence
        else:
            current = joined
    return [*windows, current] if current or not windows else windows
