"""Questions to judge WebRAG with and what a run recorded of them, as JSON Lines files."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TextIO, TypeVar

from pydantic import Field, ValidationError, field_validator

from webrag.checked_model import refusal
from webrag.errors import InputError
from webrag.frozen import LenientModel

EXAMPLE_LINE: Final = (
    '{"id": "q1", "site": "handbook", "query": "Who approves travel?", "gold": [{"page":'
    ' "travel.html", "quote": "the head of department approves"}]}'
)
_HINT: Final = f"A line looks like this: {EXAMPLE_LINE}"
_WORDINGS_HINT: Final = (
    'A line looks like this: {"id": "q1", "phrasings": ["approval of business trips"]}'
)

_Model = TypeVar("_Model", bound=LenientModel)


class Passage(LenientModel):
    """A place that holds the evidence: a page, relative to the site's root, and its exact words."""

    page: str
    quote: str = Field(min_length=1)

    @field_validator("page")
    @classmethod
    def _below_the_root(cls, page: str) -> str:
        return page.removeprefix("./").lstrip("/")


class Gold(Passage):
    """One piece of evidence a full answer needs; any of its alternatives counts as well."""

    alts: tuple[Passage, ...] = ()

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The passage itself and its alternatives."""
        return (self, *self.alts)


class Question(LenientModel):
    """One question; gold is None when it is only asked, empty when its site does not answer it."""

    id: str = Field(min_length=1)
    query: str = Field(min_length=1)
    site: str = ""
    seed_url: str = ""
    type: str = "all"
    wordings: tuple[str, ...] = ()
    gold: tuple[Gold, ...] | None = None


def load_questions(path: Path, *, limit: int | None = None) -> list[Question]:
    """Read questions in file order, the first so many; a repeated id is refused."""
    questions: dict[str, Question] = {}
    for number, line in json_lines(path, "questions"):
        question = _parse(Question, line, f"{path.name} line {number}", _HINT)
        if question.id in questions:
            raise InputError(f"{path.name} line {number}: the id {question.id!r} occurs twice.")
        questions[question.id] = question
    if not questions:
        raise InputError(f"The questions file {path} holds no question.")
    return list(questions.values())[:limit]


def with_wordings(questions: Sequence[Question], path: Path) -> list[Question]:
    """Give questions the wordings of a file that knows one at least, in place of their own."""
    known = {question.id for question in questions}
    found: dict[str, tuple[str, ...]] = {}
    for number, line in json_lines(path, "wordings"):
        each = _parse(_Phrasings, line, f"{path.name} line {number}", _WORDINGS_HINT)
        found[each.id] = each.phrasings
    if not known & set(found):
        raise InputError(f"The wordings file {path} has none for any of the questions.")
    return [
        question.model_copy(update={"wordings": found.get(question.id, question.wordings)})
        for question in questions
    ]


class _Phrasings(LenientModel):
    id: str = Field(min_length=1)
    phrasings: tuple[str, ...]


def json_lines(path: Path, name: str) -> Iterator[tuple[int, str]]:
    """Give the lines of a file that are not empty, with their numbers from 1."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The {name} file {path} cannot be read: {error}.") from error
    yield from ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


def _parse(kind: type[_Model], line: str, where: str, hint: str) -> _Model:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise InputError(f"{where} is not JSON: {reason}.", hint=hint) from error
    if not isinstance(value, dict):
        raise InputError(f"{where} is not a JSON object.", hint=hint)
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise InputError(f"{where}: {refusal(error, kind)}", hint=hint) from error


class ResultRecord(LenientModel):
    """One passage in the form and order of the brief, which may leave it out."""

    url: str
    text: str
    in_brief: bool = True


class CitationRecord(LenientModel):
    """One printed quotation; verbatim, the stored page and the one served hold it."""

    url: str
    verbatim_text: str
    char_start: int = 0
    char_end: int = 0
    verbatim: bool = False


class RunRecord(LenientModel):
    """The record of one question: passages, or an answer with places of citations for each part."""

    id: str
    retrieved: tuple[ResultRecord, ...] = ()
    answer: tuple[str, ...] = ()
    supports: tuple[tuple[int, ...], ...] = ()
    citations: tuple[CitationRecord, ...] = ()
    tools: str = ""
    calls: int = 0
    characters: int = 0
    urls_fetched: tuple[str, ...] = ()
    urls_failed: dict[str, str] = Field(default_factory=dict)
    ms: float = 0.0
    abstained: bool = False
    confidence: float = 0.0
    confidence_band: str = "none"
    stop_rule: str = ""
    iterations: int = 0
    partial: bool = False
    degraded: tuple[str, ...] = ()
    error: str | None = None


def write_record(file: TextIO, record: RunRecord) -> None:
    """Append one line and flush it, so that an interrupted run keeps what it has."""
    file.write(record.model_dump_json() + "\n")
    file.flush()


def read_run(path: Path) -> dict[str, RunRecord]:
    """Read a run file by question id; a later line for an id replaces an earlier one."""
    records = {}
    for number, line in json_lines(path, "run"):
        try:
            record = RunRecord.model_validate_json(line)
        except ValidationError as error:
            raise InputError(
                f"{path.name} line {number} is not a record of a run: {error.errors()[0]['msg']}."
            ) from error
        records[record.id] = record
    return records
