"""Judges how likely the units of the passages found answer a question, by a small fitted model.

`benchmarks/fit_judge.py` fits its weights; docs/scoring.md says how well it does.
"""

import json
import math
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.resources import files
from itertools import chain, islice
from typing import Final, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from webrag.frozen import FrozenModel
from webrag.lexical.analysis import (
    analyze,
    language_of,
    query_terms,
    stem_in,
    term_weight,
)
from webrag.orchestration.confidence import below_high, quality
from webrag.orchestration.models import (
    AnswerUnit,
    OrchestrationResult,
    RankedChunk,
    ScoreProfile,
)
from webrag.orchestration.question.patterns import quantity_asked
from webrag.pattern_file import PatternFile
from webrag.retrieval.citations import extract_citation
from webrag.retrieval.models import CitationSpan
from webrag.retrieval.units import Cut, Piece, Unit, cut_units

Encode = Callable[[Sequence[str]], NDArray[np.float32]]
"""Vectors of unit length, one for each text."""

Floats = NDArray[np.float64]

PASSAGES: Final = 8
_MAX_CHARS: Final = 400
_LEAD_CHARS: Final = 80  # within which a sentence says what it speaks of
_SHOWN: Final = 3
_MOST_UNITS: Final = 12
_MOST_COMPARED: Final = 150
_LIKENESS_COST: Final = 0.6  # of the score, for what means the same as a better unit
_LEAST_WEIGHT: Final = 0.05
_OF_ANOTHER: Final = 0.6  # what never names what was asked for by its name speaks of another
_SAYS_NOTHING: Final = 10.0  # of the score, for what only has the words of the question
_MOST_READ: Final = 40  # units, best first, that are compared with the question word by word
_SUBJECT_WORDS: Final = 4  # of a name that is asked about, at most
_BARE_WORDS: Final = 3  # where nothing but the name is asked
_ARTICLE: Final = 4  # letters of a word that may stand before a name
_EXPLAINS: Final = 0.5  # of what is known of units that say what a thing is
_FOREIGN: Final = 0.5  # of a question's letters
_MUCH_LESS: Final = 2.0  # of the score, for what an answer would not show beside the better one
_IRRELEVANT: Final = 0.2  # below it .22 of the questions of the fit were answered
_UNKNOWN_COS: Final = 0.5  # about that of units that answer

_COVERED: Final = ("question", "wordings", "best_wording", "all", "lead", "above", "named")
_ALIKE: Final = ("cos_question", "cos_wordings", "cos_best_wording", "cos_all", "cos_piece")
_NEAR: Final = ("near_question", "near_wordings")
_OF_PASSAGE: Final = ("ratio", "rank", "passage_covered", "passage_cos", "in_focus")
_SHAPES: Final = (
    "code",
    "row",
    "item",
    "list",
    "has_lead",
    "introduces",
    "length",
    "asks",
    "signs",
)
FEATURES: Final = (*_COVERED, *_ALIKE, *_NEAR, *_OF_PASSAGE, *_SHAPES, "quantity", "tells_what")
"""What is known of a unit; the last are whether it states the quantity asked for, and how far it
says what the thing is that is asked about."""
SIGNS: Final = (
    "best", "mass", "told", "cos", "foreign", "foreign_cos", "no_quantity", "no_quantity_first",
)  # fmt: skip
"""What is known of a question's best units together."""

_CLOSING: Final = " *_`\"')\u201d"  # what may stand behind the end of a sentence
_STATED: Final = (".", "!", ":", "\u3002", "\uff01")

_SIGN: Final = re.compile(r"[^\w\s]|_")
_WORD: Final = re.compile(r"\w+")
_RE: Final = PatternFile(__package__, "judge.ini").patterns


class Judgement(NamedTuple):
    """The best units for a question.

    Attributes:
        units: Best first, none that overlap.
        confidence: Chance that one of the first three answers the question, [0, 1].
    """

    units: tuple[AnswerUnit, ...] = ()
    confidence: float = 0.0


