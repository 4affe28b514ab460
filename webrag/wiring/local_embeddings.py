"""Embedding models that run in this process, from packages that are installed on request."""

import functools
import importlib
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webrag.embedding.embedder import (
    EmbeddingChoice,
    EmbeddingLimits,
    known_dimensions,
    known_prefixes,
    saved_prefixes,
)
from webrag.errors import ConfigurationError, file_trouble, how_to_install
from webrag.settings.values import LOCAL_EMBEDDING_MODEL

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding

    from webrag.settings import Settings

_TALKATIVE = ("huggingface_hub", "sentence_transformers", "transformers")


# One model at a time: each change below is to the process, and undone by what was there before.
_LOADING = threading.RLock()


@contextmanager
def quiet_loggers() -> Iterator[None]:
    """Keep the packages' notes on retries and old options back: our error says how it ended."""
    loggers = [logging.getLogger(name) for name in _TALKATIVE]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            if each.level == logging.ERROR:  # else its package has set it, on its first import
                each.setLevel(level)


@contextmanager
def quiet_reading() -> Iterator[None]:
    """Show no progress of reading weights that are there, which takes a second."""
    from huggingface_hub import constants
    from huggingface_hub.utils.tqdm import progress_bar_states

    transformers_logging: Any = importlib.import_module("transformers.utils.logging")  # untyped
    # Where the variable is set, it decides, and a contradiction is a warning.
    is_decided = constants.HF_HUB_DISABLE_PROGRESS_BARS is not None
    if is_decided or not transformers_logging.is_progress_bar_enabled():
        yield
        return
    downloads = dict(progress_bar_states)

    def restore_downloads() -> None:  # transformers turns the bars of downloading too
        progress_bar_states.clear()
        progress_bar_states.update(downloads)

    transformers_logging.disable_progress_bar()
    restore_downloads()
    try:
        yield
    finally:
        transformers_logging.enable_progress_bar()
        restore_downloads()


def silence_fastembed() -> None:
    """Keep fastembed's notes back; they go to standard error whatever its caller's logging says."""
    from loguru import logger

    logger.disable("fastembed")


class Kind(NamedTuple):
    """A kind of model that runs in this process: its name, its setting, what does without."""

    name: str
    variable: str
    example: str
    without: str


EMBEDDING = Kind(
    "embedding model",
    "EMBEDDING_MODEL",
    LOCAL_EMBEDDING_MODEL,
    "EMBEDDING_MODEL may also be a folder, written as `./name`.",
)


@contextmanager
def loading(kind: Kind, model: str, folder: Path, *, extra: str) -> Iterator[None]:
    """Load a model in the block, quietly, and say what to do where that fails."""
    try:
        with _LOADING, quiet_loggers():
            yield
    except ImportError as error:
        raise ConfigurationError(
            f"The {kind.name} {model!r} needs packages that are not installed.",
            hint=how_to_install(extra),
        ) from error
    except ConfigurationError:
        raise
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        hint = (
            f"Check that the folder {kind.variable} names holds all files of such a model."
            if _is_folder(model)
            else f"Check {kind.variable} and the network: weights are downloaded once, from the"
            f" Hugging Face Hub, and kept in {folder}. {kind.without}"
        )
        raise ConfigurationError(
            f"The {kind.name} {model!r} cannot be loaded by {extra}: {reason[:300]}.", hint=hint
        ) from error


# One call at a time: each uses all cores already. A large model takes a minute for 32 long texts
# on two busy cores, and a thread cannot be stopped, so giving up early would win nothing.
_BATCH: Final = 32
_LIMITS = EmbeddingLimits(texts=_BATCH, concurrency=1, timeout_s=600)


