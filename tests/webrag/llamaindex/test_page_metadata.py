"""Nodes know the dates, the depth and the version of their page; models do not read them."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import MetadataMode, NodeWithScore
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters
from llama_index.postprocessor.webrag import DepthDecay, RecencyBoost
from psycopg import AsyncConnection, sql

from tests.kept_collections import KeptCollections
from tests.webrag.llamaindex.made_nodes import node
from webrag import WebRAG, load_settings
from webrag.errors import InputError
from webrag.postgres.database import table

QUESTION = "When is the lamp lit?"
SENTENCE = "The lamp of the lighthouse is lit at dusk by the keeper."


def html(published: str, modified: str, more: str = "") -> str:
    return (
        f"<html><head><title>Lamps of {published[:4]}</title>"
        f'<meta name="author" content="Ada Wick"><meta property="og:site_name" content="Beams">'
        f'<meta property="article:published_time" content="{published}">'
        f'<meta property="article:modified_time" content="{modified}">'
        f"</head><body><main><h1>Lamps</h1><p>{SENTENCE}</p>{more}</main></body></html>"
    )


PAGES = {
    "/": html("2015-03-01", "2016-03-01", '<p>See <a href="/new.html">the new lamp</a>.</p>'),
    "/new.html": html("2026-03-01T12:00:00Z", "2026-04-01T12:00:00Z"),
}


async def behind_a_link(rag: WebRAG) -> None:
    """Have the new page stored as one that a link led to."""
    database = rag.vector_store().client
    statement = sql.SQL("update {} set depth = 1 where url like '%%new.html'").format(
        table(database.config.collection, "documents")
    )

    async def work(connection: AsyncConnection[Any]) -> None:
        await connection.execute(statement)

    await database.run(work)


@pytest.fixture
async def rag(
    postgres_dir: Path, kept_collections: KeptCollections, static_site: Any
) -> AsyncIterator[WebRAG]:
    """WebRAG, open on an old page and a new one that is a link away from it."""
    site = static_site(dict(PAGES))
    name = f"test_{uuid.uuid4().hex[:16]}"
    settings = load_settings(data_dir=postgres_dir, collection=name).allowing(["127.0.0.1"])
    async with WebRAG(settings) as opened:
        await opened.ingest([f"{site}{path}" for path in PAGES])
        await behind_a_link(opened)
        yield opened
        await kept_collections.take_back_from(opened)


async def retrieved(rag: WebRAG, *conditions: MetadataFilter) -> list[NodeWithScore]:
    filters = MetadataFilters(filters=list(conditions)) if conditions else None
    return await rag.vector_index().as_retriever(filters=filters).aretrieve(QUESTION)


async def years(rag: WebRAG, key: str, operator: str, value: Any) -> set[str]:
    condition = MetadataFilter(key=key, value=value, operator=FilterOperator(operator))
    found = await retrieved(rag, condition)
    return {item.node.metadata["published_at"][:4] for item in found}


async def test_every_way_to_a_node_tells_the_same_of_its_page(rag: WebRAG) -> None:
    stored = (await retrieved(rag))[0].node
    parents = await rag.vector_store().aget_nodes([stored.parent_node.node_id])  # type: ignore[union-attr]
    ways = [
        *await rag.retriever().aretrieve(QUESTION),
        *(await rag.query_engine().aquery(QUESTION)).source_nodes,
        *[NodeWithScore(node=each) for each in parents],
    ]
    known = {
        (
            *(told["published_at"], told["modified_at"][:10], told["depth"], told["site"][:9]),
            *(told["author"], told["site_name"]),
        )
        for told in (item.node.metadata for item in ways)
    }

    assert known == {
        ("2015-03-01T00:00:00+00:00", "2016-03-01", 0, "127.0.0.1", "Ada Wick", "Beams"),
        ("2026-03-01T12:00:00+00:00", "2026-04-01", 1, "127.0.0.1", "Ada Wick", "Beams"),
    }
    assert stored.metadata["fetched_at"]


async def test_models_do_not_read_what_is_known_of_the_page(rag: WebRAG) -> None:
    found = (await retrieved(rag))[0].node

    for mode in (MetadataMode.EMBED, MetadataMode.LLM):
        assert "2026-0" not in found.get_content(mode)
    assert found.get_content(MetadataMode.LLM).strip().startswith("# Lamps")


async def test_recent_page_is_raised(rag: WebRAG) -> None:
    nodes = [NodeWithScore(node=each.node, score=0.5) for each in await retrieved(rag)]

    boosted = RecencyBoost(weight=0.2, half_life_days=365).postprocess_nodes(nodes)

    assert boosted[0].node.metadata["published_at"].startswith("2026")
    assert boosted[0].get_score() > boosted[-1].get_score() > 0.5


async def test_page_behind_a_link_is_lowered(rag: WebRAG) -> None:
    nodes = [NodeWithScore(node=each.node, score=0.5) for each in await retrieved(rag)]

    lowered = DepthDecay(rate=0.2).postprocess_nodes(nodes)

    assert {each.node.metadata["depth"]: each.score for each in lowered} == {0: 0.5, 1: 0.4}


async def test_nodes_are_filtered_by_their_page(rag: WebRAG) -> None:
    both = {"2015", "2026"}
    expected: list[tuple[str, str, Any, set[str]]] = [
        ("published_at", ">=", "2026-03-01", {"2026"}),
        ("published_at", ">", "2026-03-01", set()),
        ("published_at", "<=", "2026-03-01", both),
        ("published_at", "==", "2015-03-01", {"2015"}),
        ("published_at", "!=", "2015-03-01", {"2026"}),
        ("published_at", "in", ["2015-03-01", "2001-01-01"], {"2015"}),
        ("published_at", ">", "2026-03-01T11:59:59Z", {"2026"}),
        ("published_at", ">", "2026-03-01T12:00:00+00:00", set()),
        ("modified_at", "<", "2020-01-01", {"2015"}),
        ("fetched_at", "<", "2020-01-01", set()),
        ("depth", ">=", 1, {"2026"}),
        ("depth", "==", 0, {"2015"}),
        ("site", "text_match", "127.0.0.1", both),
    ]

    found = [(*case[:3], await years(rag, *case[:3])) for case in expected]

    assert found == expected


async def test_filter_that_is_no_date_is_refused(rag: WebRAG) -> None:
    with pytest.raises(InputError, match="'published_at' has 'spring'; give a date such as"):
        await years(rag, "published_at", ">", "spring")


async def test_what_a_node_says_of_itself_counts_before_its_page(rag: WebRAG) -> None:
    own = node("own", SENTENCE, published_at="1999-01-01", depth=7)
    own.embedding = [1.0] * rag.vector_store().embed_dim
    await rag.vector_store().async_add([own])

    stored = (await rag.vector_store().aget_nodes(["own"]))[0]

    assert (stored.metadata["published_at"], stored.metadata["depth"]) == ("1999-01-01", 7)
    assert await years(rag, "published_at", "<", "2000-01-01") == {"1999"}
    assert await years(rag, "depth", ">", 5) == {"1999"}
