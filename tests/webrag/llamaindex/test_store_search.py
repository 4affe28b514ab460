"""Every query mode of the store, over real rows, in both kinds of call."""

from typing import Any

import numpy as np
import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from webrag.corpus.pages import Corpus
from webrag.errors import InputError
from webrag.llamaindex.store import CorpusVectorStore
from webrag.postgres.database import Database

from .made_nodes import DIMENSIONS, node, vector

Mode = VectorStoreQueryMode
ALL_MODES = [Mode.DEFAULT, Mode.SPARSE, Mode.TEXT_SEARCH, Mode.HYBRID, Mode.MMR]
TEXTS = {
    "heron": "The heron stands in the river and waits for fish.",
    "herons": "Herons, herons and more herons: a colony of the grey heron.",
    "code": "Error E0502 is raised when a replica lags behind the primary.",
    "tea": "Green tea is steeped for two minutes.",
}


def query(mode: Mode, words: str, near: str = "tea", top_k: int = 3, **more: Any) -> Any:
    return VectorStoreQuery(
        query_str=words, query_embedding=vector(near), similarity_top_k=top_k, mode=mode, **more
    )


def only(**wanted: Any) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=k, value=v) for k, v in wanted.items()])


@pytest.fixture
async def store(database: Database) -> CorpusVectorStore:
    made = CorpusVectorStore(database=database, embed_dim=DIMENSIONS)
    await made.async_add(
        [
            node(
                name,
                text,
                kind="bird" if "heron" in name else "other",
                source_url=f"https://a.test/{name}",
            )
            for name, text in TEXTS.items()
        ]
    )
    return made


@pytest.mark.parametrize("mode", [Mode.SPARSE, Mode.TEXT_SEARCH])
async def test_words_find_the_chunks_that_hold_them_best_first(
    store: CorpusVectorStore, mode: Mode
) -> None:
    result = await store.aquery(query(mode, "Where does a heron live?"))

    assert result.ids == ["herons", "heron"]
    assert result.similarities == sorted(result.similarities, reverse=True)
    assert [each.text for each in result.nodes] == [TEXTS["herons"], TEXTS["heron"]]


async def test_sparse_search_needs_no_embedding(store: CorpusVectorStore) -> None:
    found = await store.aquery(
        VectorStoreQuery(query_str="E0502", similarity_top_k=5, mode=Mode.SPARSE)
    )

    assert found.ids == ["code"]


async def test_words_that_occur_nowhere_find_nothing(store: CorpusVectorStore) -> None:
    assert (await store.aquery(query(Mode.SPARSE, "zeppelin"))).ids == []


async def test_sparse_top_k_bounds_the_lexical_result(store: CorpusVectorStore) -> None:
    found = await store.aquery(query(Mode.SPARSE, "heron", top_k=5, sparse_top_k=1))

    assert found.ids == ["herons"]


async def test_hybrid_finds_what_either_leg_finds(store: CorpusVectorStore) -> None:
    found = await store.aquery(query(Mode.HYBRID, "E0502", near="tea", top_k=2))

    assert set(found.ids) == {"code", "tea"}
    assert all(0 <= score <= 1 for score in found.similarities)


@pytest.mark.parametrize(("alpha", "first"), [(0.0, "code"), (1.0, "tea")])
async def test_alpha_is_the_share_of_meaning(
    store: CorpusVectorStore, alpha: float, first: str
) -> None:
    found = await store.aquery(query(Mode.HYBRID, "E0502", near="tea", alpha=alpha))

    assert found.ids[0] == first


async def test_hybrid_top_k_bounds_the_fused_result(store: CorpusVectorStore) -> None:
    found = await store.aquery(query(Mode.HYBRID, "heron", top_k=4, hybrid_top_k=1))

    assert len(found.ids) == 1


