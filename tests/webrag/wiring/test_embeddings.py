from typing import Any

import pytest
from llama_index.embeddings.openai import OpenAIEmbedding
from llama_index.postprocessor.webrag.local_scoring import LocalScorer

from webrag.embedding.bundled import BundledEmbedding
from webrag.embedding.embedder import EmbeddingChoice
from webrag.errors import ConfigurationError
from webrag.orchestration.confidence import LOCAL, SIMILARITY
from webrag.settings import load_settings
from webrag.wiring.embeddings import choose_embedding
from webrag.wiring.rerankers import choose_reranker

BUNDLED = ("bundled/wordllama-256-logtf", 256)
SMALL = ("openai/text-embedding-3-small", 1536)
LOCAL_SERVER = "http://127.0.0.1:11434/v1"
KEY = {"openai_api_key": "sk-openai"}


@pytest.fixture(scope="module")
def bundled() -> BundledEmbedding:
    return BundledEmbedding()


def chosen(bundled: BundledEmbedding, existing: Any = None, **settings: Any) -> EmbeddingChoice:
    return choose_embedding(load_settings(**settings), existing, bundled)


def loaded(bundled: BundledEmbedding, existing: Any = None, **settings: Any) -> OpenAIEmbedding:
    model = chosen(bundled, existing, **settings).load()
    assert isinstance(model, OpenAIEmbedding)
    return model


@pytest.mark.parametrize(
    ("existing", "settings", "expected"),
    [
        pytest.param(None, {}, BUNDLED, id="new-without-key"),
        pytest.param(None, KEY, SMALL, id="new-with-key"),
        pytest.param(BUNDLED, {}, BUNDLED, id="bundled-corpus"),
        pytest.param(BUNDLED, KEY, BUNDLED, id="bundled-corpus-stays-when-a-key-comes"),
        pytest.param(SMALL, KEY, SMALL, id="openai-corpus"),
        pytest.param(
            SMALL,
            KEY | {"embedding_model": "text-embedding-3-large"},
            SMALL,
            id="corpus-wins-over-the-model-setting",
        ),
        pytest.param(
            ("openai/text-embedding-3-large", 1024),
            KEY,
            ("openai/text-embedding-3-large", 1024),
            id="shortened-vectors-of-the-corpus",
        ),
        pytest.param(
            SMALL, KEY | {"embedding_dimensions": 512}, SMALL, id="corpus-wins-over-the-size"
        ),
        pytest.param(
            ("openai_compatible/nomic-embed-text", 768),
            {"embedding_base_url": LOCAL_SERVER},
            ("openai_compatible/nomic-embed-text", 768),
            id="compatible-corpus",
        ),
    ],
)
def test_automatic_choice_follows_the_corpus_then_the_key(
    existing: Any, settings: dict[str, Any], expected: tuple[str, int], bundled: BundledEmbedding
) -> None:
    choice = chosen(bundled, existing, **settings)

    assert (choice.name, choice.dimensions) == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param({"embedding_provider": "bundled"} | KEY, BUNDLED, id="bundled"),
        pytest.param({"embedding_provider": "openai"} | KEY, SMALL, id="openai"),
        pytest.param(
            {"embedding_provider": "openai", "embedding_api_key": "sk-own"},
            SMALL,
            id="openai-with-the-embedding-key",
        ),
        pytest.param(
            {"embedding_provider": "openai", "embedding_model": "text-embedding-3-large"} | KEY,
            ("openai/text-embedding-3-large", 3072),
            id="openai-other-model",
        ),
        pytest.param(
            {"embedding_provider": "openai", "embedding_dimensions": 512} | KEY,
            ("openai/text-embedding-3-small", 512),
            id="openai-shortened",
        ),
        pytest.param(
            {
                "embedding_provider": "openai_compatible",
                "embedding_base_url": LOCAL_SERVER,
                "embedding_model": "nomic-embed-text",
                "embedding_dimensions": 768,
            },
            ("openai_compatible/nomic-embed-text", 768),
            id="compatible-without-key",
        ),
    ],
)
def test_named_provider_is_taken_whatever_the_corpus_is(
    settings: dict[str, Any], expected: tuple[str, int], bundled: BundledEmbedding
) -> None:
    choice = chosen(bundled, ("openai/other", 7), **settings)

    assert (choice.name, choice.dimensions) == expected


