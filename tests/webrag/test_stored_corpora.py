"""Corpora made by earlier versions open and answer as they did."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.webrag.stored_corpora import (
    PAGES,
    SITE,
    KilnSite,
    answers,
    counts,
    folders,
    restore,
)
from webrag import WebRAG
from webrag.corpus.schema import SCHEMA_VERSION
from webrag.postgres.database import Database
from webrag.settings import Settings

pytestmark = pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.name)

# Floats differ in the last places from processor to processor.
_SAME = 3e-6


@pytest.fixture
async def settings(database: Database, folder: Path) -> Settings:
    """Of a collection that holds the stored corpus."""
    await restore(folder, database)
    config = database.config
    return Settings(data_dir=config.data_dir, collection=config.collection)


def expected(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "expected.json").read_text(encoding="utf-8"))


def test_current_version_has_a_stored_corpus(folder: Path) -> None:
    assert f"corpus_version_{SCHEMA_VERSION}" in [each.name for each in folders()], folder


async def test_status_counts_hold(settings: Settings, folder: Path) -> None:
    async with WebRAG(settings, page_source=KilnSite(folder)) as rag:
        found = counts(await rag.status())

    assert found == expected(folder)["status"]


async def test_questions_get_the_same_citations(settings: Settings, folder: Path) -> None:
    async with WebRAG(settings, page_source=KilnSite(folder)) as rag:
        found = await answers(rag)

    assert [places(each) for each in found] == [
        places(each) for each in expected(folder)["answers"]
    ]


async def test_questions_get_the_same_scores(settings: Settings, folder: Path) -> None:
    async with WebRAG(settings, page_source=KilnSite(folder)) as rag:
        found = await answers(rag)

    assert [numbers(each) for each in found] == [
        pytest.approx(numbers(each), abs=_SAME) for each in expected(folder)["answers"]
    ]


async def test_unchanged_pages_are_not_embedded_again(settings: Settings, folder: Path) -> None:
    site = KilnSite(folder)
    async with WebRAG(settings, page_source=site) as rag:
        report = await rag.ingest([SITE + path for path in PAGES], refresh=True)

    assert sorted(site.asked) == sorted(PAGES)
    assert {(page.outcome, page.chunks_embedded) for page in report.pages} == {("unchanged", 0)}
    assert len(report.pages) == len(PAGES)


async def test_nothing_is_wrong_with_the_corpus(settings: Settings, folder: Path) -> None:
    async with WebRAG(settings, page_source=KilnSite(folder)) as rag:
        report = await rag.check_corpus(everything=True)

    assert report.is_sound, report


def places(answer: dict[str, Any]) -> list[Any]:
    cited = [(each["url"], each["place"], each["text"]) for each in answer["citations"]]
    return [answer["question"], answer["band"], cited]


def numbers(answer: dict[str, Any]) -> list[float]:
    return [answer["confidence"], *(each["score"] for each in answer["citations"])]
