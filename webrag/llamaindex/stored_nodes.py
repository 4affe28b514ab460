"""Stored chunks and their parents as LlamaIndex nodes that know their page; it writes nothing."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from llama_index.core.schema import (
    BaseNode,
    NodeRelationship,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.node_parser.webrag import FLAG_KEYS

from webrag.corpus.models import ParentChunk
from webrag.corpus.rows import NODE_COLUMNS, node_from_columns, row_id
from webrag.corpus.tables import PARENTS
from webrag.ingestion.characters import storable
from webrag.postgres.database import Connection
from webrag.retrieval.models import ChildMatch, RetrievedChunk, WordingScores

ADDED: Final = "llamaindex"
"""The source of pages that are made of added nodes."""

PAGE_DATES: Final = {name: f"d.{name}" for name in ("published_at", "modified_at", "fetched_at")}
"""Metadata keys of a page's dates, and their columns of `documents d`."""

PAGE_KEYS: Final = {
    **{
        name: f"d.{name}"
        for name in ("title", "author", "site", "site_name", "depth", "version", "library")
    },
    **PAGE_DATES,
}
"""Metadata keys that a node has of its page unless it has them itself, and their columns."""

# Of a page that is made of added nodes nothing is known but what they say.
_OF_PAGE = f"""
case when d.source <> '{ADDED}' then jsonb_strip_nulls(jsonb_build_object('source_url', d.url,
{", ".join(f"'{key}', {column}" for key, column in PAGE_KEYS.items())})) end"""

STORED_NODE: Final = f"""{NODE_COLUMNS},
(select {_OF_PAGE} from {{documents}} d where d.id = c.document)"""
"""What `stored_node` takes, of a searched table `c`; `{{documents}}` is the table of pages."""

STORED_NODE_WIDTH: Final = 5
"""How many columns `STORED_NODE` has."""


def stored_node(
    node_id: str,
    text: str,
    content: str | None,
    metadata: dict[str, Any] | None,
    page: Mapping[str, Any] | None,
) -> TextNode:
    """Rebuild a searched node from `STORED_NODE`, with what is known of its page.

    What the node says itself counts before what its page says. Neither embeddings nor language
    models read what is added.
    """
    node = node_from_columns(node_id, text, content, metadata)
    tell(node, page or {})
    return node


def tell(node: BaseNode, known: Mapping[str, Any]) -> None:
    """Add metadata that a node lacks, for components only."""
    added = {key: value for key, value in known.items() if key not in node.metadata}
    node.metadata |= added
    node.excluded_embed_metadata_keys = [*node.excluded_embed_metadata_keys, *added]
    node.excluded_llm_metadata_keys = [*node.excluded_llm_metadata_keys, *added]


def evidence_node(
    chunk: RetrievedChunk, term_idf: Mapping[str, Mapping[str, float]] | None = None
) -> TextNode:
    """Give a passage that a search found as a node; models read its text and nothing else.

    With the weights of the terms of the question and of each other wording of it, the node tells
    under `webrag_retrieved` what `LocalRerank` needs to score it as `WebRAG.search` does.
    """
    metadata: dict[str, Any] = {"source_url": chunk.source_url, **_of_passage(chunk, chunk.title)}
    for key in PAGE_KEYS:
        value = getattr(chunk, key)
        if value is not None:
            metadata[key] = value.isoformat() if isinstance(value, datetime) else value
    if chunk.focus is not None:
        metadata["focus"] = [chunk.focus.char_start, chunk.focus.char_end]
    if term_idf is not None:
        matches = [_matched(each, chunk.char_start, term_idf) for each in chunk.matches]
        metadata["webrag_retrieved"] = {"term_idf": term_idf, "matches": matches}
    return _parent(str(chunk.chunk_id), chunk, metadata, str(chunk.document_id), {})


def _matched(match: ChildMatch, start: int, texts: Iterable[str]) -> dict[str, Any]:
    found: list[ChildMatch | WordingScores] = [match, *match.wordings]
    told = {
        text: (each.similarity, each.page_lexical) for text, each in zip(texts, found, strict=True)
    }
    span = (match.char_start - start, match.char_end - start)
    return matched_part(span, told, match.heading_path)


