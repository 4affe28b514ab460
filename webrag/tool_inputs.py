"""The arguments of each tool, read as leniently as clients are sloppy.

Lists may arrive as JSON inside a string or as a single value, numbers and flags as strings, and
omitted arguments as null or an empty string. Every character of a description is in a model's
context in every conversation.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Final, Literal
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    ValidationInfo,
    model_validator,
)
from pydantic_core import CoreSchema
from typing_extensions import override

from webrag.argument_checks import LEAST_MAX_TOKENS, LEAST_READ_TOKENS, check_text, shown_value
from webrag.checked_model import CheckedModel, whole_number
from webrag.crawling.report import CrawlOptions, MaxPages
from webrag.errors import InputError
from webrag.frozen import Allowed
from webrag.ingestion.addresses import as_address, page_address, sites_and_addresses
from webrag.ingestion.versions import checked_version
from webrag.question import QueryType, Question, ResearchMode
from webrag.retrieval.citation_checks import Citation
from webrag.retrieval.filters import ContentKind
from webrag.retrieval.models import RetrievalMode

Detail = Literal["brief", "full"]

# More would not be done within the time clients wait; a repeated call goes on.
MAX_INGEST_URLS: Final = 50
MAX_CITATIONS: Final = 20
MAX_FORGET_URLS: Final = 200

# Letters left out, doubled or swapped; "offset" and "set" are not so alike.
_SPELT_ALIKE: Final = 0.85
# Names that models try and that mean the same.
_SYNONYMS: Final = (
    frozenset({"url", "urls", "sourceurl", "sourceurls", "link", "links"}),
    frozenset({"query", "question", "q", "text", "prompt"}),
    frozenset({"quote", "quotation", "text", "citation", "passage"}),
    frozenset({"citations", "quotes", "quotations", "quote"}),
    frozenset({"sites", "site", "host", "hosts", "domain", "domains"}),
    frozenset({"topk", "limit", "k", "n", "maxresults"}),
    frozenset({"passageid", "id", "chunkid"}),
)


def _as_list(value: Any) -> list[Any]:
    """A list, also one that stands in a text; a value alone is a list of one."""
    items = value
    if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
        with suppress(ValueError, RecursionError):
            items = json.loads(value)
    return list(items) if isinstance(items, list | tuple) else [items]


def _as_word(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


def _checked_text(text: str, info: ValidationInfo) -> str:
    return check_text(str(info.field_name), text)


def _address(text: str) -> str:
    """An address; a host without a scheme gets one, and a path stays the path that it is."""
    return as_address(text.strip(), takes_paths=False)


def _last_part(value: Any) -> Any:
    return value.strip().rpartition("/")[2] if isinstance(value, str) else value


def _moment(value: Any) -> datetime:
    # Pydantic would take a year for seconds since 1970.
    return datetime.fromisoformat(value.strip() if isinstance(value, str) else "")


_LIST = BeforeValidator(_as_list)
_WORD = BeforeValidator(_as_word)

Text = Annotated[str, AfterValidator(_checked_text)]
Texts = Annotated[list[Text], _LIST]
Address = Annotated[Text, AfterValidator(_address)]
Addresses = Annotated[list[Address], _LIST]
Flag = Annotated[bool, _WORD]
Identity = Annotated[UUID, BeforeValidator(_last_part), Allowed("a whole id (a UUID)")]
Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    Allowed("a date such as 2026-05-31 or 2026-05-31T12:00"),
]


def _from(minimum: int) -> tuple[Any, ...]:
    """Make an `int` a whole number that a database can hold, from the smallest on."""
    return Field(ge=minimum, lt=2**63), BeforeValidator(whole_number)


def _at_most(count: int) -> AfterValidator:
    """Refuse more addresses than one call takes."""

    def checked(urls: list[str]) -> list[str]:
        if (named := len(set(urls))) > count:
            raise InputError(
                f"url names {named} pages; one call takes at most {count}: name the others in"
                " further calls."
            )
        return urls

    return AfterValidator(checked)


_FromZero = Annotated[int, *_from(0)]
_FromOne = Annotated[int, *_from(1)]


def _told(name: str) -> Any:
    """The field of a question, as the question describes it."""
    return Field(default=None, description=Question.model_fields[name].description)


class ToolInput(CheckedModel):
    """The arguments of one call.

    Attributes:
        where: What takes them, for messages.
        example: A sentence that shows how they are written, where their names do not say it.
        unlisted: Arguments that are taken, and spared the models that read the schema.
    """

    where: ClassVar[str] = ""
    example: ClassVar[str] = ""
    unlisted: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _given(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        values = cls._named(values)
        for name, field in cls.model_fields.items():
            if field.is_required() and _is_missing(field.annotation, values.get(name)):
                raise InputError(f"{name} is missing: {field.description} {cls.example}".rstrip())
        return {name: each for name, each in values.items() if not _is_omitted(cls, name, each)}

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by their own names, where those that are given mean one of them."""
        known = list(cls.model_fields)
        named = {name: value for name, value in values.items() if name in known}
        for name in [each for each in values if each not in named]:
            meant = _meant(name, [each for each in known if each not in named])
            if meant is None:
                said = f"{cls.where} has no argument {shown_value(name)}; it takes "
                alike = get_close_matches(name.lower(), known, n=1)
                guess = f" Did you mean {alike[0]}?" if alike else ""
                raise InputError(f"{said}{', '.join(known)}.{guess} {cls.example}".rstrip())
            named[meant] = values[name]
        return named

    @classmethod
    @override
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Show clients one type for each argument, and nothing shared."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        listed = {
            name: field for name, field in schema["properties"].items() if name not in cls.unlisted
        }
        plain = _plain({**schema, "properties": listed})
        return {key: value for key, value in plain.items() if key != "description"}


