"""How promising a link is for a question; pure functions over links and numbers, no I/O."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log1p
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from webrag.corpus.models import LinkCandidate
from webrag.lexical.analysis import analyze, query_terms
from webrag.orchestration.links.rules import (
    ScoredCandidate,
    anchor_of,
    path_date,
    path_words,
    penalty,
    shared_path,
)


class TokenEncoder(Protocol):
    """Gives vectors of single tokens; the bundled embedding is one."""

    def token_vectors(self, text: str) -> tuple[list[str], NDArray[np.float32]]:
        """Distinct tokens of a text and their unnormalised vectors, one row each."""


@dataclass(frozen=True, slots=True)
class LinkQuestion:
    """A question in the forms links are compared with.

    Attributes:
        terms: Distinct index terms without question words.
        vectors: Unit vectors of its tokens, one row each; no rows without an encoder.
        weights: Length of each vector before it was normalised.
        whole: Unit vector of their sum.
    """

    terms: frozenset[str]
    vectors: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    weights: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    whole: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))

    @classmethod
    def of(cls, query: str, encoder: TokenEncoder | None) -> "LinkQuestion":
        """Prepare a question; without an encoder the similarity signal is 0."""
        terms = frozenset(query_terms(query))
        if encoder is None:
            return cls(terms)
        vectors = encoder.token_vectors(query)[1]
        weights = np.linalg.norm(vectors, axis=1)
        return cls(terms, _unit_rows(vectors), weights, _whole(vectors))


def score_links(
    links: Iterable[LinkCandidate],
    questions: Sequence[LinkQuestion],
    *,
    seeds: Sequence[str],
    encoder: TokenEncoder | None,
    weights: Mapping[str, float],
    site_map: Mapping[str, float] | None = None,
    in_turn: bool = False,
) -> list[ScoredCandidate]:
    """Every target once with its best link's score, best first.

    A score is the weighted mean of four signals, [0, 1]: the share of the anchor's terms that the
    question holds, the similarity of the question to the anchor and the sentence around it, what
    the target's path shares with a named page's, and how much of the question the site's own map
    finds in the target, which is nothing without a map.

    Terms count the less the more other targets are named by them: on the site of a program, its
    name says nothing.

    Of equal scores the newer target comes first, as far as its address or the site's list of pages
    has a date, then the order of addresses decides.

    Args:
        links: May name a target several times.
        questions: The parts of a question and other wordings of it; a link counts by the one it
            fits best.
        seeds: Pages the user named.
        encoder: For similarities; None leaves them 0.
        weights: By signal name; a missing name counts 0.
        site_map: What the site's own map says of targets, [0, 1]; None without one.
        in_turn: Every question is served: first what fits each best, then the second of each, and
            so on. For a question of several parts, one of which may be linked in plainer words.
    """
    links = list(links)
    scorer = _Scorer(links, questions, seeds, encoder, weights, site_map or {})
    best: dict[str, ScoredCandidate] = {}
    fits: dict[str, NDArray[np.float64]] = {}
    newest: dict[str, float] = {}
    for link in links:
        candidate, fit = scorer.score(link)
        known = best.get(link.url)
        if known is None or _counts_more(candidate, known):
            best[link.url] = candidate
        fits[link.url] = np.maximum(fits.get(link.url, fit), fit)
        newest[link.url] = max(newest.get(link.url, 0.0), _newness(link))
    ranked = sorted(best.values(), key=lambda each: (-each.score, -newest[each.url], each.url))
    return _taking_turns(ranked, fits) if in_turn and len(questions) > 1 else ranked


def _counts_more(candidate: ScoredCandidate, known: ScoredCandidate) -> bool:
    """Whether a link tells more of its target; of equal ones, the one with words."""
    return (candidate.score, bool(candidate.title)) > (known.score, bool(known.title))


def _newness(link: LinkCandidate) -> float:
    at = link.modified_at or path_date(link.url)
    return at.timestamp() if at else 0.0


def _taking_turns(
    ranked: Sequence[ScoredCandidate], fits: Mapping[str, NDArray[np.float64]]
) -> list[ScoredCandidate]:
    if not ranked:
        return []
    by_question = np.array([fits[each.url] for each in ranked]).T
    # A target's place is the best it has in the order of any question; ties keep the common order.
    places = np.argsort(np.argsort(-by_question, axis=1, kind="stable"), axis=1).min(axis=0)
    return [ranked[at] for at in np.argsort(places, kind="stable")]


def similarities(questions: Sequence[LinkQuestion], vectors: NDArray[np.float32]) -> list[float]:
    """How alike each question and a text are, [0, 1]: the mean of two measures.

    The best cosine of each of the question's tokens, weighted by their length, finds the one word
    that matters in a long sentence; the cosine of the sums of both says whether the rest agrees.

    Args:
        questions: What is asked.
        vectors: Unnormalised, of the text's tokens, one row each.
    """
    if not len(vectors):
        return [0.0] * len(questions)
    tokens, whole = _unit_rows(vectors).T, _whole(vectors)
    found = []
    for question in questions:
        total = float(question.weights.sum())
        if total <= 0:
            found.append(0.0)
            continue
        by_token = float(question.weights @ (question.vectors @ tokens).max(axis=1)) / total
        both = (by_token, float(question.whole @ whole))
        found.append(sum(min(max(value, 0.0), 1.0) for value in both) / 2)
    return found


class _Scorer:
    def __init__(
        self,
        links: Sequence[LinkCandidate],
        questions: Sequence[LinkQuestion],
        seeds: Sequence[str],
        encoder: TokenEncoder | None,
        weights: Mapping[str, float],
        site_map: Mapping[str, float],
    ) -> None:
        self._questions = questions
        self._seeds = seeds
        self._encoder = encoder
        self._weights = weights
        self._total_weight = sum(weights.values()) or 1.0
        self._site_map = site_map
        self._rarity = _Rarity.of_names(_names(links))
        # Menus repeat the same links on every page.
        self._by_text: dict[tuple[str, str, str], list[dict[str, float]]] = {}
        self._seed_paths: dict[str, float] = {}

    def score(self, link: LinkCandidate) -> tuple[ScoredCandidate, NDArray[np.float64]]:
        """A link by the question it fits best, and its scores under each of them."""
        anchor = anchor_of(link.title)
        common = {
            # The folders above a named page share its path by construction.
            "seed_path": self._seed_path(link.url) if link.source_url else 0.0,
            "site_map": self._site_map.get(link.url, 0.0),
        }
        options = self._text_signals(link.url, anchor, link.description)
        totals = [self._total({**option, **common}) * penalty(link.url) for option in options]
        at = int(np.argmax(totals))
        candidate = ScoredCandidate(
            url=link.url,
            parent_url=link.source_url or None,
            title=anchor,
            heading=link.heading,
            score=totals[at],
            breakdown={**options[at], **common},
            depth=link.source_depth + 1,
            found_in=link.found_in,
        )
        return candidate, np.array(totals)

    def _total(self, signals: Mapping[str, float]) -> float:
        weighted = sum(self._weights.get(name, 0.0) * value for name, value in signals.items())
        return min(weighted / self._total_weight, 1.0)

    def _text_signals(self, url: str, anchor: str, sentence: str) -> list[dict[str, float]]:
        """The signals of words, under each question."""
        key = (url, anchor, sentence)
        if key not in self._by_text:
            anchor_terms = frozenset(analyze(anchor))
            # An address says little of a page where its name is a number.
            vectors = self._vectors(f"{anchor} {sentence}".strip() or path_words(url))
            self._by_text[key] = [
                {
                    # A long name holds a question's word by chance, a short one because it is
                    # about it.
                    "title_share": self._rarity.share(anchor_terms, question.terms),
                    "similarity": similar,
                }
                for question, similar in zip(
                    self._questions, similarities(self._questions, vectors), strict=True
                )
            ]
        return self._by_text[key]

    def _vectors(self, text: str) -> NDArray[np.float32]:
        if self._encoder is None:
            return np.zeros((0, 0), np.float32)
        return self._encoder.token_vectors(text)[1]

    def _seed_path(self, url: str) -> float:
        if url not in self._seed_paths:
            shares = (shared_path(url, seed) for seed in self._seeds)
            self._seed_paths[url] = max(shares, default=0.0)
        return self._seed_paths[url]


def _names(links: Iterable[LinkCandidate]) -> dict[str, frozenset[str]]:
    """The terms of each target's path and of all anchors that lead to it."""
    named: defaultdict[str, set[str]] = defaultdict(set)
    for url, title in {(link.url, link.title) for link in links}:
        named[url].update(analyze(f"{anchor_of(title)} {path_words(url)}"))
    return {url: frozenset(terms) for url, terms in named.items()}


@dataclass(frozen=True, slots=True)
class _Rarity:
    """How much a term tells of a target, by how many others are named by it.

    Attributes:
        counts: Targets that a term names.
        targets: All there are.
    """

    counts: Mapping[str, int]
    targets: int

    @classmethod
    def of_names(cls, names: Mapping[str, frozenset[str]]) -> "_Rarity":
        """Count over the names of all targets."""
        return cls(Counter(term for terms in names.values() for term in terms), len(names))

    def share(self, wanted: frozenset[str], found: frozenset[str]) -> float:
        """What the found terms weigh of the wanted ones, [0, 1]."""
        total = self._weight(wanted)
        return self._weight(wanted & found) / total if total else 0.0

    def _weight(self, terms: Iterable[str]) -> float:
        counts = (self.counts.get(term, 0) for term in terms)
        return sum(log1p((self.targets - count + 0.5) / (count + 0.5)) for count in counts)


def _unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: NDArray[np.float32] = np.divide(
        vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0
    )
    return units


def _whole(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Unit vector of the sum of some rows."""
    total: NDArray[np.float32] = vectors.sum(axis=0, keepdims=True)
    return _unit_rows(total).ravel()
