"""Embedding models of this process: fastembed's and Hugging Face's."""

import json
import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from fastembed.rerank.cross_encoder import TextCrossEncoder
from huggingface_hub import HfApi
from huggingface_hub.hf_api import RepoSibling
from llama_index.core.base.embeddings.base import Embedding
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.embeddings.fastembed import FastEmbedEmbedding
from typing_extensions import override

from webrag.embedding.embedder import download_notice, is_on_disk
from webrag.ingestion.characters import storable

_log = logging.getLogger(__name__)

_REGISTERING = threading.Lock()  # fastembed's list of models is the process's
_NETWORKS = ("model.onnx", "onnx/model.onnx", "model_optimized.onnx")
_OTHER_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")
# As sentence-transformers writes it down; what is in none of these is pooled by the mean.
_POOLING = {
    "pooling_mode_cls_token": PoolingType.CLS,
    "pooling_mode_lasttoken": PoolingType.LAST_TOKEN,
}
# Tokens of a model: of 6,972 chunks of the default size (256 of ours) from the documentation of
# Vite, FastAPI and React none was longer, counted with MiniLM's tokenizer; 27 % passed 256.
_LONG_ENOUGH = 512


class PrefixedFastEmbed(FastEmbedEmbedding):
    """LlamaIndex's `FastEmbedEmbedding`, with the words before a text that a model wants."""

    query_prefix: str = Field(default="")
    text_prefix: str = Field(default="")

    _has_warned: bool = PrivateAttr(default=False)

    @classmethod
    @override
    def class_name(cls) -> str:
        return "PrefixedFastEmbed"

    @override
    def _get_query_embedding(self, query: str) -> Embedding:
        return super()._get_query_embedding(self.query_prefix + storable(query))

    @override
    def _get_text_embeddings(self, texts: list[str]) -> list[Embedding]:
        prefixed = [self.text_prefix + storable(text) for text in texts]
        self._warn_of_cut(prefixed)
        return super()._get_text_embeddings(prefixed)

    def _warn_of_cut(self, texts: list[str]) -> None:
        """Say once that texts are longer than the model reads; it leaves out the rest unsaid."""
        tokenizer: Any = getattr(self._model.model, "tokenizer", None)
        if self._has_warned or tokenizer is None or not tokenizer.truncation:
            return
        if any(each.overflowing for each in tokenizer.encode_batch(texts)):
            self._has_warned = True
            read = tokenizer.truncation["max_length"]
            _log.warning(
                "Some chunks are longer than the %d tokens that the embedding model %s reads: what"
                " lies beyond is found by its words only. %s with"
                " embedding_tokenizer_kind='huggingface' and this model's tokenizer.",
                read,
                self.model_name,
                "Chunks are measured in its own tokens"
                if read >= _LONG_ENOUGH
                else f"Take a model that reads {_LONG_ENOUGH} tokens, or measure chunks in its own",
            )


def register_folder(folder: Path) -> str:
    """Make a model in a folder known to fastembed, and give the name to ask for it by.

    The folder, asked for as `specific_model_path`, holds an ONNX network with `config.json` and the
    files of its tokenizer; ValueError where one of these is lacking, or where the folder differs
    from a known one in the case of its letters only.
    """
    network = _network(folder)
    with _REGISTERING:
        if not _is_listed(str(folder), TextEmbedding.list_supported_models()):
            chosen, mean = _read(folder / "1_Pooling" / "config.json"), PoolingType.MEAN
            TextEmbedding.add_custom_model(
                str(folder),
                pooling=next((kind for key, kind in _POOLING.items() if chosen.get(key)), mean),
                normalization=True,
                sources=ModelSource(hf=str(folder)),
                dim=_read(folder / "config.json").get("hidden_size", 0),
                model_file=network,
            )
    return str(folder)


def register_cross_encoder(folder: Path) -> str:
    """As `register_folder`, for a cross-encoder whose first output is one logit a pair."""
    network = _network(folder)
    with _REGISTERING:
        if not _is_listed(str(folder), TextCrossEncoder.list_supported_models()):
            TextCrossEncoder.add_custom_model(
                str(folder), sources=ModelSource(hf=str(folder)), model_file=network
            )
    return str(folder)


def announce_download(model: str, listed: Iterable[Mapping[str, Any]], folder: Path) -> None:
    """Say what is going to be downloaded, where to and under which licence, if it is not there."""
    found = next((each for each in listed if each["model"].lower() == model.lower()), None)
    if found is None or is_on_disk(found["sources"]["hf"] or "", folder):
        return
    size, licence = found["size_in_GB"] * 1e9, found["license"]
    _log.warning(download_notice(model, folder, size_bytes=size, licence=licence))


def _network(folder: Path) -> str:
    network = next((each for each in _NETWORKS if (folder / each).is_file()), None)
    if network is None:
        raise ValueError(
            "the folder holds no ONNX network (model.onnx or onnx/model.onnx); weights of PyTorch"
            " are for EMBEDDING_PROVIDER=huggingface"
        )
    missing = [each for each in _OTHER_FILES if not (folder / each).is_file()]
    if missing:
        raise ValueError(f"the folder lacks {', '.join(missing)}")
    return network


def _is_listed(name: str, listed: Iterable[Mapping[str, Any]]) -> bool:
    known = next((each["model"] for each in listed if each["model"].lower() == name.lower()), name)
    if known != name:
        raise ValueError(f"fastembed cannot tell it from {known!r}; rename one of the two")
    return any(each["model"] == name for each in listed)


def _read(file: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return found


# In the order sentence-transformers prefers them; networks of other programs lie in these folders.
_WEIGHTS = ("*.safetensors", "*.bin")
_OTHERS = frozenset({"onnx", "openvino"})
_TIMEOUT_S = 10.0


def announce_hub_download(model: str, folder: Path, *, endpoint: str | None = None) -> None:
    """Say the size and the licence of what is downloaded, as the Hub at an endpoint tells them.

    A model without an owner is sentence-transformers' own; nothing is asked or said of one whose
    weights are in the folder. Where the Hub does not answer, both are said to be unknown; it is for
    the download to fail. Blocks for up to ten seconds.
    """
    repository = model if "/" in model else f"sentence-transformers/{model}"
    if is_on_disk(repository, folder, _WEIGHTS):
        return
    size, licence = None, None
    try:
        told = HfApi(endpoint=endpoint).model_info(
            repository, files_metadata=True, timeout=_TIMEOUT_S
        )
    except Exception:  # noqa: BLE001 - a failed connection is an error of the HTTP client it has
        _log.debug("The Hub says nothing of %s.", repository, exc_info=True)
    else:
        size = _weights_bytes(told.siblings or ())
        licence = getattr(told.card_data, "license", None)
    _log.warning(download_notice(repository, folder, size_bytes=size, licence=licence))


def _weights_bytes(files: Sequence[RepoSibling]) -> int | None:
    for pattern in _WEIGHTS:
        sizes = [
            file.size
            for file in files
            if (path := PurePosixPath(file.rfilename)).match(pattern)
            and _OTHERS.isdisjoint(path.parts)
        ]
        if sizes:
            known = [size for size in sizes if size is not None]
            return sum(known) if len(known) == len(sizes) else None
    return None