class JudgeWeights(FrozenModel):
    """The fitted model; the order of its weights is that of `FEATURES` and of `SIGNS`.

    Attributes:
        units: What each feature counts: without other wordings of the question, and with them.
        chance: What each sign counts for the chance, and the constant after them; the same.
    """

    units: tuple[tuple[float, ...], tuple[float, ...]]
    chance: tuple[tuple[float, ...], tuple[float, ...]]


@lru_cache(maxsize=1)
def fitted_weights() -> JudgeWeights:
    """The weights that come with the package."""
    text = files(__package__).joinpath("judge.json").read_text("utf-8")
    return JudgeWeights.model_validate(json.loads(text))


def judged(
    question: str,
    ranked: Sequence[RankedChunk],
    *,
    wordings: Mapping[str, Mapping[str, float]] | None = None,
    term_idf: Mapping[str, float],
    encode: Encode | None,
    profile: ScoreProfile | None = None,
) -> Judgement:
    """Find the units of ranked passages that most likely answer a question.

    Args:
        question: As asked.
        ranked: Passages, best first; the first eight that match are looked at. Where none has a
            score, nothing is known of the chance, and the confidence is 0. It is at most .6 where
            the question names identifiers and the first three units hold none of them, or asks for
            a default and none of them speaks of one, or is one name that none of them explains.
        wordings: Other wordings of the question, and the weights of the terms of each.
        term_idf: Weights of the question's index terms; others count 1.0.
        encode: Compares meanings; None to go by words alone.
        profile: Scale of the scores; a scorer that finds all passages irrelevant is believed. None
            to believe no scorer.
    """
    model = fitted_weights()
    wordings = wordings or {}
    weights = dict(term_idf)
    for terms in wordings.values():
        weights |= terms
    asked = Asked(question, tuple(wordings), weights, encode)
    matched = [item for item in ranked if not item.is_locality_expanded][:PASSAGES]
    found = read_units(asked, matched, encode)
    if not found.units:
        return Judgement()
    scores = found.features @ np.array(model.units[bool(wordings)])
    for place in np.argsort(-scores, kind="stable")[:_MOST_READ].tolist():
        scores[place] -= _SAYS_NOTHING * _only_repeats(asked, found, matched, place)
    chosen = best_apart(found, scores, most=_MOST_UNITS)
    signs = signs_of(asked, found, scores, chosen[:_SHOWN])
    chance = np.array(model.chance[bool(wordings)])
    logit = float(np.array([*signs, 1.0]) @ chance)
    others = _best_of_others(found, scores, chosen)
    placed = with_announced(found, scores, joined_neighbours(found, scores, chosen))
    placed += zip(others, others, strict=True)
    # What another place says word for word, of the same things, is not shown again.
    first = {_told(found, matched, place): (place, scored) for place, scored in reversed(placed)}
    placed = [each for each in placed if each in first.values()]
    units = tuple(_shown(found, matched, place, scores[scored]) for place, scored in placed)
    if not any(item.reranked_score > 0 for item in matched):
        return Judgement(units)
    confidence = 1 / (1 + math.exp(-logit))
    if _RE["elsewhere"].search(_said(found, matched, _best_piece(found, scores, chosen[0]))):
        confidence = below_high(confidence)  # it names the place of the answer
    # A guessed answer finds what a question in other words, or another language, does not.
    best = max(max(item.reranked_score, *item.wording_scores, 0.0) for item in matched)
    if profile is not None and quality(best, profile) < _IRRELEVANT:
        confidence = min(confidence, quality(best, profile))
    if asked.is_one_word and found.column("tells_what")[chosen[:_SHOWN]].max() < _EXPLAINS:
        confidence = min(confidence, below_high(1.0) if wordings else _OF_ANOTHER)
    is_named = found.column("named")[chosen[:_SHOWN]].any()
    told = (_told(found, matched, place) for place in chosen[:_SHOWN])
    is_met = is_named and (
        not _RE["default"].search(question) or any(map(_speaks_of_default, told))
    )
    return Judgement(units, confidence if is_met else min(confidence, _OF_ANOTHER))


