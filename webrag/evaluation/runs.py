"""The run file: what was retrieved for each question, one JSON object a line."""

import json
from pathlib import Path
from typing import TextIO

from pydantic import Field, ValidationError

from webrag.errors import InputError
from webrag.evaluation.questions import LenientModel, json_lines


class ResultRecord(LenientModel):
    """One passage in the form and order of the brief.

    Attributes:
        in_brief: The brief prints it; the others are less relevant, or did not fit.
    """

    url: str
    text: str
    in_brief: bool = True


class CitationRecord(LenientModel):
    """One printed quotation.

    Attributes:
        verbatim: The stored page holds exactly these characters at the stated offsets, and the
            page as served shows the same words.
    """

    url: str
    verbatim_text: str
    char_start: int = 0
    char_end: int = 0
    verbatim: bool = False


class RunRecord(LenientModel):
    """What happened for one question.

    Attributes:
        retrieved: Evidence in the order of the brief, best first; empty where an answer was asked
            for.
        answer: The sentences, lists and code blocks of an answer, where one was asked for.
        supports: For each of `answer` the places in `citations` of what it cites.
        tools: Of a model that answered with tools, which it had; "" for WebRAG's own answer.
        characters: Of what they replied.
        ms: Wall time of the question itself, without ingestion done before it.
        abstained: Confidence ended in the lowest band.
        error: Why the question could not be asked; None when it was.
    """

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
    file.write(json.dumps(record.model_dump(mode="json"), ensure_ascii=False) + "\n")
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
