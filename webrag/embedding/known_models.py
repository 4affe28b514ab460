"""What is known of embedding models without asking for them."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from webrag.embedding.embedder import EmbeddingLimits, EmbeddingModel

# Vector sizes of models that are asked for by name, so that a corpus is created without a request.
_OPENAI = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
_OPEN_WEIGHTS = {  # by lower case
    "all-minilm-l12-v2": 384,
    "all-minilm-l6-v2": 384,
    "all-minilm": 384,
    "all-mpnet-base-v2": 768,
    "bge-base-en-v1.5": 768,
    "bge-large-en-v1.5": 1024,
    "bge-m3": 1024,
    "bge-small-en-v1.5": 384,
    "e5-large-v2": 1024,
    "gte-large": 1024,
    "multilingual-e5-large": 1024,
    "multilingual-e5-small": 384,
    "mxbai-embed-large": 1024,
    "mxbai-embed-large-v1": 1024,
    "nomic-embed-text": 768,
    "nomic-embed-text-v1.5": 768,
    "paraphrase-multilingual-minilm-l12-v2": 384,
    "snowflake-arctic-embed": 1024,
}

_SEARCH_EN = "Represent this sentence for searching relevant passages: "
# What model cards want before a question and before a passage.
_PREFIXES = {
    r"(multilingual-)?e5-(small|base|large)(-v2)?": ("query: ", "passage: "),
    r"bge-(small|base|large)-en(-v1\.5)?": (_SEARCH_EN, ""),
    r"bge-(small|base|large)-zh(-v1\.5)?": ("为这个句子生成表示以用于检索相关文章\uff1a", ""),
    r"mxbai-embed-large(-v1)?": (_SEARCH_EN, ""),
    r"nomic-embed-text(-v1(\.5)?)?(-q)?": ("search_query: ", "search_document: "),
    r"snowflake-arctic-embed(-(xs|s|m|m-long|l))?(-v1\.5)?": (_SEARCH_EN, ""),
}

# OpenAI takes 2,048 texts, 300,000 tokens and 8,192 a text; fewer make a retry cheaper.
OPENAI_LIMITS = EmbeddingLimits(texts=512, tokens=250_000, text_tokens=8_000)
# What the strictest of the common servers (TEI) takes by default.
SERVER_LIMITS = EmbeddingLimits(texts=32, tokens=16_000)


@dataclass(frozen=True)
class EmbeddingChoice:
    """An embedding model that has not been loaded yet.

    Attributes:
        name: What a corpus records, `provider/model`.
        load: Builds the model; may take seconds and, for weights that are not on this machine,
            a download. Repeating it gives the same model where loading is costly.
    """

    name: str
    dimensions: int
    load: Callable[[], EmbeddingModel]
    limits: EmbeddingLimits = field(default=EmbeddingLimits())


def known_dimensions(model: str) -> int | None:
    """Vector size of a model by its name, with or without its owner and tag; None if unknown."""
    return _OPENAI.get(model) or _OPEN_WEIGHTS.get(_bare_name(model))


def is_on_disk(repository: str, folder: Path, weights: Sequence[str] = ("*.onnx",)) -> bool:
    """Whether the weights of a model have been downloaded."""
    # As the Hub's own package lays its cache out; a download that broke off left no network there.
    snapshots = folder / f"models--{repository.replace('/', '--')}" / "snapshots"
    return snapshots.is_dir() and any(any(snapshots.rglob(each)) for each in weights)


def download_notice(
    model: str, folder: Path, *, size_bytes: float | None, licence: str | None
) -> str:
    """What is said before a model is downloaded."""
    size = "of unknown size" if size_bytes is None else f"about {size_bytes / 1e6:.0f} MB"
    return (
        f"Downloading the model {model} once: {size}, licence {licence or 'unknown'}, kept in"
        f" {folder}."
    )


def known_prefixes(model: str, own: Mapping[str, str]) -> tuple[str, str]:
    """What a model wants before a question and before a passage; empty where nothing is known.

    Its own prompts, by the names under which they are saved with a model, win.
    """
    query = own.get("query", "")
    text = own.get("document", "") or own.get("passage", "")
    if query or text:
        return query, text
    name = _bare_name(model)
    found = (words for pattern, words in _PREFIXES.items() if re.fullmatch(pattern, name))
    return next(found, ("", ""))


def saved_prefixes(model: str, saved: str | None) -> tuple[str, str]:
    """What a model saved by sentence-transformers wants before a question and before a passage.

    Raises:
        ValueError: That is not JSON.
    """
    settings = json.loads(saved) if saved else None
    prompts = settings.get("prompts") if isinstance(settings, dict) else None
    if not isinstance(prompts, dict):
        return known_prefixes(model, {})
    return known_prefixes(
        model, {key: words for key, words in prompts.items() if isinstance(words, str)}
    )


def _bare_name(model: str) -> str:
    """A model's name without its owner or folder, of Windows too, and without its tag."""
    return re.split(r"[/\\]", model)[-1].partition(":")[0].lower()
