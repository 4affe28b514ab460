"""What one run was asked for, checked and with every default filled in."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypedDict, get_args

from typing_extensions import Unpack

from webrag.argument_checks import check_choice, checked_moment, checked_wordings
from webrag.errors import InputError
from webrag.ingestion.addresses import page_address
from webrag.orchestration.config import ExpansionConfig
from webrag.orchestration.models import QueryType
from webrag.retrieval.filters import NO_FILTERS, SearchFilters
from webrag.retrieval.models import RETRIEVAL_MODES, RetrievalMode

_MAX_SEEDS: Final = 20
_MAX_PAGES: Final = 25


class AnswerOptions(TypedDict, total=False):
    """What else may be said about a question to some pages; None and absent mean the default.

    Attributes:
        wordings: Other wordings of the question, at most 5 of at most 500 characters each.
        intent: Kind of question, when the caller knows it.
        known_context: What the caller knows already.
        constraints: Wishes such as "must include code examples".
        expansion_budget: Rounds of expansion at most; 0 for none whatever the mode, None for the
            default of the mode.
        research_mode: `fast`, the default, reads the named pages only, `deep` expands where the
            evidence is too thin.
        retrieval_mode: `chunk`, the default, selects passages, `full_context` returns everything
            stored for the pages up to the budget, `auto` decides by size.
        max_pages: Pages obtained after the named ones, 0 to 25; None for the configured number.
        stored: Canonical addresses of stored pages that count as named, as many as there are,
            and are not asked for again.
        as_of: Answer from the texts that the pages had at this moment; nothing is fetched.
    """

    wordings: str | Sequence[str] | None
    intent: QueryType | None
    known_context: str | None
    constraints: Sequence[str] | None
    expansion_budget: int | None
    research_mode: Literal["fast", "deep"]
    retrieval_mode: RetrievalMode
    max_pages: int | None
    stored: Sequence[str]
    as_of: datetime | None


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One call, checked and with every default filled in.

    Attributes:
        urls: Canonical addresses to start from; empty for a search of what is stored.
        stored: Those of stored pages that count as named and are not asked for again.
        wordings: Other wordings of the question.
        max_iterations: Rounds of expansion; 0 for none.
        max_pages: Pages that may be obtained after the named ones.
        filters: For a search: what may be returned.
        top_k: For a search: chunks at most.
        expansion_budget: As the caller gave it.
        is_search: Nothing may be fetched.
        as_of: Moment whose texts are searched; then nothing may be fetched either.
    """

    query: str
    urls: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    wordings: tuple[str, ...] = ()
    intent: QueryType | None = None
    known_context: str | None = None
    constraints: tuple[str, ...] = ()
    max_iterations: int = 0
    max_pages: int = 0
    retrieval_mode: Literal["chunk", "full_context", "auto"] = "chunk"
    filters: SearchFilters = NO_FILTERS
    top_k: int | None = None
    expansion_budget: int | None = None
    is_search: bool = False
    warnings: tuple[str, ...] = ()
    as_of: datetime | None = None

    @classmethod
    def answer(
        cls,
        urls: str | Sequence[str],
        query: str,
        *,
        config: ExpansionConfig,
        **options: Unpack[AnswerOptions],
    ) -> "RunRequest":
        """Check a call of `OrchestratorEngine.run`.

        Raises:
            InputError: A value cannot be used.
        """
        named = [urls] if isinstance(urls, str) else list(urls)
        seeds = tuple(dict.fromkeys(page_address(url) for url in named))
        stored = tuple(options.get("stored") or ())
        if len(seeds) > _MAX_SEEDS or not (seeds or stored):
            raise InputError(f"{len(seeds)} URLs were given; allowed are 1 to {_MAX_SEEDS}.")
        research_mode = options.get("research_mode", "fast")
        retrieval_mode = options.get("retrieval_mode", "chunk")
        intent, expansion_budget = options.get("intent"), options.get("expansion_budget")
        check_research(research_mode, expansion_budget)
        _check_words(intent, retrieval_mode)
        as_of = options.get("as_of")
        if as_of is not None:
            as_of = checked_moment(as_of)
            check_no_research(research_mode == "deep" or bool(expansion_budget))
        rounds, warnings = _rounds(expansion_budget, research_mode, config.max_depth)
        return cls(
            query=_checked_query(query),
            urls=seeds,
            stored=stored,
            wordings=checked_wordings(query, options.get("wordings")),
            intent=intent,
            known_context=options.get("known_context"),
            constraints=tuple(options.get("constraints") or ()),
            max_iterations=rounds,
            max_pages=_checked_pages(options.get("max_pages"), config),
            retrieval_mode=retrieval_mode,
            expansion_budget=expansion_budget,
            warnings=warnings,
            as_of=as_of,
        )

    @classmethod
    def search(
        cls,
        query: str,
        *,
        wordings: str | Sequence[str] | None = None,
        filters: SearchFilters,
        intent: QueryType | None,
        top_k: int | None,
        retrieval_mode: RetrievalMode,
    ) -> "RunRequest":
        """Check a call of `OrchestratorEngine.search`.

        Raises:
            InputError: A value cannot be used.
        """
        if top_k is not None and top_k < 1:
            raise InputError(f"top_k is {top_k}; it must be 1 or more.")
        _check_words(intent, retrieval_mode)
        return cls(
            query=_checked_query(query),
            wordings=checked_wordings(query, wordings),
            intent=intent,
            filters=filters,
            top_k=top_k,
            retrieval_mode=retrieval_mode,
            is_search=True,
            as_of=filters.as_of,
        )


def check_no_research(follows_links: bool) -> None:
    """Refuse to follow links for an answer as of an earlier moment.

    Raises:
        InputError: Links are to be followed.
    """
    if follows_links:
        raise InputError("as_of answers from what was stored then: no links can be followed.")


def check_research(research_mode: str, expansion_budget: int | None) -> None:
    """Refuse what does not say how far to follow links.

    Raises:
        InputError: The mode is unknown, or the budget is below 0.
    """
    check_choice("research_mode", research_mode, ("fast", "deep"))
    if expansion_budget is not None and expansion_budget < 0:
        raise InputError(f"expansion_budget is {expansion_budget}; it must be 0 or more.")


def _check_words(intent: QueryType | None, retrieval_mode: RetrievalMode) -> None:
    if intent is not None:
        check_choice("intent", intent, get_args(QueryType))
    check_choice("retrieval_mode", retrieval_mode, RETRIEVAL_MODES)


def _checked_query(query: str) -> str:
    if not query.strip():
        raise InputError("The question is empty: ask something.")
    return query


def _checked_pages(max_pages: int | None, config: ExpansionConfig) -> int:
    if max_pages is None:
        return config.max_pages_per_run
    if not 0 <= max_pages <= _MAX_PAGES:
        raise InputError(f"max_pages is {max_pages}; allowed are 0 to {_MAX_PAGES}.")
    return max_pages


def _rounds(
    expansion_budget: int | None, research_mode: Literal["fast", "deep"], max_depth: int
) -> tuple[int, tuple[str, ...]]:
    """Rounds allowed; an explicit budget beats the mode, the safety ceiling beats both."""
    if expansion_budget is None:
        return (max_depth if research_mode == "deep" else 0), ()
    if expansion_budget <= max_depth:
        return expansion_budget, ()
    return max_depth, (
        f"expansion_budget {expansion_budget} was lowered to {max_depth}, the configured ceiling.",
    )