def choose_local(
    settings: "Settings", provider: str, model: str | None, existing: tuple[str, int] | None
) -> EmbeddingChoice:
    """A model of `LOCAL_PROVIDERS` by its name there, or in a folder; None takes the usual one.

    A folder is named by its whole path, or as an existing corpus recorded it. The model is loaded,
    and its weights downloaded, only where nothing else tells its vector size.
    """
    wanted = model or LOCAL_EMBEDDING_MODEL
    located = locate(wanted)
    name = f"{provider}/{located}"
    folder = settings.data_dir / "models"

    @functools.cache
    def load() -> "BaseEmbedding":
        with loading(EMBEDDING, located, folder, extra=provider):
            return _PROVIDERS[provider](located, folder)

    # Corpora of before folders were named by their whole path record what was written.
    if existing is not None and existing[0] in (name, f"{provider}/{wanted}"):
        return EmbeddingChoice(*existing, load, _LIMITS)
    size = settings.embedding_dimensions
    if size is None and not _is_folder(located):  # whose name may be another model's
        size = known_dimensions(located)
    if size is None:
        with loading(EMBEDDING, located, folder, extra=provider):
            size = len(load().get_query_embedding("dimensions"))
    return EmbeddingChoice(name, size, load, _LIMITS)


def locate(model: str, kind: Kind = EMBEDDING) -> str:
    """The whole path of a model's folder; a name at the Hugging Face Hub as it is.

    Only what begins at the root, with `.` or with `~` is a folder: a bare name must not mean
    another model in a directory that happens to hold a folder of that name.
    """
    hint = (
        f"Set {kind.variable} to the folder that holds the model's files, beginning with `/`, `./`"
        f" or `~`, or to a name at the Hugging Face Hub such as {kind.example}."
    )
    if _is_folder(model) or model.startswith((".", "~")):
        try:
            folder = Path(model).expanduser()
            if folder.is_dir():
                return str(folder.resolve())
        except (OSError, RuntimeError) as error:
            said = f"The folder {model!r} of a model cannot be read: {file_trouble(error)}."
            raise ConfigurationError(said, hint=hint) from error
    elif model.count("/") <= 1 and "\\" not in model:
        return model
    raise ConfigurationError(f"There is no folder {model!r} to load a model from.", hint=hint)


def _is_folder(located: str) -> bool:
    return Path(located).is_absolute()


def _huggingface(model: str, folder: Path) -> "BaseEmbedding":
    # sentence-transformers would take it, whoever put it there.
    if not _is_folder(model) and Path(model).exists():
        raise ConfigurationError(
            f"{model!r} in the current directory would be loaded instead of the embedding model of"
            " that name.",
            hint=f"Start WebRAG in another directory, or set EMBEDDING_MODEL=./{model} to take it.",
        )
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding
    from sentence_transformers.util import load_file_path

    from webrag.embedding.local import announce_hub_download

    if not _is_folder(model):
        announce_hub_download(model, folder)
    saved = load_file_path(model, "config_sentence_transformers.json", cache_folder=str(folder))
    # LlamaIndex's class (0.8.0) would replace the question's prompt that a model brings along.
    query, text = saved_prefixes(model, Path(saved).read_text("utf-8") if saved else None)
    with quiet_reading():
        loaded: BaseEmbedding = HuggingFaceEmbedding(
            model_name=model,
            cache_folder=str(folder),
            embed_batch_size=_BATCH,
            query_instruction=query,
            text_instruction=text,
        )
    return loaded


def _fastembed(model: str, folder: Path) -> "BaseEmbedding":
    from fastembed import TextEmbedding

    from webrag.embedding.local import PrefixedFastEmbed, announce_download, register_folder

    own: dict[str, Any] = {}
    if _is_folder(model):
        own = {"specific_model_path": register_folder(Path(model))}
    else:
        announce_download(model, TextEmbedding.list_supported_models(), folder)
    # By default the weights would be kept in a temporary folder.
    silence_fastembed()
    loaded = PrefixedFastEmbed(
        model_name=model, cache_dir=str(folder), doc_embed_type="passage", **own
    )
    loaded.query_prefix, loaded.text_prefix = known_prefixes(model, {})
    loaded.embed_batch_size = _BATCH
    return loaded


_PROVIDERS: Final[dict[str, Callable[[str, Path], "BaseEmbedding"]]] = {
    "fastembed": _fastembed,
    "huggingface": _huggingface,
}

LOCAL_PROVIDERS = frozenset(_PROVIDERS)