class Asked:
    """A question with its other wordings, and what each of their terms counts."""

    def __init__(
        self,
        question: str,
        wordings: Sequence[str],
        weights: Mapping[str, float],
        encode: Encode | None,
    ) -> None:
        texts = [question, *wordings]
        self.text = question
        self.is_reworded = bool(wordings)
        terms = [query_terms(text) for text in texts]
        language = language_of(question)
        self._stem = partial(stem_in, language) if language else str
        self._own = frozenset(map(self._stem, terms[0]))
        stems = (self._stem(term) for own in terms for term in own)
        self._places = {stem: place for place, stem in enumerate(dict.fromkeys(stems))}
        weight_of: dict[str, float] = {}
        for term, weight in weights.items():
            stem = self._stem(term)
            weight_of[stem] = min(weight, weight_of.get(stem, weight))
        known = [max(_LEAST_WEIGHT, weight_of.get(stem, 1.0)) for stem in self._places] or [1.0]
        held = np.array([self.held(own) for own in terms]).reshape(len(texts), len(known))
        sums = np.maximum((held * known).sum(axis=1, keepdims=True), _LEAST_WEIGHT)
        self.shares: Floats = held * known / sums
        union = np.array(known) * (1 + held[0])
        self.union: Floats = union / union.sum()
        # A wording may guess names, right ones and wrong ones: they help, and are not asked for.
        self.names = self.held([term for term in terms[0] if term_weight(term) > 1])
        self.vectors = encode(texts) if encode else None
        said = [_words(text) for text in texts]
        self.words = words = list(dict.fromkeys(chain.from_iterable(said)))
        self.numbered = [at for at, word in enumerate(words) if any(map(str.isdigit, word))]
        self.word_vectors = encode(words) if encode and words else None
        # The likest words of small talk tell what kind of sentence answers: it counts in full.
        counts = [
            max((weight_of.get(self._stem(term), 1.0) for term in query_terms(word)), default=1.0)
            for word in words
        ]
        rows = [
            [count * (word in own) for word, count in zip(words, counts, strict=True)]
            for own in said
        ]
        by_word = np.array(rows).reshape(len(texts), len(words))
        totals = np.maximum(by_word.sum(axis=1, keepdims=True), _LEAST_WEIGHT)
        self.word_shares: Floats = by_word / totals
        # That a unit means what a wording says tells less where it only repeats the question.
        near = (
            np.full(len(wordings), _UNKNOWN_COS)
            if self.vectors is None
            else self.vectors[1:] @ self.vectors[0]
        )
        self.repeated = float(near.max(initial=0.0))
        letters = [char for char in question if char.isalpha()]
        # The bundled vectors know little of other scripts: all their texts look alike to them.
        self.foreign = sum(ord(char) > 0x24F for char in letters) / max(1, len(letters))
        self.quantity = quantity_asked(question)
        name = _RE["asks_what"].sub(" ", question)
        subject = self.stems(name)
        words = _WORD.findall(name)
        self.subject_words = sum(bool(self.stems(word) & subject) for word in words)
        most = _SUBJECT_WORDS if name != question else _BARE_WORDS
        self.subject = subject if self.subject_words <= most else frozenset[str]()
        # "Is it free?" has one word of weight as well, and is no name.
        is_named = len(words) == 1 or (len(words) == 2 and len(words[0]) <= _ARTICLE)
        is_one_word = is_named and bool(self.subject) and self.subject_words == 1
        self.is_one_word = is_one_word and self.foreign < _FOREIGN

    def stems(self, text: str) -> frozenset[str]:
        """The stems of a text's words."""
        return frozenset(self._stem(term) for term in query_terms(text) if term[0] != "=")

    def is_subject(self, name: str) -> bool:
        """Tell whether a name is that of the subject, with at most a short word before it."""
        words = _WORD.findall(name)
        more = len(words) - self.subject_words
        if more > 1 or (more == 1 and not self._may_precede(words[0])):
            return False
        stems = self.stems(name)
        return len(stems) <= len(self.subject) + 1 and self.subject <= stems

    def _may_precede(self, word: str) -> bool:
        return len(word) <= _ARTICLE and not self.stems(word) & self.subject

    def is_repeated_by(self, text: str) -> bool:
        """Tell whether a text has most words of the question and no other."""
        if len(text) > 2 * len(self.text):
            return False
        terms = frozenset(map(self._stem, query_terms(text)))
        return terms <= self._own and len(terms) * 2 > len(self._own)

    def is_stated(self, said: str) -> bool:
        """Tell whether a text has the figure that is asked for."""
        return self.quantity is not None and self.quantity.is_stated(said)

    def held(self, terms: Sequence[str]) -> Floats:
        """1.0 for each of the question's terms that is among some terms, else 0.0."""
        found: Floats = self.held_in(dict.fromkeys(terms, (0,)), 1)[0]
        return found

    def held_in(self, holders: Mapping[str, Sequence[int]], count: int) -> Floats:
        """As `held` for so many texts, a row each, by the numbers of those that hold a term."""
        found = np.zeros((count, max(1, len(self._places))))
        terms = holders.keys() & self._places.keys() if self._stem is str else holders.keys()
        for term in terms:
            if (place := self._places.get(self._stem(term))) is not None:
                found[holders[term], place] = 1.0
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """A passage in units, with all that does not depend on the question."""

    text: str
    cut: Cut
    parts: Mapping[int, int]  # units that are a part of a piece, numbered after the pieces
    holders: Mapping[str, Sequence[int]]  # the numbers of pieces and parts that hold a term
    words: tuple[str, ...]
    said: Sequence[Sequence[int]]  # by piece and part, the places of its words among all
    shapes: Floats  # of each unit


