"""Questions to judge WebRAG with, read from a JSON Lines file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from webrag.errors import InputError

__all__ = ["EXAMPLE_LINE", "Gold", "Question", "load_questions"]

EXAMPLE_LINE: Final = (
    '{"id": "q1", "site": "handbook", "query": "Who approves travel?", "gold": [{"page":'
    ' "travel.html", "quote": "the head of department approves"}]}'
)
_HINT: Final = f"A line looks like this: {EXAMPLE_LINE}"


class _Lenient(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Passage(_Lenient):
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


class Question(_Lenient):
    """One question.

    Attributes:
        site: Folder of the site below the site root; empty with a base URL.
        seed_url: Page the `seed` setting starts from, relative to the site or absolute.
        gold: Evidence; None when the question is only asked, empty when the site does not
            answer it.
        type: Free label; results are reported by it.
    """

    id: str = Field(min_length=1)
    query: str = Field(min_length=1)
    site: str = ""
    seed_url: str = ""
    type: str = "all"
    gold: tuple[Gold, ...] | None = None


def load_questions(path: Path, *, limit: int | None = None) -> list[Question]:
    """Read questions in file order.

    Args:
        path: JSON Lines, one question a line.
        limit: Keep the first so many.

    Raises:
        InputError: The file cannot be read, a line is not a question, or an id occurs twice.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The questions file {path} cannot be read: {error}.") from error
    questions: dict[str, Question] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        question = _parse(line, f"{path.name} line {number}")
        if question.id in questions:
            raise InputError(f"{path.name} line {number}: the id {question.id!r} occurs twice.")
        questions[question.id] = question
    if not questions:
        raise InputError(f"The questions file {path} holds no question.")
    return list(questions.values())[:limit]


def _parse(line: str, where: str) -> Question:
    try:
        return Question.model_validate(json.loads(line))
    except json.JSONDecodeError as error:
        raise InputError(f"{where} is not JSON: {error.msg}.", hint=_HINT) from error
    except ValidationError as error:
        raise InputError(f"{where}: {_told(error.errors()[0])}", hint=_HINT) from error


def _told(error: ErrorDetails) -> str:
    place = error["loc"]
    if not place:
        return "the line is not a JSON object."
    field = _field(place)
    if error["type"] == "missing":
        return f"the field {field!r} is missing."
    if error["type"] == "string_too_short":
        return f"the field {field!r} is empty."
    if place[0] == "gold" and error["type"] != "string_type":
        wanted = "a list" if len(place) in (1, 3) else "an object with 'page' and 'quote'"
        return f"the field {field!r} must be {wanted}."
    return f"the field {field!r} must be text in quotation marks."


def _field(place: Sequence[int | str]) -> str:
    return "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in place
    ).removeprefix(".")
