import logging
from datetime import UTC, datetime

import pytest

from webrag.errors import (
    FetchError,
    PageGoneError,
    RefusedAddressError,
    SourceUnavailableError,
)
from webrag.ingestion.fetch_context import listening
from webrag.ingestion.models import FetchedPage, Validators
from webrag.ingestion.service import FallbackSource

URL = "https://site.test/page"
DOWN = SourceUnavailableError("The service is down.", url=URL, hint="Wait a minute.")


class Source:
    """Answers with what it was given, an error or its own name."""

    def __init__(self, name: str, *answers: FetchError) -> None:
        self.name = name
        self.answers = list(answers)
        self.asked: list[tuple[str, Validators | None]] = []
        self.is_closed = False
        self.wants_fresh = False

    async def fetch(
        self, url: str, *, validators: Validators | None = None, fresh: bool = False
    ) -> FetchedPage:
        self.wants_fresh = fresh
        self.asked.append((url, validators))
        if self.answers:
            raise self.answers.pop(0)
        return FetchedPage(
            requested_url=url,
            url=url,
            status=200,
            kind="html",
            text="<p>text</p>",
            fetched_at=datetime.now(UTC),
            source=self.name,
        )

    async def aclose(self) -> None:
        self.is_closed = True


async def source_of(fallback: FallbackSource, validators: Validators | None = None) -> str:
    page = await fallback.fetch(URL, validators=validators)
    assert isinstance(page, FetchedPage)
    return page.source


async def test_second_source_is_not_asked_while_the_first_works() -> None:
    second = Source("second")

    assert await source_of(FallbackSource(Source("first"), second)) == "first"
    assert second.asked == []


async def test_second_source_serves_while_the_first_is_down_and_the_caller_is_told() -> None:
    heard: list[str] = []
    validators = Validators(etag='"1"')
    second = Source("builtin")

    with listening(heard.append):
        found = await source_of(FallbackSource(Source("first", DOWN), second), validators)

    assert found == "builtin"
    assert second.asked == [(URL, validators)]
    assert heard == [
        "The service is down. Wait a minute. Pages were fetched by the built-in fetcher instead."
    ]


@pytest.mark.parametrize("error", [PageGoneError("gone", url=URL), FetchError("HTTP 500", url=URL)])
async def test_failure_of_the_page_is_not_asked_about_again(error: FetchError) -> None:
    second = Source("second")

    with pytest.raises(type(error)):
        await source_of(FallbackSource(Source("first", error), second))

    assert second.asked == []


async def test_address_the_first_may_not_be_told_is_judged_by_the_second() -> None:
    heard: list[str] = []
    first = Source("first", RefusedAddressError("private", url=URL))

    with listening(heard.append):
        assert await source_of(FallbackSource(first, Source("second"))) == "second"

    assert heard == []


async def test_same_failure_is_logged_once_until_the_first_works_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, logger="webrag")
    first = Source("first", DOWN, DOWN)
    fallback = FallbackSource(first, Source("second"))

    for _ in range(3):
        await source_of(fallback)
    first.answers = [DOWN]
    await source_of(fallback)

    assert len(caplog.records) == 2


async def test_both_are_closed_and_named() -> None:
    first, second = Source("first"), Source("second")
    fallback = FallbackSource(first, second)

    await fallback.aclose()

    assert (first.is_closed, second.is_closed) == (True, True)
    assert fallback.name == "first, else second"


async def test_a_fresh_copy_is_asked_of_both_sources() -> None:
    first, second = (
        Source("first", SourceUnavailableError("It is down.", url=URL)),
        Source("second"),
    )

    await FallbackSource(first, second).fetch(URL, fresh=True)

    assert (first.wants_fresh, second.wants_fresh) == (True, True)


async def test_first_source_is_not_told_of_a_page_that_wants_a_login() -> None:
    first = Source("first")

    async def is_private(url: str) -> bool:
        return url == URL

    fallback = FallbackSource(first, Source("second"), is_private=is_private)

    assert await source_of(fallback) == "second"
    assert first.asked == []
