"""Questions as of an earlier moment, to pages that change, come and go from day to day."""

import re
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from webrag import WebRAG
from webrag.corpus.models import Holdings
from webrag.corpus.pages import Corpus
from webrag.errors import InputError
from webrag.ingestion.models import FetchedPage
from webrag.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOST = "https://kiln.example"
PROGRAM, GLAZE, LATE, GONE, BUSY = (
    f"{HOST}/{name}" for name in ("program", "glaze", "late", "gone", "busy")
)
DAY = timedelta(days=1)
FIRST = datetime(2025, 1, 1, tzinfo=UTC)
QUESTION = "How long is the kiln fired on the stoneware program?"
DAYS = 4
KEPT = 2


def noon(day: float) -> datetime:
    return FIRST + (day + 0.5) * DAY


def program(day: int) -> str:
    return f"On the stoneware program of edition {day} the kiln is fired for {day * 7 + 1} hours."


def texts_of(day: int) -> dict[str, str]:
    """What each page says on a day."""
    told = {
        PROGRAM: program(max(day, 1)),
        GLAZE: "A glaze is stirred every morning and sieved once a week.",
        BUSY: f"The raku program was entered in line {day} of the diary.",
    }
    if day >= 2:
        told[LATE] = "The salt program is fired with an open damper."
    if day < 2:
        told[GONE] = "The soda program is fired with wet wood."
    return told


class Diary:
    """A site on one of the days."""

    name = "diary"

    def __init__(self) -> None:
        self.day = 0
        self.fetched = 0

    async def fetch(self, url: str, **_: Any) -> FetchedPage:
        self.fetched += 1
        text = texts_of(self.day).get(url)
        assert text is not None
        name = url.rpartition("/")[2].title()
        return FetchedPage(
            requested_url=url,
            url=url,
            status=200,
            kind="html",
            text=f"<title>{name}</title><main><h1>{name}</h1><p>{text}</p></main>",
            fetched_at=FIRST + self.day * DAY,
            source=self.name,
        )

    async def aclose(self) -> None:
        """Nothing is open."""


def corpus_of(diary: Diary, postgres_dir: Path) -> WebRAG:
    settings = Settings(
        data_dir=postgres_dir, collection=f"test_{uuid.uuid4().hex[:16]}", keep_versions=KEPT
    )
    return WebRAG(settings, page_source=diary)


@pytest.fixture(scope="module")
def diary() -> Diary:
    return Diary()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rag(diary: Diary, postgres_dir: Path) -> AsyncIterator[WebRAG]:
    """A corpus that was read again on each day."""
    opened = corpus_of(diary, postgres_dir)
    await opened.open()
    for day in range(DAYS):
        diary.day = day
        await opened.ingest(list(texts_of(day)), refresh=True)
    # Not by asking for it: a page goes when the clock says so.
    await Corpus(opened._open_parts.database).mark_gone(GONE, FIRST + 2 * DAY)
    yield opened
    await opened.drop_collection()
    await opened.close()


async def asked(rag: WebRAG, how: str, moment: datetime) -> list[Any]:
    """What is quoted in reply, whatever the question is asked with."""
    if how == "ask":
        return list((await rag.ask(QUESTION, as_of=moment)).citations)
    if how == "search":
        return list((await rag.search(QUESTION, as_of=moment)).citations)
    return list((await rag.answer(PROGRAM, QUESTION, as_of=moment)).citations)


@pytest.mark.parametrize("how", ["search", "ask", "answer"])
@pytest.mark.parametrize("day", [1, 3])
async def test_text_of_the_day_is_quoted_verbatim_and_dated(
    rag: WebRAG, how: str, day: int
) -> None:
    quoted = await asked(rag, how, noon(day))

    text = await rag.markdown(PROGRAM, as_of=noon(day))
    own = [each for each in quoted if each.source_url == PROGRAM]
    assert any(program(day) in each.verbatim_text for each in own)
    assert all(text and text[e.char_start : e.char_end] == e.verbatim_text for e in own)
    assert {each.as_of for each in quoted} == {noon(day)}


@pytest.mark.parametrize("mode", ["chunk", "full_context"])
@pytest.mark.parametrize("day", [1, 2])
async def test_everything_is_found_as_if_it_were_that_day(
    rag: WebRAG, postgres_dir: Path, mode: Any, day: int
) -> None:
    then = Diary()
    then.day = day
    async with corpus_of(then, postgres_dir) as alone:
        await alone.ingest(list(texts_of(day)))
        expected = await alone.search(QUESTION, retrieval_mode=mode)
        await alone.drop_collection()

    found = await rag.search(QUESTION, retrieval_mode=mode, as_of=noon(day))

    told = [
        {item.chunk.text: (item.reranked_score, item.chunk.score) for item in result.chunks}
        for result in (found, expected)
    ]
    assert told[0] == {text: pytest.approx(scores) for text, scores in told[1].items()}
    assert found.corpus_stats == expected.corpus_stats
    assert found.term_idf == pytest.approx(expected.term_idf)


