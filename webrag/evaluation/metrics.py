"""Scores of a run against its questions, two runs compared, and checks of the gold."""

import math
import re
import statistics
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlsplit

import numpy as np
from pydantic import Field
from selectolax.lexbor import LexborHTMLParser

from webrag.evaluation.questions import CitationRecord, Gold, Question, RunRecord
from webrag.frozen import FrozenModel


def hit_rate(expected: Collection[str], retrieved: Sequence[str]) -> float:
    """1.0 when anything expected was retrieved, else 0.0; LlamaIndex's `HitRate`."""
    return float(any(each in expected for each in retrieved))


def reciprocal_rank(expected: Collection[str], retrieved: Sequence[str]) -> float:
    """1 / place of the first expected id, 0.0 without one; LlamaIndex's `MRR` of one question."""
    ranks = (rank for rank, each in enumerate(retrieved, start=1) if each in expected)
    return 1.0 / next(ranks, math.inf)


def ndcg(expected: Collection[str], retrieved: Sequence[str]) -> float:
    """Divide the discounted gain of the order by that of the best one; LlamaIndex's `NDCG`.

    Relevance is binary and the gain at place i, from 0, is 1 / log2(i + 2). Within [0, 1] as long
    as no expected id is retrieved twice, and one is expected.
    """
    gain = sum(1 / math.log2(i + 2) for i, each in enumerate(retrieved) if each in expected)
    return gain / sum(1 / math.log2(i + 2) for i in range(len(expected)))


RANKS = (1, 3, 5, 10)
WORD_BUDGETS = (500, 1000, 2000)
_RANKING_DEPTH = 10
_FIRST_CITATIONS = 3


def comparison_key(text: str) -> str:
    """Reduce text to what a reader would call the same words: letters and digits, case folded."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in folded if character.isalnum())


# What a browser draws and no text of the page holds: breaks within cells, numbers of items.
_DRAWN = re.compile(r"<br>|^[ \t>]*+\d{1,9}[.)] ", re.MULTILINE)


class VisiblePages:
    """The pages of one folder, as text; each page is read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._keys: dict[Path, tuple[str, ...]] = {}

    def shows(self, url: str, quote: str) -> bool:
        """Tell whether the page shows these words, letters and digits compared."""
        path = self._root / unquote(urlsplit(url).path).lstrip("/")
        if path.is_dir():
            path /= "index.html"
        said = comparison_key(quote), comparison_key(_DRAWN.sub(" ", quote))
        return any(key and key in shown for key in said for shown in self._shown(path))

    def _shown(self, path: Path) -> tuple[str, ...]:
        if path not in self._keys:
            texts = _visible_texts(path) if path.is_file() else ()
            self._keys[path] = tuple(map(comparison_key, texts))
        return self._keys[path]


def _visible_texts(path: Path) -> Sequence[str]:
    """The text of a page, without and with the words that stand for pictures."""
    tree = LexborHTMLParser(path.read_bytes().decode("utf-8", errors="replace"))
    tree.strip_tags(["script", "style", "template", "noscript", "head"])
    if tree.body is None:
        return ()
    text = tree.body.text(deep=True)
    for image in tree.css("img[alt]"):
        image.insert_before(image.attributes["alt"] or "")
    return text, tree.body.text(deep=True)


_SHOWN_CHARS = 120


def gold_warnings(
    questions: Sequence[Question], pages: Mapping[str, VisiblePages | None]
) -> list[str]:
    """Say what of gold makes figures doubtful; None for sites that only the network has."""
    if all(question.gold is None for question in questions):
        return [
            "No question has 'gold', so the figures about evidence stay empty; add the exact words"
            " that answer it, and their page."
        ]
    checked = [
        (question, gold, visible)
        for question in questions
        if (visible := pages.get(question.site)) is not None
        for gold in question.gold or ()
    ]
    wrong = [
        (question, gold)
        for question, gold, visible in checked
        if not any(visible.shows(each.page, each.quote) for each in gold.passages)
    ]
    if not wrong:
        return []
    question, gold = wrong[0]
    quote = gold.quote if len(gold.quote) <= _SHOWN_CHARS else gold.quote[:_SHOWN_CHARS] + "…"
    ids = ", ".join(dict.fromkeys(question.id for question, _ in wrong))
    return [
        f"{len(wrong)} of {len(checked)} gold quotations do not stand on the page they name and may"
        f" count as missed, for example of {question.id}: {quote!r} on {gold.page!r}."
        f" Check words and page of: {ids}."
    ]


