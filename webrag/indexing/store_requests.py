"""Checks what is asked of the vector store, and reads the options of a query. Does no I/O."""

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.schema import BaseNode, NodeRelationship
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode

from webrag.errors import InputError
from webrag.indexing.store_search import LEXICAL_MODES, SearchOptions

__all__ = ["QUERY_MODES", "check_embeddings", "check_query", "search_options"]

QUERY_MODES = (
    VectorStoreQueryMode.DEFAULT,
    VectorStoreQueryMode.SPARSE,
    VectorStoreQueryMode.TEXT_SEARCH,
    VectorStoreQueryMode.HYBRID,
    VectorStoreQueryMode.MMR,
)
"""Query modes the store answers."""

_DEFAULT_EF_SEARCH = 200
_PREFETCH_FACTOR = 4  # of mmr, as in PGVectorStore


def search_options(
    query: VectorStoreQuery, kwargs: Mapping[str, Any], hnsw: Mapping[str, Any] | None
) -> SearchOptions:
    """Give how to search.

    Args:
        query: Its `mmr_threshold` counts before that of `kwargs`.
        kwargs: Those of the call.
        hnsw: The store's `hnsw_kwargs`.

    Raises:
        InputError: The threshold is out of range.
    """
    configured = (hnsw or {}).get("hnsw_ef_search", _DEFAULT_EF_SEARCH)
    factor = kwargs.get("mmr_prefetch_factor") or _PREFETCH_FACTOR
    prefetch = kwargs.get("mmr_prefetch_k") or query.similarity_top_k * factor
    given = (query.mmr_threshold, kwargs.get("mmr_threshold"), 0.5)
    variety = next(value for value in given if value is not None)
    if not 0 <= variety <= 1:
        raise InputError(f"mmr_threshold is {variety}; it must be between 0 and 1.")
    return SearchOptions(
        ef_search=int(kwargs.get("hnsw_ef_search") or configured),
        prefetch=int(prefetch),
        variety=float(variety),
    )


def check_query(query: VectorStoreQuery, dimensions: int) -> None:
    """Refuse a query that cannot be answered.

    Args:
        query: What is asked.
        dimensions: Those of the collection.

    Raises:
        InputError: The mode is not offered, or it lacks what it is asked by.
    """
    if query.mode not in QUERY_MODES:
        offered = ", ".join(mode.value for mode in QUERY_MODES)
        raise InputError(
            f"The query mode {query.mode.value!r} is not offered by this store; offered: {offered}."
        )
    if query.mode in LEXICAL_MODES:
        if not (query.query_str or "").strip():
            raise InputError(
                f"The query mode {query.mode.value!r} searches for words: set query_str."
            )
        if query.alpha is not None and not 0 <= query.alpha <= 1:
            raise InputError(f"alpha is {query.alpha}; it must be between 0 and 1.")
        if query.mode != VectorStoreQueryMode.HYBRID:
            return
    if query.query_embedding is None:
        raise InputError("The query has no embedding: set query_embedding.")
    if len(query.query_embedding) != dimensions:
        raise InputError(
            f"The query embedding has {len(query.query_embedding)} dimensions; "
            f"the collection has {dimensions}."
        )


def check_embeddings(nodes: Sequence[BaseNode], dimensions: int) -> None:
    """Refuse searched nodes that could not be found.

    Args:
        nodes: Those with children are parents and need no embedding.
        dimensions: Those of the collection.

    Raises:
        InputError: An embedding is missing, or has another size.
    """
    for node in nodes:
        if NodeRelationship.CHILD in node.relationships:
            continue
        size = None if node.embedding is None else len(node.embedding)
        if size != dimensions:
            raise InputError(
                f"Node {node.node_id} has {size or 'no'} embedding dimensions; "
                f"the collection needs {dimensions}."
            )
