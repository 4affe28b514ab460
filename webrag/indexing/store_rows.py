"""Adds and removes single nodes as steps of a transaction, for pipelines that know no pages.

Pages of WebRAG's own are written by `page_writer`. What is added here keeps the same promises:
offsets cut the exact text out of the stored markdown, and the lexical index is complete.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import NAMESPACE_OID, uuid5

from llama_index.core.schema import BaseNode, NodeRelationship
from llama_index.core.utils import get_tokenizer
from psycopg import sql

from webrag.errors import InputError
from webrag.indexing.lexical import analyze
from webrag.indexing.node_metadata import node_from_row
from webrag.indexing.page_rows import (
    ChildRow,
    ParentRow,
    child_row,
    document_id_of,
    parent_id_of,
    parent_row,
    row_id,
)
from webrag.indexing.page_writer import (
    copy_children,
    copy_parents,
    copy_postings,
    insert_document,
    lock_pages,
)
from webrag.indexing.postings import pack_postings
from webrag.indexing.schema import table
from webrag.indexing.steps import Execute, Rows, Steps
from webrag.ingestion.links import canonical_url, content_hash, site_of

__all__ = ["add_nodes", "delete_children"]


class _Target(NamedTuple):
    """The stored page that nodes are added to."""

    id: int
    markdown: str
    next_ordinal: int
    next_chunk: int
    next_token: int


def add_nodes(collection: str, nodes: Sequence[BaseNode]) -> Steps[None]:
    """Store nodes with embeddings; a node whose id is stored already replaces it.

    Nodes that have children become parents, the others are searched. A page is made for a
    document that is not stored: its address is the metadata's `source_url`, its text is made of
    the nodes' texts.
    """
    leaves = [node for node in nodes if NodeRelationship.CHILD not in node.relationships]
    inner = [node for node in nodes if NodeRelationship.CHILD in node.relationships]
    inner_ids = {node.node_id for node in inner}
    lowest = [node for node in inner if not inner_ids & {c.node_id for c in node.child_nodes or []}]
    by_page: dict[str, list[BaseNode]] = defaultdict(list)
    for node in (*lowest, *leaves):
        by_page[_page_key(node)].append(node)
    yield from lock_pages(collection, by_page)
    touched = yield from _remove(collection, [node.node_id for node in leaves])
    for url in sorted(by_page):
        yield from _add_to_page(collection, url, by_page[url])
    yield from _clean(collection, touched)


def delete_children(collection: str, node_ids: Sequence[str]) -> Steps[None]:
    """Delete searched nodes, and parents and pages that are left without any."""
    urls = yield Execute(
        sql.SQL(
            "select distinct d.url from {children} c join {documents} d on d.id = c.document"
            " where c.node_id = any(%s)"
        ).format(
            children=table(collection, "data_children"), documents=table(collection, "documents")
        ),
        (list(node_ids),),
    )
    yield from lock_pages(collection, [url for (url,) in urls])
    touched = yield from _remove(collection, node_ids)
    yield from _clean(collection, touched)


def _remove(collection: str, node_ids: Sequence[str]) -> Steps[list[int]]:
    deleted = yield Execute(
        sql.SQL("delete from {} where node_id = any(%s) returning document").format(
            table(collection, "data_children")
        ),
        (list(node_ids),),
    )
    return sorted({page_id for (page_id,) in deleted})


def _clean(collection: str, page_ids: Sequence[int]) -> Steps[None]:
    names = {name: table(collection, name) for name in ("parents", "documents")}
    names["children"] = table(collection, "data_children")
    for statement in (
        "delete from {parents} p where p.document = any(%s)"
        " and not exists (select from {children} c where c.parent_id = p.id)",
        "delete from {documents} d where d.id = any(%s)"
        " and not exists (select from {children} c where c.document = d.id)",
    ):
        yield Execute(sql.SQL(statement).format(**names), (list(page_ids),))
    for page_id in page_ids:
        yield from _rebuild(collection, page_id)


def _add_to_page(collection: str, url: str, nodes: Sequence[BaseNode]) -> Steps[None]:
    found = yield from _target(collection, url)
    target = found or (yield from _new_page(collection, url, nodes[0]))
    parents, children, markdown = yield from _place(collection, target, nodes)
    leaves = {node.node_id: node for node in nodes}
    yield Execute(
        sql.SQL("delete from {} where id = any(%s)").format(table(collection, "parents")),
        ([parent.id for parent in parents],),
    )
    yield copy_parents(collection, target.id, parents)
    embeddings = [leaves[child.node_id].get_embedding() for child in children]
    yield copy_children(collection, target.id, children, embeddings)
    yield Execute(
        sql.SQL("update {} set markdown = %s, content_hash = %s where id = %s").format(
            table(collection, "documents")
        ),
        (markdown, content_hash(markdown), target.id),
    )
    if found is None:
        terms = [analyze(child.indexed_text) for child in children]
        yield from _index_terms(collection, target.id, terms, len(children))
    else:
        yield from _rebuild(collection, target.id)


def _place(
    collection: str, target: _Target, nodes: Sequence[BaseNode]
) -> Steps[tuple[list[ParentRow], list[ChildRow], str]]:
    """Give every node a place in the page's text, which grows by what it lacks."""
    leaves = [node for node in nodes if NodeRelationship.CHILD not in node.relationships]
    upper = [node for node in nodes if NodeRelationship.CHILD in node.relationships]
    known = yield from _known_parents(collection, leaves)
    known |= {row_id(node.node_id) for node in upper}
    orphans = {leaf.node_id for leaf in leaves if parent_id_of(leaf) not in known}
    upper += [leaf for leaf in leaves if leaf.node_id in orphans]
    count_tokens = get_tokenizer()
    markdown, token = target.markdown, target.next_token
    parents: list[ParentRow] = []
    for index, node in enumerate(upper, target.next_chunk):
        row = parent_row(node, index)
        markdown, start = _located(markdown, row.text, row.char_start)
        end = token + len(count_tokens(row.text))
        moved = replace(row, char_start=start, char_end=start + len(row.text))
        parents.append(replace(moved, token_start=token, token_end=end))
        token = end
    spans = {row.id: (row.char_start, row.char_end) for row in parents}
    children: list[ChildRow] = []
    for ordinal, leaf in enumerate(leaves, target.next_ordinal):
        child = child_row(leaf, ordinal)
        if leaf.node_id in orphans:
            child = replace(child, parent_id=row_id(leaf.node_id))
        around = spans.get(child.parent_id, (0, None))
        markdown, start = _located(markdown, child.text, child.char_start, *around)
        children.append(replace(child, char_start=start, char_end=start + len(child.text)))
    return parents, children, markdown


