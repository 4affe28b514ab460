"""A real Chromium in which the user, who is played, signs in to a site with a form."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.async_api import BrowserContext, async_playwright

from tests.tls_hosts import TlsHosts, tls_hosts
from tests.webrag.ingestion.test_browser import left_alone
from webrag.errors import ConfigurationError, SourceUnavailableError
from webrag.ingestion.http.fetcher import HttpFetcher
from webrag.ingestion.logins.session import Login, Logins
from webrag.ingestion.logins.window import sign_in
from webrag.ingestion.models import FetchConfig, FetchedPage

FORM = """<html><body><h1>Sign in</h1><form method="post" action="/login">
<input name="user"><input type="password" name="password"><button>Sign in</button></form>
<img src="https://other.example/tracker"></body></html>"""
PAGE = "<html><body><p>The private page of the wiki says forty-two.</p></body></html>"


@pytest.fixture
def hosts() -> Iterator[TlsHosts]:
    def sign(request: Any) -> tuple[int, dict[str, str], str]:
        is_right = request.body == b"user=ann&password=kiln"
        cookie = "session=welcome-ann-0123456789; Secure; HttpOnly; Path=/"
        return (303, {"Location": "/", "Set-Cookie": cookie}, "") if is_right else (401, {}, "")

    def private(request: Any) -> tuple[int, dict[str, str], str]:
        known = "session=welcome-ann-0123456789" in (request.headers["Cookie"] or "")
        return (200, {}, PAGE) if known else (302, {"Location": "/login"}, "")

    with tls_hosts() as served:
        tracker = {"Set-Cookie": "spy=abc; Secure; SameSite=None"}
        served.replies = {
            "https://wiki.example/": private,
            "https://wiki.example/login": lambda asked: (
                sign(asked) if asked.command == "POST" else (200, {}, FORM)
            ),
            "https://other.example/tracker": (200, tracker, ""),
        }
        yield served


@pytest.fixture
async def endpoint(hosts: TlsHosts, tmp_path: Path, chromium: Path) -> AsyncIterator[str]:
    """A headless Chromium that takes orders, and for which the hosts are those of the test."""
    rules = ", ".join(f"MAP {name} 127.0.0.1:{hosts.https_port}" for name in ("*.example",))
    async with async_playwright() as playwright:
        context = await playwright.chromium.launch_persistent_context(
            tmp_path,
            executable_path=chromium,
            headless=True,
            chromium_sandbox=os.geteuid() != 0,
            args=[
                "--remote-debugging-port=0",
                "--ignore-certificate-errors",
                f"--host-resolver-rules={rules}",
            ],
        )
        try:
            port = (tmp_path / "DevToolsActivePort").read_text().splitlines()[0]
            yield f"http://127.0.0.1:{port}"
        finally:
            await context.close()


async def _sign_in_as_ann(endpoint: str) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.connect_over_cdp(endpoint)
        (context,) = browser.contexts
        page = await _tab_of_the_wiki(context)
        await page.fill("[name=user]", "ann")
        await page.fill("[name=password]", "kiln")
        await page.click("button")
        await page.wait_for_selector("text=forty-two")
        await page.close()


async def _tab_of_the_wiki(context: BrowserContext) -> Any:
    async with asyncio.timeout(20):
        while True:
            for page in context.pages:
                if page.url == "https://wiki.example/login":
                    return page
            await asyncio.sleep(0.05)


async def test_user_signs_in_and_pages_are_read_with_that_session(
    hosts: TlsHosts, endpoint: str
) -> None:
    async with asyncio.TaskGroup() as group:
        signing = group.create_task(
            sign_in("wiki.example", executable=None, endpoint=endpoint, finished=lambda: False)
        )
        group.create_task(_sign_in_as_ann(endpoint))

    # Of the site that was visited alone, not of what its page brought in.
    cookies = signing.result()
    assert {(each.name, each.domain) for each in cookies} == {("session", "wiki.example")}

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    fetcher = HttpFetcher(
        FetchConfig(allowed_hosts=("wiki.example",)),
        resolver=resolve,
        dialer=hosts.dialer,
        logins=Logins([Login("wiki.example", cookies)]),
    )
    try:
        page = await fetcher.fetch("https://wiki.example/")
    finally:
        await fetcher.aclose()
    assert isinstance(page, FetchedPage)
    assert "forty-two" in page.text


@pytest.mark.usefixtures("chromium")  # what drives it must be there
async def test_browser_that_cannot_be_reached_is_named_with_another_way() -> None:
    with pytest.raises(ConfigurationError, match="cannot be used") as caught:
        await sign_in(
            "wiki.example",
            executable=None,
            endpoint="http://127.0.0.1:9",
            finished=lambda: True,
        )

    assert "--cookies FILE" in str(caught.value.hint)


async def test_driver_that_cannot_be_started_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", "/bin/false")
    before = set(psutil.Process().children())

    with pytest.raises(SourceUnavailableError, match="Playwright, which drives the browser"):
        await sign_in("wiki.example", executable=None, endpoint=None, finished=lambda: True)
    await left_alone(before)