async def test_nothing_is_fetched_for_an_earlier_moment(rag: WebRAG, diary: Diary) -> None:
    before = diary.fetched

    await rag.answer([PROGRAM, GONE], QUESTION, as_of=noon(1))
    await rag.ask(QUESTION, url=[PROGRAM], as_of=noon(1))

    assert diary.fetched == before


async def test_page_whose_text_of_then_was_not_kept_is_told(rag: WebRAG) -> None:
    result = await rag.search(QUESTION, as_of=noon(0))

    assert (
        "2 pages are left out: what is stored there is from after 2025-01-01 12:00 UTC, and no text"
        " of then was kept (WEBRAG_KEEP_VERSIONS)." in result.warnings
    )


@pytest.mark.parametrize(
    ("url", "moment", "sentence"),
    [
        (None, FIRST - DAY, "What was stored on 2024-12-31 00:00 UTC is not there; the earliest"
         " texts held: from 2025-01-01 00:00 UTC, 2025-01-02 00:00 UTC, 2025-01-03 00:00 UTC."),
        (LATE, noon(1), f"The text that {LATE} had on 2025-01-02 12:00 UTC is not there; the"
         " earliest text held: from 2025-01-03 00:00 UTC."),
        (BUSY, noon(0), f"The text that {BUSY} had on 2025-01-01 12:00 UTC is not there; the"
         " earliest texts held: from 2025-01-02 00:00 UTC, 2025-01-03 00:00 UTC, 2025-01-04 00:00"
         " UTC."),
        (f"{HOST}/new", noon(1), f"{HOST}/new is not stored; nothing is fetched for an earlier"
         " moment."),
        (None, datetime(2999, 1, 1, tzinfo=UTC), "2999-01-01 00:00 UTC is still to come; leave"
         " as_of out for what is stored now."),
    ],
    ids=["before-all", "before-the-page", "not-kept", "unknown", "to-come"],
)  # fmt: skip
@pytest.mark.parametrize("how", ["search", "ask"])
async def test_moment_of_which_nothing_is_held_is_refused_with_what_there_is(
    rag: WebRAG, how: str, url: str | None, moment: datetime, sentence: str
) -> None:
    ways: dict[str, Any] = {
        "search": lambda: rag.search(QUESTION, source_urls=url, as_of=moment),
        "ask": lambda: rag.ask(QUESTION, url=url or (), as_of=moment),
    }

    with pytest.raises(InputError) as refused:
        await ways[how]()

    assert str(refused.value) == sentence


async def test_links_are_not_followed_into_the_past(rag: WebRAG) -> None:
    with pytest.raises(InputError, match="no links can be followed"):
        await rag.answer(PROGRAM, QUESTION, research_mode="deep", as_of=noon(1))
    with pytest.raises(InputError, match="no links can be followed"):
        await rag.ask(QUESTION, url=PROGRAM, deep=True, as_of=noon(1))


async def test_brief_and_document_name_the_moment(rag: WebRAG) -> None:
    from webrag.presentation.results import format_result, result_document

    result = await rag.answer(PROGRAM, QUESTION, as_of=noon(2))
    best = rag.best_passages(result)

    brief, shown = rag.brief(result), format_result(result, best)
    document = result_document(result, best)
    assert "As of: 2025-01-03 12:00 UTC" in brief
    assert re.search(r"chars \d+-\d+ as of 2025-01-03 12:00 UTC", brief)
    assert shown.startswith("As of 2025-01-03 12:00 UTC: pages may say something else now.")
    assert [document.as_of, document.passages[0].quotations[0].as_of] == [noon(2)] * 2


async def test_answer_in_sentences_names_the_moment(rag: WebRAG) -> None:
    from webrag.presentation.answer import answer_document, format_answer

    result = await rag.ask(QUESTION, as_of=noon(2))

    document = answer_document(result)
    assert "As of 2025-01-03 12:00 UTC: pages may say something else now." in format_answer(result)
    assert [document.as_of, document.citations[0].as_of] == [noon(2)] * 2


async def test_texts_of_the_same_minute_are_told_as_one() -> None:
    later = FIRST + timedelta(seconds=20)

    refusal = Holdings(held=0, missing=2, since=[FIRST, later]).refusal(FIRST - DAY)

    assert "the earliest text held: from 2025-01-01 00:00 UTC." in str(refusal)
