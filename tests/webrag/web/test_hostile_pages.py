"""Pages that attack whoever reads them, opened in a real browser."""

import re

import pytest
from playwright.async_api import Page, expect

from tests.webrag.web.conftest import WebSite

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]

# Escaped once, so that the text which is stored and shown is the attack itself.
SHOWN = [
    "&lt;script&gt;window.attacked=1&lt;/script&gt;",
    "&lt;img src=x onerror=window.attacked=1&gt;",
    "&lt;svg onload=window.attacked=1&gt;",
    "&lt;/textarea&gt;&lt;/title&gt;&lt;script&gt;window.attacked=1&lt;/script&gt;",
    "\"&gt;&lt;iframe srcdoc='&lt;script&gt;parent.attacked=1&lt;/script&gt;'&gt;",
    "{{ 7*7 }}${7*7}&lt;!--",
    "[click](javascript:window.attacked=1)",
    "![x](http://evil.example/pixel.png)",
    "&lt;a href=javascript:window.attacked=1&gt;x&lt;/a&gt;",
    "&lt;base href=//evil.example/&gt;&lt;link rel=stylesheet href=//evil.example/x.css&gt;",
    "&amp;lt;script&amp;gt;window.attacked=1&amp;lt;/script&amp;gt;",
    "&lt;math&gt;&lt;mtext&gt;&lt;style&gt;&lt;img src=x onerror=window.attacked=1&gt;",
]
PLACES = {
    "heading": "<h1>Pump {0}</h1><p>The pump needs nine volts.</p>",
    "table": "<h1>Pump</h1><p>The pump needs nine volts.</p><table><tr><th>{0}</th><th>b</th></tr>"
    "<tr><td>{0}</td><td>c</td></tr></table>",
    "code": "<h1>Pump</h1><p>The pump needs nine volts.</p><pre><code>{0}</code></pre>",
    "sentence": "<h1>Pump</h1><p>The pump {0} needs nine volts.</p>",
    "alt": '<h1>Pump</h1><p>The pump needs nine volts.</p><img src="/x.png" alt="{0}">',
}


async def assert_nothing_ran(page: Page) -> None:
    assert await page.evaluate("window.attacked") is None
    foreign = "img, iframe, svg, object, base, style, [onerror], [onload], a[href^=javascript]"
    assert await page.locator(foreign).count() == 0
    assert await page.locator("script").count() == 1


@pytest.mark.parametrize("place", list(PLACES))
async def test_stored_page_runs_nothing_wherever_the_attack_stands(
    page: Page, web_site: WebSite, place: str
) -> None:
    attacks = " ".join(SHOWN)
    address = web_site.add(f"/pump-{place}", f"Pump {attacks}", PLACES[place].format(attacks))
    await page.get_by_role("textbox", name="Question").fill("How many volts does the pump need?")
    await page.locator("summary", has_text="Where to look").click()
    await page.get_by_label("Pages to answer from").fill(address)
    await page.get_by_role("button", name="Ask").click()
    await expect(page.get_by_role("heading", name="Sources")).to_be_visible()
    await page.get_by_role("link", name=re.compile("Citation 1")).first.click()
    await expect(page.get_by_role("complementary", name="Stored page")).to_be_visible()

    await assert_nothing_ran(page)
    await page.goto("/corpus?show=pages")
    await assert_nothing_ran(page)


async def test_question_and_address_of_an_attacker_run_nothing(page: Page) -> None:
    attack = "<script>window.attacked=1</script>\"'><img src=x onerror=window.attacked=1>"
    await page.get_by_role("textbox", name="Question").fill(f"Why {attack}?")
    await page.locator("summary", has_text="Where to look").click()
    await page.get_by_label("Pages to answer from").fill("javascript:window.attacked=1//<img>")
    await page.get_by_role("button", name="Ask").click()
    await expect(page.get_by_role("alert")).to_be_visible()

    await assert_nothing_ran(page)
    await page.goto(f"/corpus?find={attack}&site={attack}")
    await assert_nothing_ran(page)


async def test_page_cannot_be_framed(page: Page, web_address: str) -> None:
    answer = await page.request.get(web_address)

    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("runs", {"q": "What is it?"}),
        ("corpus/add", {"url": "http://127.0.0.1:1/"}),
        ("corpus/forget", {"site": "127.0.0.1", "sure": "yes"}),
    ],
)
async def test_change_without_the_token_of_the_page_is_refused(
    page: Page, web_address: str, path: str, form: dict[str, str]
) -> None:
    answer = await page.request.post(f"{web_address}{path}", form={**form, "csrf": "guessed"})

    assert answer.status == 403
    assert "did not come from this page" in await answer.text()


async def test_link_of_another_site_fills_the_form_and_asks_nothing(
    page: Page, web_address: str
) -> None:
    headers = {"sec-fetch-site": "cross-site"}
    answer = await page.request.get(f"{web_address}?q=What+is+it", headers=headers)
    text = await answer.text()

    assert ">What is it</textarea>" in text
    assert 'class="answer"' not in text


async def test_foreign_name_is_refused(page: Page, web_address: str) -> None:
    answer = await page.request.get(web_address, headers={"host": "evil.example"})

    assert answer.status == 421