class QuestionScore(FrozenModel):
    """Scores of one question; shares are in [0, 1], None where the question has no gold.

    Shares of gold quotes are by rank and by word budget, those of gold pages by rank. The first 10
    results count for hit rate and nDCG, the first three citations for `gold_cited`.
    """

    id: str
    type: str
    answerable: bool | None
    evidence: dict[int, float] = Field(default_factory=dict)
    pages: dict[int, float] = Field(default_factory=dict)
    words: dict[int, float] = Field(default_factory=dict)
    reciprocal_rank: float | None = None
    hit_rate: float | None = None
    ndcg: float | None = None
    gold_cited: float | None = None
    citations: int = 0
    citations_verbatim: int = 0
    pages_fetched: int = 0
    ms: float = 0.0
    abstained: bool = False
    failed: bool = False


def score_question(question: Question, record: RunRecord) -> QuestionScore:
    """Score one record; matching is on letters and digits only, so markup never decides."""
    base = QuestionScore(
        id=question.id,
        type=question.type,
        answerable=None if question.gold is None else bool(question.gold),
        citations=len(record.citations),
        citations_verbatim=sum(citation.verbatim for citation in record.citations),
        pages_fetched=len(set(record.urls_fetched)),
        ms=record.ms,
        abstained=record.abstained,
        failed=record.error is not None,
    )
    if not question.gold:
        return base
    gold, shown = question.gold, [result.text for result in record.retrieved]
    texts = list(map(comparison_key, shown))
    urls = [result.url for result in record.retrieved]
    expected = {f"gold {number}" for number in range(len(gold))}
    first = _found_in_order(gold, texts[:_RANKING_DEPTH])
    return base.model_copy(
        update={
            "evidence": {k: _share(gold, _quote_in(texts[:k])) for k in RANKS},
            "pages": {k: _share(gold, _page_in(urls[:k])) for k in RANKS},
            "words": {n: _share(gold, _quote_in(_first_words(shown, n))) for n in WORD_BUDGETS},
            "reciprocal_rank": reciprocal_rank(expected, _found_in_order(gold, texts)),
            "hit_rate": hit_rate(expected, first),
            "ndcg": ndcg(expected, first),
            "gold_cited": gold_cited(
                gold,
                [text for text, each in zip(texts, record.retrieved, strict=True) if each.in_brief],
                [comparison_key(citation.verbatim_text) for citation in record.citations],
            ),
        }
    )


def gold_cited(
    gold: Sequence[Gold], evidence: Sequence[str], citations: Sequence[str]
) -> float | None:
    """Give the share of gold quotes in the evidence that the first three citations hold, if any."""
    shown = [item for item in gold if _quote_in(evidence)(item)]
    return _share(shown, _quote_in(citations[:_FIRST_CITATIONS])) if shown else None


def _share(gold: Sequence[Gold], found: Callable[[Gold], bool]) -> float:
    return sum(found(item) for item in gold) / len(gold)


def _quote_in(texts: Sequence[str]) -> Callable[[Gold], bool]:
    return lambda gold: any(
        comparison_key(passage.quote) in text for passage in gold.passages for text in texts
    )


def _page_in(urls: Sequence[str]) -> Callable[[Gold], bool]:
    return lambda gold: any(is_page(url, each.page) for each in gold.passages for url in urls)


def is_page(url: str, page: str) -> bool:
    """Tell whether an address is that of a page, given by its path below its site."""
    path = unquote(urlsplit(url).path).lstrip("/")
    return path == page or path.endswith("/" + page)


