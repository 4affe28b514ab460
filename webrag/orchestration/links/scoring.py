"""Scores links by the chance that the page behind one holds the answer; no I/O."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np
from llama_index.postprocessor.webrag.token_vectors import (
    TokenEncoder,
    best_cosines,
    normalised,
)
from numpy.typing import NDArray

from webrag.corpus.models import LinkCandidate
from webrag.frozen import FrozenModel
from webrag.lexical.analysis import analyze, query_terms
from webrag.orchestration.links.rules import anchor_of, path_words, penalty
from webrag.orchestration.models import NextLink

Floats: TypeAlias = NDArray[np.float64]

_SAME_TOKEN: Final = 0.9  # cosine from which a text holds a token, in whatever form
_NAMES: Final = re.compile(r"(?<=[\w,;] )[A-Z][a-z]++|`\w++`")
# A page of questions and answers, by its name; none of what it answers stands there.
_ASKED_OFTEN: Final = re.compile(
    r"\bfaqs?\b|\b(?:frequently|common)[\s_-]+asked\b|\bh(?:ä|ae)ufige?\b.{0,12}\bfragen\b"
    r"|\bfoire aux questions\b|\bpreguntas frecuentes\b|часто задаваемые|よくある質問|常见问题",
    re.IGNORECASE,
)
# Of 120 questions in benchmarks/questions about nine manuals with such pages, 17 have gold there.
_ASKED_OFTEN_SHARE: Final = 0.14
_REMEMBERED: Final = 20_000  # names; each round scores those of the last one again


class LinkModel(FrozenModel):
    """The weights of the signals, fitted by `benchmarks/fit_links.py`.

    `elsewhere` weighs the chance that no link leads to the answer, in the same terms.
    """

    weights: dict[str, float]
    elsewhere: float


@lru_cache(maxsize=1)
def fitted() -> LinkModel:
    """The weights in use."""
    text = files(__package__).joinpath("links.json").read_text("utf-8")
    return LinkModel(**json.loads(text))


@dataclass(frozen=True, slots=True)
class LinkQuestion:
    """A question in the forms links are compared with.

    Attributes:
        terms: Distinct index terms without question words, unless one is written as a name.
        vectors: Unit vectors of its tokens, one row each; no rows without an encoder.
        weights: Length of each vector before it was normalised.
    """

    terms: frozenset[str]
    vectors: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    weights: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))

    @classmethod
    def of(cls, query: str, encoder: TokenEncoder | None) -> "LinkQuestion":
        """Prepare a question; without an encoder the similarity signal is 0."""
        # "What does Get return?": a page may be called by a word that questions are put in.
        names = analyze(" ".join(_NAMES.findall(query)))
        terms = frozenset([*query_terms(query), *names])
        if encoder is None:
            return cls(terms)
        vectors = encoder.token_vectors(query)[1]
        return cls(terms, normalised(vectors), np.linalg.norm(vectors, axis=1))


def score_links(
    links: Iterable[LinkCandidate],
    questions: Sequence[LinkQuestion],
    *,
    encoder: TokenEncoder | None,
    site_map: Mapping[str, float] = MappingProxyType({}),
    site_text: Mapping[str, float] = MappingProxyType({}),
    in_turn: bool = False,
    at_most: int | None = None,
) -> list[NextLink]:
    """Give every target once with the probability that its page answers, most likely first.

    The probabilities of all targets add up to less than 1: the answer may be behind none of them.
    The order of addresses decides among equal targets. Links that name one target count by the one
    that tells most, and a link by the question it fits best: of the parts and other wordings. Site
    map and text say, [0, 1], what the site's own maps find in targets' names and in their texts.

    With `in_turn` first comes what fits each question best, then the second of each, and so on: one
    of several parts may be linked in plainer words.
    """
    distinct: dict[tuple[str, str, str], LinkCandidate] = {}
    for link in links:
        distinct.setdefault((link.url, link.title, link.description), link)
    links = list(distinct.values())
    if not links or not questions:
        return []
    model = fitted()
    signals = link_signals(
        links, questions, encoder=encoder, site_map=site_map, site_text=site_text
    )
    fits = np.zeros((len(questions), len(links)))
    for name, found in signals.items():
        fits += model.weights[name] * found
    totals = fits.max(axis=0).round(6)
    is_named = np.array([bool(anchor_of(link.title)) for link in links])
    best: dict[str, int] = {}
    for at in np.lexsort((~is_named, -totals)).tolist():
        best.setdefault(links[at].url, at)
    ranked = sorted(best.values(), key=lambda at: (-totals[at], links[at].url))
    chances = np.exp(totals[ranked] - max(totals.max(), model.elsewhere))
    chances /= chances.sum() + np.exp(model.elsewhere - max(totals.max(), model.elsewhere))
    chances = _with_asked_often(chances, [links[at] for at in ranked])
    scores = dict(zip(ranked, chances.tolist(), strict=True))
    ranked.sort(key=lambda at: -scores[at])
    if in_turn and len(questions) > 1:
        ranked = _taking_turns(ranked, links, fits)
    return [
        NextLink(
            links[at].url,
            anchor_of(links[at].title),
            links[at].heading,
            links[at].source_url or None,
            scores[at],
            links[at].found_in,
            links[at].source_depth + 1,
        )
        for at in ranked[:at_most]
    ]


def _with_asked_often(chances: Floats, links: Sequence[LinkCandidate]) -> Floats:
    """Give the first page of questions and answers its share of what the best link leaves open."""
    # Without the host, as of "faq.example.org": it names every page of the site alike.
    names = (f"{link.title} {link.url.partition('://')[2].partition('/')[2]}" for link in links)
    first = next((at for at, name in enumerate(names) if _ASKED_OFTEN.search(name)), None)
    if first is None:
        return chances
    share = _ASKED_OFTEN_SHARE * (1 - chances.max())
    chances = chances * (1 - share)
    chances[first] += share
    return chances


def link_signals(
    links: Sequence[LinkCandidate],
    questions: Sequence[LinkQuestion],
    *,
    encoder: TokenEncoder | None,
    site_map: Mapping[str, float],
    site_text: Mapping[str, float],
) -> dict[str, Floats]:
    """Give each signal of each link, [0, 1], with a row a question or one for all.

    Terms count the less the more other targets are named by them: on the site of a program, its
    name says nothing.

    Returns:
        `title`, the share of the anchor's terms that the question holds; `path`, the same of the
        address; `similarity` of the question to the anchor and the sentence around it; `site_map`,
        how much of the question the site's own map finds in the target; `site_text`, how relevant
        is what such a map holds of its text; `is_page`, less than 1 for listings and code.
    """
    anchors = [anchor_of(link.title) for link in links]
    words = [path_words(link.url) for link in links]
    # An address says little of a page where its name is a number.
    texts = [
        f"{anchor} {link.description}".strip() or path
        for anchor, link, path in zip(anchors, links, words, strict=True)
    ]
    # Menus repeat the same links on every page.
    places = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    titles, paths = _shares((anchors, words), [link.url for link in links], questions)
    return {
        "title": titles,
        "path": paths,
        "similarity": similarities(questions, list(places), encoder, tells_apart=True)[
            :, [places[t] for t in texts]
        ],
        "site_map": np.array([[site_map.get(link.url, 0.0) for link in links]]),
        "site_text": np.array([[site_text.get(link.url, 0.0) for link in links]]),
        "is_page": np.array([[penalty(link.url) for link in links]]),
    }


def similarities(
    questions: Sequence[LinkQuestion],
    texts: Sequence[str],
    encoder: TokenEncoder | None,
    *,
    tells_apart: bool = False,
) -> Floats:
    """Compare each question with each text, [0, 1], a row a question; a mean of two measures.

    The best cosine of each of the question's tokens, weighted by their length, finds the one word
    that matters in a long sentence; the cosine of the sums of both says whether the rest agrees.
    With `tells_apart` a token counts the less the more of the texts hold it. The questions were
    prepared with the same encoder; without one nothing is alike.
    """
    found = np.zeros((len(questions), len(texts)))
    if encoder is None or not texts:
        return found
    wholes, tokens = encoder.encode_with_tokens(texts)
    wanted = np.concatenate([question.vectors for question in questions])
    best = best_cosines(wanted, tokens, encoder.vectors_of)
    weights = np.concatenate([question.weights for question in questions])
    if tells_apart:
        held = (best >= _SAME_TOKEN).sum(axis=1, dtype=np.float32)
        weights = weights * np.log1p(len(texts) / (held + 1))
    start = 0
    for row, question in enumerate(questions):
        end = start + len(question.weights)
        total = float(weights[start:end].sum())
        if total > 0:
            by_token = weights[start:end] @ best[start:end] / total
            whole = wholes @ normalised(weights[None, start:end] @ question.vectors)[0]
            found[row] = (by_token.clip(0, 1) + whole.clip(0, 1)) / 2
        start = end
    return found


def _shares(
    kinds: Sequence[Sequence[str]], urls: Sequence[str], questions: Sequence[LinkQuestion]
) -> list[Floats]:
    """The share of each text's terms that each question holds, by what they weigh.

    A long name holds a question's word by chance, a short one because it is about it. Of each kind
    there is one text for each link; a term weighs by how many of the targets are named by it.
    """
    numbers: dict[str, int] = {}
    targets = {url: at for at, url in enumerate(dict.fromkeys(urls))}
    flat, owners = [], []
    for texts in kinds:
        terms = [_terms(text) for text in texts]
        found = [numbers.setdefault(term, len(numbers)) for own in terms for term in own]
        flat.append(np.array(found, np.int64))
        owners.append(np.repeat(np.arange(len(texts)), [len(own) for own in terms]))
    of = np.array([targets[url] for url in urls])
    named = np.unique(
        np.concatenate(
            [of[own] * len(numbers) + term for own, term in zip(owners, flat, strict=True)]
        )
    )
    counts = np.bincount(named % max(len(numbers), 1), minlength=len(numbers))
    rarity = np.log1p((len(targets) - counts + 0.5) / (counts + 0.5))
    asked = np.array([[term in question.terms for term in numbers] for question in questions])
    shares = []
    for own, term in zip(owners, flat, strict=True):
        total = np.bincount(own, rarity[term], len(urls))
        held = [np.bincount(own, (rarity * row)[term], len(urls)) for row in asked]
        shares.append(np.array(held) / np.where(total > 0, total, 1))
    return shares


@lru_cache(maxsize=_REMEMBERED)
def _terms(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(analyze(text)))


def _taking_turns(ranked: Sequence[int], links: Sequence[LinkCandidate], fits: Floats) -> list[int]:
    places = {links[at].url: place for place, at in enumerate(ranked)}
    owners = np.array([places[link.url] for link in links])
    by_question = np.full((len(fits), len(ranked)), -np.inf)
    for row, fit in zip(by_question, fits, strict=True):
        np.maximum.at(row, owners, fit)
    # A target's place is the best it has in the order of any question; ties keep the common order.
    turns = np.argsort(np.argsort(-by_question, axis=1, kind="stable"), axis=1).min(axis=0)
    return [ranked[place] for place in np.argsort(turns, kind="stable")]
