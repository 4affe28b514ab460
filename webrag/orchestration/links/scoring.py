"""How promising a link is for a question; pure functions over links and numbers, no I/O."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log1p

import numpy as np
from llama_index.postprocessor.webrag.token_vectors import BatchTokenEncoder, best_cosines
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
    def of(cls, query: str, encoder: BatchTokenEncoder | None) -> "LinkQuestion":
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
    encoder: BatchTokenEncoder | None,
    weights: Mapping[str, float],
    site_map: Mapping[str, float] | None = None,
    in_turn: bool = False,
    at_most: int | None = None,
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
        at_most: Targets given back, the best; None for all.
    """
    links = list(links)
    if not links or not questions:
        return []
    scorer = _Scorer(links, questions, seeds, encoder, weights, site_map or {})
    best: dict[str, int] = {}
    for at, link in enumerate(links):
        if scorer.counts_more(at, best.setdefault(link.url, at)):
            best[link.url] = at
    ranked = _newest_first(sorted(best.values(), key=scorer.order), links, scorer)
    if in_turn and len(questions) > 1:
        ranked = _taking_turns(ranked, links, scorer.totals)
    return [scorer.candidate(at) for at in ranked[:at_most]]


def _newest_first(
    ranked: Sequence[int], links: Sequence[LinkCandidate], scorer: "_Scorer"
) -> list[int]:
    """Put the newer of equally good targets first; only these are looked at for a date."""
    scores = {at: scorer.order(at)[0] for at in ranked}
    ties = Counter(scores.values())
    tied = {links[at].url for at in ranked if ties[scores[at]] > 1}
    newest: dict[str, float] = {}
    for link in links:
        if link.url in tied:
            newest[link.url] = max(newest.get(link.url, 0.0), _newness(link))
    return sorted(ranked, key=lambda at: (scores[at], -newest.get(links[at].url, 0.0)))


def _newness(link: LinkCandidate) -> float:
    at = link.modified_at or path_date(link.url)
    return at.timestamp() if at else 0.0


def _taking_turns(
    ranked: Sequence[int], links: Sequence[LinkCandidate], totals: NDArray[np.float64]
) -> list[int]:
    fits: dict[str, NDArray[np.float64]] = {}
    for link, fit in zip(links, totals.T, strict=True):
        fits[link.url] = np.maximum(fits.get(link.url, fit), fit)
    by_question = np.array([fits[links[at].url] for at in ranked]).T
    # A target's place is the best it has in the order of any question; ties keep the common order.
    places = np.argsort(np.argsort(-by_question, axis=1, kind="stable"), axis=1).min(axis=0)
    return [ranked[place] for place in np.argsort(places, kind="stable")]


def similarities(
    questions: Sequence[LinkQuestion],
    texts: Sequence[str],
    encoder: BatchTokenEncoder | None,
) -> NDArray[np.float64]:
    """How alike each question and each text are, [0, 1], a row a question; a mean of two measures.

    The best cosine of each of the question's tokens, weighted by their length, finds the one word
    that matters in a long sentence; the cosine of the sums of both says whether the rest agrees.

    Args:
        questions: What is asked, prepared with the same encoder.
        texts: What is compared with them.
        encoder: Without it nothing is alike.
    """
    found = np.zeros((len(questions), len(texts)))
    if encoder is None or not texts:
        return found
    wholes, tokens = encoder.encode_with_tokens(texts)
    wanted = np.concatenate([question.vectors for question in questions])
    best = best_cosines(wanted, tokens, encoder.vectors_of)
    start = 0
    for row, question in enumerate(questions):
        end = start + len(question.weights)
        total = float(question.weights.sum())
        if total > 0:
            by_token = question.weights @ best[start:end] / total
            whole = wholes @ question.whole
            found[row] = (by_token.clip(0, 1) + whole.clip(0, 1)) / 2
        start = end
    return found


