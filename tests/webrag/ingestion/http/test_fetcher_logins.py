"""Logins go to their own host and nowhere else; every host here is real HTTPS on loopback."""

import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.tls_hosts import TlsHosts, tls_hosts
from webrag.errors import UnusablePageError
from webrag.ingestion.http.fetcher import HttpFetcher
from webrag.ingestion.logins.session import Cookie, Login, Logins
from webrag.ingestion.models import FetchConfig, FetchedPage

SECRET = "s3cret-session-0123456789"
TOKEN = "Bearer t0ken-9876543210-abcdef"
WIKI = "https://wiki.example"
PAGE = "<html><body><p>The private page of the wiki says forty-two.</p></body></html>"
HOSTS = ("wiki.example", "evil.example", "other.example", "sub.wiki.example")
LOGIN = Login(
    "wiki.example",
    (
        Cookie("session", SECRET, ".wiki.example"),
        Cookie("area", "admin-area-secret", "wiki.example", path="/admin"),
        Cookie("old", "long-gone-cookie-value", "wiki.example", expires=1.0),
    ),
    headers=(("Authorization", TOKEN),),
)


@pytest.fixture
def hosts() -> Iterator[TlsHosts]:
    with tls_hosts() as served:
        yield served


@pytest.fixture
async def fetcher(hosts: TlsHosts) -> AsyncIterator[HttpFetcher]:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    config = FetchConfig(allowed_hosts=(*HOSTS, "wiki.example:8443"))
    made = HttpFetcher(config, resolver=resolve, dialer=hosts.dialer, logins=Logins([LOGIN]))
    yield made
    await made.aclose()


def redirect(target: str) -> tuple[int, dict[str, str], str]:
    return 302, {"Location": target}, ""


async def test_page_of_the_logins_host_is_asked_for_with_it_and_marked(
    hosts: TlsHosts, fetcher: HttpFetcher
) -> None:
    hosts.replies[f"{WIKI}/page"] = (200, {}, PAGE)

    page = await fetcher.fetch(f"{WIKI}/page")

    assert isinstance(page, FetchedPage)
    assert page.with_login
    (asked,) = hosts.sent_to(f"{WIKI}/page")
    assert (asked.cookie, asked.authorization) == (f"session={SECRET}", TOKEN)


async def test_cookie_of_a_path_goes_with_that_path_alone(
    hosts: TlsHosts, fetcher: HttpFetcher
) -> None:
    hosts.replies[f"{WIKI}/admin/x"] = (200, {}, PAGE)

    await fetcher.fetch(f"{WIKI}/admin/x")

    (asked,) = hosts.sent_to(f"{WIKI}/admin/x")
    assert asked.cookie == f"area=admin-area-secret; session={SECRET}"


async def test_robots_txt_is_asked_for_without_the_login(
    hosts: TlsHosts, fetcher: HttpFetcher
) -> None:
    hosts.replies[f"{WIKI}/page"] = (200, {}, PAGE)

    await fetcher.fetch(f"{WIKI}/page")

    (asked,) = hosts.sent_to(f"{WIKI}/robots.txt")
    assert (asked.cookie, asked.authorization) == (None, None)


async def test_files_that_list_pages_are_asked_for_without_the_login(
    hosts: TlsHosts, fetcher: HttpFetcher
) -> None:
    hosts.replies[f"{WIKI}/sitemap.xml"] = (200, {}, "<urlset/>")

    await fetcher.fetch_bytes(f"{WIKI}/sitemap.xml")

    assert hosts.with_secrets() == set()


