from datetime import UTC, datetime
from typing import Any

from webrag.indexing.bundled_embedding import BundledEmbedding
from webrag.indexing.corpus import Corpus
from webrag.indexing.database import Database
from webrag.indexing.embedder import Embedder
from webrag.indexing.indexer import Indexer
from webrag.indexing.schema import ensure_schema
from webrag.ingestion.models import NormalizedDocument
from webrag.retrieval.years import urls_published_in


async def stored(database: Database, **years: int | None) -> None:
    from llama_index.node_parser.webrag import ParentChildNodeParser

    model = BundledEmbedding()
    await ensure_schema(
        database, embedding_model=model.model_name, embedding_dimensions=model.dimensions
    )
    indexer = Indexer(Corpus(database), ParentChildNodeParser(), Embedder(model, model.dimensions))
    for name, year in years.items():
        dated: Any = None if year is None else datetime(year, 5, 1, tzinfo=UTC)
        url, text = f"https://x.test/{name}", f"# {name}\n\nA page about {name}.\n"
        await indexer.index(
            NormalizedDocument(
                url=url, requested_url=url, title=name, markdown=text, published_at=dated,
                fetched_at=datetime(2026, 1, 1, tzinfo=UTC), content_hash=name, source="builtin",
            ),
            depth=0,
        )  # fmt: skip


async def test_pages_of_the_years_are_named_within_the_pages_given(database: Database) -> None:
    await stored(database, a=2019, b=2024, c=2025, d=None)
    within = ["https://x.test/a", "https://x.test/c"]

    both = await urls_published_in(database, [2024, 2025])
    some = await urls_published_in(database, [2024, 2025], within=within)
    none = await urls_published_in(database, [2024], within=[])

    assert both == ["https://x.test/b", "https://x.test/c"]
    assert (some, none) == (["https://x.test/c"], [])
