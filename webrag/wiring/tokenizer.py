"""Chooses how tokens are counted, for chunks, budgets and requests."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from webrag.errors import ConfigurationError
from webrag.process_pool.pool import token_tables
from webrag.settings.variables import lent

if TYPE_CHECKING:
    from tiktoken import Encoding
    from tokenizers import Tokenizer

    from webrag.settings import Settings

Tokenize = Callable[[str], Sequence[Any]]
"""Text to tokens."""

# The encodings whose tables are installed with llama-index-core.
_INSTALLED = ("cl100k_base", "o200k_base")


def choose_tokenizer(settings: "Settings") -> Tokenize:
    """The tokenizer of `embedding_tokenizer_kind` and `embedding_tokenizer_name`; blocks.

    It is safe to call from several threads, cuts no text off and adds no special tokens. One of
    tiktoken is loaded when it is first used, which takes a third of a second.
    """
    name = settings.embedding_tokenizer_name
    if settings.embedding_tokenizer_kind == "tiktoken":
        return _tiktoken(name)
    return _huggingface(name)


def portable_tokenizer(settings: "Settings") -> tuple[Literal["tiktoken", "huggingface"], str]:
    """The same tokenizer as text, for a process that reads no settings; blocks.

    Its kind, and an encoding's name or what a tokenizer of Hugging Face is saved as.
    """
    name = settings.embedding_tokenizer_name
    if settings.embedding_tokenizer_kind == "tiktoken":
        return "tiktoken", name
    return "huggingface", _loaded(name).to_str()


def _tiktoken(name: str) -> Tokenize:
    if name not in _INSTALLED:
        raise ConfigurationError(
            f"embedding_tokenizer_name is {name!r}; allowed with tiktoken are"
            f" {' and '.join(_INSTALLED)}, which need no download.",
            hint="For a Hugging Face tokenizer set embedding_tokenizer_kind='huggingface'.",
        )

    def tokenize(text: str) -> list[int]:
        return _encoding(name).encode(text, allowed_special="all")

    return tokenize


@cache
def _encoding(name: str) -> "Encoding":
    """An encoding of tiktoken, from the tables that are installed."""
    import tiktoken

    # A variable is the only way to tell it, which LlamaIndex uses, too.
    with lent(token_tables()):
        return tiktoken.get_encoding(name)


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
            hint="embedding_tokenizer_name is a tokenizer.json, its folder, or a name at the"
            " Hugging Face Hub, from where it is downloaded once.",
        ) from error
    loaded.no_truncation()  # else a long text counts as many tokens as the model takes
    loaded.no_padding()
    return loaded
