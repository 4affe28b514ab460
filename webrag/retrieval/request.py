"""Checks what a caller of retrieval asks for; it searches nothing."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from webrag.argument_checks import check_choice
from webrag.errors import InputError
from webrag.ingestion.characters import storable
from webrag.lexical.analysis import query_terms
from webrag.lexical.spelling import respelled
from webrag.retrieval.conditions import Scope
from webrag.retrieval.editions import VersionChoice
from webrag.retrieval.filters import SearchFilters
from webrag.retrieval.models import RetrievalConfig
from webrag.retrieval.statements import Queries

RetrievalMode = Literal["chunk", "full_context", "auto"]

RETRIEVAL_MODES: tuple[RetrievalMode, ...] = get_args(RetrievalMode)
"""Every way to choose what is returned."""

# What a question may cost: the later words of a pasted page change little, and embedding services
# limit their input.
_MAX_QUERY_CHARS = 8_000
_MAX_TERMS = 64


@dataclass(frozen=True, slots=True)
class SearchText:
    """A question or another wording of it, within limits.

    Attributes:
        text: No NUL, no half of a surrogate pair.
        terms: Distinct index terms.
    """

    text: str
    terms: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "SearchText":
        """What is searched for when somebody gives a text; it may be empty."""
        kept = storable(text.replace("\0", " "))[:_MAX_QUERY_CHARS].strip()
        return cls(kept, tuple(query_terms(kept)[:_MAX_TERMS]))


@dataclass(frozen=True, slots=True)
class RetrievalRequest:
    """What is asked, within limits.

    Attributes:
        question: Not empty.
        wordings: Other wordings of it, none empty.
        budget: Tokens of parents at most.
        limit: Children at most.
        threshold: Tokens up to which everything is read in `auto` mode.
        warnings: Sentences for the user.
        started: Clock reading, for timing.
        version_notes: By library: which of its versions is searched although none was asked for.
        also_searched: Words of the question as it was asked, and what is searched in their place.
    """

    question: SearchText
    wordings: tuple[SearchText, ...]
    queries: Queries
    mode: RetrievalMode
    budget: int
    limit: int
    threshold: int
    warnings: tuple[str, ...]
    started: float
    version_notes: Mapping[str, str] = field(default_factory=dict)
    also_searched: Mapping[str, str] = field(default_factory=dict)

    def among(self, filters: SearchFilters, choice: VersionChoice) -> "RetrievalRequest":
        """The same for chosen versions of what the filters leave."""
        queries = self.queries.of(Scope.of(filters, choice.pages, choice.left_out))
        return replace(self, queries=queries, version_notes=choice.notes)

    def respelled(self, replacements: Mapping[str, str]) -> "RetrievalRequest":
        """The same with words of the question replaced."""
        question = SearchText.of(respelled(self.question.text, replacements))
        return replace(self, question=question, also_searched=replacements)


def check_request(
    query: str,
    *,
    wordings: Sequence[str] = (),
    collection: str,
    config: RetrievalConfig,
    filters: SearchFilters,
    mode: RetrievalMode,
    context_budget: int | None,
    children_limit: int | None,
) -> RetrievalRequest:
    """What the arguments of a retrieval mean, for every version of a library until it is chosen.

    None stands for the configured value.

    Raises:
        InputError: The question is empty, the mode is unknown or a number is below one.
    """
    started = time.perf_counter()
    check_choice("mode", mode, RETRIEVAL_MODES)
    question = SearchText.of(query)
    if not question.text:
        raise InputError("The query is empty; it must hold at least one visible character.")
    budget = _positive("context_budget", context_budget, config.context_budget)
    threshold = min(config.full_context_threshold, budget)
    is_clamped = mode == "auto" and threshold < config.full_context_threshold
    warning = (
        f"The full-context threshold of {config.full_context_threshold} tokens exceeds the context"
        f" budget of {budget} tokens; the budget is used in its place."
    )
    return RetrievalRequest(
        question=question,
        wordings=tuple(each for each in map(SearchText.of, wordings) if each.text),
        queries=Queries(collection, Scope.of(filters)),
        mode=mode,
        budget=budget,
        limit=_positive("children_limit", children_limit, config.children_limit),
        threshold=threshold,
        warnings=(warning,) if is_clamped else (),
        started=started,
    )


def _positive(name: str, value: int | None, default: int) -> int:
    if value is None:
        return default
    if value < 1:
        raise InputError(f"{name} is {value}; it must be at least 1.")
    return value
