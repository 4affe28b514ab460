import time
from email.utils import formatdate

import pytest

from webrag.errors import PageGoneError
from webrag.ingestion.http.answers import retry_after_s, status_failure


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        (" 1.5 ", 1.5),
        ("", None),
        (None, None),
        ("soon", None),
        ("²", None),
        ("Mon, 01 Jan 99999999999999 00:00:00 GMT", None),
    ],
)
def test_retry_after_is_read(value: str | None, seconds: float | None) -> None:
    assert retry_after_s(value) == seconds


def test_retry_after_may_be_a_date() -> None:
    seconds = retry_after_s(formatdate(time.time() + 60, usegmt=True))

    assert seconds == pytest.approx(60, abs=5)


def test_date_that_has_passed_asks_for_no_wait() -> None:
    assert retry_after_s(formatdate(0, usegmt=True)) == 0.0


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (404, "does not exist (HTTP 404)"),
        (451, "is not open to everyone (HTTP 451)"),
        (500, "answered HTTP 500"),
    ],
)
def test_failures_are_told_in_a_sentence(status: int, words: str) -> None:
    failure = status_failure("https://site.test/a", status)

    assert words in str(failure)
    assert failure.status == status
    assert isinstance(failure, PageGoneError) == (status == 404)
