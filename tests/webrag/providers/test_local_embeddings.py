"""Models of this process: fastembed runs a tiny real one that is built here, on disk."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from fastembed.text.custom_text_embedding import CustomTextEmbedding
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers

from webrag.errors import ConfigurationError
from webrag.indexing.bundled_embedding import BundledEmbedding
from webrag.indexing.embedder import Embedder
from webrag.providers import EmbeddingChoice, choose_embedding
from webrag.settings import load_settings

WORDS = ["[PAD]", "[UNK]", "storage", "snapshot", "replica", "volume", "primary"]
SIZE = 8
NAME = "webrag-tests/tiny"


def chosen(
    existing: tuple[str, int] | None = None, provider: str = "fastembed", **settings: Any
) -> EmbeddingChoice:
    settings = {"embedding_provider": provider} | settings
    return choose_embedding(load_settings(**settings), existing, BundledEmbedding())


def write_network(path: Path) -> None:
    """An embedding table and nothing else: token ids to vectors."""
    table = np.random.default_rng(7).normal(size=(len(WORDS), SIZE)).astype(np.float32)
    shape = ["batch", "tokens"]
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        "tiny",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, shape)
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*shape, SIZE])],
        [numpy_helper.from_array(table, "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(path))


def write_tokenizer(folder: Path) -> None:
    vocabulary = {word: place for place, word in enumerate(WORDS)}
    built = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    built.pre_tokenizer = pre_tokenizers.Whitespace()
    built.save(str(folder / "tokenizer.json"))
    settings = {"model_max_length": 64, "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}))
    (folder / "special_tokens_map.json").write_text(json.dumps({"unk_token": "[UNK]"}))


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data folder that holds the weights of a model as if they had been downloaded."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # else a failed download is tried for 12 s
    known = list(CustomTextEmbedding.SUPPORTED_MODELS)
    repository = tmp_path / "models" / "models--webrag-tests--tiny"
    snapshot = repository / "snapshots" / "0123456789abcdef"
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(snapshot.name)
    write_network(snapshot / "model.onnx")
    write_tokenizer(snapshot)
    TextEmbedding.add_custom_model(
        NAME,
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf=NAME),
        dim=SIZE,
        model_file="model.onnx",
    )
    yield tmp_path
    CustomTextEmbedding.SUPPORTED_MODELS[:] = known


def test_size_is_learned_from_the_model(data_dir: Path) -> None:
    choice = chosen(embedding_model=NAME, data_dir=data_dir)

    assert (choice.name, choice.dimensions) == (f"fastembed/{NAME}", SIZE)


def test_model_is_loaded_once(data_dir: Path) -> None:
    choice = chosen(embedding_model=NAME, data_dir=data_dir)

    assert choice.load() is choice.load()


async def test_model_of_this_process_embeds(data_dir: Path) -> None:
    choice = chosen(embedding_model=NAME, data_dir=data_dir)
    embedder = Embedder(choice.load(), choice.dimensions, limits=choice.limits)

    texts = ["storage snapshot", "snapshot storage", "replica primary"] * 20
    vectors = await embedder.embed_documents(texts)

    assert vectors.shape == (60, SIZE)
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)
    assert vectors[0] @ vectors[2] < 0.99
    np.testing.assert_allclose(
        await embedder.embed_query("storage snapshot"), vectors[0], atol=1e-6
    )


def test_one_call_at_a_time_of_a_model_that_uses_all_cores() -> None:
    assert chosen(embedding_model="BAAI/bge-small-en-v1.5").limits.concurrency == 1


@pytest.mark.parametrize("provider", ["fastembed", "huggingface"])
def test_known_model_is_chosen_without_loading_it(provider: str) -> None:
    choice = chosen(provider=provider)

    assert (choice.name, choice.dimensions) == (f"{provider}/BAAI/bge-small-en-v1.5", 384)


@pytest.mark.parametrize("provider", ["auto", "fastembed"])
def test_size_of_the_corpus_is_taken_without_loading_the_model(provider: str) -> None:
    choice = chosen(("fastembed/of/mine", 123), provider, embedding_model="of/mine")

    assert (choice.name, choice.dimensions) == ("fastembed/of/mine", 123)


def test_setting_decides_about_the_size() -> None:
    choice = chosen(embedding_model="of/mine", embedding_dimensions=99)

    assert choice.dimensions == 99


def test_unknown_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="'of/mine' cannot be loaded by fastembed: "):
        chosen(embedding_model="of/mine", data_dir=tmp_path)


def test_weights_that_cannot_be_downloaded_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    choice = chosen(data_dir=tmp_path)

    with pytest.raises(ConfigurationError, match="cannot be loaded by fastembed") as raised:
        choice.load()

    assert f"kept in {tmp_path / 'models'}" in (raised.value.hint or "")


def test_missing_extra_is_named_with_its_command() -> None:
    assert importlib.util.find_spec("sentence_transformers") is None, "the test needs it missing"

    with pytest.raises(ConfigurationError, match="packages that are not installed") as raised:
        chosen(provider="huggingface").load()

    assert raised.value.hint == 'Install them with `pip install "webrag[huggingface]"`.'
