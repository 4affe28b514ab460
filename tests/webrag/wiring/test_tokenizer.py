import json
from pathlib import Path
from typing import Any

import llama_index.core
import pytest
from llama_index.core.utils import get_tokenizer
from llama_index.node_parser.webrag import ParentChildNodeParser
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from webrag.errors import ConfigurationError
from webrag.settings import load_settings
from webrag.wiring.embeddings import choose_tokenizer

TEXT = "Replicas follow the primary. 日本語です <|endoftext|>"


def chosen(kind: str, name: str) -> Any:
    settings = load_settings(embedding_tokenizer_kind=kind, embedding_tokenizer_name=name)
    return choose_tokenizer(settings)


@pytest.fixture
def word_tokenizer(tmp_path: Path) -> Path:
    """A folder with a tokenizer that knows words, adds marks and cuts texts off at four."""
    vocabulary = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "one": 3, "two": 4}
    built = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    built.pre_tokenizer = pre_tokenizers.Whitespace()
    built.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    built.enable_truncation(4)
    built.enable_padding(length=4)
    built.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_default_counts_as_the_node_parser_does() -> None:
    tokenize = choose_tokenizer(load_settings())

    assert list(tokenize(TEXT)) == list(get_tokenizer()(TEXT))


def test_name_decides_whatever_was_loaded_before() -> None:
    smaller, larger = chosen("tiktoken", "cl100k_base"), chosen("tiktoken", "o200k_base")

    assert len(larger(TEXT)) < len(smaller(TEXT))


def test_loading_leaves_no_trace() -> None:
    before = llama_index.core.global_tokenizer

    chosen("tiktoken", "o200k_base")

    assert llama_index.core.global_tokenizer is before


@pytest.mark.parametrize("name", ["p50k_base", "gpt2", "cl100k", "bert-base-uncased"])
def test_encoding_that_would_be_downloaded_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name!r}.*cl100k_base and o200k_base"):
        chosen("tiktoken", name)


@pytest.mark.parametrize("part", [".", "tokenizer.json"])
def test_tokenizer_is_read_from_disk(part: str, word_tokenizer: Path) -> None:
    tokenize = chosen("huggingface", str(word_tokenizer / part))

    assert list(tokenize("one two")) == [3, 4]


def test_long_text_is_counted_in_full(word_tokenizer: Path) -> None:
    assert len(chosen("huggingface", str(word_tokenizer))("one two " * 50)) == 100


def test_node_parser_cuts_by_the_tokenizer(word_tokenizer: Path) -> None:
    tokenize = chosen("huggingface", str(word_tokenizer))
    parser = ParentChildNodeParser(tokenizer=tokenize, parent_tokens=40, child_tokens=10)

    nodes = parser.get_nodes_from_documents(
        [llama_index.core.Document(text="one two one two one. " * 30)]
    )

    children = [node for node in nodes if node.metadata["chunk_level"] == "child"]
    assert max(len(tokenize(child.get_content())) for child in children) in range(6, 11)


@pytest.mark.parametrize("content", [None, "{}", "not json", json.dumps({"model": 7})])
def test_tokenizer_that_cannot_be_had_is_named(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tokenizer.json"
    if content is not None:
        file.write_text(content)

    with pytest.raises(ConfigurationError, match=r"tokenizer\.json' cannot be loaded: ") as raised:
        chosen("huggingface", str(file))

    assert "Hugging Face Hub" in (raised.value.hint or "")


def test_tokenizer_of_the_hub_needs_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # else it tries for 24 s

    with pytest.raises(ConfigurationError, match="'owner/nothing-here' cannot be loaded: "):
        chosen("huggingface", "owner/nothing-here")