def _first_words(texts: Iterable[str], budget: int) -> list[str]:
    kept: list[str] = []
    for text in texts:
        words = text.split()[:budget]
        kept.append(comparison_key(" ".join(words)))
        budget -= len(words)
        if budget <= 0:
            break
    return kept


def _found_in_order(gold: Sequence[Gold], texts: Sequence[str]) -> list[str]:
    """Give ids for ranking: each gold passage, one after another, where it is first found."""
    ids: list[str] = []
    found: set[str] = set()
    for rank, text in enumerate(texts):
        held = {f"gold {n}" for n, item in enumerate(gold) if _quote_in([text])(item)} - found
        ids += sorted(held) or [f"result {rank}"]
        found |= held
    return ids


def figures_of(score: QuestionScore) -> dict[str, float]:
    """Figures of one question, by the names they have in reports; 0 without gold."""
    return {
        **{f"evidence recall @{k}": score.evidence.get(k, 0.0) for k in RANKS},
        **{f"evidence recall in {n} words": score.words.get(n, 0.0) for n in WORD_BUDGETS},
        **{f"page recall @{k}": score.pages.get(k, 0.0) for k in RANKS},
        "hit rate @10": score.hit_rate or 0.0,
        "mean reciprocal rank": score.reciprocal_rank or 0.0,
        "nDCG @10": score.ndcg or 0.0,
    }


def mean_figures(scores: Sequence[QuestionScore]) -> dict[str, float]:
    """Average the answerable of some questions, one at least; NaN where none is."""
    rows = [figures_of(score) for score in scores if score.answerable]
    return {name: mean(row[name] for row in rows) for name in figures_of(scores[0])}


def mean(values: Iterable[float]) -> float:
    """Arithmetic mean, NaN of nothing."""
    listed = list(values)
    return statistics.fmean(listed) if listed else math.nan


Verdict = Literal["right", "half", "wrong"]


class AnswerScore(NamedTuple):
    """An answer's share of the evidence that a full one needs, by letters and digits.

    The share is of gold quotes in the answer, None without; `on_gold` and `verbatim` are of each
    citation, on a gold page or quote and as printed in its page, `held` of each part of the answer.
    """

    type: str
    is_answerable: bool | None
    band: str
    share: float | None
    on_gold: tuple[bool, ...]
    held: tuple[bool, ...]
    verbatim: tuple[bool, ...]
    words: int
    ms: float

    @property
    def verdict(self) -> Verdict | None:
        """`right` with all of the evidence, `half` with some; None without gold."""
        if self.share is None:
            return None
        return "right" if self.share == 1 else "half" if self.share else "wrong"


def score_answer(question: Question, record: RunRecord) -> AnswerScore:
    """Score the record of one answer."""
    gold = question.gold or ()
    said = [comparison_key(text) for text in record.answer]
    return AnswerScore(
        type=question.type,
        is_answerable=None if question.gold is None else bool(question.gold),
        band=record.confidence_band,
        share=_share(gold, _quote_in(said)) if gold else None,
        on_gold=tuple(_is_on_gold(gold, each) for each in record.citations) if gold else (),
        held=tuple(_held(record)),
        verbatim=tuple(each.verbatim for each in record.citations),
        words=sum(len(text.split()) for text in record.answer),
        ms=record.ms,
    )


def _held(record: RunRecord) -> Iterator[bool]:
    """Tell of each part whether its citations hold it; said otherwise it counts as not held."""
    for text, places in zip(record.answer, record.supports, strict=False):
        cited = "".join(comparison_key(record.citations[place].verbatim_text) for place in places)
        yield comparison_key(text) in cited


def _is_on_gold(gold: Sequence[Gold], citation: CitationRecord) -> bool:
    is_there = _page_in([citation.url])
    is_held = _quote_in([comparison_key(citation.verbatim_text)])
    return any(is_there(each) or is_held(each) for each in gold)


