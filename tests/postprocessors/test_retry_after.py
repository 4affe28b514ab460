import time
from email.utils import formatdate

import pytest
from llama_index.postprocessor.webrag.retry_after import retry_after_s


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
