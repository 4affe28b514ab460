"""An embedding model behind OpenAI's interface, and what its failures mean."""

import asyncio
import base64
import binascii
import json
import time
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import urlsplit

import numpy as np
import openai
from llama_index.core.base.embeddings.base import Embedding
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.embeddings.openai import OpenAIEmbedding
from llama_index.postprocessor.webrag.retry_after import retry_after_s
from llama_index.postprocessor.webrag.service_calls import (
    ABOUT_THE_KEY,
    RetryPolicy,
    failure_of,
    limited_client,
    size_failure,
)
from typing_extensions import override

from webrag.errors import ProviderError
from webrag.ingestion.characters import storable
from webrag.redaction import redacted_failure, remember_secrets, safe_cause

_MOST_DETAIL = 200
_ATTEMPT_TIMEOUT_S = 30.0
_MOST_ATTEMPTS = 4


class PassingError(ProviderError):
    """A failure that another request may not meet, after the pause that the service asks for."""

    asked_pause_s = 0.0


def _asked_pause_s(headers: Mapping[str, str]) -> float:
    milliseconds = headers.get("retry-after-ms", "")
    if milliseconds.isascii() and milliseconds.isdigit():
        return int(milliseconds) / 1000
    return retry_after_s(headers.get("retry-after")) or 0.0


def _is_quota(body: Any) -> bool:
    error = body.get("error", body) if isinstance(body, dict) else {}
    return isinstance(error, dict) and "insufficient_quota" in (
        error.get("code"),
        error.get("type"),
    )


def _detail(body: Any) -> str:
    if isinstance(body, dict):
        error = body.get("error", body)
        said = error.get("message") if isinstance(error, dict) else error
        body = said if isinstance(said, str) else json.dumps(body)
    text = redacted_failure(" ".join(str(body or "").split()))
    return f": {text[:_MOST_DETAIL].rstrip('.')}" if text and not text.startswith("<") else ""


