"""Talks to any LlamaIndex LLM and reads the JSON it writes; it judges no content."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from webrag.answering.citation_desk import Proposal
from webrag.errors import ProviderError, WebRAGError
from webrag.redaction import RedactingStream, redacted, remember_secrets, safe_cause

if TYPE_CHECKING:
    from llama_index.core.llms import LLM, ChatMessage, ChatResponse

T = TypeVar("T")


async def stream(llm: "LLM", messages: Sequence[tuple[str, str]]) -> AsyncIterator[str]:
    """Yield the pieces of a reply as they arrive; what came before a ProviderError stands."""
    _remember_key(llm)
    shown = RedactingStream()
    try:
        chunks = await llm.astream_chat(_chat(messages))
        async for chunk in chunks:
            yield shown.pass_on(chunk.delta or "")
        yield shown.rest()
    except (WebRAGError, GeneratorExit):
        raise
    # The model is whatever LlamaIndex class the user configured; each raises its own SDK's
    # errors, which share no base.
    except Exception as error:  # noqa: BLE001 - foreign code
        raise _failed(error) from safe_cause(error)


async def ask(llm: "LLM", messages: Sequence[tuple[str, str]]) -> str:
    """Ask for a whole reply."""
    return redacted((await chat(llm, _chat(messages))).message.content or "")


async def chat(llm: "LLM", messages: "Sequence[ChatMessage]", **options: Any) -> "ChatResponse":
    """Ask for a whole reply as LlamaIndex has it, to `options` such as `tools`."""
    _remember_key(llm)
    try:
        return await llm.achat(messages, **options)
    except WebRAGError:
        raise
    except Exception as error:  # noqa: BLE001 - as above
        raise _failed(error) from safe_cause(error)


async def attempt(work: Awaitable[T], seconds: float) -> tuple[T | None, str | None]:
    """Wait for work that asks a model; a clause says why there is none in the end."""
    try:
        async with asyncio.timeout(seconds):
            return await work, None
    except TimeoutError:
        return None, f"the language model did not finish within {seconds:g} s"
    except ProviderError as error:
        said = str(error).rstrip(".")
        return None, said[:1].lower() + said[1:]


def with_temperature(llm: "LLM", temperature: float) -> "LLM":
    """The same model at a temperature; itself where it has no such field."""
    if "temperature" not in type(llm).model_fields:
        return llm
    return llm.model_copy(update={"temperature": temperature})


def _remember_key(llm: "LLM") -> None:
    """A model that a program made itself has a key that no setting names."""
    key: Any = getattr(llm, "api_key", None)
    remember_secrets(key if isinstance(key, str) else None)


def _chat(messages: Sequence[tuple[str, str]]) -> "list[ChatMessage]":
    from llama_index.core.llms import ChatMessage, MessageRole

    return [ChatMessage(role=MessageRole(role), content=text) for role, text in messages]


def _failed(error: Exception) -> ProviderError:
    status: Any = getattr(error, "status_code", None)
    kind = type(error).__name__
    # The SDK's message can hold the whole reply of a server, with whatever is in it.
    said = f"failed (HTTP status {status})" if isinstance(status, int) else f"failed ({kind})"
    from llama_index.postprocessor.webrag.service_calls import size_failure

    if large := size_failure(error):
        said = f"answered with {large}"
    elif "Timeout" in kind:
        said = "did not answer in time"
    elif "Connect" in kind:
        said = "could not be reached"
    return ProviderError(
        f"The language model {said}.",
        provider="language model",
        status=status if isinstance(status, int) else None,
        hint="Check ORCHESTRATION_LLM_BASE_URL, _MODEL and _API_KEY.",
    )


_MAX_REPLY_CHARS: Final = 60_000


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Judgement(_Lenient):
    """A model's judgement of an answer, validated."""

    original_query_score: float = Field(ge=0, le=1, allow_inf_nan=False)
    revised_query_score: float = Field(ge=0, le=1, allow_inf_nan=False)
    applicability_note: str = ""
    uncertainty_note: str = ""


class WrittenSentence(_Lenient):
    """A sentence as a model wrote it, before anything is checked."""

    text: str = Field(min_length=1, alias="sentence")
    proposals: tuple[Proposal, ...] = Field(default=(), alias="citations")


class SentenceReader:
    """Finds complete sentence objects in one reply that arrives piece by piece.

    They may stand on lines of their own, in a list, in a larger object or in a code fence.
    """

    def __init__(self) -> None:
        self._text = ""
        self._at = 0
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
            value, end = _object_at(self._text, position)
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


def _object_at(text: str, position: int) -> tuple[dict[str, Any] | None, int]:
    """The JSON object that begins at a brace, and its end; None where none is complete."""
    try:
        value, end = json.JSONDecoder().raw_decode(text, position)
    except (json.JSONDecodeError, RecursionError):
        return None, position
    return value, end


def parse_judgement(text: str) -> Judgement | None:
    """The first valid judgement in a reply; None when there is none."""
    read = text[:_MAX_REPLY_CHARS]
    for brace in re.finditer("{", read):
        with suppress(ValidationError):
            return Judgement.model_validate(_object_at(read, brace.start())[0])
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
    with suppress(ValidationError):
        yield WrittenSentence.model_validate(value)