async def test_mmr_leaves_repetitions_out(database: Database) -> None:
    store = CorpusVectorStore(database=database, embed_dim=DIMENSIONS)
    near = np.array(vector("question"))
    others = np.array(vector("another"))
    nodes = [node("copy1", "One."), node("copy2", "Two."), node("different", "Three.")]
    nodes[0].embedding = (near + 0.10 * others).tolist()
    nodes[1].embedding = (near + 0.11 * others).tolist()
    nodes[2].embedding = (near - 1.0 * others).tolist()
    await store.async_add(nodes)

    plain = await store.aquery(query(Mode.DEFAULT, "", near="question", top_k=2))
    varied = await store.aquery(query(Mode.MMR, "", near="question", top_k=2, mmr_threshold=0.4))

    assert plain.ids == ["copy1", "copy2"]
    assert varied.ids == ["copy1", "different"]


async def test_mmr_without_any_variety_is_the_default_order(store: CorpusVectorStore) -> None:
    plain = await store.aquery(query(Mode.DEFAULT, "x", top_k=4))
    varied = await store.aquery(query(Mode.MMR, "x", top_k=4, mmr_threshold=1.0))

    assert varied.ids == plain.ids
    assert varied.similarities == pytest.approx(plain.similarities, abs=1e-3)


@pytest.mark.parametrize("mode", ALL_MODES)
async def test_filters_hold_in_every_mode(store: CorpusVectorStore, mode: Mode) -> None:
    found = await store.aquery(query(mode, "heron tea E0502", top_k=4, filters=only(kind="other")))

    assert set(found.ids) == {"code", "tea"}


@pytest.mark.parametrize("mode", ALL_MODES)
async def test_filter_values_are_never_sql(store: CorpusVectorStore, mode: Mode) -> None:
    evil = "x' OR 1=1 --"
    filters = MetadataFilters(
        filters=[
            MetadataFilter(key="kind", value=[evil, "%s", ":name"], operator=FilterOperator.IN)
        ]
    )

    assert (await store.aquery(query(mode, "heron", filters=filters))).ids == []
    with pytest.raises(InputError, match="No stored node has the metadata key"):
        await store.aquery(query(mode, "heron", filters=only(**{evil: "x"})))


@pytest.mark.parametrize("mode", ALL_MODES)
async def test_synchronous_query_gives_the_same(store: CorpusVectorStore, mode: Mode) -> None:
    asked = query(mode, "heron tea", top_k=3)

    synchronous, asynchronous = store.query(asked), await store.aquery(asked)

    assert synchronous.ids == asynchronous.ids
    assert synchronous.similarities == asynchronous.similarities


@pytest.mark.parametrize("mode", ALL_MODES)
async def test_gone_pages_are_found_in_no_mode(
    store: CorpusVectorStore, database: Database, mode: Mode
) -> None:
    corpus = Corpus(database)
    for name in ("heron", "herons"):
        page = await corpus.page(f"https://a.test/{name}")
        await corpus.mark_gone(page.url, page.fetched_at)

    found = await store.aquery(query(mode, "heron tea", top_k=4))

    assert not {"heron", "herons"} & set(found.ids)


@pytest.mark.parametrize("mode", [Mode.SPARSE, Mode.TEXT_SEARCH, Mode.HYBRID])
async def test_words_are_asked_for_where_they_are_needed(
    store: CorpusVectorStore, mode: Mode
) -> None:
    with pytest.raises(InputError, match=rf"'{mode.value}' searches for words: set query_str"):
        await store.aquery(query(mode, " "))


@pytest.mark.parametrize(
    ("mode", "values", "named"),
    [(Mode.HYBRID, {"alpha": 1.5}, "alpha"), (Mode.MMR, {"mmr_threshold": -1.0}, "mmr_threshold")],
)
async def test_shares_out_of_range_are_refused(
    store: CorpusVectorStore, mode: Mode, values: dict[str, float], named: str
) -> None:
    with pytest.raises(InputError, match=f"{named} is .* between 0 and 1"):
        await store.aquery(query(mode, "x", **values))


async def test_stock_retriever_asks_in_hybrid_mode(
    store: CorpusVectorStore, counting_embedding: BaseEmbedding
) -> None:
    index = VectorStoreIndex.from_vector_store(store, embed_model=counting_embedding)
    retriever = index.as_retriever(vector_store_query_mode="hybrid", similarity_top_k=2, alpha=0.0)

    found = await retriever.aretrieve("E0502")

    assert found[0].node_id == "code"