@dataclass(frozen=True, slots=True)
class Found:
    """The units of some passages.

    Attributes:
        features: A row of `FEATURES` for each unit.
        units: Each with the number of its passage.
        vectors: Of each unit, of unit length; None where meanings are not compared.
    """

    features: Floats
    units: Sequence[tuple[int, Unit]]
    vectors: NDArray[np.float32] | None

    def column(self, name: str) -> Floats:
        """One feature of all units."""
        values: Floats = self.features[:, FEATURES.index(name)]
        return values


def read_units(asked: Asked, ranked: Sequence[RankedChunk], encode: Encode | None) -> Found:
    """Cut ranked passages into units and describe each for the model."""
    best = max((item.reranked_score for item in ranked), default=0.0) or 1.0
    rows: list[Floats] = []
    units: list[tuple[int, Unit]] = []
    vectors: list[NDArray[np.float32]] = []
    for rank, item in enumerate(ranked):
        read = _read(item.chunk.text)
        if not read.cut.units:
            continue
        page = asked.held(_terms_above(item.chunk.title or "", item.chunk.heading_path))
        # Of pieces, of parts of them, and in the last row of none.
        held = asked.held_in(read.holders, len(read.cut.pieces) + len(read.parts) + 1)
        alike, cos = [np.full(len(read.cut.units), _UNKNOWN_COS)] * len(_ALIKE), _UNKNOWN_COS
        if encode is not None and asked.vectors is not None:
            own, of_pieces = _vectors(read, encode)
            vectors.append(own)
            near = (of_pieces @ asked.vectors.T).mean(axis=1)
            alike, cos = _alike(asked, own @ asked.vectors.T, near, read), float(near.max())
        pieces = held[: len(read.cut.pieces)]
        covered = float(np.maximum(pieces.max(axis=0), page) @ asked.union)
        of_passage = (item.reranked_score / best, math.log1p(rank), covered, cos)
        known = [
            *_covered(asked, read, held, page),
            *alike,
            *_near(asked, read, item, encode),
            *(np.full(len(read.cut.units), each) for each in of_passage),
            _in_focus(item, read),
        ]
        stated = [asked.is_stated(item.chunk.text[u.start : u.end]) for u in read.cut.units]
        told = _tells_what(asked, read, item)
        rows.append(np.column_stack([*known, read.shapes, np.array(stated, float), told]))
        units += [(rank, unit) for unit in read.cut.units]
    features = np.concatenate(rows) if rows else np.zeros((0, len(FEATURES)))
    return Found(features, units, np.concatenate(vectors) if vectors else None)


