"""Adds, reads and removes single nodes, for pipelines that know no pages."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import NAMESPACE_OID, UUID, uuid5

from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, TextNode
from llama_index.core.utils import get_tokenizer
from llama_index.core.vector_stores.types import MetadataFilters
from llama_index.node_parser.webrag import LINE
from psycopg import sql
from psycopg.types.json import Jsonb

from webrag.concurrency import in_background
from webrag.corpus.rows import (
    ChildRow,
    ParentRow,
    child_row,
    document_id_of,
    fields_of,
    indexed_text,
    parent_id_of,
    parent_row,
    row_id,
    storable_node,
)
from webrag.corpus.writer import (
    copy_children,
    copy_documents,
    copy_parents,
    copy_postings,
    edition_row,
    lock_pages,
    next_page_ids,
)
from webrag.errors import InputError
from webrag.ingestion.addresses import content_hash, file_url, is_file, page_address, site_of
from webrag.ingestion.characters import storable
from webrag.ingestion.versions import Edition, edition_of, plain_version
from webrag.lexical.postings import PostingRow, pack_texts
from webrag.llamaindex.store_filters import filter_condition, ids_condition, refuse_unknown_keys
from webrag.llamaindex.stored_nodes import ADDED, STORED_NODE, select_parents, stored_node
from webrag.postgres.database import Connection
from webrag.retrieval.filters import all_of

_Words = tuple[list[PostingRow], int]


class PageEnd(NamedTuple):
    """The end of the stored page that nodes are added to; all empty for one that is not stored."""

    markdown: str = ""
    next_ordinal: int = 0
    next_chunk: int = 0
    next_token: int = 0


@dataclass(frozen=True, slots=True)
class AddedPage:
    """The nodes of one page, made into rows as far as that goes without knowing the page.

    Its address is one of the web, of a file, or `document:` and the document's id. By the ids of
    searched nodes that are a parent's only child there are rows to be used unless that parent is
    stored; `tokens` says how long each parent is, those of only children included.
    """

    url: str
    title: str | None
    edition: Edition | None
    parents: list[ParentRow]
    children: list[ChildRow]
    only_child_parents: dict[str, ParentRow]
    tokens: dict[UUID, int]
    embeddings: list[list[float]]


@dataclass(frozen=True, slots=True)
class PlacedNodes:
    """Rows in their places, and the text of the page they belong to."""

    parents: list[ParentRow]
    children: list[ChildRow]
    markdown: str

    @property
    def anchors(self) -> list[dict[str, Any]]:
        """The lines of the file that chunks begin in, where the parser noted them."""
        return [
            {"char_start": child.char_start, "fragment": f"L{line}"}
            for child in self.children
            if (line := _number(child.metadata, LINE)) is not None
        ]

    @property
    def token_count(self) -> int:
        """The length of the page."""
        return max((parent.token_end for parent in self.parents), default=0)


def pages_of_nodes(nodes: Sequence[BaseNode]) -> list[AddedPage]:
    """Give the pages that nodes belong to, in one order of their addresses.

    Of nodes that have children only the lowest become parents. This does nearly all the work of
    storing nodes, and takes about a millisecond for each.
    """
    nodes = list(map(storable_node, nodes))
    leaves = [node for node in nodes if NodeRelationship.CHILD not in node.relationships]
    inner = [node for node in nodes if NodeRelationship.CHILD in node.relationships]
    inner_ids = {node.node_id for node in inner}
    lowest = [node for node in inner if not inner_ids & {c.node_id for c in node.child_nodes or []}]
    by_page: dict[str, tuple[list[BaseNode], list[BaseNode]]] = defaultdict(lambda: ([], []))
    for place, group in enumerate((lowest, leaves)):
        for node in group:
            by_page[_page_key(node)][place].append(node)
    return [_page(url, *by_page[url]) for url in sorted(by_page)]


def place_nodes(page: AddedPage, end: PageEnd, stored_parents: Set[UUID]) -> PlacedNodes:
    """Give every node a place in the page's text, behind what it holds.

    Rows that stand already and may be the parents of new nodes are `stored_parents`.
    """
    known = stored_parents | {parent.chunk_id for parent in page.parents}
    only_children = [
        page.only_child_parents[child.node_id]
        for child in page.children
        if child.parent_id not in known
    ]
    markdown, token = end.markdown, end.next_token
    parents: list[ParentRow] = []
    for index, row in enumerate([*page.parents, *only_children], end.next_chunk):
        markdown, start = _located(markdown, row.text, row.char_start)
        token_end = token + page.tokens[row.chunk_id]
        parents.append(
            row.model_copy(
                update={
                    "chunk_index": index,
                    "char_start": start,
                    "char_end": start + len(row.text),
                    "token_start": token,
                    "token_end": token_end,
                }
            )
        )
        token = token_end
    spans = {row.chunk_id: (row.char_start, row.char_end) for row in parents}
    children: list[ChildRow] = []
    for ordinal, child in enumerate(page.children, end.next_ordinal):
        parent_id = child.parent_id
        if parent_id not in known:
            parent_id = page.only_child_parents[child.node_id].chunk_id
        around = spans.get(parent_id, (0, None))
        markdown, start = _located(markdown, child.text, child.char_start, *around)
        children.append(
            replace(
                child,
                parent_id=parent_id,
                ordinal=ordinal,
                char_start=start,
                char_end=start + len(child.text),
            )
        )
    return PlacedNodes(parents, children, markdown)


def _page(url: str, inner: Sequence[BaseNode], leaves: Sequence[BaseNode]) -> AddedPage:
    metadata = (*inner, *leaves)[0].metadata
    searched = list(map(fields_of, leaves))
    children = [child_row(each, 0) for each in searched]
    present = {row_id(node.node_id) for node in inner}
    alone = [each for each in searched if parent_id_of(each) not in present]
    count_tokens = get_tokenizer()
    return AddedPage(
        url=url,
        title=metadata.get("title") or metadata.get("file_name"),
        edition=_edition(url, metadata),
        parents=[parent_row(fields_of(node), 0) for node in inner],
        children=children,
        only_child_parents={each.node_id: parent_row(each, 0) for each in alone},
        tokens={
            row_id(node.node_id): _tokens(node, count_tokens)
            for node in (*inner, *(each.node for each in alone))
        },
        embeddings=[leaf.get_embedding() for leaf in leaves],
    )


def _edition(url: str, metadata: Mapping[str, Any]) -> Edition | None:
    given = metadata.get("version")
    version = plain_version(given) if isinstance(given, str) else None
    is_address = url.startswith(("http://", "https://")) or is_file(url)
    return edition_of(url, given=version or "") if is_address else None


def _tokens(node: BaseNode, count_tokens: Callable[[str], Sequence[Any]]) -> int:
    """Of a node's text; counting takes longer than all else, so what the parser noted will do."""
    start, end = _number(node.metadata, "token_start"), _number(node.metadata, "token_end")
    if start is not None and end is not None and end > start:
        return end - start
    return len(count_tokens(node.get_content(MetadataMode.NONE)))


