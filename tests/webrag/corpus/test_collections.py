from webrag.corpus.schema import _size_unless_gone, collection_sizes, ensure_schema
from webrag.postgres.database import Database


async def test_collections_are_listed_with_their_number_of_pages(database: Database) -> None:
    await ensure_schema(database, embedding_model="m", embedding_dimensions=4)

    sizes = {size.name: size.documents for size in await collection_sizes(database)}

    assert sizes[database.config.collection] == 0


async def test_collection_dropped_meanwhile_is_left_out(database: Database) -> None:
    async with database.connection() as connection:
        gone = await _size_unless_gone(connection, "dropped_meanwhile")

    assert gone is None