def matched_part(
    span: tuple[int, int], told: Mapping[str, tuple[float, float]], headings: Sequence[str] = ()
) -> dict[str, Any]:
    """Give all that a search knows of a part of a node's text, as `LocalRerank` reads it.

    Told are the part's similarity and its page's lexical score for each wording of the question.
    """
    return {"span": list(span), "heading_path": list(headings), "told": told}


def _of_passage(chunk: ParentChunk, title: str | None) -> dict[str, Any]:
    path = chunk.heading_path
    if path and title and path[0].casefold() == title.strip().casefold():
        path = path[1:]  # as in the chunks, which have the title before it
    return {
        **({"section": " > ".join(path)} if path else {}),
        "chunk_level": "parent",
        "chunk_index": chunk.chunk_index,
        "heading": chunk.section_heading,
        "heading_path": list(chunk.heading_path),
        "token_start": chunk.token_start,
        "token_end": chunk.token_end,
        **{flag: getattr(chunk, flag) for flag in FLAG_KEYS},
    }


def _parent(
    node_id: str,
    chunk: ParentChunk,
    metadata: dict[str, Any],
    document_id: str,
    relatives: Mapping[NodeRelationship, RelatedNodeInfo | list[RelatedNodeInfo]],
) -> TextNode:
    source = RelatedNodeInfo(node_id=document_id, node_type=ObjectType.DOCUMENT)
    return TextNode(
        id_=node_id,
        text=chunk.text,
        start_char_idx=chunk.char_start,
        end_char_idx=chunk.char_end,
        metadata=metadata,
        excluded_embed_metadata_keys=list(metadata),
        excluded_llm_metadata_keys=list(metadata),
        relationships={NodeRelationship.SOURCE: source, **relatives},
    )


_PARENT_COLUMNS = ", ".join(
    f"{column} as {name}"
    for name, column in PARENTS.selected("p").items()
    if name in ParentChunk.model_fields
)

# A chunk without a parent is stored as one, too, which is no node of its own.
_PARENTS = f"""
select {_PARENT_COLUMNS}, own.source, own.children, d.url, d.title, {_OF_PAGE} as page,
       (select b.id from {{parents}} b
        where b.document = p.document and b.chunk_index < p.chunk_index
        order by b.chunk_index desc limit 1) as before,
       (select a.id from {{parents}} a
        where a.document = p.document and a.chunk_index > p.chunk_index
        order by a.chunk_index limit 1) as after
from {{parents}} p join {{documents}} d on d.id = p.document
cross join lateral (
    select array_agg(c.node_id order by c.document, c.ordinal) as children,
           coalesce(nullif(min(c.metadata_ ->> 'ref_doc_id'), 'None'), d.document_id::text)
               as source,
           bool_or((c.metadata_ ->> '_node_content')::jsonb -> 'relationships' ? '4') as is_parent
    from {{data_children}} c where c.parent_id = p.id
) own
where own.is_parent and p.id = any(%s)
"""


async def select_parents(connection: Connection, node_ids: Iterable[str]) -> list[TextNode]:
    """Give the parents with these ids in their order, each with its children and neighbours.

    Ids that no stored parent has are left out. Other parsers' ids need not be those of the rows.
    """
    wanted = {row_id(storable(node_id)): node_id for node_id in node_ids}
    rows = await connection.fetch_as(dict, _PARENTS, (list(wanted),))
    found = {row["chunk_id"]: _stored_parent(wanted[row["chunk_id"]], row) for row in rows}
    return [found[each] for each in wanted if each in found]


def _stored_parent(node_id: str, row: Mapping[str, Any]) -> TextNode:
    chunk = ParentChunk(**{name: row[name] for name in ParentChunk.model_fields})
    known = {"source_url": row["url"], "title": row["title"], **(row["page"] or {})}
    metadata = {**known, **_of_passage(chunk, row["title"])}
    relatives: dict[NodeRelationship, RelatedNodeInfo | list[RelatedNodeInfo]] = {
        NodeRelationship.CHILD: list(map(_related, row["children"]))
    }
    for kind, name in ((NodeRelationship.PREVIOUS, "before"), (NodeRelationship.NEXT, "after")):
        if row[name] is not None:
            relatives[kind] = _related(str(row[name]))
    return _parent(node_id, chunk, metadata, row["source"], relatives)


def _related(node_id: str) -> RelatedNodeInfo:
    return RelatedNodeInfo(node_id=node_id, node_type=ObjectType.TEXT)
