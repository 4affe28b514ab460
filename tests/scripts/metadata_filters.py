"""Filters of stock indexes on what WebRAG knows of a page."""

from datetime import UTC, datetime, timedelta

from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

from webrag import Settings, WebRAG


async def main(settings: Settings, url: str) -> None:
    async with WebRAG(settings) as rag:
        await rag.ingest(url)
        found = []
        for day in (datetime.now(UTC) - timedelta(days=1), datetime.now(UTC) + timedelta(days=1)):
            since = MetadataFilter(
                key="fetched_at", operator=FilterOperator.GTE, value=f"{day:%Y-%m-%d}"
            )
            retriever = rag.vector_index().as_retriever(filters=MetadataFilters(filters=[since]))
            found.append(len(await retriever.aretrieve("idle connection")))
        assert found[0] > 0
        assert found[1] == 0
