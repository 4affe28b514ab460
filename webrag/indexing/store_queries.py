"""The look-ups and removals of the vector store, as steps of a transaction; it ranks nothing."""

from collections.abc import Sequence

from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    MetadataFilters,
)
from psycopg import sql

from webrag.indexing.node_metadata import NODE_COLUMNS, node_from_columns
from webrag.indexing.schema import table
from webrag.indexing.steps import Execute, Steps
from webrag.indexing.store_filters import (
    Condition,
    all_of,
    filter_condition,
    ids_condition,
)
from webrag.indexing.store_rows import delete_children

__all__ = ["clear", "delete_document", "delete_matching", "select_nodes"]

_SELECT = f"""
select {NODE_COLUMNS} from {{children}} c join {{documents}} d on d.id = c.document
where {{condition}} order by c.document, c.ordinal
"""


def select_nodes(
    collection: str, node_ids: Sequence[str] | None, filters: MetadataFilters | None
) -> Steps[list[TextNode]]:
    """Give the nodes that match, in page order; all when nothing is asked for."""
    condition = _condition(node_ids, filters)
    rows = yield Execute(_compose(collection, _SELECT, condition), condition.values)
    return [node_from_columns(*row) for row in rows]


def delete_matching(
    collection: str, node_ids: Sequence[str] | None, filters: MetadataFilters | None
) -> Steps[None]:
    """Delete the nodes that match; none when nothing is asked for."""
    if node_ids is None and filters is None:
        return
    found = yield from select_nodes(collection, node_ids, filters)
    yield from delete_children(collection, [node.node_id for node in found])


def delete_document(collection: str, ref_doc_id: str) -> Steps[None]:
    """Delete what was made from a document, and its page when nothing else belongs to it."""
    rows = yield Execute(
        sql.SQL("select node_id from {} where metadata_->>'ref_doc_id' = %s").format(
            table(collection, "data_children")
        ),
        (ref_doc_id,),
    )
    yield from delete_children(collection, [node_id for (node_id,) in rows])
    yield Execute(
        sql.SQL("delete from {} where document_id::text = %s").format(
            table(collection, "documents")
        ),
        (ref_doc_id,),
    )


def clear(collection: str) -> Steps[None]:
    """Delete all pages with everything made from them."""
    yield Execute(sql.SQL("delete from {}").format(table(collection, "documents")))


def _condition(node_ids: Sequence[str] | None, filters: MetadataFilters | None) -> Condition:
    parts = [] if node_ids is None else [ids_condition(node_ids)]
    parts += [] if filters is None else [filter_condition(filters)]
    return all_of(parts)


def _compose(collection: str, statement: str, condition: Condition) -> sql.Composed:
    return sql.SQL(statement).format(
        children=table(collection, "data_children"),
        documents=table(collection, "documents"),
        condition=condition.sql,
    )