class ServedEmbedding(OpenAIEmbedding):
    """LlamaIndex's `OpenAIEmbedding` under one retry policy, with answers that are checked.

    At most four requests a call, only after 408, 409, 425, 429, 5xx or a broken connection;
    `Retry-After` is waited for when it fits the time of a call, in seconds and retries included.
    The stock class (0.7.0) retries within retries, pairs vectors with texts by their place and not
    by `index`, turns line breaks into spaces, and raises `AttributeError` at what is not JSON.

    Attributes:
        backoff_s: Longest pause before the second request; doubled for each further one.
        as_base64: Ask for vectors in the short form, which OpenAI knows and many others do not.
        proxy: Address of a proxy, or `environment` for those that variables name; None for none.
    """

    call_timeout_s: float = Field(default=60.0, gt=0)
    backoff_s: float = Field(default=0.5, gt=0)
    as_base64: bool = False
    proxy: str | None = Field(default=None, exclude=True, repr=False)

    _loop: asyncio.AbstractEventLoop | None = PrivateAttr(default=None)

    def __init__(self, model: str, **settings: Any) -> None:
        # `model_name` because `model` allows only names OpenAI had when the class was written.
        given: dict[str, Any] = {"model_name": model, "timeout": _ATTEMPT_TIMEOUT_S} | settings
        super().__init__(**given, max_retries=0)
        remember_secrets(self.api_key)

    @classmethod
    @override
    def class_name(cls) -> str:
        return "ServedEmbedding"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections of this event loop and of synchronous callers; others reopen."""
        client, self._client = self._client, None
        own, self._aclient, loop = self._aclient, None, self._loop
        if client is not None:
            await asyncio.to_thread(client.close)
        if own is not None and loop is asyncio.get_running_loop():
            await own.close()

    @override
    def _get_text_embeddings(self, texts: list[str]) -> list[Embedding]:
        create = self._get_client().embeddings.with_raw_response.create

        def ask() -> bytes:
            try:
                return create(input=list(map(storable, texts)), **self._arguments()).content
            except openai.APIError as error:
                raise self._failure(error) from safe_cause(error)

        return self._read(self._retries().run_sync(ask), len(texts))

    @override
    async def _aget_text_embeddings(self, texts: list[str]) -> list[Embedding]:
        create = self._get_aclient().embeddings.with_raw_response.create

        async def ask() -> bytes:
            try:
                return (await create(input=list(map(storable, texts)), **self._arguments())).content
            except openai.APIError as error:
                raise self._failure(error) from safe_cause(error)

        return self._read(await self._retries().run(ask), len(texts))

    @override
    def _get_text_embedding(self, text: str) -> Embedding:
        return self._get_text_embeddings([text])[0]

    @override
    async def _aget_text_embedding(self, text: str) -> Embedding:
        return (await self._aget_text_embeddings([text]))[0]

    @override
    def _get_query_embedding(self, query: str) -> Embedding:
        return self._get_text_embeddings([query])[0]

    @override
    async def _aget_query_embedding(self, query: str) -> Embedding:
        return (await self._aget_text_embeddings([query]))[0]

    @override
    def _get_credential_kwargs(self, is_async: bool = False) -> dict[str, Any]:
        given: dict[str, Any] = super()._get_credential_kwargs(is_async)
        if given["http_client"] is None:
            given["http_client"] = (
                limited_client(openai.DefaultAsyncHttpxClient, self.proxy)
                if is_async
                else limited_client(openai.DefaultHttpxClient, self.proxy)
            )
        return given

    @override
    def _get_aclient(self) -> openai.AsyncOpenAI:
        # Connections belong to the event loop that opened them.
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._aclient = loop, None
        return super()._get_aclient()

    def _retries(self) -> RetryPolicy:
        return RetryPolicy(
            attempts=_MOST_ATTEMPTS,
            backoff_s=self.backoff_s,
            deadline=time.monotonic() + self.call_timeout_s,
            is_passing=lambda error: isinstance(error, PassingError),
            asked_pause_s=lambda error: getattr(error, "asked_pause_s", 0.0),
        )

    def _arguments(self) -> dict[str, Any]:
        form = "base64" if self.as_base64 else "float"
        return {"model": self.model_name, "encoding_format": form} | self.additional_kwargs

    def _failure(self, error: openai.APIError) -> ProviderError:
        if isinstance(error, openai.APIStatusError):
            return self._refused(error.status_code, error.body, error.response.headers)
        if large := size_failure(error):
            return self._unusable(str(large))
        reason = error.__cause__ or error
        text = redacted_failure(str(reason)).strip().rstrip(".") or type(reason).__name__
        return self._error(
            f"could not be reached or broke the call off ({text[:_MOST_DETAIL]})",
            hint="Check EMBEDDING_BASE_URL and that the server runs.",
            kind=PassingError,
        )

    def _refused(self, status: int, body: Any, headers: Mapping[str, str]) -> ProviderError:
        detail = "" if status in ABOUT_THE_KEY else _detail(body)
        what, is_passing = failure_of(status)
        hint = "Check EMBEDDING_PROVIDER, EMBEDDING_MODEL and EMBEDDING_BASE_URL."
        if is_passing:
            hint = "Wait a little, then try again." if status == 429 else "Try again later."
        if _is_quota(body):
            what, is_passing = "has no quota left for this key", False
            hint = "Check plan and billing of the account."
        if status in ABOUT_THE_KEY:
            hint = "Check EMBEDDING_API_KEY or OPENAI_API_KEY."
        if headers.get("x-should-retry") == "false":
            is_passing = False
        kind = PassingError if is_passing else ProviderError
        error = self._error(f"{what} (HTTP {status}){detail}", hint=hint, status=status, kind=kind)
        if isinstance(error, PassingError):
            error.asked_pause_s = _asked_pause_s(headers)
        return error

    def _unusable(self, what: str) -> ProviderError:
        hint = "Check that EMBEDDING_BASE_URL is the address of an embedding server."
        return self._error(f"answered with {what}", hint=hint)

    def _error(
        self,
        what: str,
        *,
        hint: str,
        status: int | None = None,
        kind: type[ProviderError] = ProviderError,
    ) -> ProviderError:
        host = urlsplit(self.api_base or "").netloc.rpartition("@")[2]  # without a user's password
        message = f"The embedding model {self.model_name} at {host} {what}."
        return kind(message, provider=self.model_name, status=status, hint=hint)

    def _read(self, body: bytes, expected: int) -> list[Embedding]:
        try:
            return read_vectors(body, expected)
        except ValueError as error:
            raise self._unusable(str(error)) from error


def read_vectors(body: bytes, expected: int) -> list[Embedding]:
    """Read the vectors of an answer in the order of the texts; ValueError says what else it is."""
    try:
        items = json.loads(body)["data"]
        indexed = {int(item["index"]): _vector(item["embedding"]) for item in items}
    except (ValueError, RecursionError, binascii.Error):
        raise ValueError("something that is not JSON with vectors") from None
    except (TypeError, KeyError, AttributeError):
        raise ValueError("JSON that holds no list of vectors") from None
    if len(items) != expected:
        raise ValueError(f"{len(items)} vectors for {expected} texts")
    if indexed.keys() != set(range(expected)):
        raise ValueError("vectors that are not numbered like the texts")
    return [indexed[place] for place in range(expected)]


def _vector(value: str | list[float]) -> Embedding:
    if isinstance(value, str):
        numbers: Embedding = np.frombuffer(base64.b64decode(value, validate=True), "<f4").tolist()
        return numbers
    return [float(number) for number in value]
