"""The one declaration of a question: what is asked, where, and how much it may cost."""

from datetime import datetime
from operator import index
from typing import Any, Final, Literal, Self, get_args

from pydantic import model_validator

from webrag.argument_checks import (
    check_choice,
    check_text,
    checked_count,
    checked_parts,
    checked_wordings,
)
from webrag.errors import InputError
from webrag.frozen import FrozenModel
from webrag.ingestion.addresses import page_address
from webrag.retrieval.filters import ContentKind, SearchFilters
from webrag.retrieval.models import RETRIEVAL_MODES, RetrievalMode

QueryType = Literal["factual", "comparison", "how_to", "exploratory"]
ResearchMode = Literal["fast", "deep"]

RESEARCH_MODES: Final[tuple[ResearchMode, ...]] = get_args(ResearchMode)
INTENTS: Final[tuple[QueryType, ...]] = get_args(QueryType)

# Some two pages of print, chosen, not measured: a stack trace fits, a pasted document does not.
MAX_QUESTION_CHARS = 8_000

_MAX_URLS: Final = 20
_MAX_PAGES: Final = 100

_CHOICES: Final = {
    "intent": INTENTS,
    "research_mode": RESEARCH_MODES,
    "retrieval_mode": RETRIEVAL_MODES,
}
_MINIMA: Final = {"expansion_budget": 0, "max_pages": 0, "top_k": 1}
_FILTERS: Final = ("source_urls", "sites", "years", "fetched_since", "has", "as_of")


class Question(FrozenModel):
    """A question as the whole of WebRAG hands it on, checked and with canonical addresses.

    Whether its text is empty or too long is told by `check_question` where evidence is asked for;
    whoever answers in sentences replies to such a question politely.

    Attributes:
        wordings: Other wordings of it, at most 5 of at most 500 characters each.
        parts: The separate questions it holds, 2 to 4 of at most 500 characters each, where the
            caller knows them; each is to be answered.
        urls: Pages to start from, at most 20; those that are not stored are fetched.
        stored: Stored pages that count as named, as many as there are, and are not asked for again.
        source_urls: Only these stored pages are searched; None for any.
        sites: Only pages of these hosts; None for any.
        years: Only pages published in these years; None for any.
        fetched_since: Only pages that their site delivered or confirmed then or later.
        has: Only passages that hold each of these kinds of content.
        as_of: Answer from the texts that pages had at this moment; nothing is fetched.
        intent: Kind of question, when the caller knows it.
        known_context: What the caller knows already.
        constraints: Preferences such as "must include code examples".
        research_mode: `fast` reads the named pages only, `deep` follows their links where the
            evidence is too thin.
        expansion_budget: Rounds of that at most, 0 for none whatever the mode; None for the
            default of the mode.
        max_pages: Pages obtained after the named ones, 0 to 100; None for the configured number.
        retrieval_mode: `chunk` selects passages, `full_context` returns everything that may be
            searched up to the budget, `auto` decides by size.
        top_k: Results of a search at most; None for what the token budget holds.
    """

    text: str
    wordings: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    source_urls: tuple[str, ...] | None = None
    sites: tuple[str, ...] | None = None
    years: tuple[int, ...] | None = None
    fetched_since: datetime | None = None
    has: tuple[ContentKind, ...] = ()
    as_of: datetime | None = None
    intent: QueryType | None = None
    known_context: str | None = None
    constraints: tuple[str, ...] = ()
    research_mode: ResearchMode = "fast"
    expansion_budget: int | None = None
    max_pages: int | None = None
    retrieval_mode: RetrievalMode = "chunk"
    top_k: int | None = None

    @classmethod
    def of(cls, text: str, **given: Any) -> Self:
        """Check what a caller gave and bring it into canonical form.

        One value stands for a list of one, and None for the default.

        Args:
            text: The question.
            given: Values of the other fields.

        Raises:
            InputError: A value cannot be used.
        """
        return cls(text=text, **given)

    @model_validator(mode="before")
    @classmethod
    def _checked(cls, given: dict[str, Any]) -> dict[str, Any]:
        values = {name: value for name, value in given.items() if value is not None}
        text = check_text("The question", given.get("text"))
        for name in _CHOICES.keys() & values:
            check_choice(name, values[name], _CHOICES[name])
        for name in _MINIMA.keys() & values:
            checked_count(name, values[name], minimum=_MINIMA[name])
            values[name] = index(values[name])
        if values.get("max_pages", 0) > _MAX_PAGES:
            raise InputError(f"max_pages is {values['max_pages']}; allowed are 0 to {_MAX_PAGES}.")
        if "known_context" in values:
            check_text("known_context", values["known_context"])
        filters = SearchFilters.of(**{name: values[name] for name in _FILTERS if name in values})
        constraints = (check_text("A constraint", each) for each in values.get("constraints", ()))
        return {
            **values,
            **{name: getattr(filters, name) for name in _FILTERS},
            "wordings": checked_wordings(text, values.get("wordings")),
            "parts": checked_parts(text, values.get("parts")),
            "urls": _addresses(values.get("urls", ())),
            "constraints": tuple(constraints),
        }

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if len(self.urls) > _MAX_URLS:
            raise InputError(f"{len(self.urls)} URLs were given; at most {_MAX_URLS} are allowed.")
        if self.as_of is not None and (self.is_deep or self.expansion_budget):
            raise InputError("as_of answers from what was stored then: no links can be followed.")
        return self

    @property
    def is_deep(self) -> bool:
        """Whether links are followed where the evidence is too thin."""
        return self.research_mode == "deep"

    @property
    def is_search(self) -> bool:
        """Whether no page is named, so that nothing may be fetched."""
        return not (self.urls or self.stored)

    @property
    def filters(self) -> SearchFilters:
        """Which stored pages and passages may be returned."""
        return SearchFilters(**{name: getattr(self, name) for name in _FILTERS})


def check_question(text: str) -> None:
    """Refuse a text that no evidence can be found for.

    Raises:
        InputError: It is no text, empty or too long, or holds what is no character.
    """
    if not check_text("The question", text).strip():
        raise InputError("The question is empty: ask something.")
    if len(text) > MAX_QUESTION_CHARS:
        raise InputError(
            f"The question has {len(text):,} characters; "
            f"at most {MAX_QUESTION_CHARS:,} are allowed."
        )


def _addresses(urls: Any) -> tuple[str, ...]:
    named = [urls] if isinstance(urls, str) else urls
    return tuple(dict.fromkeys(map(page_address, named)))
