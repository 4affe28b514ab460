"""Questions to judge WebRAG with and what a run recorded of them, as JSON Lines files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TextIO, TypeVar

from pydantic import Field, ValidationError, field_validator

from webrag.checked_model import refusal
from webrag.errors import InputError, file_trouble
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
    for where, question in _records(Question, path, "questions", _HINT):
        if question.id in questions:
            raise InputError(f"{where}: the id {question.id!r} occurs twice.")
        questions[question.id] = question
    if not questions:
        raise InputError(f"The questions file {path} holds no question.")
    return list(questions.values())[:limit]


def with_wordings(questions: Sequence[Question], path: Path) -> list[Question]:
    """Give questions the wordings of a file that knows one at least, in place of their own."""
    lines = _records(_Phrasings, path, "wordings", _WORDINGS_HINT)
    found = {each.id: each.phrasings for _, each in lines}
    if not found.keys() & {question.id for question in questions}:
        raise InputError(f"The wordings file {path} has none for any of the questions.")
    return [
        question.model_copy(update={"wordings": found.get(question.id, question.wordings)})
        for question in questions
    ]


class _Phrasings(LenientModel):
    id: str = Field(min_length=1)
    phrasings: tuple[str, ...]


def _records(
    kind: type[_Model], path: Path, name: str, hint: str | None = None
) -> Iterator[tuple[str, _Model]]:
    """Give what each line of a file that is not empty holds, and where it stands."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        said = f"The {name} file {path} cannot be read: {file_trouble(error)}."
        raise InputError(said) from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            where = f"{path.name} line {number}"
            try:
                record = kind.model_validate_json(line)
            except ValidationError as error:
                raise InputError(f"{where}: {refusal(error, kind)}", hint=hint) from error
            yield where, record


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
    return {record.id: record for _, record in _records(RunRecord, path, "run")}