# Up to so many questions that differ, every assignment of signs is tried; above, so many random
# ones, which fixes a p-value near 0.05 to about 0.002.
_EXACT_DIFFERENCES = 14
_RANDOM_ASSIGNMENTS = 10_000
_RESAMPLES = 10_000
_SEED = 20_260_101
_TOLERANCE = 1e-9


class PairedFigure(FrozenModel):
    """One figure of two runs over the same questions, and the 95 % bootstrap of its change.

    Probabilities are of a mean difference at least as large, and of the counts, if runs were equal.
    """

    name: str
    questions: int
    first: float
    second: float
    low: float
    high: float
    better: int
    worse: int
    p_permutation: float
    p_sign: float

    @property
    def difference(self) -> float:
        """Mean of the second run minus that of the first."""
        return self.second - self.first


def compare_scores(
    first: Mapping[str, QuestionScore], second: Mapping[str, QuestionScore]
) -> list[PairedFigure]:
    """Compare recall, ranking and words over the answerable questions of both runs; repeatable."""
    ids = [
        each
        for each, score in first.items()
        if score.answerable and each in second and second[each].answerable
    ]
    if not ids:
        return []
    one, other = ([figures_of(run[each]) for each in ids] for run in (first, second))
    return [
        _compare(name, [row[name] for row in one], [row[name] for row in other])
        for name in one[0]
        if not name.startswith("page recall")
    ]


def moved_questions(
    first: Mapping[str, QuestionScore], second: Mapping[str, QuestionScore]
) -> list[tuple[str, float, float]]:
    """Id and reciprocal ranks of the questions whose first right result moved, the worse first."""
    moved = [
        (each, found, second[each].reciprocal_rank or 0.0)
        for each, score in first.items()
        if each in second
        and (found := score.reciprocal_rank) is not None
        and second[each].reciprocal_rank not in (None, found)
    ]
    return sorted(moved, key=lambda row: row[2] - row[1])


def sign_test(better: int, worse: int) -> float:
    """Two-sided exact sign test: the probability of a split at least as uneven by chance."""
    total = better + worse
    tail = sum(math.comb(total, k) for k in range(min(better, worse) + 1))
    return min(1.0, 2 * tail / (1 << total))


def permutation_test(differences: Sequence[float]) -> float:
    """Test the mean difference, two-sided and paired (Fisher's, by flipping signs).

    Exact for up to 14 differences that are not zero, else from 10,000 assignments drawn with a
    fixed seed; then never below 1/10,001.
    """
    values = np.array([each for each in differences if each], dtype=float)
    observed = abs(values.sum()) - _TOLERANCE
    if len(values) <= _EXACT_DIFFERENCES:
        bits = (np.arange(2 ** len(values))[:, None] >> np.arange(len(values))) & 1
        return float(np.mean(np.abs((bits * 2.0 - 1.0) @ values) >= observed))
    random = np.random.default_rng(_SEED)
    signs = random.choice([-1.0, 1.0], size=(_RANDOM_ASSIGNMENTS, len(values)))
    extreme = int(np.sum(np.abs(signs @ values) >= observed))
    return (extreme + 1) / (_RANDOM_ASSIGNMENTS + 1)


def bootstrap_interval(values: Sequence[float]) -> tuple[float, float]:
    """Ends of the 95 % percentile bootstrap interval of a mean; 10,000 samples, one seed."""
    sample = np.array(values, dtype=float)
    random = np.random.default_rng(_SEED)
    drawn = random.integers(len(sample), size=(_RESAMPLES, len(sample)))
    low, high = np.quantile(sample[drawn].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def _compare(name: str, first: Sequence[float], second: Sequence[float]) -> PairedFigure:
    one, other = np.array(first, dtype=float), np.array(second, dtype=float)
    differences = other - one
    better, worse = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    low, high = bootstrap_interval(differences.tolist())
    return PairedFigure(
        name=name,
        questions=len(differences),
        first=float(one.mean()),
        second=float(other.mean()),
        low=low,
        high=high,
        better=better,
        worse=worse,
        p_permutation=permutation_test(differences.tolist()),
        p_sign=sign_test(better, worse),
    )
