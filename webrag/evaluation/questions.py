"""Questions to judge WebRAG with, read from a JSON Lines file."""

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from webrag.errors import InputError

__all__ = ["Gold", "Question", "load_questions"]


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
        raise InputError(f"{where} is not JSON: {error.msg}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{where}: field {field!r}: {first['msg']}.") from error
