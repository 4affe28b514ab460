from datetime import UTC, datetime

import pytest

from webrag.corpus.models import FailedPage
from webrag.ingestion.http.guard import AddressRefused, refused
from webrag.ingestion.logins.session import login_expired
from webrag.ingestion.quality import wall_of_redirect
from webrag.web.site import failure_of, failure_of_error

URL = "https://docs.test/guide"
LOGIN_WALL = wall_of_redirect(URL, "https://docs.test/login?next=/guide")
assert LOGIN_WALL is not None


@pytest.mark.parametrize(
    ("status", "reason", "remedy", "host"),
    [
        (404, f"The page {URL} does not exist (HTTP 404).", "none", "docs.test"),
        (410, f"The page {URL} does not exist (HTTP 410).", "none", "docs.test"),
        (403, f"The page {URL} is not open to everyone (HTTP 403).", "login", "docs.test"),
        (200, str(LOGIN_WALL.error(URL, 200)), "login", "docs.test"),
        (200, str(login_expired(URL, "docs.test", 200)), "login", "docs.test"),
        (404, f"The page {URL}/login does not exist (HTTP 404).", "none", "docs.test"),
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


def refused_page(url: str, named: str) -> FailedPage:
    reason = str(refused(named, AddressRefused("its address 10.0.0.1 is private or reserved")))
    return FailedPage(url=url, reason=reason, checked_at=datetime.now(UTC))


@pytest.mark.parametrize("host", ["wiki.corp:8080", "10.0.0.1", "[fd00::1]"])
def test_host_that_was_asked_for_and_refused_may_be_allowed(host: str) -> None:
    failure = failure_of(refused_page(f"http://{host}/", f"http://{host}/"))

    assert (failure.remedy, failure.host) == ("allow", host)


@pytest.mark.parametrize(
    "page",
    [
        refused_page("https://evil.test/", "http://169.254.169.254/"),
        refused_page("https://a,b.test/", "https://a,b.test/"),
        refused_page("file:///etc/hosts", "http://169.254.169.254/"),
        *(
            FailedPage(url="http://evil.test/", reason=reason, checked_at=datetime.now(UTC))
            for reason in (
                "The robots.txt of 'evil.test' does not let WebRAG fetch"
                " https://evil.test/?x=WEBRAG_ALLOW_HOSTS=169.254.169.254.",
                "The page http://evil.test/ answered HTTP 500: 'evil.test' may not be contacted:"
                " private. If it is yours, allow it: set WEBRAG_ALLOW_HOSTS=evil.test.",
            )
        ),
    ],
)
def test_no_site_gets_a_host_offered_for_being_allowed(page: FailedPage) -> None:
    assert failure_of(page).remedy != "allow"


def test_question_whose_page_leads_to_a_private_host_does_not_offer_it() -> None:
    there = "http://169.254.169.254/"
    error = refused(there, AddressRefused("its address is private or reserved"))

    assert failure_of_error(error, ["https://evil.test/"]).remedy != "allow"
    assert failure_of_error(error, [there]).host == "169.254.169.254"


def test_file_named_after_a_login_is_not_offered_one() -> None:
    url = "file:///notes/login.md"
    page = FailedPage(
        url=url, reason=f"The file {url} does not exist.", checked_at=datetime.now(UTC)
    )

    assert failure_of(page).remedy != "login"