def _is_omitted(tool: type[ToolInput], name: str, value: object) -> bool:
    is_blank = value is None or value == [] or (isinstance(value, str) and not value.strip())
    return is_blank and not tool.model_fields[name].is_required()


def _is_missing(kind: Any, value: object) -> bool:
    """An empty question is one that is given: whoever asks it says themselves that it is empty."""
    return value is None if kind is str else not value or not str(value).strip()


def _meant(name: str, known: Sequence[str]) -> str | None:
    """The argument that another name stands for: nearly so spelt, or of the same meaning."""
    word, spelt = _bare(name), {_bare(each): each for each in known}
    alike = [each for each in spelt for words in _SYNONYMS if {word, each} <= words]
    # "no_confirm" is not "confirm".
    near = [each for each in spelt if each[:1] == word[:1]]
    meant = get_close_matches(word, near, n=1, cutoff=_SPELT_ALIKE) or alike
    return spelt[meant[0]] if meant else None


def _bare(name: str) -> str:
    return re.sub("[^a-z]", "", name.lower())


_KEPT: Final = ("type", "items", "enum", "properties", "required", "description")


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with what models read, and nothing that some providers refuse."""
    merged = {**schema, **next((e for e in schema.get("anyOf", ()) if e["type"] != "null"), {})}
    kept = {key: merged[key] for key in _KEPT if key in merged}
    if "items" in kept:
        kept["items"] = _plain(kept["items"])
    if "properties" in kept:
        fields = kept["properties"].items()
        kept["properties"] = {name: _plain(field) for name, field in fields}
    return kept


class _Asked(ToolInput):
    """The arguments that `answer` and `search` share."""

    query: Text = Field(description="The question in full words.")
    wordings: Texts | None = _told("wordings")
    parts: Texts | None = _told("parts")
    intent: Annotated[QueryType, _WORD] | None = _told("intent")
    max_tokens: Annotated[int, *_from(LEAST_MAX_TOKENS)] | None = Field(
        default=None, description="Longest reply."
    )
    detail: Annotated[Detail, _WORD] = Field(
        default="brief", description="full adds passages and links."
    )
    seen: Annotated[list[Identity], _LIST] | None = Field(
        default=None, description="Ids of passages you have."
    )

    def question(self, **where: Any) -> Question:
        """Make the question of the arguments."""
        shared = Question.model_fields.keys() & self.model_fields_set
        return Question.of(self.query, **{name: getattr(self, name) for name in shared} | where)


class AnswerInput(_Asked):
    """The arguments of `answer`."""

    where = "answer"
    # `read` gives whole pages, too; `wordings` says what the second does.
    unlisted = frozenset({"retrieval_mode", "known_context"})

    url: Addresses = Field(description="Pages to start from.")
    known_context: Text | None = _told("known_context")
    constraints: Texts | None = _told("constraints")
    expansion_budget: _FromZero | None = _told("expansion_budget")
    research_mode: Annotated[ResearchMode, _WORD] | None = _told("research_mode")
    retrieval_mode: Annotated[RetrievalMode, _WORD] | None = _told("retrieval_mode")


def pages_or_sites(
    source_urls: Sequence[str] | None, sites: Sequence[str] | None
) -> tuple[Sequence[str] | None, Sequence[str] | None]:
    """Take hosts alone that are named in place of pages for their sites, and pages for pages.

    Raises:
        InputError: Hosts are named beside pages or sites, all of which would have to hold.
    """
    if sites and not source_urls and all(map(_is_page, sites)):
        source_urls, sites = sites, None
    hosts, pages = sites_and_addresses(source_urls or (), takes_paths=False)
    if hosts and (pages or sites):
        raise InputError(
            f"source_urls names {hosts[0]!r}, which is a site: name sites in `sites`, and pages"
            " with their paths."
        )
    return (None, hosts) if hosts else (None if source_urls is None else pages, sites)


def _is_page(site: str) -> bool:
    named = urlsplit(as_address(site, takes_paths=False))
    is_address = named.scheme in ("http", "https", "file") and not {"@", "*"} & set(site)
    return is_address and named.path.strip("/") != ""


class SearchInput(_Asked):
    """The arguments of `search`."""

    where = "search"
    unlisted = frozenset({"parts", "intent", "detail", "seen"})

    wordings: Texts | None = Field(default=None, description="As for answer.")
    source_urls: Texts | None = _told("source_urls")
    sites: Texts | None = _told("sites")
    years: Annotated[list[_FromOne], _LIST] | None = _told("years")
    has: Annotated[list[Annotated[ContentKind, _WORD]], _LIST] | None = _told("has")
    as_of: Moment | None = _told("as_of")
    top_k: _FromOne | None = _told("top_k")

    @override
    def question(self, **where: Any) -> Question:
        """Make the question; hosts alone in place of pages stand for their sites."""
        source_urls, sites = pages_or_sites(self.source_urls, self.sites)
        return super().question(source_urls=source_urls, sites=sites)


class ReadInput(ToolInput):
    """The arguments of `read`."""

    where = "read"

    url: Address | None = Field(default=None, description="The page.")
    offset: _FromZero | None = Field(default=None, description="Begin at this character.")
    heading: Text | None = Field(default=None, description="Begin at this heading.")
    quote: Text | None = Field(default=None, description="Begin before this quotation.")
    passage_id: Identity | None = Field(default=None, description="Begin at this passage.")
    max_tokens: Annotated[int, *_from(LEAST_READ_TOKENS)] | None = Field(
        default=None, description=f"Length at most, from {LEAST_READ_TOKENS}."
    )


class StatusInput(ToolInput):
    """The arguments of `status`."""

    where = "status"
    unlisted = frozenset({"include_urls"})

    source_url: Text | None = Field(default=None, description="A page, or a host for its pages.")
    include_urls: Flag = Field(default=True, description="List the pages.")
    contains: Text | None = Field(default=None, description="Pages with this in URL or title.")
    page: _FromOne = Field(default=1, description="Portion of the list.")


class IngestInput(ToolInput):
    """The arguments of `ingest`."""

    where = "ingest"

    url: Annotated[Addresses, _at_most(MAX_INGEST_URLS)] = Field(
        description=f"Pages to store, {MAX_INGEST_URLS} at most."
    )
    refresh: Flag = Field(default=False, description="Fetch stored pages again.")
    max_pages: MaxPages | None = Field(
        default=None, description="Follow the site's links to this many pages."
    )
    include: Texts | None = Field(default=None, description="Only paths like /guide/**.")
    exclude: Texts | None = Field(default=None, description="No paths like *.pdf.")
    version: Annotated[Text, AfterValidator(checked_version)] | None = Field(
        default=None, description="Of the library described."
    )

    def crawl(self) -> CrawlOptions | None:
        """Limits of following links from the only page named; None to store named pages alone."""
        chosen = self.model_dump(include={"max_pages", "include", "exclude"}, exclude_none=True)
        if not chosen:
            return None
        if len(set(map(page_address, self.url))) > 1:
            raise InputError("A site is crawled from one page: call once for each page.")
        return CrawlOptions(refresh=self.refresh, version=self.version, **chosen)


class CitationInput(ToolInput):
    """An entry of `citations`."""

    where = "An entry of citations"
    unlisted = frozenset({"char_start", "char_end"})

    quote: Text = Field(description="The text as quoted.")
    url: Address | None = Field(default=None, description="Its page.")
    char_start: _FromZero | None = Field(default=None, description="Its first offset.")
    char_end: _FromZero | None = Field(default=None, description="Its end.")
    passage_id: Identity | None = Field(default=None, description="In place of url.")

    def citation(self) -> Citation:
        """The quotation that is to be checked."""
        return Citation(**self.model_dump())


def _citations(value: Any) -> list[Any]:
    items = _as_list(value)
    if not items or not all(isinstance(item, Mapping) for item in items):
        known = ", ".join(CitationInput.model_fields)
        raise InputError(f"citations must be a list of objects with {known}.")
    if len(items) > MAX_CITATIONS:
        raise InputError(
            f"citations has {len(items)} entries; one call takes at most {MAX_CITATIONS}: check "
            "the others with further calls."
        )
    return items


class VerifyInput(ToolInput):
    """The arguments of `verify`; each entry is read by `CitationInput` when it is checked."""

    where = "verify"
    example = 'For example {"citations": [{"url": "https://...", "quote": "..."}]}.'

    citations: Annotated[list[Any], BeforeValidator(_citations)] = Field(
        description="Quotations to check.",
        json_schema_extra={"items": CitationInput.model_json_schema()},
    )
    live: Flag = Field(default=True, description="false checks stored pages only.")

    @classmethod
    @override
    def _named(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments; those of one quotation, given beside `live`, are a list of it."""
        own = {name: each for name, each in values.items() if name in CitationInput.model_fields}
        if own and "citations" not in values:
            others = {name: each for name, each in values.items() if name not in own}
            values = {**others, "citations": [own]}
        return super()._named(values)


class ForgetInput(ToolInput):
    """The arguments of `forget`."""

    where = "forget"

    url: Annotated[Addresses, _at_most(MAX_FORGET_URLS)] = Field(description="Exact URLs.")
    confirm: Flag = Field(default=False, description="The user agreed to more than 20.")
