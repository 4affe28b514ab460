"""LlamaIndex's client of OpenAI's chat interface, with connections that go where they should."""

from typing import Any

import openai
from llama_index.core.bridge.pydantic import Field
from llama_index.llms.openai_like import OpenAILike
from llama_index.postprocessor.webrag.service_calls import client_options
from typing_extensions import override

__all__ = ["ServedLanguageModel"]


class ServedLanguageModel(OpenAILike):
    """`OpenAILike`, whose client would send keys through whatever proxy the environment names.

    Attributes:
        proxy: Address of a proxy, or `environment` for those that variables name; None asks the
            service directly.
    """

    proxy: str | None = Field(default=None, exclude=True, repr=False)

    @classmethod
    @override
    def class_name(cls) -> str:
        return "ServedLanguageModel"

    @override
    def _get_credential_kwargs(self, is_async: bool = False) -> dict[str, Any]:
        given: dict[str, Any] = super()._get_credential_kwargs(is_async)
        if given["http_client"] is None:
            kind = openai.DefaultAsyncHttpxClient if is_async else openai.DefaultHttpxClient
            given["http_client"] = kind(**client_options(self.proxy))
        return given
