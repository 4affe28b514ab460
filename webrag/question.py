"""The one declaration of a question: what is asked, where, and how much it may cost."""

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal, Self, TypedDict, TypeVar, cast, get_args, get_type_hints

from pydantic import Field, field_validator, model_validator

from webrag.argument_checks import check_text, checked_parts, checked_wordings
from webrag.checked_model import CheckedModel, whole_number
from webrag.errors import InputError
from webrag.ingestion.addresses import page_address
from webrag.retrieval.filters import ContentKind, SearchFilters, each_once
from webrag.retrieval.models import RetrievalMode

QueryType = Literal["factual", "comparison", "how_to", "exploratory"]
ResearchMode = Literal["fast", "deep"]

# Some two pages of print, chosen, not measured: a stack trace fits, a pasted document does not.
MAX_QUESTION_CHARS = 8_000

M = TypeVar("M", bound=Callable[..., Any])

_MAX_URLS: Final = 20

_FILTERS: Final = ("source_urls", "sites", "years", "fetched_since", "has", "as_of")


class PageFilters(TypedDict, total=False):
    """The fields of a question that limit which stored pages and passages are searched."""

    source_urls: str | Sequence[str] | None
    sites: str | Sequence[str] | None
    years: int | Sequence[int] | None
    fetched_since: datetime | None
    has: ContentKind | Sequence[ContentKind]


class QuestionOptions(PageFilters, total=False):
    """The fields of a question beside its text and its pages, as callers write them."""

    wordings: str | Sequence[str] | None
    parts: Sequence[str] | None
    as_of: datetime | None
    intent: QueryType | None
    known_context: str | None
    constraints: str | Sequence[str] | None
    research_mode: ResearchMode
    expansion_budget: int | None
    max_pages: int | None
    retrieval_mode: RetrievalMode
    top_k: int | None


def keywords_checked(method: M) -> M:
    """Refuse keywords that the `Unpack` of a method lacks, and show them all where it is shown."""
    signature = inspect.signature(method)
    *own, options = signature.parameters.values()
    (declared,) = get_args(options.annotation)
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in get_type_hints(declared).items()
    ]
    shown = signature.replace(parameters=[*own, *more])

    @functools.wraps(method)
    def checked(*arguments: Any, **keywords: Any) -> Any:
        if unknown := keywords.keys() - shown.parameters:
            name = f"{method.__qualname__}()"
            raise TypeError(f"{name} got an unexpected keyword argument {min(unknown)!r}")
        return method(*arguments, **keywords)

    if inspect.iscoroutinefunction(method) and sys.version_info >= (3, 12):
        inspect.markcoroutinefunction(checked)
    checked.__signature__ = shown  # type: ignore[attr-defined]
    fields = Question.model_fields
    described = [f"    {each.name}: {fields[each.name].description}" for each in more]
    told = [inspect.cleandoc(method.__doc__ or ""), "", "Options:", *described]
    checked.__doc__ = "\n".join(told)
    return cast(M, checked)


class Question(CheckedModel):
    """A question as the whole of WebRAG hands it on, checked and with canonical addresses.

    Whether its text is empty or too long is told by `check_question` where evidence is asked for;
    whoever answers in sentences replies to such a question politely.
    """

    text: str
    wordings: tuple[str, ...] = Field(
        default=(),
        description="First one sentence you expect to read there, then terms, names of options or "
        "functions the page may use. Guesses may be wrong: they add, never displace. Always give "
        "3, unless the question uses the page's words.",
    )
    parts: tuple[str, ...] = Field(
        default=(), description="The separate questions it holds, 2 to 4."
    )
    urls: tuple[str, ...] = Field(
        default=(),
        description="Pages to start from, at most 20; those that are not stored are fetched.",
    )
    stored: tuple[str, ...] = Field(
        default=(), description="Stored pages that count as named, as many as there are."
    )
    source_urls: tuple[str, ...] | None = Field(default=None, description="Only these pages.")
    sites: tuple[str, ...] | None = Field(
        default=None, description="Only these hosts; host@1.5 for a version."
    )
    years: tuple[int, ...] | None = Field(
        default=None, description="Only pages published in these years."
    )
    fetched_since: datetime | None = Field(
        default=None,
        description="Only pages that their site delivered or confirmed then or later.",
    )
    has: tuple[ContentKind, ...] = Field(
        default=(), description="Only passages with each of these."
    )
    as_of: datetime | None = Field(
        default=None, description="Search the texts that pages had on this date."
    )
    intent: QueryType | None = Field(default=None, description="Kind of question.")
    known_context: str | None = Field(
        default=None, description="What you know; counts as wordings."
    )
    constraints: tuple[str, ...] = Field(
        default=(), description='Preferences, as "must include code".'
    )
    research_mode: ResearchMode = Field(
        default="fast", description="deep follows links, up to a minute."
    )
    expansion_budget: int | None = Field(
        default=None, ge=0, description="Rounds of following links, 0 for none."
    )
    max_pages: int | None = Field(
        default=None,
        ge=0,
        le=100,
        description="Pages obtained after the named ones, 0 to 100.",
    )
    retrieval_mode: RetrievalMode = Field(
        default="chunk", description="full_context gives whole pages, auto decides by size."
    )
    top_k: int | None = Field(default=None, ge=1, description="Passages at most.")

    _whole = field_validator("expansion_budget", "max_pages", "top_k", mode="before")(whole_number)

    @classmethod
    def of(cls, text: str, **given: Any) -> Self:
        """Check what a caller gave and bring it into canonical form; the rest is an InputError.

        One value stands for a list of one, and None for the default.
        """
        return cls(text=text, **given)

    @model_validator(mode="before")
    @classmethod
    def _checked(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        values = {name: value for name, value in given.items() if value is not None}
        text = check_text("The question", given.get("text"))
        if "known_context" in values:
            check_text("known_context", values["known_context"])
        filters = SearchFilters.of(**{name: values[name] for name in _FILTERS if name in values})
        constraint = partial(check_text, "A constraint")
        return {
            **values,
            **{name: getattr(filters, name) for name in _FILTERS},
            "wordings": checked_wordings(text, values.get("wordings")),
            "parts": checked_parts(text, values.get("parts")),
            "urls": each_once(page_address, values.get("urls", ())),
            "constraints": each_once(constraint, values.get("constraints", ())),
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
        """True when links are followed where the evidence is too thin."""
        return self.research_mode == "deep"

    @property
    def is_search(self) -> bool:
        """True when no page is named, so that nothing may be fetched."""
        return not (self.urls or self.stored)

    @property
    def filters(self) -> SearchFilters:
        """The limits on stored pages and passages."""
        return SearchFilters(**{name: getattr(self, name) for name in _FILTERS})


def check_question(text: str) -> None:
    """Refuse a text that no evidence can be found for: empty, too long or no text."""
    if not check_text("The question", text).strip():
        raise InputError("The question is empty: ask something.")
    if len(text) > MAX_QUESTION_CHARS:
        raise InputError(
            f"The question has {len(text):,} characters; "
            f"at most {MAX_QUESTION_CHARS:,} are allowed."
        )
