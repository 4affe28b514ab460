"""Adds and removes single nodes as steps of a transaction, for pipelines that know no pages.

Pages of WebRAG's own are written by `page_writer`. What is added here keeps the same promises:
offsets cut the exact text out of the stored markdown, and the lexical index is complete.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from psycopg import sql
from psycopg.types.json import Jsonb

from webrag.indexing.added_nodes import AddedPage, PageEnd, PlacedNodes, place_nodes
from webrag.indexing.lexical import analyze
from webrag.indexing.node_metadata import node_from_row
from webrag.indexing.page_copies import (
    copy_children,
    copy_documents,
    copy_parents,
    copy_postings,
)
from webrag.indexing.page_rows import child_row, document_id_of, row_id
from webrag.indexing.page_writer import lock_pages, next_page_ids
from webrag.indexing.postings import pack_postings
from webrag.indexing.schema import table
from webrag.indexing.steps import Execute, Steps
from webrag.ingestion.links import content_hash, site_of

__all__ = ["add_nodes", "delete_children"]


def add_nodes(collection: str, pages: Sequence[AddedPage]) -> Steps[None]:
    """Store nodes with embeddings; a node whose id is stored already replaces it.

    A page is made for a document that is not stored: its address is the metadata's `source_url`,
    its text is made of the nodes' texts. However many pages there are, each table is loaded once.
    """
    yield from lock_pages(collection, [page.url for page in pages])
    touched = yield from _remove(
        collection, [child.node_id for page in pages for child in page.children]
    )
    stored = yield from _stored_pages(collection, [page.url for page in pages])
    known = yield from _known_parents(collection, pages)
    placed = [
        (page, place_nodes(page, stored[page.url][1] if page.url in stored else PageEnd(), known))
        for page in pages
    ]
    yield from _delete_parents(collection, placed)
    new = [(page, nodes) for page, nodes in placed if page.url not in stored]
    ids = dict(
        zip(
            (page.url for page, _ in new),
            (yield from next_page_ids(collection, len(new))),
            strict=True,
        )
    )
    yield copy_documents(collection, (_new_page(ids[each.url], each, nodes) for each, nodes in new))
    ids |= {url: page_id for url, (page_id, _) in stored.items()}
    yield copy_parents(collection, ((ids[page.url], nodes.parents) for page, nodes in placed))
    yield copy_children(
        collection,
        ((ids[page.url], nodes.children, page.embeddings) for page, nodes in placed),
    )
    yield copy_postings(collection, ((ids[page.url], pack_postings(page.terms)) for page, _ in new))
    for page, nodes in placed:
        if page.url in stored:
            yield from _write_markdown(collection, ids[page.url], nodes.markdown)
    yield from _delete_empty(collection, touched)
    for page_id in sorted({page_id for page_id, _ in stored.values()} | set(touched)):
        yield from _rebuild(collection, page_id)


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
    yield from _delete_empty(collection, touched)
    for page_id in touched:
        yield from _rebuild(collection, page_id)


def _remove(collection: str, node_ids: Sequence[str]) -> Steps[list[int]]:
    deleted = yield Execute(
        sql.SQL("delete from {} where node_id = any(%s) returning document").format(
            table(collection, "data_children")
        ),
        (list(node_ids),),
    )
    return sorted({page_id for (page_id,) in deleted})


def _delete_empty(collection: str, page_ids: Sequence[int]) -> Steps[None]:
    """Delete the parents, and the pages, that are left without searched nodes."""
    names = {name: table(collection, name) for name in ("parents", "documents")}
    names["children"] = table(collection, "data_children")
    for statement in (
        "delete from {parents} p where p.document = any(%s)"
        " and not exists (select from {children} c where c.parent_id = p.id)",
        "delete from {documents} d where d.id = any(%s)"
        " and not exists (select from {children} c where c.document = d.id)",
    ):
        yield Execute(sql.SQL(statement).format(**names), (list(page_ids),))


def _delete_parents(
    collection: str, placed: Iterable[tuple[AddedPage, PlacedNodes]]
) -> Steps[None]:
    """Make way for parents that are stored already."""
    yield Execute(
        sql.SQL("delete from {} where id = any(%s)").format(table(collection, "parents")),
        ([parent.id for _, nodes in placed for parent in nodes.parents],),
    )


def _known_parents(collection: str, pages: Iterable[AddedPage]) -> Steps[set[UUID]]:
    """Stored parents of new nodes, other than those that are made of the nodes themselves."""
    children = [child for page in pages for child in page.children]
    wanted = {each.parent_id for each in children if each.parent_id != row_id(each.node_id)}
    rows = yield Execute(
        sql.SQL("select id from {} where id = any(%s)").format(table(collection, "parents")),
        (list(wanted),),
    )
    return {found for (found,) in rows}


def _stored_pages(collection: str, urls: Sequence[str]) -> Steps[dict[str, tuple[int, PageEnd]]]:
    """The number and the end of each page that is stored."""
    rows = yield Execute(
        sql.SQL(
            """
            select d.url, d.id, d.markdown,
                   coalesce((select max(ordinal) + 1 from {children} where document = d.id), 0),
                   coalesce((select max(chunk_index) + 1 from {parents} where document = d.id), 0),
                   coalesce((select max(token_end) from {parents} where document = d.id), 0)
            from {documents} d where d.url = any(%s)
            """
        ).format(
            children=table(collection, "data_children"),
            parents=table(collection, "parents"),
            documents=table(collection, "documents"),
        ),
        (list(urls),),
    )
    return {url: (page_id, PageEnd(*end)) for url, page_id, *end in rows}


def _new_page(page_id: int, page: AddedPage, nodes: PlacedNodes) -> dict[str, Any]:
    is_web = page.url.startswith("http")
    return {
        "id": page_id,
        "document_id": document_id_of(page.url) if is_web else uuid5(NAMESPACE_OID, page.url),
        "url": page.url,
        "requested_url": page.url,
        "aliases": [],
        "site": site_of(page.url) if is_web else "",
        "title": page.title,
        "fetched_at": datetime.now(UTC),
        "depth": 0,
        "markdown": nodes.markdown,
        "html": "",
        "content_hash": content_hash(nodes.markdown),
        "status": 200,
        "source": "llamaindex",
        "token_count": nodes.token_count,
        "child_count": len(nodes.children),
        "term_count": sum(map(len, page.terms)),
        "anchors": Jsonb([]),
    }


def _write_markdown(collection: str, page_id: int, markdown: str) -> Steps[None]:
    yield Execute(
        sql.SQL("update {} set markdown = %s, content_hash = %s where id = %s").format(
            table(collection, "documents")
        ),
        (markdown, content_hash(markdown), page_id),
    )


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
        yield copy_postings(collection, [(page_id, pack_postings(terms))])
    yield Execute(
        sql.SQL(
            "update {documents} set child_count = %s, term_count = %s, token_count ="
            " (select coalesce(max(token_end), 0) from {parents} where document = %s)"
            " where id = %s"
        ).format(documents=table(collection, "documents"), parents=table(collection, "parents")),
        (child_count, sum(map(len, terms)), page_id, page_id),
    )