@pytest.mark.parametrize(
    ("existing", "settings", "named"),
    [
        pytest.param(None, {"embedding_provider": "openai"}, "OPENAI_API_KEY", id="no-key"),
        pytest.param(SMALL, {}, "OPENAI_API_KEY", id="openai-corpus-without-key"),
        pytest.param(
            None, {"embedding_provider": "openai_compatible"}, "EMBEDDING_BASE_URL", id="no-url"
        ),
        pytest.param(
            ("openai_compatible/nomic", 768), KEY, "EMBEDDING_BASE_URL", id="corpus-without-url"
        ),
        pytest.param(
            None,
            {"embedding_provider": "openai", "embedding_model": "newest"} | KEY,
            "EMBEDDING_DIMENSIONS",
            id="unknown-size",
        ),
        pytest.param(
            None,
            {"embedding_provider": "openai", "embedding_base_url": LOCAL_SERVER} | KEY,
            "EMBEDDING_API_KEY",
            id="openai-key-is-not-for-another-address",
        ),
        pytest.param(("mystery/model", 8), KEY, "EMBEDDING_PROVIDER", id="unknown-provider"),
        pytest.param(("counting", 8), {}, "EMBEDDING_PROVIDER", id="no-provider"),
    ],
)
def test_missing_setting_is_named(
    existing: Any, settings: dict[str, Any], named: str, bundled: BundledEmbedding
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        chosen(bundled, existing, **settings)

    assert named in f"{raised.value} {raised.value.hint}"


@pytest.mark.parametrize("name", ["nomic-embed-text", "nomic-embed-text:latest", "BAAI/bge-m3"])
def test_size_of_a_common_open_model_is_known(name: str, bundled: BundledEmbedding) -> None:
    choice = chosen(
        bundled,
        embedding_provider="openai_compatible",
        embedding_base_url=LOCAL_SERVER,
        embedding_model=name,
    )

    assert choice.dimensions in (768, 1024)
    assert choice.load().dimensions is None


def test_address_in_the_environment_does_not_get_the_key(
    bundled: BundledEmbedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", "https://elsewhere.test/v1")

    model = loaded(bundled, embedding_provider="openai", **KEY)

    assert model.api_base == "https://api.openai.com/v1"


def test_retries_are_made_in_one_place(bundled: BundledEmbedding) -> None:
    assert loaded(bundled, embedding_provider="openai", **KEY).max_retries == 0


def test_bundled_model_is_loaded_without_a_second_copy(bundled: BundledEmbedding) -> None:
    assert chosen(bundled, embedding_provider="bundled").load() is bundled


def test_openai_gets_its_key_at_its_own_address(bundled: BundledEmbedding) -> None:
    model = loaded(bundled, embedding_provider="openai", **KEY)

    assert (model.api_key, model.api_base) == ("sk-openai", "https://api.openai.com/v1")


@pytest.mark.parametrize("existing", [None, ("openai_compatible/nomic", 768)])
def test_openai_key_is_never_sent_to_another_address(
    existing: Any, bundled: BundledEmbedding
) -> None:
    model = loaded(
        bundled,
        existing,
        embedding_provider="auto" if existing else "openai_compatible",
        embedding_base_url=LOCAL_SERVER,
        embedding_dimensions=768,
        **KEY,
    )

    assert (model.api_key, model.api_base) == ("none", LOCAL_SERVER)


@pytest.mark.parametrize("provider", ["openai", "openai_compatible"])
def test_embedding_key_is_what_another_address_gets(
    provider: str, bundled: BundledEmbedding
) -> None:
    model = loaded(
        bundled,
        embedding_provider=provider,
        embedding_base_url=LOCAL_SERVER,
        embedding_api_key="sk-own",
        **KEY,
    )

    assert (model.api_key, model.api_base) == ("sk-own", LOCAL_SERVER)


def test_automatic_choice_loads_the_model_of_the_corpus(bundled: BundledEmbedding) -> None:
    model = loaded(bundled, ("openai/text-embedding-3-large", 1024), **KEY)

    assert (model.model_name, model.dimensions) == ("text-embedding-3-large", 1024)


def test_size_is_not_sent_when_it_is_the_model_s_own(bundled: BundledEmbedding) -> None:
    assert loaded(bundled, SMALL, **KEY).dimensions is None


@pytest.mark.parametrize("provider", ["auto", "local"])
def test_local_reranker_comes_with_its_thresholds(provider: str, bundled: BundledEmbedding) -> None:
    reranker, profile = choose_reranker(load_settings(reranker_provider=provider), bundled)

    assert isinstance(reranker, LocalScorer)
    assert profile == LOCAL


def test_no_reranker_means_the_thresholds_of_similarity(bundled: BundledEmbedding) -> None:
    settings = load_settings(reranker_provider="none")

    assert choose_reranker(settings, bundled) == (None, SIMILARITY)
