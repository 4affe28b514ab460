"""Another model for a stored corpus, with readers and writers about."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.node_parser.webrag import ParentChildNodeParser
from psycopg import AsyncConnection, sql

from tests.corpus_fixtures import DIMENSIONS
from webrag.corpus.indexer import Indexer
from webrag.corpus.maintenance.checking import check_corpus
from webrag.corpus.maintenance.reembedding import prepare_next, reembed
from webrag.corpus.pages import Corpus
from webrag.corpus.schema import corpus_embedding, ensure_schema
from webrag.corpus.tables import TABLES
from webrag.corpus.writer import forget_page
from webrag.embedding.embedder import Embedder, EmbeddingLimits
from webrag.errors import ConfigurationError, InputError, ProviderError, StorageError
from webrag.ingestion.models import NormalizedDocument
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database
from webrag.retrieval.filters import SearchFilters
from webrag.retrieval.models import RetrievalConfig
from webrag.retrieval.search import Searcher

MakeDocument = Callable[..., NormalizedDocument]
NEW = ("other/model", 8)


class OtherEmbedding(BaseEmbedding):
    """Eight dimensions; runs a function before each batch."""

    before_batch: Any = None

    def _get_text_embeddings(self, texts: list[str]) -> Any:
        if self.before_batch is not None:
            self.before_batch()
        return [self._get_text_embedding(text) for text in texts]

    def _get_text_embedding(self, text: str) -> Any:
        return [float(len(text)), *(float(text.count(each)) for each in "aeiourt")]

    def _get_query_embedding(self, query: str) -> Any:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> Any:
        return self._get_text_embedding(query)


def embedder(before_batch: Any = None) -> Embedder:
    model = OtherEmbedding(model_name="other", before_batch=before_batch)
    return Embedder(model, NEW[1])


async def read(database: Database, statement: str) -> Any:
    query = sql.SQL(statement).format(sql.Identifier(database.config.collection))

    async def work(connection: AsyncConnection[Any]) -> Any:
        cursor = await connection.execute(query)
        return await cursor.fetchall() if cursor.description else []

    return await database.run(work)


async def structure(database: Database) -> Any:
    """Names and definitions of everything that belongs to the searched table."""
    name = database.config.collection
    return await read(
        database,
        f"select indexname, replace(indexdef, 'halfvec(8)', '') from pg_indexes"
        f" where schemaname = '{name}' union all"
        f" select column_name, data_type || is_nullable || is_identity"
        f" from information_schema.columns where table_schema = '{name}'"
        f" union all select relname, relkind::text from pg_class c join pg_namespace n"
        f" on n.oid = relnamespace where nspname = '{name}' order by 1, 2",
    )


async def test_reembedding_switches_model_size_and_vectors(
    database: Database, indexer: Indexer, make_document: MakeDocument
) -> None:
    page = await indexer.index(make_document())

    report = await reembed(database, embedder(), NEW[0])

    assert await corpus_embedding(database) == NEW
    assert report.chunks == page.chunk_count
    rows = await read(database, "select text, embedding from {}.data_children")
    assert all(len(embedding.to_list()) == 8 for _, embedding in rows)


async def test_searched_table_is_as_a_new_collection_makes_it(
    database: Database, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())
    before = await structure(database)

    await reembed(database, embedder(), NEW[0])
    await reembed(database, embedder(), "third/model")

    assert await structure(database) == before


async def test_pages_can_be_stored_and_removed_after_the_switch(
    database: Database, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())
    await reembed(database, embedder(), NEW[0])
    corpus = Corpus(database, embedding=NEW)
    parser = ParentChildNodeParser(parent_tokens=60, child_tokens=25)
    after = Indexer(corpus, parser, embedder())

    await after.index(make_document("https://docs.test/new", markdown="# New\n\nText.\n"))
    await forget_page(database, "https://docs.test/guide")

    assert await read(database, "select distinct length(text) > 0 from {}.data_children") == [
        (True,)
    ]
    assert (await check_corpus(database, sample=None)).is_sound


async def test_earlier_texts_are_found_by_their_words_after_the_switch(
    database: Database,
    corpus: Corpus,
    counting_embedding: BaseEmbedding,
    make_document: MakeDocument,
) -> None:
    parser = ParentChildNodeParser(parent_tokens=60, child_tokens=25)
    first = Embedder(counting_embedding, DIMENSIONS)
    keeping = Indexer(Corpus(database, keep_versions=1), parser, first)
    day = datetime(2025, 1, 1, tzinfo=UTC)
    for number, text in enumerate(("# Kiln\n\nFired with wood.\n", "# Kiln\n\nFired with gas.\n")):
        at = day + timedelta(days=number)
        await keeping.index(make_document(markdown=text, fetched_at=at))

    await reembed(database, embedder(), NEW[0])

    found = await Searcher(database, embedder(), RetrievalConfig()).retrieve(
        "What is the kiln fired with?", filters=SearchFilters.of(as_of=day + timedelta(hours=1))
    )
    assert [chunk.text for chunk in found.chunks] == ["# Kiln\n\nFired with wood."]


async def test_pages_changed_while_vectors_are_made_are_in_the_new_index(
    database: Database,
    corpus: Corpus,
    indexer: Indexer,
    make_document: MakeDocument,
) -> None:
    await indexer.index(make_document("https://docs.test/kept", markdown="# Kept\n\nStays.\n"))
    await indexer.index(make_document("https://docs.test/gone", markdown="# Gone\n\nLeaves.\n"))
    loop = asyncio.get_running_loop()
    changes = iter([1])

    async def change() -> None:
        await forget_page(database, "https://docs.test/gone")
        await indexer.index(make_document("https://docs.test/kept", markdown="# Kept\n\nNew.\n"))
        await indexer.index(make_document("https://docs.test/more", markdown="# More\n\nToo.\n"))

    def once() -> None:
        if next(changes, None):
            asyncio.run_coroutine_threadsafe(change(), loop).result()

    await reembed(database, embedder(once), NEW[0])

    texts = await read(database, "select text from {}.data_children order by document, ordinal")
    assert "".join(text for (text,) in texts).count("New.") == 1
    assert not any("Leaves" in text or "Stays" in text for (text,) in texts)
    assert any("Too." in text for (text,) in texts)
    assert (await check_corpus(database, sample=None)).is_sound


async def test_readers_always_find_every_chunk_in_the_table(
    database: Database, indexer: Indexer, make_document: MakeDocument
) -> None:
    page = await indexer.index(make_document())
    counts: set[int] = set()
    done = asyncio.Event()

    async def look() -> None:
        while not done.is_set():
            ((count,),) = await read(
                database,
                "select count(*) from {0}.data_children c"
                " join {0}.documents d on d.id = c.document".replace("{0}", "{}", 1).replace(
                    "{0}", f'"{database.config.collection}"'
                ),
            )
            counts.add(count)

    readers = [asyncio.create_task(look()) for _ in range(3)]
    await reembed(database, embedder(), NEW[0])
    done.set()
    await asyncio.gather(*readers)

    assert counts == {page.chunk_count}


async def test_process_that_still_uses_the_old_model_cannot_store_pages(
    database: Database, indexer: Indexer, make_document: MakeDocument, counting_embedding: Any
) -> None:
    await indexer.index(make_document())
    old = Corpus(database, embedding=("counting", 16))
    late = Indexer(old, ParentChildNodeParser(), Embedder(counting_embedding, 16))
    await reembed(database, embedder(), NEW[0])

    with pytest.raises(ConfigurationError, match="embedded again with another model"):
        await late.index(make_document("https://docs.test/late", markdown="# Late\n\nText.\n"))

    assert await old.page("https://docs.test/late") is None


async def test_interrupted_work_for_another_model_is_thrown_away(
    database: Database, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())
    await database.run(lambda each: prepare_next(each, ("abandoned", 32)))

    await reembed(database, embedder(), NEW[0])

    assert await corpus_embedding(database) == NEW


async def test_two_reindexings_at_once_are_refused(
    database: Database, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())
    loop = asyncio.get_running_loop()
    refusals: list[str] = []

    async def try_too() -> None:
        other = Database(DatabaseConfig(**database.config.model_dump()))
        try:
            await reembed(other, embedder(), "third/model")
        except StorageError as error:
            refusals.append(str(error))
        finally:
            await other.close()

    def meanwhile() -> None:
        if not refusals:
            asyncio.run_coroutine_threadsafe(try_too(), loop).result()

    await reembed(database, embedder(meanwhile), NEW[0])

    assert "being reindexed by another process" in refusals[0]


async def test_same_model_is_left_alone_unless_forced(
    database: Database, indexer: Indexer, make_document: MakeDocument
) -> None:
    page = await indexer.index(make_document())
    await reembed(database, embedder(), NEW[0])

    idle = await reembed(database, embedder(), NEW[0])
    forced = await reembed(database, embedder(), NEW[0], force=True)

    assert idle.was_current
    assert forced.chunks == forced.embedded == page.chunk_count


async def test_empty_collection_takes_the_new_model(database: Database) -> None:
    await ensure_schema(database, embedding_model="counting", embedding_dimensions=16)

    await reembed(database, embedder(), NEW[0])

    assert await corpus_embedding(database) == NEW


class PickyEmbedding(OtherEmbedding):
    """Answers as it is told where one of the texts holds a word."""

    word: str = "freezes"
    answer: Any = None

    def _get_text_embeddings(self, texts: list[str]) -> Any:
        if any(self.word in text for text in texts):
            if isinstance(self.answer, Exception):
                raise self.answer
            return [self.answer] * len(texts)
        return super()._get_text_embeddings(texts)


def refusal(status: int | None) -> ProviderError:
    return ProviderError("The text is too much.", provider="other", status=status)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(refusal(400), id="bad-request"),
        pytest.param(refusal(413), id="too-large"),
        pytest.param(refusal(500), id="fails-at-it"),
        pytest.param(refusal(None), id="breaks-off"),
        pytest.param(RuntimeError("index out of range"), id="bug"),
        pytest.param([float("nan")] * 8, id="not-finite"),
        pytest.param([1.0], id="wrong-size"),
    ],
)
async def test_chunk_that_the_model_does_not_take_is_named_and_the_rest_goes_on(
    database: Database, indexer: Indexer, make_document: MakeDocument, answer: Any
) -> None:
    page = await indexer.index(make_document())
    other = await indexer.index(make_document("https://docs.test/o", markdown="# O\n\nText.\n"))
    model = PickyEmbedding(model_name="picky", answer=answer)

    report = await reembed(database, Embedder(model, 8), NEW[0])

    rows = await read(database, "select text from {}.data_children where embedding is null")
    assert (len(rows), "freezes" in rows[0][0]) == (1, True)
    assert list(report.failed) == ["https://docs.test/guide"]
    assert report.chunks == page.chunk_count + other.chunk_count == report.embedded + 1
    assert await corpus_embedding(database) == NEW


async def test_chunk_beyond_the_length_a_model_takes_is_named(
    database: Database, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())
    limited = Embedder(
        OtherEmbedding(model_name="other"),
        8,
        limits=EmbeddingLimits(text_tokens=100),
        count_tokens=lambda text: 101 if "freezes" in text else 5,
    )

    report = await reembed(database, limited, NEW[0])

    assert "A text of 101 tokens" in report.failed["https://docs.test/guide"]


async def test_model_that_recovered_gives_the_missing_vector(
    database: Database, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())
    picky = PickyEmbedding(model_name="picky", answer=refusal(400))
    await reembed(database, Embedder(picky, 8), NEW[0])

    report = await reembed(database, embedder(), NEW[0], force=True)

    assert report.failed == {}
    assert await read(database, "select 1 from {}.data_children where embedding is null") == []


@pytest.mark.parametrize("status", [401, 404, 429, 503])
async def test_service_that_refuses_everybody_ends_the_reindexing(
    database: Database, indexer: Indexer, make_document: MakeDocument, status: int
) -> None:
    await indexer.index(make_document())
    before = await corpus_embedding(database)
    picky = PickyEmbedding(model_name="picky", answer=refusal(status))

    with pytest.raises(ProviderError):
        await reembed(database, Embedder(picky, 8), NEW[0])

    assert await corpus_embedding(database) == before


async def test_model_that_fails_at_every_word_ends_the_reindexing(
    database: Database, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())
    broken = PickyEmbedding(model_name="picky", word="", answer=refusal(400))

    with pytest.raises(ProviderError, match="too much"):
        await reembed(database, Embedder(broken, 8), NEW[0])


async def test_collection_that_does_not_exist_is_named(database: Database) -> None:
    with pytest.raises(InputError, match="does not exist yet"):
        await reembed(database, embedder(), NEW[0])


async def test_rights_of_other_users_stay(
    database: Database, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())
    await read(database, "grant select on {}.data_children to public")

    await reembed(database, embedder(), NEW[0])

    ((granted,),) = await read(
        database,
        "select has_table_privilege('pg_monitor', relation, 'select')"
        " from (select '{}.data_children'::regclass::oid as relation) named".replace(
            "'{}.data", f"'{database.config.collection}.data"
        ),
    )
    assert granted


async def test_tables_are_those_of_a_collection_afterwards(
    database: Database, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())
    await reembed(database, embedder(), NEW[0])

    found = await read(
        database,
        f"select tablename::text from pg_tables where schemaname = '{database.config.collection}'",
    )
    assert {name for (name,) in found} == set(TABLES)
