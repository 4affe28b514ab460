"""Finds, tries and chooses the language model that splits questions and writes answers."""

import asyncio
import time
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from webrag.concurrency import all_of, in_background
from webrag.errors import ConfigurationError, InputError
from webrag.redaction import remember_secrets
from webrag.settings import load_settings

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

    from webrag.settings import Settings

_TIMEOUT_S = 30.0


def uses_language_model(settings: "Settings") -> bool:
    """Tell if the settings name a language model: by a key, or a server of one's own."""
    usual = type(settings).model_fields["orchestration_llm_base_url"].default
    has_key = settings.orchestration_llm_api_key is not None
    return has_key or settings.orchestration_llm_base_url != usual


def choose_language_model(settings: "Settings") -> "LLM | None":
    """The language model of the settings; None where they name none."""
    if not uses_language_model(settings):
        return None
    key = settings.orchestration_llm_api_key
    from webrag.wiring.served_language_model import ServedLanguageModel

    return ServedLanguageModel(
        model=settings.orchestration_llm_model,
        api_base=settings.orchestration_llm_base_url,
        api_key=key.get_secret_value() if key else "none",
        is_chat_model=True,
        temperature=0.0,
        timeout=_TIMEOUT_S,
        max_retries=0,
        proxy=settings.service_proxy,
    )


# Where the servers that people run on their own machine listen, unless told otherwise.
_USUAL: Final = (
    ("Ollama", "http://127.0.0.1:11434/v1"),
    ("LM Studio", "http://127.0.0.1:1234/v1"),
    ("llama.cpp", "http://127.0.0.1:8080/v1"),
    ("vLLM", "http://127.0.0.1:8000/v1"),
    ("Jan", "http://127.0.0.1:1337/v1"),
)
LANGUAGE_MODEL: Final = (
    "orchestration_llm_base_url",
    "orchestration_llm_model",
    "orchestration_llm_api_key",
)
"""The settings that name a language model."""


def without_language_model(settings: "Settings") -> "Settings":
    """Make the same settings with no language model, for what must not ask one by itself."""
    fields = type(settings).model_fields
    return settings.model_copy(update={name: fields[name].default for name in LANGUAGE_MODEL})


WITHOUT: Final = (
    "Everything works without a language model: answers are sentences of the pages. With one,"
    " `webrag ask` and the page write in their own words, each sentence checked against its"
    " quotation, and questions are split and reworded by it."
)
_LOOK_S: Final = 1.0
_LIST_S: Final = 10.0
_WORDS: Final = "Reply with the single word ready."


@dataclass(frozen=True)
class ModelServer:
    """A server with OpenAI's interface, by the name of the program that usually listens there."""

    name: str
    url: str
    models: tuple[str, ...]


async def find_servers() -> list[ModelServer]:
    """The servers that answer on this machine's usual ports; asked at once, for a second."""
    found = await all_of(_at(name, url) for name, url in _USUAL)
    return [server for server in found if server is not None and server.models]


async def list_models(
    url: str, key: str | None = None, *, seconds: float = _LIST_S, proxy: str | None = None
) -> list[str]:
    """The models that a server says it has, in alphabetical order, embeddings left out."""
    # Takes a second, of the event loop else.
    openai = await in_background(import_module, "openai")
    client = openai.AsyncOpenAI(
        base_url=url,
        api_key=key or "none",
        max_retries=0,
        timeout=seconds,
        http_client=openai.DefaultAsyncHttpxClient(trust_env=False, proxy=proxy),
    )
    try:
        async with client:
            page = await client.models.list()
    except openai.OpenAIError as error:
        raise ConfigurationError(f"{url} does not list its models: {error}") from error
    except ValueError as error:
        raise ConfigurationError(f"{url} is no server of language models.") from error
    return sorted(each.id for each in page.data or () if "embed" not in each.id.lower())


async def tried(
    settings: "Settings", server: str, model: str | None, key: str | None
) -> tuple[dict[str, str | None], float]:
    """The settings that name a model, once it has answered, and the seconds that took.

    The server `none` stands for no model, which nobody needs to try; without a name the only model
    that the server has is taken. It is asked through the proxy of the settings in use.
    """
    if server == "none":
        return dict.fromkeys(LANGUAGE_MODEL), 0.0
    remember_secrets(key)
    if not model:
        known = await list_models(server, key, proxy=settings.service_proxy)
        if len(known) != 1:
            named = ", ".join(known[:20]) or "none"
            raise InputError(f"Name the model; {server} has: {named}.")
        model = known[0]
    values: dict[str, Any] = dict(zip(LANGUAGE_MODEL, (server, model, key), strict=True))
    file = settings.file if settings.file.exists() else None
    return values, await try_model(load_settings(file, **values, proxy=settings.proxy))


async def try_model(settings: "Settings") -> float:
    """Let the model that writes answers say a word; returns the seconds that took."""
    from llama_index.core.base.llms.types import ChatMessage
    from openai import OpenAIError

    model = choose_language_model(settings)
    if model is None:
        raise ConfigurationError("No language model is set.")
    began = time.monotonic()
    try:
        reply = await model.achat([ChatMessage(content=_WORDS)])
    except (OpenAIError, ValueError, TimeoutError) as error:
        said = str(error).rstrip(".") or f"no reply within {_TIMEOUT_S:g} seconds"
        raise ConfigurationError(
            f"The model does not answer: {said}.",
            hint=f"Check that a server runs at {settings.orchestration_llm_base_url}, that it has"
            " this model, and that the key is its own.",
        ) from error
    if not (reply.message.content or "").strip():
        raise ConfigurationError("The model answers with nothing.")
    return time.monotonic() - began


async def _at(name: str, url: str) -> ModelServer | None:
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(_LOOK_S):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port)
            writer.close()
            models = await list_models(url, seconds=_LOOK_S)
    except (OSError, ConfigurationError):
        return None
    return ModelServer(name, url, tuple(models))
