"""Talks to any LlamaIndex LLM: streams a reply, turns its failures into one error."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from llama_index.core.llms import LLM, ChatMessage, MessageRole

from webrag.errors import ProviderError, WebRAGError
from webrag.redaction import RedactingStream, redacted, remember_secrets, safe_cause

__all__ = ["as_clause", "ask", "stream", "with_temperature"]


def as_clause(error: ProviderError) -> str:
    """An error's sentence, to go on a sentence with."""
    said = str(error).rstrip(".")
    return said[:1].lower() + said[1:]


async def stream(llm: LLM, messages: Sequence[tuple[str, str]]) -> AsyncIterator[str]:
    """The pieces of a reply as they arrive.

    Raises:
        ProviderError: The model failed; what was yielded before stands.
    """
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


async def ask(llm: LLM, messages: Sequence[tuple[str, str]]) -> str:
    """A whole reply.

    Raises:
        ProviderError: The model failed.
    """
    _remember_key(llm)
    try:
        response = await llm.achat(_chat(messages))
    except WebRAGError:
        raise
    except Exception as error:  # noqa: BLE001 - as above
        raise _failed(error) from safe_cause(error)
    return redacted(response.message.content or "")


def with_temperature(llm: LLM, temperature: float) -> LLM:
    """The same model at a temperature; itself where it has no such field."""
    if "temperature" not in type(llm).model_fields:
        return llm
    return llm.model_copy(update={"temperature": temperature})


def _remember_key(llm: LLM) -> None:
    """A model that a program made itself has a key that no setting names."""
    key: Any = getattr(llm, "api_key", None)
    remember_secrets(key if isinstance(key, str) else None)


def _chat(messages: Sequence[tuple[str, str]]) -> list[ChatMessage]:
    return [ChatMessage(role=MessageRole(role), content=text) for role, text in messages]


def _failed(error: Exception) -> ProviderError:
    status: Any = getattr(error, "status_code", None)
    kind = type(error).__name__
    # The SDK's message can hold the whole reply of a server, with whatever is in it.
    said = f"failed (HTTP status {status})" if isinstance(status, int) else f"failed ({kind})"
    if "Timeout" in kind:
        said = "did not answer in time"
    elif "Connect" in kind:
        said = "could not be reached"
    return ProviderError(
        f"The language model {said}.",
        provider="language model",
        status=status if isinstance(status, int) else None,
        hint="Check ANSWER_LLM_BASE_URL, ANSWER_LLM_MODEL and ANSWER_LLM_API_KEY.",
    )
