"""Reads the JSON a language model writes, whole or while it arrives; it judges no content."""

import json
from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from webrag.answering.citations import Proposal

__all__ = ["Judgement", "SentenceReader", "WrittenSentence", "parse_judgement"]

_MAX_REPLY_CHARS: Final = 60_000


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Citation(_Lenient):
    evidence: int
    quote: str


class _Sentence(_Lenient):
    sentence: str = Field(min_length=1)
    citations: list[_Citation] = Field(default_factory=list)


class Judgement(_Lenient):
    """A model's judgement of an answer, validated."""

    original_query_score: float = Field(ge=0, le=1, allow_inf_nan=False)
    revised_query_score: float = Field(ge=0, le=1, allow_inf_nan=False)
    applicability_note: str = ""
    uncertainty_note: str = ""


class WrittenSentence(BaseModel):
    """A sentence as a model wrote it, before anything is checked."""

    model_config = ConfigDict(frozen=True)

    text: str
    proposals: tuple[Proposal, ...]


class SentenceReader:
    """Finds complete sentence objects in a reply that arrives piece by piece.

    Objects may stand on lines of their own, in a list, in a larger object or in a code fence;
    what is between them is ignored. Not shared between replies.
    """

    def __init__(self) -> None:
        self._text = ""
        self._at = 0
        self._decoder = json.JSONDecoder()
        self.gave_up = False

    def feed(self, piece: str) -> list[WrittenSentence]:
        """The sentences that are complete now and were not before."""
        if len(self._text) < _MAX_REPLY_CHARS:
            self._text += piece
        # Without a new closing brace no further object can be complete.
        return list(self._complete()) if "}" in piece else []

    def _complete(self) -> Iterator[WrittenSentence]:
        position = self._text.find("{", self._at)
        while position >= 0:
            value, end = self._object_at(position)
            if value is None:
                position = self._text.find("{", position + 1)
                continue
            found = list(_sentences(value))
            self.gave_up = self.gave_up or "unanswered" in value
            yield from found
            is_citation = "quote" in value and "sentence" not in value
            # A citation inside an object that is not complete yet must not end the search there.
            if not is_citation:
                self._at = end
            position = self._text.find("{", end)

    def _object_at(self, position: int) -> tuple[dict[str, Any] | None, int]:
        try:
            value, end = self._decoder.raw_decode(self._text, position)
        except (json.JSONDecodeError, RecursionError):
            return None, position
        return (value, end) if isinstance(value, dict) else (None, position)


def parse_judgement(text: str) -> Judgement | None:
    """The first valid judgement in a reply; None when there is none."""
    decoder, position = json.JSONDecoder(), text.find("{")
    while position >= 0:
        try:
            value, _ = decoder.raw_decode(text[:_MAX_REPLY_CHARS], position)
            return Judgement.model_validate(value)
        except (json.JSONDecodeError, ValidationError, RecursionError):
            position = text.find("{", position + 1)
    return None


def _sentences(value: Any) -> Iterator[WrittenSentence]:
    if isinstance(value, list):
        for each in value:
            yield from _sentences(each)
        return
    if not isinstance(value, dict):
        return
    if "sentence" not in value:
        for each in value.values():
            yield from _sentences(each)
        return
    try:
        written = _Sentence.model_validate(value)
    except ValidationError:
        return
    proposals = tuple(Proposal(each.evidence, each.quote) for each in written.citations)
    yield WrittenSentence(text=written.sentence, proposals=proposals)
