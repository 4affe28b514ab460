"""Cross-encoders of this process: the real fastembed runs a tiny BERT that is built here."""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastembed.rerank.cross_encoder import TextCrossEncoder
from fastembed.rerank.cross_encoder.custom_text_cross_encoder import CustomTextCrossEncoder
from llama_index.postprocessor.webrag.local_scoring import CrossEncoderScorer
from llama_index.postprocessor.webrag.rerank_features import Passage
from llama_index.postprocessor.webrag.wordings import AskedWording

from tests.webrag.orchestration.conftest import build_chunk, build_result
from webrag.embedding.bundled import BundledEmbedding
from webrag.errors import ConfigurationError, how_to_install
from webrag.orchestration.confidence import CROSS_ENCODER, LOCAL
from webrag.orchestration.ranking.reranker import ChunkReranker, rank_parts
from webrag.settings import load_settings
from webrag.wiring.rerankers import (
    as_postprocessor,
    choose_fallback,
    choose_reranker,
    local_scorer,
)

from .tiny_bert import write_cross_encoder

BUNDLED = BundledEmbedding()
TEXTS = ("storage snapshot", "replica primary volume", "snapshot", "volume " * 200, "primary")


@pytest.fixture(autouse=True)
def known_models() -> Iterator[None]:
    """Forget the models that a test makes known to fastembed."""
    known = list(CustomTextCrossEncoder.SUPPORTED_MODELS)
    yield
    CustomTextCrossEncoder.SUPPORTED_MODELS[:] = known


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_cross_encoder(tmp_path_factory.mktemp("models") / "tiny")


def chosen(model: Path | str, **settings: Any) -> CrossEncoderScorer:
    settings = {"reranker_provider": "cross_encoder", "reranker_model": str(model)} | settings
    scorer, profile = choose_reranker(load_settings(**settings), BUNDLED)
    assert profile is CROSS_ENCODER
    assert isinstance(scorer, CrossEncoderScorer)
    return scorer


def scored(scorer: CrossEncoderScorer, *texts: str) -> list[float]:
    asked = AskedWording("snapshot storage", {}, [None] * len(texts), [None] * len(texts))
    [scores] = scorer.score_passages([Passage(text) for text in texts], [asked])
    return scores


def test_model_in_a_folder_scores_passages(folder: Path) -> None:
    scores = scored(chosen(folder), *TEXTS)

    assert len(set(scores)) == len(TEXTS)
    assert all(0 < score < 1 for score in scores)


def test_scores_do_not_depend_on_what_else_is_read(folder: Path) -> None:
    scorer = chosen(folder)

    alone = [scored(scorer, text)[0] for text in TEXTS]

    assert scored(scorer, *TEXTS) == pytest.approx(alone, abs=1e-5)


def test_threads_get_the_same_scores(folder: Path) -> None:
    scorer = chosen(folder)

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: scored(scorer, *TEXTS), range(8)))

    assert all(each == pytest.approx(found[0], abs=1e-6) for each in found)


def test_folder_that_does_not_exist_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        chosen(tmp_path / "none")

    assert "There is no folder" in str(caught.value)
    assert "RERANKER_MODEL" in str(caught.value.hint)


def test_folder_without_a_network_needs_the_other_extra(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        chosen(tmp_path)

    assert caught.value.hint == how_to_install("huggingface")


def test_broken_network_is_an_error_that_names_the_model(folder: Path, tmp_path: Path) -> None:
    broken = write_cross_encoder(tmp_path / "broken")
    (broken / "model.onnx").write_bytes(b"no network")

    with pytest.raises(ConfigurationError, match=r"cross-encoder .*broken' cannot be loaded by "):
        chosen(broken)


def test_download_without_a_network_says_what_was_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # else a failed download is tried for 12 s

    with pytest.raises(ConfigurationError) as caught:
        choose_reranker(
            load_settings(reranker_provider="cross_encoder", data_dir=tmp_path), BUNDLED
        )

    assert "Xenova/ms-marco-MiniLM-L-6-v2" in str(caught.value)
    assert "RERANKER_PROVIDER=local needs none" in str(caught.value.hint)
    assert "once: about 80 MB, licence apache-2.0" in caplog.text


def test_fastembed_lists_the_reranker_that_is_taken_by_itself() -> None:
    listed = {each["model"] for each in TextCrossEncoder.list_supported_models()}

    assert "Xenova/ms-marco-MiniLM-L-6-v2" in listed


def test_llama_index_gets_the_same_model(folder: Path) -> None:
    scorer = chosen(folder)

    rerank = as_postprocessor(scorer)

    assert rerank is not None
    assert rerank.class_name() == "CrossEncoderRerank"
    assert rerank.scorer is scorer  # type: ignore[attr-defined]


def chunks(*texts: str) -> Any:
    return build_result(*(build_chunk(text, title="") for text in texts))


def product_reranker(scorer: CrossEncoderScorer) -> ChunkReranker:
    fallback, profile = choose_fallback(scorer, BUNDLED)
    return ChunkReranker(scorer, CROSS_ENCODER, fallback=fallback, fallback_profile=profile)


async def test_product_ranks_by_it(folder: Path) -> None:
    scorer = chosen(folder)

    ranked, note = await product_reranker(scorer).rerank("snapshot storage", chunks(*TEXTS))

    assert note is None
    found = {item.chunk.text: item.reranked_score for item in ranked}
    own = dict(zip(TEXTS, scored(scorer, *TEXTS), strict=True))
    assert found == pytest.approx(own, abs=1e-5)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def slow() -> ChunkReranker:
    """The product's reranker around a cross-encoder that has time for one passage."""
    first = local_scorer(BUNDLED)
    return product_reranker(
        CrossEncoderScorer(lambda _, texts: [1.0] * len(texts), first, pair_s=4.0, name="slow")
    )


async def test_too_little_time_leaves_it_to_the_local_reranker_and_says_so() -> None:
    reranker = slow()
    local = ChunkReranker(local_scorer(BUNDLED), LOCAL)
    result = chunks(*TEXTS)

    ranked, note = await reranker.rerank("snapshot storage", result)
    expected, _ = await local.rerank("snapshot storage", result)

    assert note is not None
    assert "ranked by the local reranker instead" in note
    assert [i.chunk.chunk_id for i in ranked] == [i.chunk.chunk_id for i in expected]
    assert reranker.fallback_profile is LOCAL


async def test_parts_of_a_question_are_all_left_to_the_local_reranker() -> None:
    reranker, few, many = slow(), chunks("storage"), chunks(*TEXTS)

    ranked, note = await rank_parts(reranker, [("storage", few), ("snapshot", many)])

    assert note is not None
    assert ranked[0] == await reranker.rank_by_fallback("storage", few)
    assert ranked[0][0].reranked_score != 0.5 * (1 + math.tanh(0.5))  # the cross-encoder's
