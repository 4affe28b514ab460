from datetime import UTC, datetime

import pytest

from webrag.corpus.models import FailedPage
from webrag.web.failures import failure_of

URL = "https://docs.test/guide"


@pytest.mark.parametrize(
    ("status", "reason", "remedy", "host"),
    [
        (404, f"The page {URL} does not exist (HTTP 404).", "none", "docs.test"),
        (410, f"The page {URL} does not exist (HTTP 410).", "none", "docs.test"),
        (403, f"The page {URL} is not open to everyone (HTTP 403).", "login", "docs.test"),
        (200, f"The page {URL} cannot be read: it wants a login first.", "login", "docs.test"),
        (
            None,
            "'wiki' may not be contacted: private. If it is yours, allow it: set"
            " WEBRAG_ALLOW_HOSTS=wiki:8080.",
            "allow",
            "wiki:8080",
        ),
        (None, "The robots.txt of 'docs.test' does not let WebRAG fetch it.", "none", "docs.test"),
        (None, f"The page {URL} is larger than allowed; at most 5 MB.", "none", "docs.test"),
        (200, f"{URL} is an image; only HTML is read.", "none", "docs.test"),
        (None, "'docs.test' did not answer in time.", "again", "docs.test"),
        (429, f"The page {URL} answered HTTP 429.", "again", "docs.test"),
        (503, f"The page {URL} answered HTTP 503.", "again", "docs.test"),
    ],
)
def test_failure_is_told_with_what_helps(
    status: int | None, reason: str, remedy: str, host: str
) -> None:
    page = FailedPage(url=URL, reason=reason, checked_at=datetime.now(UTC), status=status)

    assert failure_of(page)[2:] == (remedy, host)