def _located(
    markdown: str, text: str, hint: int, start: int = 0, end: int | None = None
) -> tuple[str, int]:
    """Where a text stands: as its node says, else within a range, else behind all the rest."""
    if start <= hint and markdown.startswith(text, hint, end):
        return markdown, hint
    found = markdown.find(text, start, end)
    if found >= 0:
        return markdown, found
    joined = f"{markdown}\n\n" if markdown else ""
    return joined + text, len(joined)


def _known_parents(collection: str, leaves: Sequence[BaseNode]) -> Steps[set[Any]]:
    wanted = list({parent_id_of(leaf) for leaf in leaves})
    rows = yield Execute(
        sql.SQL("select id from {} where id = any(%s)").format(table(collection, "parents")),
        (wanted,),
    )
    return {found for (found,) in rows}


def _target(collection: str, url: str) -> Steps[_Target | None]:
    rows: Rows = yield Execute(
        sql.SQL(
            """
            select d.id, d.markdown,
                   coalesce((select max(ordinal) + 1 from {children} where document = d.id), 0),
                   coalesce((select max(chunk_index) + 1 from {parents} where document = d.id), 0),
                   coalesce((select max(token_end) from {parents} where document = d.id), 0)
            from {documents} d where d.url = %s
            """
        ).format(
            children=table(collection, "data_children"),
            parents=table(collection, "parents"),
            documents=table(collection, "documents"),
        ),
        (url,),
    )
    return _Target(*rows[0]) if rows else None


def _new_page(collection: str, url: str, node: BaseNode) -> Steps[_Target]:
    is_web = url.startswith("http")
    page_id = yield from insert_document(
        collection,
        {
            "document_id": document_id_of(url) if is_web else uuid5(NAMESPACE_OID, url),
            "url": url,
            "requested_url": url,
            "site": site_of(url) if is_web else "",
            "title": node.metadata.get("title"),
            "fetched_at": datetime.now(UTC),
            "depth": 0,
            "markdown": "",
            "html": "",
            "content_hash": content_hash(""),
            "status": 200,
            "source": "llamaindex",
            "token_count": 0,
            "child_count": 0,
            "term_count": 0,
        },
    )
    return _Target(page_id, "", 0, 0, 0)


def _rebuild(collection: str, page_id: int) -> Steps[None]:
    """Make a page's postings and counts anew from its chunks."""
    rows = yield Execute(
        sql.SQL(
            "select ordinal, node_id, text, metadata_ from {} where document = %s order by ordinal"
        ).format(table(collection, "data_children")),
        (page_id,),
    )
    terms: list[list[str]] = [[] for _ in range(rows[-1][0] + 1 if rows else 0)]
    for ordinal, node_id, text, metadata in rows:
        node = node_from_row(node_id, text, metadata)
        terms[ordinal] = analyze(child_row(node, ordinal).indexed_text)
    yield Execute(
        sql.SQL("delete from {} where document = %s").format(table(collection, "postings")),
        (page_id,),
    )
    yield from _index_terms(collection, page_id, terms, len(rows))


def _index_terms(
    collection: str, page_id: int, terms: list[list[str]], child_count: int
) -> Steps[None]:
    """Store a page's postings and counts; `terms` by ordinal, which may have gaps."""
    if terms:
        yield copy_postings(collection, page_id, pack_postings(terms))
    yield Execute(
        sql.SQL(
            "update {documents} set child_count = %s, term_count = %s, token_count ="
            " (select coalesce(max(token_end), 0) from {parents} where document = %s)"
            " where id = %s"
        ).format(documents=table(collection, "documents"), parents=table(collection, "parents")),
        (child_count, sum(map(len, terms)), page_id, page_id),
    )


def _page_key(node: BaseNode) -> str:
    """The address nodes of one document are stored under."""
    source_url = node.metadata.get("source_url")
    if isinstance(source_url, str):
        try:
            return canonical_url(source_url)
        except InputError:
            return f"node:{source_url}"
    return f"node:{node.ref_doc_id or node.node_id}"
