from webrag.corpus.schema import collection_sizes, ensure_schema
from webrag.postgres.database import Database


async def test_collections_are_listed_with_their_number_of_pages(database: Database) -> None:
    await ensure_schema(database, embedding_model="m", embedding_dimensions=4)

    sizes = {size.name: size.documents for size in await collection_sizes(database)}

    assert sizes[database.config.collection] == 0


async def test_collection_dropped_meanwhile_is_left_out(database: Database) -> None:
    assert await collection_sizes(database, "dropped_meanwhile") == []