def _number(metadata: Mapping[str, Any], key: str) -> int | None:
    value = metadata.get(key)
    return value if isinstance(value, int) else None


def _located(
    markdown: str, text: str, hint: int, start: int = 0, end: int | None = None
) -> tuple[str, int]:
    """Place a text as its node says, else within a range, else behind all the rest."""
    if start <= hint and markdown.startswith(text, hint, end):
        return markdown, hint
    found = markdown.find(text, start, end)
    if found >= 0:
        return markdown, found
    # One copy of the page's text, not two.
    return (f"{markdown}\n\n{text}", len(markdown) + 2) if markdown else (text, 0)


def _page_key(node: BaseNode) -> str:
    """The address nodes of one document are stored under.

    `file_path` is what LlamaIndex's readers of files set.
    """
    file_path, source_url = (node.metadata.get(key) for key in ("file_path", "source_url"))
    if isinstance(source_url, str) and source_url.startswith("document:"):
        return source_url  # read from a store before
    try:
        if isinstance(source_url, str):
            return page_address(source_url)
        if isinstance(file_path, str) and Path(file_path).is_absolute():
            return file_url(Path(file_path))
    except (InputError, ValueError):
        return f"document:{source_url or file_path}"
    return f"document:{file_path or node.ref_doc_id or node.node_id}"


