"""Damage done on purpose is found and named."""

from collections.abc import Callable
from typing import Any

import pytest
from psycopg import AsyncConnection, sql

from webrag.corpus.indexer import Indexer
from webrag.corpus.maintenance.checking import CorpusCheck, check_corpus
from webrag.corpus.pages import Corpus
from webrag.corpus.schema import update_schema
from webrag.corpus.writer import forget_page
from webrag.ingestion.models import NormalizedDocument
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database

MakeDocument = Callable[..., NormalizedDocument]


async def execute(database: Database, statement: str) -> None:
    query = sql.SQL(statement.replace("{}", '"' + database.config.collection + '"'))

    async def work(connection: AsyncConnection[Any]) -> None:
        await connection.execute(query)

    await database.run(work)


def failed(result: CorpusCheck) -> set[str]:
    return {check.name for check in result.checks if check.level == "fail"}


@pytest.fixture
async def filled(indexer: Indexer, make_document: MakeDocument) -> None:
    await indexer.index(make_document())
    await indexer.index(
        make_document("https://docs.test/b", markdown="# Bäume 🌳\n\nGrün und 🌳 wieder.\n")
    )


async def test_sound_corpus_passes_every_check(filled: None, database: Database) -> None:
    result = await check_corpus(database, wanted=("counting", 16), sample=None)

    assert result.is_sound
    assert {check.level for check in result.checks} == {"ok"}
    assert "pgvector" in result.checks[0].found


@pytest.mark.parametrize(
    ("damage", "names"),
    [
        ("update {}.documents set markdown = 'x' || markdown", {"offsets", "texts"}),
        (
            "update {}.data_children set char_start = char_start + 1 where ordinal = 0",
            {"offsets"},
        ),
        ("update {}.parents set text = text || '!'", {"offsets"}),
        ("update {}.data_children set embedding = null where ordinal = 0", {"vectors"}),
        ("delete from {}.postings", {"word index", "words"}),
        ("update {}.postings set packed = packed || packed", {"words"}),
        ("delete from {}.parents where chunk_index = 0", {"stray rows"}),
        ("delete from {}.data_children where ordinal = 0", {"counts", "words"}),
        ("drop index {}.data_children_embedding", {"indexes"}),
        ("drop index {}.postings_document", {"indexes"}),
        ("drop table {}.link_candidates", {"tables"}),
        (
            "update {}.corpus_meta set value = '12' where key = 'embedding_dimensions'",
            {"vector size"},
        ),
        ("update {}.corpus_meta set value = '99' where key = 'schema_version'", {"database"}),
    ],
)
async def test_damage_is_found_with_a_remedy(
    filled: None, database: Database, damage: str, names: set[str]
) -> None:
    await execute(database, damage)

    result = await check_corpus(database, sample=None)

    assert names <= failed(result)
    assert all(check.remedy for check in result.checks if check.level == "fail")


async def test_a_few_words_that_an_earlier_release_told_otherwise_are_a_warning(
    filled: None, database: Database
) -> None:
    await execute(
        database,
        "delete from {}.postings where (document, term) in (select document, term from {}.postings"
        " where document = (select document from {}.postings group by document"
        " order by count(*) desc limit 1) limit 1)",
    )

    result = await check_corpus(database, sample=None)

    (told,) = [check for check in result.checks if check.name == "dated words"]
    assert told.level == "warn"
    assert "words" not in failed(result)
    assert "webrag forget" in str(told.remedy)


async def test_remedy_for_a_missing_index_makes_the_corpus_sound(
    filled: None, database: Database
) -> None:
    await execute(database, "drop index {}.data_children_embedding")
    result = await check_corpus(database)
    remedy = next(c.remedy for c in result.checks if c.level == "fail")

    await execute(database, remedy.partition(": ")[2])

    assert (await check_corpus(database)).is_sound


async def test_sample_bounds_the_pages_verified(filled: None, database: Database) -> None:
    result = await check_corpus(database, sample=1)

    offsets = next(check for check in result.checks if check.name == "offsets")
    assert offsets.found.startswith("1 of 2 pages verified")


async def test_collection_that_does_not_exist_is_a_warning(database: Database) -> None:
    result = await check_corpus(database)

    assert result.is_sound
    assert [check.level for check in result.checks] == ["ok", "warn"]


async def test_unreachable_server_is_a_finding(corpus: Corpus, database: Database) -> None:
    lost = Database(
        DatabaseConfig(
            url="postgresql://nobody@127.0.0.1:1/none", data_dir=database.config.data_dir
        )
    )

    result = await check_corpus(lost)
    await lost.close()

    assert failed(result) == {"database"}


async def test_other_model_of_the_settings_is_a_fault(filled: None, database: Database) -> None:
    result = await check_corpus(database, wanted=("openai/x", 1536))

    assert failed(result) == {"model"}


async def test_lost_index_of_the_crawl_tables_is_found(filled: None, database: Database) -> None:
    await execute(database, "drop index {}.crawl_urls_queue")

    assert failed(await check_corpus(database)) == {"indexes"}


async def test_collection_of_an_earlier_version_is_sound_and_says_so(
    filled: None, database: Database
) -> None:
    await _make_older(database)

    result = await check_corpus(database, sample=None)

    assert {check.name for check in result.checks if check.level != "ok"} == {"schema"}
    assert result.is_sound
    assert "Schema version 10;" in next(c.found for c in result.checks if c.name == "schema")


async def test_page_of_an_earlier_versions_collection_is_forgotten(
    filled: None, database: Database
) -> None:
    await _make_older(database)

    assert await update_schema(database) == ("counting", 16)
    assert await forget_page(database, "https://docs.test/b")
    assert (await check_corpus(database, sample=None)).is_sound


async def test_nothing_is_known_of_a_forgotten_page(filled: None, database: Database) -> None:
    assert await forget_page(database, "https://docs.test/b")

    status = await Corpus(database).status()
    assert (status.documents, status.outcomes) == (1, {"indexed": 1})


async def _make_older(database: Database) -> None:
    await execute(database, "drop index {}.documents_gone")
    await execute(database, "update {}.corpus_meta set value = '10' where key = 'schema_version'")
