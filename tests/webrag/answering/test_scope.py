import asyncio
from typing import Any

import pytest

from webrag.answering.evidence import NamedPages
from webrag.corpus.models import AcquiredPage
from webrag.errors import (
    DatabaseUnavailableError,
    FetchError,
    ProviderError,
    StorageError,
    WebRAGError,
)
from webrag.ingestion.fetch_context import note
from webrag.question import Question

A, B = "https://d.test/a", "https://d.test/b"
DOWN = "The service is down. Pages were fetched by the built-in fetcher instead."


class Acquirer:
    """Has a page for each address, an error, or lets the caller wait."""

    def __init__(self, answers: dict[str, WebRAGError | None]) -> None:
        self.answers = answers
        self.cancelled: list[str] = []

    async def acquire(self, url: str) -> AcquiredPage:
        note(DOWN)
        await asyncio.sleep(0)
        if url in self.answers:
            error = self.answers[url]
            if error is not None:
                raise error
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.append(url)
        return AcquiredPage(
            url=url,
            requested_url=url,
            page_id=1,
            title=None,
            outcome="indexed",
            depth=0,
            chunk_count=2,
            token_count=10,
        )


async def unheard(*_progress: Any) -> None:
    pass


def pages(acquirer: Acquirer) -> NamedPages:
    engine: Any = None  # only deep requests need one
    return NamedPages(acquirer, engine)  # type: ignore[arg-type]


async def test_loss_of_the_database_ends_the_fetches_of_all_pages() -> None:
    acquirer = Acquirer({A: DatabaseUnavailableError("It is gone."), B: None})

    with pytest.raises(DatabaseUnavailableError, match="gone"):
        await pages(acquirer)(Question.of("Where?", urls=[A, B]), unheard)

    assert acquirer.cancelled == [B]


@pytest.mark.parametrize(
    "error",
    [
        FetchError("It does not answer.", url=A),
        StorageError("It does not fit."),
        ProviderError("It was not embedded.", provider="x"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_page_that_cannot_be_used_is_told_and_the_others_are(error: WebRAGError) -> None:
    acquirer = Acquirer({A: error})

    found, problems = await pages(acquirer)(Question.of("Where?", urls=[A, B]), unheard)

    assert found == [B]
    assert problems[-1] == f"{A} could not be used: {error}"


async def test_what_page_sources_note_is_among_what_did_not_work() -> None:
    _, problems = await pages(Acquirer({}))(Question.of("Where?", urls=[A, B]), unheard)

    assert problems == (DOWN,)
