"""Pages that were not obtained, each with what helps."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from ada_url import URL

from webrag.corpus.models import FailedPage
from webrag.errors import FetchError
from webrag.ingestion.addresses import is_file, site_of
from webrag.presentation.reports import reason_beside
from webrag.settings.model import is_fixed

if TYPE_CHECKING:
    from webrag.web.site import Site

Remedy = Literal["again", "allow", "login", "none"]

# Whole sentences: an address in a reason is the site's choice, but holds no space.
_REFUSED: Final = re.compile(
    r"'\S+' may not be contacted: .* set WEBRAG_ALLOW_HOSTS=([^\s,]+)\.", re.DOTALL
)
_WANTS_LOGIN: Final = re.compile(
    r"The page \S+ cannot be read:"
    r" (?:the site wants a login first|\S+ does not accept the stored login)\b"
)
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
    is_remote = not is_file(page.url)
    host = site_of(page.url) if is_remote else ""
    remedy: Remedy = "none"
    if refused := _REFUSED.fullmatch(page.reason):
        # Where a page leads elsewhere, the other host was not the user's choice.
        if is_remote and refused[1] == URL(page.url).host:
            remedy, host = "allow", refused[1]
    elif is_remote and (page.status in _NEEDS_LOGIN or _WANTS_LOGIN.match(page.reason)):
        remedy = "login"
    elif not _FOR_GOOD.search(page.reason) and (page.status in _MAY_PASS or page.status >= 500):
        remedy = "again"
    return Failure(page, reason_beside(page.url, page.reason), remedy, host)


def failure_of_error(error: FetchError, named: Sequence[str]) -> Failure:
    """Tell what helps with a page that a question named, also where it led elsewhere."""
    now, url = datetime.now(UTC), next(iter(named), error.url)
    return failure_of(FailedPage(url=url, reason=str(error), checked_at=now, status=error.status))


def may_allow_hosts(site: "Site") -> bool:
    """Tell whether a host that is allowed on the page is allowed from then on."""
    return site.renew is not None and not is_fixed(site.settings(), "allow_hosts")