@lru_cache(maxsize=256)
def _read(text: str) -> _Read:
    cut = cut_units(text, max_chars=_MAX_CHARS)
    told: list[Unit | Piece] = [*cut.pieces]
    parts: dict[int, int] = {}
    for place, unit in enumerate(cut.units):
        piece = cut.pieces[unit.first]
        if unit.last == unit.first + 1 and (unit.start, unit.end) != (piece.start, piece.end):
            parts[place] = len(told)
            told.append(unit)
    holders: dict[str, list[int]] = {}
    places: dict[str, int] = {}
    said: list[list[int]] = []
    for number, each in enumerate(told):
        part = text[each.start : each.end]
        for term in analyze(part):
            holders.setdefault(term, []).append(number)
        said.append([places.setdefault(word, len(places)) for word in _words(part)])
    signs = [sign.start() for sign in _SIGN.finditer(text)]
    shapes = np.array([_shape(text, unit, signs) for unit in cut.units], float)
    return _Read(text, cut, parts, holders, tuple(places), said, shapes)


def _shape(text: str, unit: Unit, signs: Sequence[int]) -> list[float]:
    said = text[unit.start : unit.end]
    return [
        unit.kind == "code",
        unit.kind == "row",
        unit.kind == "item",
        unit.kind == "list",
        unit.lead is not None,
        unit.introduces,
        len(said) / _MAX_CHARS,
        said.rstrip(" *_`").endswith(("?", "\uff1f")),
        (bisect_left(signs, unit.end) - bisect_left(signs, unit.start)) / max(1, len(said)),
    ]


@lru_cache(maxsize=256)
def _vectors(read: _Read, encode: Encode) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Of the units and of the pieces."""
    parts: tuple[Unit | Piece, ...] = (*read.cut.units, *read.cut.pieces)
    texts = [read.text[part.start : part.end] for part in parts]
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    found = encode(list(places))[[places[text] for text in texts]]
    return found[: len(read.cut.units)], found[len(read.cut.units) :]


def _covered(asked: Asked, read: _Read, held: Floats, page: Floats) -> list[Floats]:
    """Shares of the question's terms in the units, in their leads, and in the headings above."""
    own, told, above = _where(read, held, page)
    shares = own @ asked.shares.T
    others = shares[:, 1:] if asked.is_reworded else shares
    return [
        shares[:, 0],
        others.mean(axis=1),
        others.max(axis=1),
        own @ asked.union,
        (told - own) @ asked.union,
        (above - told) @ asked.union,
        (above @ asked.names > 0) | (not asked.names.any()),
    ]


def _where(read: _Read, held: Floats, page: Floats) -> tuple[Floats, Floats, Floats]:
    """The greatest of what units hold, of them and their leads, and of the headings above too.

    Args:
        read: The passage.
        held: A row for each of its pieces and of their parts, and a last one.
        page: That of its page's title and headings.
    """
    units, pieces = read.cut.units, read.cut.pieces
    own = _most(held, units)
    own[list(read.parts)] = held[list(read.parts.values())]
    told = np.maximum(own, held[[-1 if u.lead is None else u.lead for u in units]])
    headings = {piece.headings: held[[*piece.headings, -1]].max(axis=0) for piece in pieces}
    above = np.maximum([headings[pieces[u.first].headings] for u in units], page)
    return own, told, np.maximum(above, told)


def _near(
    asked: Asked, read: _Read, item: RankedChunk, encode: Encode | None
) -> tuple[Floats, Floats]:
    """Mean cosines of the question's words with the likest words of units and of what is above."""
    if encode is None or asked.word_vectors is None:
        unknown = np.full(len(read.cut.units), _UNKNOWN_COS)
        return unknown, unknown
    # A row of zeros, which every part has for a word and the last row for its only one.
    cosines = np.vstack([_cosines(asked, read.words, encode), np.zeros(len(asked.words))])
    padded = [[*places, -1] for places in (*read.said, ())]
    starts = np.cumsum([0, *map(len, padded[:-1])])
    nearest = np.maximum.reduceat(cosines[list(chain.from_iterable(padded))], starts)
    above = _words(" ".join([item.chunk.title or "", *item.chunk.heading_path]))
    page = _cosines(asked, above, encode).max(axis=0, initial=0.0)
    shares = _where(read, nearest, page)[2] @ asked.word_shares.T
    others = shares[:, 1:] if asked.is_reworded else shares
    return shares[:, 0], others.mean(axis=1)


