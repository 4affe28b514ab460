"""Chooses how tokens are counted, for chunks, budgets and requests."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from webrag.errors import ConfigurationError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from webrag.settings import Settings

__all__ = ["Tokenize", "choose_tokenizer", "portable_tokenizer"]

Tokenize = Callable[[str], Sequence[Any]]
"""Text to tokens."""

# The encodings whose tables are installed with llama-index-core, and the models it knows them by.
_INSTALLED = {"cl100k_base": "gpt-3.5-turbo", "o200k_base": "gpt-4o"}
_first_answer = threading.Lock()


def choose_tokenizer(settings: "Settings") -> Tokenize:
    """Load the tokenizer of `EMBEDDING_TOKENIZER_KIND` and `EMBEDDING_TOKENIZER_NAME`; blocks.

    Returns:
        A function that is safe to call from several threads, cuts no text off and adds no
        special tokens.

    Raises:
        ConfigurationError: There is no such tokenizer, or it cannot be had.
    """
    name = settings.embedding_tokenizer_name
    if settings.embedding_tokenizer_kind == "tiktoken":
        return _tiktoken(name)
    return _huggingface(name)


def portable_tokenizer(settings: "Settings") -> tuple[Literal["tiktoken", "huggingface"], str]:
    """The same tokenizer as text, for a process that reads no settings; blocks.

    Returns:
        The kind, and an encoding's name or what a tokenizer of Hugging Face is saved as.

    Raises:
        ConfigurationError: As for `choose_tokenizer`.
    """
    name = settings.embedding_tokenizer_name
    if settings.embedding_tokenizer_kind == "tiktoken":
        return "tiktoken", name
    return "huggingface", _loaded(name).to_str()


def _tiktoken(name: str) -> Tokenize:
    model = _INSTALLED.get(name)
    if model is None:
        raise ConfigurationError(
            f"EMBEDDING_TOKENIZER_NAME is {name!r}; allowed with tiktoken are"
            f" {' and '.join(_INSTALLED)}, which need no download.",
            hint="For a Hugging Face tokenizer set EMBEDDING_TOKENIZER_KIND=huggingface.",
        )
    import llama_index.core
    from llama_index.core.utils import get_tokenizer

    # It gives what it was first asked for, whatever the name, unless that is forgotten.
    with _first_answer:
        kept, llama_index.core.global_tokenizer = llama_index.core.global_tokenizer, None
        try:
            tokenize: Tokenize = get_tokenizer(model)
        finally:
            llama_index.core.global_tokenizer = kept
    return tokenize


def _huggingface(name: str) -> Tokenize:
    loaded = _loaded(name)

    def encode(text: str) -> list[int]:
        ids: list[int] = loaded.encode(text, add_special_tokens=False).ids
        return ids

    return encode


def _loaded(name: str) -> "Tokenizer":
    from tokenizers import Tokenizer

    path = Path(name).expanduser()
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        loaded = (
            Tokenizer.from_file(str(file)) if file.is_file() else Tokenizer.from_pretrained(name)
        )
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ConfigurationError(
            f"The tokenizer {name!r} cannot be loaded: {reason[:300]}.",
            hint="EMBEDDING_TOKENIZER_NAME is a tokenizer.json, its folder, or a name at the"
            " Hugging Face Hub, from where it is downloaded once.",
        ) from error
    loaded.no_truncation()  # else a long text counts as many tokens as the model takes
    loaded.no_padding()
    return loaded
