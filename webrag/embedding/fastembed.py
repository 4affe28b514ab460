"""fastembed with what it leaves to its callers: models in a folder, and words before a text."""

import json
import threading
from pathlib import Path

from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from llama_index.core.base.embeddings.base import Embedding
from llama_index.core.bridge.pydantic import Field
from llama_index.embeddings.fastembed import FastEmbedEmbedding
from typing_extensions import override

__all__ = ["PrefixedFastEmbed", "register_folder"]

_REGISTERING = threading.Lock()  # fastembed's list of models is the process's
_NETWORKS = ("model.onnx", "onnx/model.onnx", "model_optimized.onnx")
_OTHER_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")
# As sentence-transformers writes it down; what is in none of these is pooled by the mean.
_POOLING = {
    "pooling_mode_cls_token": PoolingType.CLS,
    "pooling_mode_lasttoken": PoolingType.LAST_TOKEN,
}


class PrefixedFastEmbed(FastEmbedEmbedding):
    """LlamaIndex's `FastEmbedEmbedding`, which does not put a model's own words before a text.

    Attributes:
        query_prefix: Stands before every question.
        text_prefix: Stands before every passage.
    """

    query_prefix: str = Field(default="")
    text_prefix: str = Field(default="")

    @classmethod
    @override
    def class_name(cls) -> str:
        return "PrefixedFastEmbed"

    @override
    def _get_query_embedding(self, query: str) -> Embedding:
        return super()._get_query_embedding(self.query_prefix + query)

    @override
    def _get_text_embeddings(self, texts: list[str]) -> list[Embedding]:
        return super()._get_text_embeddings([self.text_prefix + text for text in texts])


def register_folder(folder: Path) -> str:
    """Make a model in a folder known to fastembed; doing so again changes nothing.

    Args:
        folder: Holds an ONNX network with `config.json` and the files of its tokenizer.

    Returns:
        The name to ask fastembed for, with the folder as `specific_model_path`.

    Raises:
        ValueError: The folder lacks one of these files, or differs from one that is known in the
            case of its letters only.
    """
    network = next((each for each in _NETWORKS if (folder / each).is_file()), None)
    if network is None:
        raise ValueError(
            "the folder holds no ONNX network (model.onnx or onnx/model.onnx); weights of PyTorch"
            " are for EMBEDDING_PROVIDER=huggingface"
        )
    missing = [each for each in _OTHER_FILES if not (folder / each).is_file()]
    if missing:
        raise ValueError(f"the folder lacks {', '.join(missing)}")
    with _REGISTERING:
        _register(str(folder), folder, network)
    return str(folder)


def _register(name: str, folder: Path, network: str) -> None:
    listed = [each["model"] for each in TextEmbedding.list_supported_models()]
    known = next((each for each in listed if each.lower() == name.lower()), None)
    if known == name:
        return
    if known is not None:
        raise ValueError(f"fastembed cannot tell it from {known!r}; rename one of the two")
    TextEmbedding.add_custom_model(
        name,
        pooling=_pooling(folder / "1_Pooling" / "config.json"),
        normalization=True,
        sources=ModelSource(hf=name),
        dim=_read(folder / "config.json").get("hidden_size", 0),
        model_file=network,
    )


def _pooling(file: Path) -> PoolingType:
    chosen = _read(file)
    return next((kind for key, kind in _POOLING.items() if chosen.get(key)), PoolingType.MEAN)


def _read(file: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return found
