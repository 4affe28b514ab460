from datetime import UTC, datetime

import pytest

from webrag.errors import FetchError, RefusedAddressError, UnusablePageError
from webrag.ingestion.http.answers import (
    fetched_page,
    next_address,
    raise_for_status,
)
from webrag.ingestion.http.client import Answer
from webrag.ingestion.models import FetchedPage

URL = "https://site.test/docs/page"


def answer(body: str = "", *, status: int = 200, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(URL, status, {"content-type": "text/html", **named}, body.encode())


def page(given: Answer) -> FetchedPage:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return fetched_page(URL, given, fetched_at=now, source="test", agent="WebRAG")


def refresh(content: str) -> str:
    return f'<html><head><META HTTP-EQUIV="Refresh" CONTENT="{content}"></head></html>'


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0; url=/new", "https://site.test/new"),
        ("0;URL='https://other.test/x?a=1&amp;b=2'", "https://other.test/x?a=1&b=2"),
        ("5,url=new", "https://site.test/docs/new"),
        (" ; url=new", "https://site.test/docs/new"),
        ("0 /new", "https://site.test/new"),
        ("300; url=/home", None),
        ("0", None),
        ("0; url=page#part", None),
        ("", None),
    ],
)
def test_meta_refresh_is_a_redirect(content: str, target: str | None) -> None:
    assert next_address(answer(refresh(content))) == target


@pytest.mark.parametrize(
    "html",
    [
        f"<noscript>{refresh('0; url=/nojs')}</noscript>",
        f"<!-- {refresh('0; url=/old')} -->",
        f"<script>x = '{refresh('0; url=/x')}'</script>",
    ],
)
def test_refresh_that_browsers_ignore_is_ignored(html: str) -> None:
    assert next_address(answer(html)) is None


def test_refresh_to_a_script_is_refused() -> None:
    with pytest.raises(RefusedAddressError, match="not followed"):
        next_address(answer(refresh("0; url=javascript:alert(1)")))


@pytest.mark.parametrize(
    ("location", "kind"),
    [
        ("/login?next=/docs/page", "login_wall"),
        ("https://accounts.google.com/ServiceLogin?continue=x", "login_wall"),
        ("https://site.okta.com/app", "login_wall"),
        ("https://consent.video.test/ml?continue=x", "cookie_wall"),
        ("/cookie-wall?return=/docs", "cookie_wall"),
    ],
)
def test_redirect_to_a_wall_is_named(location: str, kind: str) -> None:
    with pytest.raises(UnusablePageError) as caught:
        next_address(answer(status=302, location=location))

    assert (caught.value.kind, bool(caught.value.hint)) == (kind, True)


@pytest.mark.parametrize("location", ["/docs/login", "/login-guide?from=x", "/oauth-tutorial/"])
def test_redirect_to_a_page_about_logins_is_followed(location: str) -> None:
    assert next_address(answer(status=301, location=location)) == f"https://site.test{location}"


@pytest.mark.parametrize(
    ("given", "vendor"),
    [
        (answer(status=403, cf_mitigated="challenge"), "Cloudflare"),
        (answer("<p>x</p>", status=202, x_amzn_waf_action="challenge"), "AWS WAF"),
        (answer(status=403, x_datadome="protected"), "DataDome"),
        (answer("<script>window._cf_chl_opt={}</script>", status=503), "Cloudflare"),
        (answer("https://errors.edgesuite.net/18.2d", status=403), "Akamai"),
    ],
)
def test_challenge_is_recognised_by_the_answer(given: Answer, vendor: str) -> None:
    with pytest.raises(UnusablePageError, match=f"robots first \\({vendor}\\)") as caught:
        raise_for_status(given)

    assert caught.value.kind == "bot_wall"


def test_plain_refusal_is_no_wall() -> None:
    with pytest.raises(FetchError, match="not open to everyone") as caught:
        raise_for_status(answer("<h1>Forbidden</h1>", status=403))

    assert not isinstance(caught.value, UnusablePageError)


@pytest.mark.parametrize(
    ("header", "is_nofollow"),
    [
        ("noindex, nofollow", True),
        ("googlebot: noindex, webrag: nofollow", True),
        ("none", True),
        ("otherbot: noindex, nofollow", False),
        ("max-snippet:-1, noarchive", False),
        ("", False),
    ],
)
def test_robots_header_counts_where_it_addresses_us(header: str, is_nofollow: bool) -> None:
    assert page(answer("<p>x</p>", x_robots_tag=header)).is_nofollow is is_nofollow


def test_other_versions_are_read_from_the_link_header() -> None:
    link = '</page.md>; rel="alternate"; type="text/markdown", </s.css>; rel=preload'

    assert page(answer("<p>x</p>", link=link)).markdown_url == "https://site.test/page.md"


def test_language_of_the_server_is_kept() -> None:
    assert page(answer("<p>x</p>", content_language="de-AT")).language == "de-AT"
