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

from webrag.embedding.bundled import BundledEmbedding
from webrag.embedding.embedder import Embedder, EmbeddingChoice, EmbeddingLimits
from webrag.errors import ConfigurationError, how_to_install
from webrag.settings import load_settings
from webrag.wiring.embeddings import choose_embedding

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


@pytest.fixture(autouse=True)
def known_models() -> Iterator[None]:
    """Forget the models that a test makes known to fastembed."""
    known = list(CustomTextEmbedding.SUPPORTED_MODELS)
    yield
    CustomTextEmbedding.SUPPORTED_MODELS[:] = known


def write_model(folder: Path, network: str = "model.onnx", **pooling: bool) -> Path:
    """A folder that holds a whole model, as one is exported to ONNX."""
    (folder / network).parent.mkdir(parents=True)
    write_network(folder / network)
    write_tokenizer(folder)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder that holds the weights of a model as if they had been downloaded."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # else a failed download is tried for 12 s
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
    return tmp_path


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


def cut_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for text in caplog.messages if "longer than the 64 tokens" in text]


def test_texts_longer_than_the_model_reads_are_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = chosen(embedding_model=str(write_model(tmp_path / "mine"))).load()

    for _ in range(2):
        model.get_text_embedding_batch(["storage", "volume " * 65])

    assert len(cut_warnings(caplog)) == 1


def test_texts_that_the_model_reads_whole_need_no_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = chosen(embedding_model=str(write_model(tmp_path / "mine"))).load()

    model.get_text_embedding_batch(["volume " * 64])

    assert not cut_warnings(caplog)


@pytest.mark.parametrize("network", ["model.onnx", "onnx/model.onnx"])
def test_folder_is_loaded_as_it_is(network: str, tmp_path: Path) -> None:
    folder = write_model(tmp_path / "mine", network)

    choice = chosen(embedding_model=str(folder))

    assert (choice.name, choice.dimensions) == (f"fastembed/{folder}", SIZE)
    assert len(choice.load().get_text_embedding("storage")) == SIZE


def test_folder_is_known_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_model(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)

    assert chosen(embedding_model="./mine").name == f"fastembed/{folder.resolve()}"


def test_corpus_finds_the_folder_it_was_made_with(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "mine")

    choice = chosen((f"fastembed/{folder.resolve()}", SIZE), "auto")

    assert len(choice.load().get_query_embedding("storage")) == SIZE


def test_folder_says_how_vectors_of_tokens_become_one(tmp_path: Path) -> None:
    first = chosen(embedding_model=str(write_model(tmp_path / "a", pooling_mode_cls_token=True)))
    mean = chosen(embedding_model=str(write_model(tmp_path / "b", pooling_mode_mean_tokens=True)))

    alone = first.load().get_text_embedding("storage")

    assert first.load().get_text_embedding("storage snapshot") == pytest.approx(alone)
    assert mean.load().get_text_embedding("storage snapshot") != pytest.approx(alone)


def test_words_a_model_wants_stand_before_questions_and_passages(tmp_path: Path) -> None:
    plain = chosen(embedding_model=str(write_model(tmp_path / "plain"))).load()
    model = chosen(embedding_model=str(write_model(tmp_path / "e5-small-v2"))).load()

    question = model.get_query_embedding("storage")
    (passage,) = model.get_text_embedding_batch(["storage"])

    assert question == pytest.approx(plain.get_text_embedding("query: storage"))
    assert passage == pytest.approx(plain.get_text_embedding("passage: storage"))
    assert question != pytest.approx(plain.get_query_embedding("storage"))


def test_folder_of_the_current_directory_does_not_replace_a_model_of_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model(tmp_path / "BAAI" / "bge-small-en-v1.5")
    monkeypatch.chdir(tmp_path)

    choice = chosen(embedding_model="BAAI/bge-small-en-v1.5")

    assert (choice.name, choice.dimensions) == ("fastembed/BAAI/bge-small-en-v1.5", 384)


def test_folder_that_sentence_transformers_would_take_for_the_model_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "BAAI" / "bge-small-en-v1.5").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ConfigurationError, match="in the current directory would be loaded"):
        chosen(provider="huggingface").load()


def test_folder_named_like_a_known_model_is_measured(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "gte-large")

    assert chosen(embedding_model=str(folder)).dimensions == SIZE


@pytest.mark.parametrize("provider", ["auto", "fastembed"])
def test_corpus_that_recorded_a_relative_folder_is_still_matched(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)

    choice = chosen(("fastembed/./mine", SIZE), provider, embedding_model="./mine")

    assert (choice.name, choice.dimensions) == ("fastembed/./mine", SIZE)
    assert len(choice.load().get_query_embedding("storage")) == SIZE


@pytest.mark.parametrize("model", ["~no-such-user-here/x", "/" + "x" * 300, "./" + "x" * 300])
def test_folder_that_cannot_be_read_is_named(model: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^The folder .* cannot be read: ") as raised:
        chosen(embedding_model=model)

    assert "EMBEDDING_MODEL" in (raised.value.hint or "")


def test_name_too_long_for_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be loaded by fastembed"):
        chosen(embedding_model="x" * 300, data_dir=tmp_path)


@pytest.mark.parametrize("provider", ["fastembed", "huggingface"])
@pytest.mark.parametrize("model", ["/no/such/folder", "./nothing", "~/nothing-here", "a/b/c"])
def test_path_without_a_folder_is_named(provider: str, model: str) -> None:
    with pytest.raises(ConfigurationError, match=f"There is no folder '{model}'") as raised:
        chosen(provider=provider, embedding_model=model)

    assert "EMBEDDING_MODEL" in (raised.value.hint or "")


def test_folder_of_weights_for_the_other_provider_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()

    with pytest.raises(
        ConfigurationError, match="are for EMBEDDING_PROVIDER=huggingface"
    ) as raised:
        chosen(embedding_model=str(tmp_path))

    assert "downloaded" not in (raised.value.hint or "")


def test_slow_model_is_waited_for_longer_than_a_service() -> None:
    choice = chosen(embedding_model="BAAI/bge-small-en-v1.5")

    assert choice.limits.timeout_s > EmbeddingLimits().timeout_s
    assert choice.limits.query_timeout_s == EmbeddingLimits().timeout_s


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

    assert f"kept in {tmp_path / 'models'}." in (raised.value.hint or "")


def test_missing_extra_is_named_with_its_command() -> None:
    assert importlib.util.find_spec("sentence_transformers") is None, "the test needs it missing"

    with pytest.raises(ConfigurationError, match="packages that are not installed") as raised:
        chosen(provider="huggingface").load()

    assert raised.value.hint == how_to_install("huggingface")
