"""Finds language models to write answers with, on this machine, and tries one."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from webrag.concurrency import all_of
from webrag.errors import ConfigurationError

if TYPE_CHECKING:
    from webrag.settings import Settings

# Where the servers that people run on their own machine listen, unless told otherwise.
_USUAL: Final = (
    ("Ollama", "http://127.0.0.1:11434/v1"),
    ("LM Studio", "http://127.0.0.1:1234/v1"),
    ("llama.cpp", "http://127.0.0.1:8080/v1"),
    ("vLLM", "http://127.0.0.1:8000/v1"),
    ("Jan", "http://127.0.0.1:1337/v1"),
)
_LOOK_S: Final = 1.0
_LIST_S: Final = 10.0
_WORDS: Final = "Reply with the single word ready."


@dataclass(frozen=True)
class ModelServer:
    """A server with OpenAI's interface.

    Attributes:
        name: Of the program that usually listens there.
        url: Its address, as `ORCHESTRATION_LLM_BASE_URL` takes it.
        models: What it serves, embeddings left out.
    """

    name: str
    url: str
    models: tuple[str, ...]


async def find_servers() -> list[ModelServer]:
    """The servers that answer on this machine's usual ports; asked at once, for a second."""
    found = await all_of(_at(name, url) for name, url in _USUAL)
    return [server for server in found if server is not None and server.models]


async def list_models(url: str, key: str | None = None, *, seconds: float = _LIST_S) -> list[str]:
    """The models that a server says it has, in alphabetical order, embeddings left out.

    Raises:
        ConfigurationError: It does not answer, or not so.
    """
    import openai

    client = openai.AsyncOpenAI(
        base_url=url,
        api_key=key or "none",
        max_retries=0,
        timeout=seconds,
        http_client=openai.DefaultAsyncHttpxClient(trust_env=False),
    )
    try:
        async with client:
            page = await client.models.list()
    except openai.OpenAIError as error:
        raise ConfigurationError(f"{url} does not list its models: {error}") from error
    except ValueError as error:
        raise ConfigurationError(f"{url} is no server of language models.") from error
    return sorted(each.id for each in page.data or () if "embed" not in each.id.lower())


async def try_model(settings: "Settings") -> float:
    """Let the model that writes answers say a word; returns the seconds that took.

    Raises:
        ConfigurationError: It does not answer.
    """
    from llama_index.core.base.llms.types import ChatMessage
    from openai import OpenAIError

    from webrag.wiring.language_models import choose_language_model

    model = choose_language_model(settings)
    if model is None:
        raise ConfigurationError("No language model is set.")
    began = time.monotonic()
    try:
        reply = await model.achat([ChatMessage(content=_WORDS)])
    except (OpenAIError, ValueError) as error:
        raise ConfigurationError(f"The model does not answer: {error}") from error
    if not (reply.message.content or "").strip():
        raise ConfigurationError("The model answers with nothing.")
    return time.monotonic() - began


async def _at(name: str, url: str) -> ModelServer | None:
    try:
        models = await list_models(url, seconds=_LOOK_S)
    except ConfigurationError:
        return None
    return ModelServer(name, url, tuple(models))
