"""LlamaIndex's client of OpenAI's chat interface, with our limits, retries and connections."""

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final

import openai
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ChatResponseAsyncGen
from llama_index.core.bridge.pydantic import Field
from llama_index.llms.openai_like import OpenAILike
from llama_index.postprocessor.webrag.service_calls import (
    RetryPolicy,
    limited_client,
    retry_after_s,
    size_failure,
)
from typing_extensions import override

# Many times what any reply holds that is read: 60,000 characters.
_MAX_ANSWER_BYTES: Final = 4_000_000
_RETRIED: Final = frozenset({408, 409, 429})


class ServedLanguageModel(OpenAILike):
    """`OpenAILike`, whose client would send keys through whatever proxy the environment names.

    Requests are repeated by the policy of all services, until a reply has begun; `max_retries` is
    always 0, as both the SDK and LlamaIndex heed it and repeat each other's repetitions: the usual
    3 would make 12 requests of one, and 36 with ours.

    Attributes:
        proxy: Address of a proxy, or `environment` for those that variables name; None asks the
            service directly.
        attempts: Requests at most, within `timeout` seconds.
        backoff_s: Longest pause before the second request.
    """

    proxy: str | None = Field(default=None, exclude=True, repr=False)
    attempts: int = Field(default=3, ge=1)
    backoff_s: float = Field(default=0.5, ge=0)

    def __init__(self, **given: Any) -> None:
        super().__init__(**(given | {"max_retries": 0}))

    @classmethod
    @override
    def class_name(cls) -> str:
        return "ServedLanguageModel"

    @override
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        response: ChatResponse = await self._retries().run(
            partial(super().achat, messages, **kwargs)
        )
        return response

    @override
    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> ChatResponseAsyncGen:
        ask = partial(super().astream_chat, messages, **kwargs)

        async def begun() -> tuple[ChatResponse | None, Any]:
            replies = await ask()
            return await anext(replies, None), replies

        return _joined(*await self._retries().run(begun))

    @override
    def _get_credential_kwargs(self, is_async: bool = False) -> dict[str, Any]:
        given: dict[str, Any] = super()._get_credential_kwargs(is_async)
        if given["http_client"] is None:
            kind: Any = openai.DefaultAsyncHttpxClient if is_async else openai.DefaultHttpxClient
            given["http_client"] = limited_client(kind, self.proxy, most_bytes=_MAX_ANSWER_BYTES)
        return given

    def _retries(self) -> RetryPolicy:
        return RetryPolicy(
            attempts=self.attempts,
            backoff_s=self.backoff_s,
            deadline=time.monotonic() + self.timeout,
            is_passing=_is_passing,
            asked_pause_s=_asked_pause_s,
        )


async def _joined(first: ChatResponse | None, rest: Any) -> AsyncGenerator[ChatResponse, None]:
    async with aclosing(rest):
        if first is not None:
            yield first
        async for each in rest:
            yield each


def _is_passing(error: BaseException) -> bool:
    if isinstance(error, openai.APIStatusError):
        return error.status_code >= 500 or error.status_code in _RETRIED
    return isinstance(error, openai.APIConnectionError) and size_failure(error) is None


def _asked_pause_s(error: BaseException) -> float:
    response = getattr(error, "response", None)
    asked = None if response is None else retry_after_s(response.headers.get("retry-after"))
    return asked or 0.0
