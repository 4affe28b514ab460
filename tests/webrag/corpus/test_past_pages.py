"""Earlier texts of a page: kept as many as wanted, seen by no search, found by their date."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from webrag import WebRAG
from webrag.errors import InputError
from webrag.ingestion.models import FetchedPage
from webrag.postgres.database import Database
from webrag.retrieval.citation_checks import Citation, CitationCheck
from webrag.settings import Settings

URL = "https://kiln.example/program"
DAY = timedelta(days=1)
FIRST = datetime(2025, 1, 1, tzinfo=UTC)


def sentence(day: int) -> str:
    return f"On the stoneware program of edition {day} the kiln is fired for {day * 7 + 1} hours."


class Diary:
    """A page that says something else each day."""

    name = "diary"

    def __init__(self) -> None:
        self.day = 0

    async def fetch(self, url: str, **_: Any) -> FetchedPage:
        text = f"<title>Program</title><main><h1>Program</h1><p>{sentence(self.day)}</p></main>"
        return FetchedPage(
            requested_url=url,
            url=url,
            status=200,
            kind="html",
            text=text,
            fetched_at=FIRST + self.day * DAY,
            source=self.name,
        )

    async def aclose(self) -> None:
        """Nothing is open."""


@pytest.fixture
async def read_daily(database: Database) -> Any:
    """Opens a corpus whose page was read on four days, keeping so many earlier texts."""
    config = database.config
    opened: list[WebRAG] = []

    async def make(keep: int) -> WebRAG:
        diary = Diary()
        settings = Settings(
            data_dir=Path(config.data_dir), collection=config.collection, keep_versions=keep
        )
        rag = WebRAG(settings, page_source=diary)
        await rag.open()
        opened.append(rag)
        for day in range(4):
            diary.day = day
            await rag.ingest(URL, refresh=True)
        return rag

    yield make
    for rag in opened:
        await rag.close()


async def check(rag: WebRAG, quote: str) -> CitationCheck:
    (found,) = await rag.verify(Citation(url=URL, quote=quote), live=False)
    return found


async def test_text_of_a_day_is_given(read_daily: Any) -> None:
    rag = await read_daily(3)

    texts = [await rag.markdown(URL, as_of=FIRST + (day + 0.5) * DAY) for day in range(4)]

    assert [sentence(day) in text for day, text in enumerate(texts)] == [True] * 4


async def test_day_before_the_first_kept_text_is_refused(read_daily: Any) -> None:
    rag = await read_daily(2)

    with pytest.raises(InputError, match=r"from before 2025-01-02 00:00 UTC was kept"):
        await rag.markdown(URL, as_of=FIRST + 0.5 * DAY)


async def test_nothing_is_kept_unless_it_is_wanted(read_daily: Any) -> None:
    rag = await read_daily(0)

    with pytest.raises(InputError, match="was kept"):
        await rag.markdown(URL, as_of=FIRST + 2.5 * DAY)


async def test_search_sees_the_current_text_only(read_daily: Any) -> None:
    rag = await read_daily(3)

    result = await rag.search("How long is the kiln fired on the stoneware program?")

    assert [sentence(3) in item.chunk.text for item in result.chunks] == [True]


async def test_lost_quotation_disappeared_between_two_days(read_daily: Any) -> None:
    rag = await read_daily(3)

    found = await check(rag, sentence(1))

    assert (found.last_seen_at, found.missing_since) == (FIRST + DAY, FIRST + 2 * DAY)


@pytest.mark.parametrize("quote", [sentence(3), "No text has ever said anything like this."])
async def test_quotation_that_is_there_or_never_was_did_not_disappear(
    read_daily: Any, quote: str
) -> None:
    rag = await read_daily(3)

    assert (await check(rag, quote)).last_seen_at is None


async def test_forgotten_page_leaves_no_earlier_text(read_daily: Any) -> None:
    rag = await read_daily(3)

    await rag.forget(URL)
    await rag.ingest(URL)

    with pytest.raises(InputError, match="was kept"):
        await rag.markdown(URL, as_of=FIRST + DAY)
