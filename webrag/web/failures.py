"""Pages that were not obtained, each with what helps."""

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from webrag.corpus.models import FailedPage
from webrag.errors import FetchError
from webrag.ingestion.addresses import is_file, site_of
from webrag.presentation.reports import reason_beside
from webrag.settings.model import is_fixed

if TYPE_CHECKING:
    from webrag.web.site import Site

Remedy = Literal["again", "allow", "login", "none"]

_ALLOWS: Final = re.compile(r"WEBRAG_ALLOW_HOSTS=(\S+)\.\Z")
_NEEDS_LOGIN: Final = (401, 403)
_MAY_PASS: Final = (None, 408, 425, 429)
# What no further request changes, although no status says so.
_FOR_GOOD: Final = re.compile(r"\AThe robots\.txt of |larger than allowed|unpacks to too much")


class Failure(NamedTuple):
    """A page that was not obtained: asking again, its `host` allowed, or a login to that helps."""

    page: FailedPage
    reason: str
    remedy: Remedy
    host: str


def failure_of(page: FailedPage) -> Failure:
    """Tell what helps with a page that was not obtained."""
    host = "" if is_file(page.url) else site_of(page.url)
    remedy: Remedy = "none"
    if refused := _ALLOWS.search(page.reason):
        remedy, host = "allow", refused[1]
    elif page.status in _NEEDS_LOGIN or "login" in page.reason:
        remedy = "login"
    elif not _FOR_GOOD.search(page.reason) and (page.status in _MAY_PASS or page.status >= 500):
        remedy = "again"
    return Failure(page, reason_beside(page.url, page.reason), remedy, host)


def failure_of_error(error: FetchError) -> Failure:
    """Tell what helps with a page that a question named."""
    now = datetime.now(UTC)
    return failure_of(
        FailedPage(url=error.url, reason=str(error), checked_at=now, status=error.status)
    )


def may_allow_hosts(site: "Site") -> bool:
    """Tell whether a host that is allowed on the page is allowed from then on."""
    return site.renew is not None and not is_fixed(site.settings(), "allow_hosts")