async def add_nodes(connection: Connection, pages: Sequence[AddedPage]) -> None:
    """Store nodes with embeddings; a node whose id is stored already replaces it.

    A page is made for a document that is not stored: its address is the metadata's `source_url`,
    its text is made of the nodes' texts. However many pages there are, each table is loaded once.
    """
    node_ids = [child.node_id for page in pages for child in page.children]
    await _lock_holding(connection, node_ids, [page.url for page in pages])
    taken = await _remove(connection, node_ids)
    stored = await _stored_pages(connection, [page.url for page in pages])
    known = await _known_parents(connection, pages)
    ends = {url: end for url, (_, end) in stored.items()}

    def place() -> tuple[list[tuple[AddedPage, PlacedNodes]], dict[str, _Words]]:
        # A page that is stored is indexed again below, with what it holds already.
        words = {
            each.url: pack_texts(child.indexed_text for child in each.children)
            for each in pages
            if each.url not in stored
        }
        placed = [(each, place_nodes(each, ends.get(each.url, PageEnd()), known)) for each in pages]
        return placed, words

    placed, words = await in_background(place)
    # Parents that are stored already make way.
    parents = [parent.chunk_id for _, nodes in placed for parent in nodes.parents]
    await connection.change("delete from {parents} where id = any(%s)", (parents,))
    new = [(page, nodes) for page, nodes in placed if page.url not in stored]
    new_ids = await next_page_ids(connection, len(new))
    ids = {page.url: page_id for (page, _), page_id in zip(new, new_ids, strict=True)}
    await copy_documents(
        connection,
        (_new_page(ids[each.url], each, nodes, words[each.url][1]) for each, nodes in new),
    )
    ids |= {url: page_id for url, (page_id, _) in stored.items()}
    await copy_parents(connection, ((ids[page.url], nodes.parents) for page, nodes in placed))
    await copy_children(
        connection, ((ids[page.url], nodes.children, page.embeddings) for page, nodes in placed)
    )
    await copy_postings(connection, ((ids[page.url], words[page.url][0]) for page, _ in new))
    for page, nodes in placed:
        if page.url in stored:
            await _write_markdown(connection, ids[page.url], nodes)
    left = await _without_empty(connection, taken)
    for page_id in sorted(left | {page_id for page_id, _ in stored.values()}):
        await _reindex(connection, page_id)


async def delete_children(connection: Connection, node_ids: Sequence[str]) -> None:
    """Delete searched nodes, and parents and pages that are left without any."""
    await _lock_holding(connection, node_ids)
    taken = await _remove(connection, node_ids)
    for page_id in sorted(await _without_empty(connection, taken)):
        await _reindex(connection, page_id)


async def _lock_holding(
    connection: Connection, node_ids: Sequence[str], urls: Iterable[str] = ()
) -> None:
    """Lock pages, and those that hold the nodes: a node may be moved while this waits."""
    locked: set[str] = set()
    wanted = {*urls, *await _pages_holding(connection, node_ids)}
    while not wanted <= locked:
        await lock_pages(connection, wanted - locked)
        locked |= wanted
        wanted = set(await _pages_holding(connection, node_ids))


async def _pages_holding(connection: Connection, node_ids: Sequence[str]) -> list[str]:
    rows = await connection.fetch(
        "select distinct d.url from {data_children} c join {documents} d on d.id = c.document"
        " where c.node_id = any(%s)",
        (list(node_ids),),
    )
    return [url for (url,) in rows]


async def _remove(connection: Connection, node_ids: Sequence[str]) -> set[int]:
    """Delete searched nodes, and give the pages they were on."""
    deleted = await connection.fetch(
        "delete from {data_children} where node_id = any(%s) returning document", (list(node_ids),)
    )
    return {page_id for (page_id,) in deleted}


async def _without_empty(connection: Connection, page_ids: set[int]) -> set[int]:
    """Delete parents and pages that are left without searched nodes; give the pages that stay."""
    await connection.change(
        "delete from {parents} p where p.document = any(%s)"
        " and not exists (select from {data_children} c where c.parent_id = p.id)",
        (list(page_ids),),
    )
    gone = await connection.fetch(
        "delete from {documents} d where d.id = any(%s)"
        " and not exists (select from {data_children} c where c.document = d.id) returning d.id",
        (list(page_ids),),
    )
    return page_ids - {page_id for (page_id,) in gone}


async def _known_parents(connection: Connection, pages: Iterable[AddedPage]) -> set[UUID]:
    """Stored parents of new nodes, other than those that are made of the nodes themselves."""
    children = [child for page in pages for child in page.children]
    wanted = {each.parent_id for each in children if each.parent_id != row_id(each.node_id)}
    rows = await connection.fetch("select id from {parents} where id = any(%s)", (list(wanted),))
    return {found for (found,) in rows}


async def _stored_pages(
    connection: Connection, urls: Sequence[str]
) -> dict[str, tuple[int, PageEnd]]:
    """The number and the end of each page that is stored."""
    rows = await connection.fetch(
        """
            select d.url, d.id, d.markdown,
                   coalesce((select max(ordinal) + 1 from {data_children}
                             where document = d.id), 0),
                   coalesce((select max(chunk_index) + 1 from {parents} where document = d.id), 0),
                   coalesce((select max(token_end) from {parents} where document = d.id), 0)
            from {documents} d where d.url = any(%s)
            """,
        (list(urls),),
    )
    return {url: (page_id, PageEnd(*end)) for url, page_id, *end in rows}