@pytest.mark.parametrize(
    "elsewhere",
    [
        pytest.param("https://evil.example/take", id="another-host"),
        pytest.param("http://wiki.example/take", id="http"),
        pytest.param("https://sub.wiki.example/take", id="subdomain-of-a-domain-cookie"),
        pytest.param("https://other.example/take", id="sibling"),
        pytest.param("https://wiki.example:8443/take", id="another-port"),
        pytest.param("https://wiki.example@evil.example/take", id="userinfo"),
        pytest.param("//evil.example/take", id="without-scheme"),
        pytest.param("https://wiki.example./take", id="trailing-dot"),
    ],
)
async def test_login_does_not_follow_a_redirect_away_from_its_host(
    hosts: TlsHosts, fetcher: HttpFetcher, elsewhere: str
) -> None:
    hosts.replies[f"{WIKI}/page"] = redirect(elsewhere)

    with pytest.raises(Exception, match=r".") as caught:
        await fetcher.fetch(f"{WIKI}/page")

    assert hosts.sent_to(f"{WIKI}/page")
    assert hosts.with_secrets() == {WIKI}
    assert SECRET not in f"{caught.value!r} {getattr(caught.value, 'hint', '')}"


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("https://evil.example/", id="another-host"),
        pytest.param("http://wiki.example/", id="http"),
        pytest.param("https://sub.wiki.example/", id="subdomain"),
        pytest.param("https://wiki.example:8443/", id="another-port"),
    ],
)
async def test_other_hosts_are_asked_without_the_login(
    hosts: TlsHosts, fetcher: HttpFetcher, url: str
) -> None:
    hosts.replies[url] = (200, {}, PAGE)

    page = await fetcher.fetch(url)

    assert isinstance(page, FetchedPage)
    assert not page.with_login
    assert hosts.with_secrets() == set()


async def test_page_that_came_by_way_of_a_login_is_marked_wherever_it_ended(
    hosts: TlsHosts, fetcher: HttpFetcher
) -> None:
    hosts.replies[f"{WIKI}/page"] = redirect("https://other.example/signed?key=1")
    hosts.replies["https://other.example/signed"] = (200, {}, PAGE)

    page = await fetcher.fetch(f"{WIKI}/page")

    assert isinstance(page, FetchedPage)
    assert page.with_login


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param((401, {}, "no"), id="401"),
        pytest.param((403, {}, "no"), id="403"),
        pytest.param(redirect("/login"), id="sign-in-page"),
        pytest.param(redirect("/login?next=/page"), id="sign-in-page-that-comes-back"),
        pytest.param(redirect("https://acme.okta.com/app"), id="sign-in-service"),
    ],
)
async def test_expired_login_is_named_with_the_command_that_renews_it(
    hosts: TlsHosts, fetcher: HttpFetcher, reply: Any
) -> None:
    hosts.replies[f"{WIKI}/page"] = reply

    with pytest.raises(UnusablePageError, match=r"wiki\.example does not accept") as caught:
        await fetcher.fetch(f"{WIKI}/page")

    assert caught.value.kind == "login_expired"
    assert "`webrag login wiki.example`" in str(caught.value)


async def test_secrets_are_in_no_log_and_no_repr(
    hosts: TlsHosts, fetcher: HttpFetcher, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    hosts.replies[f"{WIKI}/page"] = (500, {}, "broken")

    with pytest.raises(Exception, match="500") as caught:
        await fetcher.fetch(f"{WIKI}/page")

    ours = "\n".join(each.getMessage() for each in caplog.records if "webrag" in each.name)
    shown = f"{ours} {caught.value!r} {LOGIN!r} {LOGIN.cookies!r} {Logins([LOGIN])!r}"
    assert "wiki.example" in shown
    assert SECRET not in shown
    assert TOKEN not in shown


async def test_part_of_a_page_that_had_the_login_gets_it_too(
    hosts: TlsHosts, fetcher: HttpFetcher
) -> None:
    hosts.replies[f"{WIKI}/app.js"] = (200, {}, "run()")

    await fetcher.fetch_part(f"{WIKI}/app.js", page=f"{WIKI}/page")

    assert hosts.sent_to(f"{WIKI}/app.js")[0].cookie == f"session={SECRET}"


@pytest.mark.parametrize("page", ["", "https://evil.example/page", "https://sub.wiki.example/x"])
async def test_part_that_another_page_asks_for_gets_no_login(
    hosts: TlsHosts, fetcher: HttpFetcher, page: str
) -> None:
    hosts.replies[f"{WIKI}/data.json"] = (200, {}, "{}")

    await fetcher.fetch_part(f"{WIKI}/data.json", page=page)

    assert hosts.with_secrets() == set()


async def test_part_that_goes_round_by_another_host_comes_back_without_the_login(
    hosts: TlsHosts, fetcher: HttpFetcher
) -> None:
    hosts.replies[f"{WIKI}/out"] = redirect("https://evil.example/back")
    hosts.replies["https://evil.example/back"] = redirect(f"{WIKI}/private")
    hosts.replies[f"{WIKI}/private"] = (200, {}, PAGE)

    await fetcher.fetch_part(f"{WIKI}/out", page=f"{WIKI}/page")

    assert hosts.sent_to(f"{WIKI}/private")[0].cookie is None
