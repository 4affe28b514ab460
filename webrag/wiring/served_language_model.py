"""LlamaIndex's client of OpenAI's chat interface, with our limits and connections."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import openai
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.bridge.pydantic import Field
from llama_index.llms.openai_like import OpenAILike
from llama_index.postprocessor.webrag.service_calls import AnswerTooLargeError, limited_client
from typing_extensions import override

# Many times what any reply holds that is read: 60,000 characters.
_MAX_ANSWER_BYTES: Final = 4_000_000


class _ReplyTooLargeError(AnswerTooLargeError, openai.OpenAIError):
    """A reply whose like would come again: the SDK repeats requests after errors of others only."""


class ServedLanguageModel(OpenAILike):
    """`OpenAILike`, whose client would send keys through whatever proxy the environment names.

    The SDK repeats requests, with the pauses that a service asks for. `max_retries` is always 0, as
    LlamaIndex heeds it too and would repeat the SDK's repetitions: the usual 3 would make 12
    requests of one.

    Attributes:
        proxy: Address of a proxy, or `environment` for those that variables name; None asks the
            service directly.
        attempts: Requests at most; one for a whole reply ends after `timeout` seconds, all of them
            together.
    """

    proxy: str | None = Field(default=None, exclude=True, repr=False)
    attempts: int = Field(default=3, ge=1)

    def __init__(self, **given: Any) -> None:
        super().__init__(**(given | {"max_retries": 0}))

    @classmethod
    @override
    def class_name(cls) -> str:
        return "ServedLanguageModel"

    @override
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        async with asyncio.timeout(self.timeout):
            response: ChatResponse = await super().achat(messages, **kwargs)
            return response

    @override
    def _get_credential_kwargs(self, is_async: bool = False) -> dict[str, Any]:
        given: dict[str, Any] = super()._get_credential_kwargs(is_async)
        if given["http_client"] is None:
            kind: Any = openai.DefaultAsyncHttpxClient if is_async else openai.DefaultHttpxClient
            given["http_client"] = limited_client(
                kind, self.proxy, most_bytes=_MAX_ANSWER_BYTES, error=_ReplyTooLargeError
            )
        return given | {"max_retries": self.attempts - 1}