def _new_page(page_id: int, page: AddedPage, nodes: PlacedNodes, term_count: int) -> dict[str, Any]:
    has_site = page.url.startswith("http") or is_file(page.url)
    return {
        "id": page_id,
        "document_id": document_id_of(page.url) if has_site else uuid5(NAMESPACE_OID, page.url),
        "url": page.url,
        "requested_url": page.url,
        "aliases": [],
        "site": site_of(page.url) if has_site else "",
        "title": page.title,
        "fetched_at": datetime.now(UTC),
        "stored_at": datetime.now(UTC),
        "depth": 0,
        "markdown": nodes.markdown,
        "html": "",
        "content_hash": content_hash(nodes.markdown),
        "status": 200,
        "source": ADDED,
        "with_login": False,
        "token_count": nodes.token_count,
        "child_count": len(nodes.children),
        "term_count": term_count,
        "anchors": nodes.anchors,
        "map_marks": [],
        **edition_row(page.edition),
    }


async def _write_markdown(connection: Connection, page_id: int, nodes: PlacedNodes) -> None:
    await connection.change(
        "update {documents} set gone_at = null, markdown = %s, content_hash = %s,"
        " anchors = coalesce((select jsonb_agg(a order by (a ->> 'char_start')::int)"
        " from jsonb_array_elements(anchors || %s) a), '[]') where id = %s",
        (nodes.markdown, content_hash(nodes.markdown), Jsonb(nodes.anchors), page_id),
    )


_SELECT = f"""
select {STORED_NODE} from {{data_children}} c join {{documents}} d on d.id = c.document
where {{condition}} order by c.document, c.ordinal
"""


async def select_nodes(
    connection: Connection, node_ids: Sequence[str] | None, filters: MetadataFilters | None
) -> list[TextNode]:
    """Give the searched nodes that match, in page order; all when nothing is asked for."""
    parts = [] if node_ids is None else [ids_condition(node_ids)]
    parts += [] if filters is None else [filter_condition(filters)]
    condition = all_of(parts)
    await refuse_unknown_keys(connection, filters)
    rows = await connection.fetch(_SELECT, condition.values, condition=sql.SQL(condition.text))
    return [stored_node(*row) for row in rows]


async def select_by_id(connection: Connection, node_ids: Sequence[str]) -> list[TextNode]:
    """Give searched nodes by id, in page order, then the parents among the ids."""
    children = await select_nodes(connection, node_ids, None)
    found = {node.node_id for node in children}
    others = [node_id for node_id in node_ids if storable(node_id) not in found]
    return children + (await select_parents(connection, others) if others else [])


async def delete_matching(
    connection: Connection, node_ids: Sequence[str] | None, filters: MetadataFilters | None
) -> None:
    """Delete the nodes that match; none when nothing is asked for."""
    if node_ids is None and filters is None:
        return
    found = await select_nodes(connection, node_ids, filters)
    await delete_children(connection, [node.node_id for node in found])


async def delete_document(connection: Connection, ref_doc_id: str) -> None:
    """Delete what was made from a document, and its page when nothing else belongs to it."""
    ref_doc_id = storable(ref_doc_id)
    rows = await connection.fetch(
        "select node_id from {data_children} where metadata_->>'ref_doc_id' = %s", (ref_doc_id,)
    )
    await delete_children(connection, [node_id for (node_id,) in rows])
    await connection.change("delete from {documents} where document_id::text = %s", (ref_doc_id,))


async def _reindex(connection: Connection, page_id: int) -> None:
    """Index a page again, some of whose chunks came or went, and count what it holds.

    Takes about a millisecond for each of its chunks.
    """
    chunks = await connection.fetch(
        "select ordinal, node_id, text, metadata_ from {data_children} where document = %s",
        (page_id,),
    )

    def packed() -> _Words:
        texts = [""] * (max((row[0] for row in chunks), default=-1) + 1)
        for ordinal, *chunk in chunks:
            texts[ordinal] = indexed_text(*chunk)
        return pack_texts(texts)

    postings, term_count = await in_background(packed)
    await connection.change("delete from {postings} where document = %s", (page_id,))
    await copy_postings(connection, [(page_id, postings)])
    await connection.change(
        """
            update {documents} set term_count = %(terms)s, child_count = %(chunks)s,
                token_count = (select coalesce(max(token_end), 0) from {parents}
                               where document = %(page)s)
            where id = %(page)s
            """,
        {"page": page_id, "terms": term_count, "chunks": len(chunks)},
    )