class _Scorer:
    """Scores all links at once.

    Attributes:
        totals: Score of each link under each question, a row a question.
    """

    def __init__(
        self,
        links: Sequence[LinkCandidate],
        questions: Sequence[LinkQuestion],
        seeds: Sequence[str],
        encoder: BatchTokenEncoder | None,
        weights: Mapping[str, float],
        site_map: Mapping[str, float],
    ) -> None:
        self._links = links
        self._anchors = [anchor_of(link.title) for link in links]
        words = {url: path_words(url) for url in dict.fromkeys(link.url for link in links)}
        # A long name holds a question's word by chance, a short one because it is about it.
        titles = self._of_titles(questions, words)
        # An address says little of a page where its name is a number.
        texts = [
            f"{anchor} {link.description}".strip() or words[link.url]
            for anchor, link in zip(self._anchors, links, strict=True)
        ]
        signals = {
            "title_share": titles,
            "similarity": _spread(texts, lambda each: similarities(questions, each, encoder)),
            "seed_path": np.array([[self._seed_path(link, seeds) for link in links]]),
            "site_map": np.array([[site_map.get(link.url, 0.0) for link in links]]),
        }
        weighted = sum(weights.get(name, 0.0) * found for name, found in signals.items())
        penalties = {url: penalty(url) for url in words}
        factors = np.array([penalties[link.url] for link in links])
        total = sum(weights.values()) or 1.0
        self.totals: NDArray[np.float64] = np.minimum(weighted / total, 1.0) * factors
        self._signals = {name: found.tolist() for name, found in signals.items()}
        self._at = self.totals.argmax(axis=0).tolist()
        self._best = self.totals.max(axis=0).tolist()

    def counts_more(self, at: int, known: int) -> bool:
        """Whether a link tells more of its target than another; of equal ones, the one in words."""
        own, other = ((self._best[n], bool(self._anchors[n])) for n in (at, known))
        return own > other

    def order(self, at: int) -> tuple[float, str]:
        """What links are sorted by, the best first."""
        return -self._best[at], self._links[at].url

    def candidate(self, at: int) -> ScoredCandidate:
        """A link by the question it fits best."""
        link, question = self._links[at], self._at[at]
        signals = self._signals.items()
        # Nothing of it comes from outside, and checking thousands takes longer than scoring them.
        return ScoredCandidate.model_construct(
            url=link.url,
            parent_url=link.source_url or None,
            title=self._anchors[at],
            heading=link.heading,
            score=self._best[at],
            breakdown={name: found[min(question, len(found) - 1)][at] for name, found in signals},
            depth=link.source_depth + 1,
            found_in=link.found_in,
        )

    def _of_titles(
        self, questions: Sequence[LinkQuestion], words: Mapping[str, str]
    ) -> NDArray[np.float64]:
        """The share of each anchor's terms that each question holds, by what they weigh."""
        weights = _rarity(_names(self._links, words))

        def shares(anchors: Sequence[str]) -> NDArray[np.float64]:
            terms = [frozenset(analyze(anchor)) for anchor in anchors]
            held = [
                [sum(weights[term] for term in own & question.terms) for own in terms]
                for question in questions
            ]
            totals = [sum(weights[term] for term in own) or 1.0 for own in terms]
            found: NDArray[np.float64] = np.array(held) / np.array(totals)
            return found

        return _spread(self._anchors, shares)

    @staticmethod
    def _seed_path(link: LinkCandidate, seeds: Sequence[str]) -> float:
        # The folders above a named page share its path by construction.
        if not link.source_url:
            return 0.0
        return max((shared_path(link.url, seed) for seed in seeds), default=0.0)


def _spread(
    texts: Sequence[str], score: Callable[[Sequence[str]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Score each distinct text once: menus repeat the same links on every page."""
    places = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    return score(list(places))[:, [places[text] for text in texts]]


def _names(links: Iterable[LinkCandidate], words: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """The terms of each target's path and of all anchors that lead to it."""
    named: defaultdict[str, set[str]] = defaultdict(set)
    for url, title in {(link.url, link.title) for link in links}:
        named[url].update(analyze(f"{anchor_of(title)} {words[url]}"))
    return {url: frozenset(terms) for url, terms in named.items()}


def _rarity(names: Mapping[str, frozenset[str]]) -> dict[str, float]:
    """How much each term tells of a target, by how many others are named by it."""
    counts = Counter(term for named in names.values() for term in named)
    return {
        term: log1p((len(names) - count + 0.5) / (count + 0.5)) for term, count in counts.items()
    }


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