def _cosines(asked: Asked, words: tuple[str, ...], encode: Encode) -> Floats:
    """Cosines of some words with each word of the question; a name with a figure is no other."""
    assert asked.word_vectors is not None, "without vectors no words are compared"
    cosines = np.asarray(_word_vectors(words, encode) @ asked.word_vectors.T, float)
    for place in asked.numbered:
        cosines[:, place] = [word == asked.words[place] for word in words]
    return cosines


def _words(text: str) -> tuple[str, ...]:
    """The distinct words of a text, in order, without case."""
    return tuple(dict.fromkeys(_WORD.findall(text.casefold())))


@lru_cache(maxsize=128)
def _word_vectors(words: tuple[str, ...], encode: Encode) -> NDArray[np.float32]:
    return encode(words)


def _most(values: Floats, units: Sequence[Unit]) -> Floats:
    """The greatest value of each unit's pieces, of those of all pieces and one more."""
    bounds = [place for unit in units for place in (unit.first, unit.last)]
    most: Floats = np.maximum.reduceat(values, bounds)[::2]
    return most


@lru_cache(maxsize=256)
def _terms_above(title: str, headings: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(term for text in (title, *headings) for term in analyze(text))


def _alike(
    asked: Asked, cosines: NDArray[np.float32], near: NDArray[np.float32], read: _Read
) -> list[Floats]:
    """Cosines of the units with the question, and the best of their pieces, which are `near`."""
    alike = cosines.astype(float)
    others = alike[:, 1:] if asked.is_reworded else alike
    return [
        alike[:, 0],
        others.mean(axis=1),
        others.max(axis=1),
        alike.mean(axis=1),
        _most(np.append(near, 0.0), read.cut.units),
    ]


def _tells_what(asked: Asked, read: _Read, item: RankedChunk) -> Floats:
    """Rate how far units say what the subject is: first below its heading, or as "X is"."""
    found = np.zeros(len(read.cut.units))
    if not asked.subject:
        return found
    path = [item.chunk.title or "", *item.chunk.heading_path]
    pieces, opened = read.cut.pieces, set[tuple[int, ...]]()
    opening: dict[int, float] = {}
    for number, piece in enumerate(pieces):
        if piece.kind in ("prose", "item") and piece.headings and piece.headings not in opened:
            opened.add(piece.headings)
            headings = [read.text[pieces[at].start : pieces[at].end] for at in piece.headings]
            opening[number] = _opens(asked, [*dict.fromkeys([*path, *headings])])
    for place, unit in enumerate(read.cut.units):
        said = read.text[unit.start : min(unit.end, unit.start + _LEAD_CHARS)]
        names = [said[: verb.start()] for verb in _RE["is_a"].finditer(said)]
        if unit.lead is not None:
            names.append(read.text[pieces[unit.lead].start : pieces[unit.lead].end])
        is_told = any(map(asked.is_subject, names))
        found[place] = 1.0 if is_told else opening.get(unit.first, 0.0)
    return found


def _opens(asked: Asked, headings: Sequence[str]) -> float:
    """Share of the words of the last heading that the subject of a question has.

    Where that is only "Description" or the like, share of the subject's that the one above it has.
    """
    above = [asked.stems(each) for each in headings]
    if not asked.subject <= frozenset().union(*above):
        return 0.0
    if len(headings) > 1 and _RE["opening"].match(headings[-1]):
        return len(asked.subject & above[-2]) / len(asked.subject)
    words = [word for word in _WORD.findall(headings[-1]) if not word.isdigit()]
    return min(1.0, len(asked.subject & above[-1]) / max(1, len(words)))


def _in_focus(item: RankedChunk, read: _Read) -> Floats:
    """Tell by unit whether it stands in the child that matched best."""
    focus, offset = item.chunk.focus, item.chunk.char_start
    low, high = (focus.char_start, focus.char_end) if focus else (0, 0)
    inside = [low <= offset + u.start and offset + u.end <= high for u in read.cut.units]
    return np.array(inside, float)


def best_apart(found: Found, scores: Floats, *, most: int = _SHOWN) -> list[int]:
    """Places of the best units that do not overlap; what repeats a better one counts less."""
    left = np.argsort(-scores, kind="stable")[:_MOST_COMPARED].tolist()
    alike = dict.fromkeys(left, 0.0)
    chosen: list[int] = []
    while left and len(chosen) < most:
        # Of equal ones the first: `max` keeps the order.
        best = max(left, key=lambda place: scores[place] - _LIKENESS_COST * alike[place])
        chosen.append(best)
        left = [e for e in left if e != best and not _overlap(found.units[e], found.units[best])]
        if found.vectors is not None and left:
            for place, near in zip(left, found.vectors[left] @ found.vectors[best], strict=True):
                alike[place] = max(alike[place], float(near))
    return chosen


def joined_neighbours(found: Found, scores: Floats, chosen: Sequence[int]) -> list[tuple[int, int]]:
    """Each place, and the one whose score it has; neighbours of the first are the unit of both."""
    wholes = {(rank, unit.start, unit.end): at for at, (rank, unit) in enumerate(found.units)}
    shown: list[tuple[int, int]] = []
    for number, place in enumerate(chosen):
        rank, unit = found.units[place]
        for at, (other, best) in enumerate(shown) if number < _SHOWN else ():
            other_rank, held = found.units[other]
            first, last = (unit, held) if unit.start < held.start else (held, unit)
            whole = wholes.get((rank, first.start, last.end))
            is_near = scores[place] >= scores[best] - _MUCH_LESS
            is_beside = rank == other_rank and first.last == last.first
            if is_near and is_beside and whole is not None:
                shown[at] = (whole, best)
                break
        else:
            shown.append((place, place))
    return shown


def with_announced(
    found: Found, scores: Floats, placed: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The first units each with the list or listing they announce: all of it, or the best part.

    A listing comes before what only leads to it, which readers see above it.
    """
    shown: list[tuple[int, int]] = []
    for number, (place, scored) in enumerate(placed):
        new, led = [place], _announced(found, place) if number < _SHOWN else {}
        if led:
            whole = min(e.start for e in led.values()), max(e.end for e in led.values())
            best = max(led, key=lambda at: ((led[at].start, led[at].end) == whole, scores[at]))
            unit = found.units[place][1]
            new.insert(unit.last - unit.first > 1 or led[best].kind != "code", best)
        for at in new:
            if not any(_overlap(found.units[at], found.units[other]) for other, _ in shown):
                shown.append((at, scored))
    return shown


def _announced(found: Found, place: int) -> dict[int, Unit]:
    rank, unit = found.units[place]
    if not unit.introduces:
        return {}
    same = ((at, each) for at, (other, each) in enumerate(found.units) if other == rank)
    kinds = ("code", "item", "list")
    return {at: each for at, each in same if each.lead == unit.last - 1 and each.kind in kinds}


def _overlap(one: tuple[int, Unit], other: tuple[int, Unit]) -> bool:
    return one[0] == other[0] and one[1].start < other[1].end and other[1].start < one[1].end


def _best_of_others(found: Found, scores: Floats, chosen: Sequence[int]) -> list[int]:
    """The best unit of each passage that none was chosen of."""
    best: dict[int, int] = {}
    named = {found.units[place][0] for place in chosen}
    for place in np.argsort(-scores, kind="stable").tolist():
        passage = found.units[place][0]
        if passage not in named:
            best.setdefault(passage, place)
    return list(best.values())


def _best_piece(found: Found, scores: Floats, place: int) -> int:
    """The place of the best unit of one piece within a unit; the unit itself where it has none."""
    rank, whole = found.units[place]
    inside = (
        at
        for at, (other, unit) in enumerate(found.units)
        if other == rank
        and whole.first <= unit.first
        and unit.last <= whole.last
        and unit.last == unit.first + 1
    )
    return max(inside, key=scores.__getitem__, default=place)


def signs_of(asked: Asked, found: Found, scores: Floats, chosen: Sequence[int]) -> list[float]:
    """The `SIGNS` of the units chosen for a question."""
    best = chosen[0]
    odds = np.exp(scores - scores.max())
    shown = [any(_overlap(unit, found.units[place]) for place in chosen) for unit in found.units]
    cos = float(found.column("cos_all")[best])
    stated = found.column("quantity")[list(chosen)]
    is_wanted = asked.quantity is not None
    return [
        float(scores[best]),
        float(odds[shown].sum() / odds.sum()),
        float(sum(found.column(name)[best] for name in ("all", "lead", "above"))),
        cos - asked.repeated,
        asked.foreign,
        asked.foreign * cos,
        float(is_wanted and not stated.any()),
        float(is_wanted and not stated[0]),
    ]


def _only_repeats(asked: Asked, found: Found, ranked: Sequence[RankedChunk], place: int) -> bool:
    """Tell what repeats the question and states nothing, such as an entry of a list of contents.

    A sentence answers with the question's own words where that asks for a yes, or below a name.
    """
    rank, unit = found.units[place]
    text, said = ranked[rank].chunk.text, _said(found, ranked, place)
    is_stated = unit.kind in ("code", "row") or said.rstrip(_CLOSING).endswith(_STATED)
    if is_stated or _RE["asks_yes"].search(asked.text):
        return False
    pieces = _read(text).cut.pieces
    lead = None if unit.lead is None else pieces[unit.lead]
    if lead is not None and not _RE["elsewhere"].search(text[lead.start : lead.end]):
        return False
    entries = [text[each.start : each.end] for each in pieces[unit.first : unit.last]]
    return any(map(asked.is_repeated_by, entries if unit.kind == "list" else [said]))


def _said(found: Found, ranked: Sequence[RankedChunk], place: int) -> str:
    rank, unit = found.units[place]
    return ranked[rank].chunk.text[unit.start : unit.end]


def _told(found: Found, ranked: Sequence[RankedChunk], place: int) -> str:
    """A unit with its lead and the headings above it; a row with all but the other rows.

    The columns of a table that began in an earlier passage are the last of the headings.
    """
    rank, unit = found.units[place]
    chunk = ranked[rank].chunk
    cut = _read(chunk.text).cut
    pieces = cut.pieces
    above = [*pieces[unit.first].headings, *([] if unit.lead is None else [unit.lead])]
    if unit.kind == "row":
        # A long row's cells are units of their own, below its name in place of the columns' names.
        rows = {each.first for each in cut.units if each.kind == "row"} - {unit.first}
        above += [number for number in range(len(pieces)) if number not in rows]
    told = [chunk.text[pieces[each].start : pieces[each].end] for each in above]
    return " ".join([*chunk.heading_path, *told, _said(found, ranked, place)])


def _speaks_of_default(text: str) -> bool:
    return bool(_RE["default"].search(text) or _RE["not_given"].search(text))


def _shown(found: Found, ranked: Sequence[RankedChunk], place: int, score: float) -> AnswerUnit:
    rank, unit = found.units[place]
    chunk = ranked[rank].chunk
    lead = None
    if unit.lead is not None:
        above = _read(chunk.text).cut.pieces[unit.lead]
        lead = (chunk.char_start + above.start, chunk.char_start + above.end)
    return AnswerUnit(
        chunk_id=chunk.chunk_id,
        char_start=chunk.char_start + unit.start,
        char_end=chunk.char_start + unit.end,
        lead=lead,
        score=float(score),
    )


def cited_units(
    result: OrchestrationResult, passages: Collection[UUID], *, most: int = _SHOWN
) -> list[CitationSpan]:
    """Cite the best units of some passages of a result, best first."""
    chunks = {item.chunk.chunk_id: item.chunk for item in result.chunks}
    found = (
        extract_citation(chunks[unit.chunk_id], unit.char_start, unit.char_end)
        for unit in result.units
        if unit.chunk_id in chunks and unit.chunk_id in passages
    )
    return list(islice(filter(None, found), most))
