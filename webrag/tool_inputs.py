"""The arguments of each tool, read as leniently as clients are sloppy.

Lists may arrive as JSON inside a string or as a single value, numbers and flags as strings, and
omitted arguments as null or an empty string. Every character of a description is in a model's
context in every conversation.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Literal, get_args
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)
from typing_extensions import override

from webrag.argument_checks import (
    LEAST_MAX_TOKENS,
    LEAST_READ_TOKENS,
    check_choice,
    check_text,
    shown_value,
)
from webrag.errors import InputError
from webrag.ingestion.addresses import as_address, sites_and_addresses
from webrag.question import INTENTS, RESEARCH_MODES, QueryType, Question, ResearchMode
from webrag.retrieval.citation_checks import Citation
from webrag.retrieval.filters import CONTENT_KINDS, ContentKind
from webrag.retrieval.models import RETRIEVAL_MODES, RetrievalMode

Detail = Literal["brief", "full"]

# More would not be done within the time clients wait; a repeated call goes on.
MAX_INGEST_URLS: Final = 50
MAX_CITATIONS: Final = 20
MAX_FORGET_URLS: Final = 200

_TRUE: Final = ("true", "1", "yes")
_FALSE: Final = ("false", "0", "no")

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


_Read = Callable[[str, Any], Any]
"""Takes the name of an argument and what was given for it, and gives what was meant."""


def _reads(check: _Read) -> BeforeValidator:
    """Read an argument by a function that is told its name, for what it says of others."""

    def read(value: Any, info: ValidationInfo) -> object:
        return check(str(info.field_name), value)

    return BeforeValidator(read)


def _read_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{name} is {shown_value(value)}; give it as text.")
    return check_text(name, value)


def _read_texts(name: str, value: Any) -> list[str]:
    items = _parsed(value)
    if not isinstance(items, Sequence) or not all(isinstance(item, str) for item in items):
        raise InputError(f"{name} is {shown_value(value)}; give one text or a list of texts.")
    return [check_text(f"An entry of {name}", item) for item in items]


def _read_address(name: str, value: Any) -> str:
    """An address; a host without a scheme gets one, and a path stays the path that it is."""
    return as_address(_read_text(name, value).strip(), takes_paths=False)


def _read_addresses(name: str, value: Any) -> list[str]:
    return [_read_address(name, each) for each in _read_texts(name, value)]


def _number(minimum: int) -> _Read:
    def read(name: str, value: Any) -> int:
        text = "" if isinstance(value, bool) else _word(value).removesuffix(".0")
        if len(text) < 20 and text.isdecimal() and int(text) >= minimum:
            return int(text)
        raise InputError(f"{name} is {shown_value(value)}; give a whole number from {minimum} up.")

    return read


def _one_of(allowed: Sequence[str]) -> _Read:
    def read(name: str, value: Any) -> str:
        if _word(value) not in allowed:
            check_choice(name, value, allowed)
        return _word(value)

    return read


def _read_flag(name: str, value: Any) -> bool:
    if _word(value) not in _TRUE + _FALSE:
        raise InputError(f"{name} is {shown_value(value)}; use true or false.")
    return _word(value) in _TRUE


def _read_identity(name: str, value: Any) -> UUID:
    try:
        return UUID(_word(value).rpartition("/")[2])
    except ValueError:
        raise InputError(f"{name} is {shown_value(value)}; give a whole id (a UUID).") from None


def _read_moment(name: str, value: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(_read_text(name, value).strip())
    except ValueError:
        raise InputError(
            f"{name} is {shown_value(value)}; give a date such as 2026-05-31 or 2026-05-31T12:00."
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _each(check: _Read) -> _Read:
    return lambda name, value: [check(name, each) for each in _read_list(value)]


def _read_list(value: Any) -> list[Any]:
    items = _parsed(value)
    return list(items) if isinstance(items, list | tuple) else [items]


def _parsed(value: Any) -> Any:
    """A list, also one that stands in a text; a text alone is a list of one."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value) if value.lstrip().startswith(("[", "{")) else [value]
    except (ValueError, RecursionError):
        return [value]


def _word(value: object) -> str:
    try:
        return str(value).strip().lower()
    except (RecursionError, ValueError):  # thousands of digits, or endless nesting
        return ""


Text = Annotated[str, _reads(_read_text)]
Texts = Annotated[list[str], _reads(_read_texts)]
Address = Annotated[str, _reads(_read_address)]
Addresses = Annotated[list[str], _reads(_read_addresses)]
Flag = Annotated[bool, _reads(_read_flag)]
Identity = Annotated[UUID, _reads(_read_identity)]
Moment = Annotated[datetime, _reads(_read_moment)]
_FromZero = Annotated[int, _reads(_number(0))]
_FromOne = Annotated[int, _reads(_number(1))]


def _told(name: str) -> Any:
    """The field of a question, as the question describes it."""
    return Field(default=None, description=Question.model_fields[name].description)


class ToolInput(BaseModel):
    """The arguments of one call.

    Attributes:
        where: What takes them, for messages.
        example: A sentence that shows how they are written, where their names do not say it.
        unlisted: Arguments that are taken, and spared the models that read the schema.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
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
    @cache
    def input_schema(cls) -> dict[str, Any]:
        """The JSON schema that clients are shown: one type for each argument, nothing shared."""
        schema = cls.model_json_schema()
        fields = {
            name: field for name, field in schema["properties"].items() if name not in cls.unlisted
        }
        plain = _plain({**schema, "properties": fields})
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
    intent: Annotated[QueryType, _reads(_one_of(INTENTS))] | None = _told("intent")
    max_tokens: Annotated[int, _reads(_number(LEAST_MAX_TOKENS))] | None = Field(
        default=None, description="Longest reply."
    )
    detail: Annotated[Detail, _reads(_one_of(get_args(Detail)))] = Field(
        default="brief", description="full adds passages and links."
    )
    seen: Annotated[list[UUID], _reads(_each(_read_identity))] | None = Field(
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
    research_mode: Annotated[ResearchMode, _reads(_one_of(RESEARCH_MODES))] | None = _told(
        "research_mode"
    )
    retrieval_mode: Annotated[RetrievalMode, _reads(_one_of(RETRIEVAL_MODES))] | None = _told(
        "retrieval_mode"
    )


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
    years: Annotated[list[int], _reads(_each(_number(1)))] | None = _told("years")
    has: Annotated[list[ContentKind], _reads(_each(_one_of(CONTENT_KINDS)))] | None = _told("has")
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
    max_tokens: Annotated[int, _reads(_number(LEAST_READ_TOKENS))] | None = Field(
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

    url: Addresses = Field(description=f"Pages to store, {MAX_INGEST_URLS} at most.")
    refresh: Flag = Field(default=False, description="Fetch stored pages again.")
    max_pages: _FromOne | None = Field(
        default=None, description="Follow the site's links to this many pages."
    )
    include: Texts | None = Field(default=None, description="Only paths like /guide/**.")
    exclude: Texts | None = Field(default=None, description="No paths like *.pdf.")
    version: Text | None = Field(default=None, description="Of the library described.")


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


def _read_citations(name: str, value: Any) -> list[Any]:
    items = [value] if isinstance(value, Mapping) else _read_list(value)
    items = [items[0]] if len(items) == 1 and isinstance(items[0], Mapping) else items
    if not items or not all(isinstance(item, Mapping) for item in items):
        known = ", ".join(CitationInput.model_fields)
        raise InputError(f"{name} must be a list of objects with {known}.")
    if len(items) > MAX_CITATIONS:
        raise InputError(
            f"{name} has {len(items)} entries; one call takes at most {MAX_CITATIONS}: check the "
            "others with further calls."
        )
    return items


class VerifyInput(ToolInput):
    """The arguments of `verify`; each entry is read by `CitationInput` when it is checked."""

    where = "verify"
    example = 'For example {"citations": [{"url": "https://...", "quote": "..."}]}.'

    citations: Annotated[list[Any], _reads(_read_citations)] = Field(
        description="Quotations to check.",
        json_schema_extra={"items": CitationInput.input_schema()},
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

    url: Addresses = Field(description="Exact URLs.")
    confirm: Flag = Field(default=False, description="The user agreed to more than 20.")
