"""Corpora made by earlier versions open and answer as they did."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.webrag.stored_corpora import (
    EXPECTED,
    PAGES,
    SITE,
    KilnSite,
    answers,
    counts,
    dump_of,
    dumps,
    restore,
)
from webrag import WebRAG
from webrag.corpus.schema import SCHEMA_VERSION, drop_collection, table_names
from webrag.corpus.tables import FORMER_TABLES
from webrag.postgres.database import Database
from webrag.settings import Settings

pytestmark = pytest.mark.parametrize("dump", dumps(), ids=lambda dump: dump.name)

# Floats differ in the last places from processor to processor.
_SAME = 3e-6


@pytest.fixture
async def settings(database: Database, dump: Path) -> Settings:
    """Of a collection that holds the stored corpus."""
    await restore(dump, database)
    config = database.config
    return Settings(data_dir=config.data_dir, collection=config.collection)


def expected() -> dict[str, Any]:
    return json.loads(EXPECTED.read_text(encoding="utf-8"))


def test_current_version_has_a_stored_corpus(dump: Path) -> None:
    assert dump_of(SCHEMA_VERSION) in dumps(), dump


async def test_status_counts_hold(settings: Settings) -> None:
    async with WebRAG(settings, page_source=KilnSite()) as rag:
        found = counts(await rag.status())

    assert found == expected()["status"]


async def test_questions_get_the_same_citations_and_scores(settings: Settings) -> None:
    async with WebRAG(settings, page_source=KilnSite()) as rag:
        found = await answers(rag)

    assert [places(each) for each in found] == [places(each) for each in expected()["answers"]]
    assert [numbers(each) for each in found] == [
        pytest.approx(numbers(each), abs=_SAME) for each in expected()["answers"]
    ]


async def test_unchanged_pages_are_not_embedded_again(settings: Settings) -> None:
    site = KilnSite()
    async with WebRAG(settings, page_source=site) as rag:
        report = await rag.ingest([SITE + path for path in PAGES], refresh=True)

    assert sorted(site.asked) == sorted(PAGES)
    assert {(page.outcome, page.chunks_embedded) for page in report.pages} == {("unchanged", 0)}
    assert len(report.pages) == len(PAGES)


async def test_nothing_is_wrong_with_the_corpus(settings: Settings) -> None:
    async with WebRAG(settings, page_source=KilnSite()) as rag:
        report = await rag.check_corpus(everything=True)

    assert report.is_sound, report


def places(answer: dict[str, Any]) -> list[Any]:
    cited = [(each["url"], each["place"], each["text"]) for each in answer["citations"]]
    return [answer["question"], answer["band"], cited]


def numbers(answer: dict[str, Any]) -> list[float]:
    return [answer["confidence"], *(each["score"] for each in answer["citations"])]


async def test_no_table_that_the_current_version_lacks_is_left(
    settings: Settings, database: Database
) -> None:
    async with WebRAG(settings, page_source=KilnSite()) as rag:
        await rag.status()

    names = await database.run(lambda each: table_names(each, settings.collection))
    assert names.isdisjoint(FORMER_TABLES)


async def test_one_that_was_never_opened_is_dropped_with_all_its_tables(
    settings: Settings, database: Database
) -> None:
    assert await drop_collection(database)

    assert await database.run(lambda each: table_names(each, settings.collection)) == set()
