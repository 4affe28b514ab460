"""Other wordings of a question: those that count, and one score out of several; pure, no I/O."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from llama_index.core.schema import QueryBundle

QUESTION_WEIGHT: Final = 2.0
"""How many times as much as another wording the question itself counts."""

MAX_WORDINGS: Final = 5
"""Other wordings of a question that count; each costs a search and a ranking."""

MAX_WORDING_CHARS: Final = 500


@dataclass(frozen=True, slots=True)
class AskedWording:
    """One wording of a question, itself among them, with what a retriever knows under it.

    That is the weight of each of its terms, and of each node the cosine with it and the lexical
    score of its whole page relative to the best page's, [0, 1]; None means unknown.
    """

    text: str
    idf: Mapping[str, float] = field(default_factory=dict)
    similarity: Sequence[float | None] = ()
    page_lexical: Sequence[float | None] = ()


def bundle_wordings(query_bundle: "QueryBundle") -> tuple[str, ...]:
    """Read other wordings of a question from `custom_embedding_strs`, as HyDE leaves them."""
    return fitted_wordings(query_bundle.query_str, query_bundle.custom_embedding_strs or ())


def fitted_wordings(
    question: str,
    texts: Iterable[str],
    *,
    beside: Sequence[str] = (),
    at_most: int = MAX_WORDINGS,
) -> tuple[str, ...]:
    """Give the first texts that can count as wordings, each cut to `MAX_WORDING_CHARS` characters.

    For texts nobody wrote as wordings: what is too much is left out, not refused. So are texts
    without visible characters and those that repeat the question or one another. With those there
    are already, `beside`, they are never more than `MAX_WORDINGS`.
    """
    room = min(at_most, MAX_WORDINGS - len(beside))
    known = {folded(each) for each in (question, *beside)}
    fitted: list[str] = []
    for each in texts:
        if len(fitted) >= room:
            break
        text = _printable(each)[:MAX_WORDING_CHARS].strip()
        if folded(text) not in known and any(map(str.isalnum, text)):
            known.add(folded(text))
            fitted.append(text)
    return tuple(fitted)


def _printable(text: str) -> str:
    """Without NUL and halves of surrogate pairs, which no table and no service takes."""
    return " ".join(text.replace("\0", " ").encode("utf-8", "ignore").decode().split())


def folded(text: str) -> str:
    """A text as it is compared with others: equal ones ask for the same."""
    return " ".join(text.casefold().split()).rstrip(" ?.!")


HELD_WITHIN: Final = 3
"""A passage comes at most at so many times its place under the question alone."""


def wordings_score(scores: Sequence[float]) -> float:
    """Weighted mean of a passage's scores, of which the first, the question's, weighs more."""
    total = QUESTION_WEIGHT * scores[0] + sum(scores[1:])
    return total / (QUESTION_WEIGHT + len(scores) - 1)


def best_wording(scores: Sequence[float]) -> int:
    """Place of the wording that liked a passage best; the question's, 0, where several did."""
    return max(range(len(scores)), key=lambda place: (scores[place], -place))


def held_scores(
    scores: Sequence[float], question_scores: Sequence[float], *, times: int = HELD_WITHIN
) -> list[float]:
    """Raise scores so that no passage falls far behind its place under the question alone.

    The passage that the question alone puts at place k comes, by the scores returned, at place
    `times` * k or before, wherever the wordings would put it, or is as good as the best. Nothing is
    lowered, and nothing comes above the best score.
    """
    held = list(scores)
    best = max(held, default=0.0)
    order = sorted(range(len(held)), key=lambda at: -question_scores[at])
    for place, at in enumerate(order, start=1):
        # Nothing comes behind the last place.
        if times * place >= len(held):
            break
        bar = sorted(held, reverse=True)[times * place - 1]
        if held[at] <= bar:
            held[at] = min(math.nextafter(bar, math.inf), best)
    return held
