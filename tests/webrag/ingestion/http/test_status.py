import pytest

from webrag.errors import PageGoneError
from webrag.ingestion.http.answers import status_failure


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


def test_refusal_for_too_many_requests_does_not_call_the_site_slow() -> None:
    assert status_failure("https://site.test/a", 429).hint == (
        "The site wants to be asked less often; try again later."
    )
