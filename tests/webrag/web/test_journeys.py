"""What people do with the page, in a real browser, found by roles and names."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import product
from pathlib import Path
from typing import Literal

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Locator, Page, expect

from tests.webrag.answering.conftest import ScriptedModel
from tests.webrag.answering.conftest import model as model  # the fixture
from tests.webrag.web.conftest import WebSite

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]

# Read before the tests' clean environment is made.
PICTURES = os.environ.get("PAGE_PICTURES")
QUESTION = "How often is the filter of the kettle cleaned?"
QUOTE = "Clean the filter of the kettle every three weeks with citric acid."
KETTLE = f"""<h1>Kettle</h1><p>The kettle boils two litres of water in four minutes.</p>
<h2>Care</h2><p>{QUOTE}</p><p>Rinse it twice afterwards.</p>
<h2>Parts</h2><table><tr><th>Part</th><th>Price</th></tr><tr><td>Lid</td><td>4</td></tr></table>"""
STANDARDS = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]}}

Seen = Callable[[str], Awaitable[None]]


@pytest_asyncio.fixture(loop_scope="module")
async def seen(page: Page) -> AsyncIterator[Seen]:
    """Checks a state for barriers, and keeps its picture where `PAGE_PICTURES` names a folder."""

    async def look(state: str) -> None:
        if PICTURES:
            await pictured(page, Path(PICTURES), state)
        found = await Axe().run(page, options=STANDARDS)
        assert found.violations_count == 0, found.generate_report()

    yield look


async def pictured(page: Page, folder: Path, state: str) -> None:
    """Keep pictures of a state in both colours, on a narrow and on a wide screen."""
    size = page.viewport_size
    assert size is not None
    schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for scheme, width in product(schemes, (360, 1280)):
        await page.emulate_media(color_scheme=scheme)
        await page.set_viewport_size({"width": width, "height": 900})
        await page.screenshot(path=folder / f"{state}-{scheme}-{width}.png", full_page=True)
    await page.emulate_media(color_scheme="light")
    await page.set_viewport_size(size)


async def ask(page: Page, question: str, *, url: str = "") -> None:
    await page.get_by_role("textbox", name="Question").fill(question)
    if url:
        await open_fields(page)
        await page.get_by_label("Pages to answer from").fill(url)
    await page.get_by_role("button", name=re.compile("^Ask( anew)?$")).click()


async def open_fields(page: Page) -> None:
    if not await page.get_by_label("Pages to answer from").is_visible():
        await page.locator("summary", has_text="Where to look").click()


async def answered(page: Page) -> None:
    await expect(page.get_by_role("heading", name="Sources")).to_be_visible()


async def add(page: Page, address: str, *, says: str = "Done.") -> None:
    await page.goto("/corpus")
    await page.get_by_label("Add a page or a site").fill(address)
    await page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.get_by_text(says)).to_be_visible()


async def saved(page: Page, link: Locator) -> str:
    async with page.expect_download() as download:
        await link.click()
    return (await (await download.value).path()).read_text("utf-8")


async def test_first_question_is_answered_from_a_page_that_was_not_stored(
    page: Page, seen: Seen, web_site: WebSite
) -> None:
    address = web_site.add("/kettle", "Kettle manual", KETTLE)
    await expect(page.get_by_role("heading", name="Nothing is stored yet")).to_be_visible()
    await seen("empty")

    await ask(page, QUESTION, url=address)
    await answered(page)

    answer = page.get_by_role("article", name=QUESTION)
    await expect(answer).to_contain_text("every three weeks with citric acid")
    await expect(answer.get_by_role("link", name="Citation 1: Kettle")).to_be_visible()
    await expect(answer.get_by_text(re.compile("^Confidence "))).to_be_visible()
    await expect(page).to_have_url(re.compile("/runs/"))
    await seen("answer")


async def test_citation_opens_at_its_mark_and_keys_go_to_the_next(
    page: Page, seen: Seen, web_site: WebSite
) -> None:
    await ask(page, QUESTION, url=web_site.add("/kettle", "Kettle manual", KETTLE))
    await answered(page)

    chip = page.get_by_role("link", name="Citation 1: Kettle")
    await chip.click()

    reader = page.get_by_role("complementary", name="Stored page")
    first = reader.locator("#c1")
    await expect(first).to_be_focused()
    assert QUOTE in "".join(await reader.locator("mark").all_text_contents())
    await expect(reader.get_by_role("columnheader", name="Price")).to_be_visible()
    live = reader.get_by_role("link", name="Open the live page there")
    assert "#:~:text=" in (await live.get_attribute("href") or "")
    await seen("reader")
    await page.emulate_media(color_scheme="dark")
    await seen("reader-dark")

    await page.keyboard.press("j")
    count = await reader.locator("mark[id]").count()
    number = 2 if count > 1 else 1
    await expect(reader.locator("mark.current")).to_have_id(f"c{number}")
    await page.keyboard.press("Escape")
    await expect(reader).to_be_hidden()
    await expect(page.get_by_role("link", name=f"Citation {number}: Kettle")).to_be_focused()


async def test_mark_chip_and_verify_mean_the_same_citation(
    page: Page, seen: Seen, web_site: WebSite
) -> None:
    body = (
        "<h1>Stove</h1><h2>Cleaning the stove</h2><p>The stove is cleaned with soda.</p>"
        "<h2>Lighting the stove</h2><p>The stove is lit with dry birch wood.</p>"
    )
    address = web_site.add("/stove", "Stove manual", body)
    await ask(page, "How is the stove cleaned, and how is the stove lit?", url=address)
    await answered(page)
    await page.get_by_role("link", name="Citation 1: Stove").first.click()
    reader = page.get_by_role("complementary", name="Stored page")
    await expect(reader.locator("mark.current")).to_have_id("c1")
    assert await reader.locator("mark[id]").count() > 1

    await page.keyboard.press("j")

    current = await reader.locator("mark.current").get_attribute("id")
    number = str(current).removeprefix("c")
    assert number != "1"
    chips = page.locator(".chip[aria-current]")
    assert set(await chips.all_text_contents()) == {number}
    await expect(reader.get_by_role("button", name=re.compile("^Verify"))).to_have_text(
        f"Verify citation {number}"
    )
    await reader.get_by_role("button", name=f"Verify citation {number}").click()
    verified = reader.get_by_text(f"Citation {number} on the live page: still there")
    await expect(verified).to_be_visible()
    await seen("reader-second")
    await page.keyboard.press("k")
    await expect(reader.get_by_role("button", name="Verify citation 1")).to_be_visible()
    await expect(verified).to_have_count(0)


async def test_follow_up_keeps_the_subject_and_the_thread_is_copied_with_citations(
    page: Page, seen: Seen, web_site: WebSite
) -> None:
    water = "<h1>Pump</h1><p>The pump moves water from the well to the house.</p>"
    install = "<h2>Installing the pump</h2><p>The pump is installed with four long bolts.</p>"
    address = web_site.add("/pump", "Pump manual", water + install)
    await add(
        page, web_site.add("/shelf", "Shelf", "<h1>Shelf</h1><p>It is installed on a wall.</p>")
    )
    await page.goto("/")
    await ask(page, "What does the pump move?", url=address)
    await answered(page)
    first = page.url
    await page.get_by_label("Go on from this answer").fill("And how is it installed?")

    await page.get_by_role("button", name="Ask further").click()

    answer = page.get_by_role("article", name="And how is it installed?")
    await expect(answer).to_contain_text("four long bolts")
    await expect(answer.get_by_text("Understood as: How is the pump installed?")).to_be_visible()
    earlier = page.get_by_role("navigation", name="Earlier in this thread").get_by_role("link")
    await expect(earlier).to_have_attribute("href", re.sub("^http://[^/]+", "", first))
    await seen("thread")
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.get_by_role("link", name="Copy as Markdown").click()
    await expect(page.get_by_role("link", name="Copied")).to_be_visible()
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("## What does the pump move?\n")
    assert "## And how is it installed?\n" in copied
    assert f"]({address}" in copied.replace("(<", "(")
    assert await saved(page, page.get_by_role("link", name="Save as a file")) == copied
    await page.reload()
    await expect(answer).to_contain_text("four long bolts")


async def test_thread_is_kept_by_the_browser_shown_copied_and_deleted(
    page: Page, seen: Seen, web_site: WebSite
) -> None:
    body = "<h1>Pump</h1><p>The pump moves water from the well to the house.</p>"
    body += "<h2>Installing the pump</h2><p>The pump is installed with four long bolts.</p>"
    await ask(page, "What does the pump move?", url=web_site.add("/pump", "Pump manual", body))
    await answered(page)
    await page.get_by_label("Go on from this answer").fill("And how is it installed?")
    await page.get_by_role("button", name="Ask further").click()
    await expect(page.get_by_role("article", name="And how is it installed?")).to_be_visible()
    kept = page.get_by_role("navigation", name="Threads")
    await expect(kept.get_by_role("link")).to_have_text(["What does the pump move?"])
    # `wait_for_function` looks again by `eval`, which the page's policy forbids.
    while await page.evaluate("() => Object.values(localStorage)[0].split('\"run\"').length") < 3:
        await asyncio.sleep(0.05)
    # As when the server was started anew since.
    await page.evaluate(
        """() => {
          const run = location.pathname.split("/").pop();
          for (const [key, value] of Object.entries(localStorage))
            localStorage.setItem(key, value.replaceAll(run, "gone"));
        }"""
    )

    await page.goto("/runs/gone")

    await expect(page).to_have_url(re.compile("/threads/"))
    turns = page.locator(".turns").get_by_role("article")
    await expect(turns).to_have_count(2)
    await expect(turns.last).to_contain_text("four long bolts")
    await seen("kept-thread")
    await turns.last.get_by_role("link", name=re.compile("^Citation 1")).first.click()
    await expect(page.locator("#reader mark.current")).to_contain_text("four long bolts")
    await page.keyboard.press("Escape")
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.get_by_role("button", name="Copy as Markdown").click()
    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert "## What does the pump move?" in copied
    assert "four long bolts" in copied
    assert await saved(page, page.get_by_text("Save as a file")) == copied
    await page.get_by_label("Go on from this answer").fill("And what does it move?")
    await page.get_by_role("button", name="Ask further").click()
    third = page.get_by_role("article", name="And what does it move?")
    await expect(third.get_by_text("Understood as: ")).to_be_visible()

    await kept.get_by_role("button", name="Delete the thread What does the pump move?").click()

    await expect(page.get_by_role("heading", name="What is stored")).to_be_visible()
    await expect(kept).to_be_hidden()


async def test_start_page_shows_what_is_stored_and_a_question_it_can_answer(
    page: Page, seen: Seen, web_site: WebSite
) -> None:
    await add(page, web_site.add("/kettle", "Kettle manual", KETTLE))
    body = (
        "<h1>Oven</h1><h2>How to bake bread</h2><p>Bread is baked at 220 degrees for an hour.</p>"
    )
    await add(page, web_site.add("/oven", "Oven manual", body))
    await page.goto("/")
    stored = page.get_by_role("region", name="What is stored")
    host = web_site.base.removeprefix("http://")
    await expect(stored.get_by_role("link", name=host)).to_be_visible()
    await seen("start")

    await stored.get_by_role("link", name="How to bake bread?").click()
    await answered(page)

    await expect(page.get_by_role("article", name="How to bake bread?")).to_contain_text("220")


async def test_theme_is_kept_from_page_to_page(page: Page, seen: Seen) -> None:
    switch = page.get_by_role("button", name=re.compile("^Colours: "))
    await switch.click()
    await switch.click()
    await seen("start-dark")

    await page.goto("/corpus")

    await expect(page.get_by_role("button", name="Colours: dark")).to_be_visible()
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    assert await page.evaluate(paper) == "rgb(21, 23, 26)"
    await seen("corpus-dark")


async def test_nothing_is_cut_on_a_narrow_screen(page: Page, seen: Seen, web_site: WebSite) -> None:
    address = web_site.add("/kettle", "Kettle manual", KETTLE)
    await add(page, address)
    await page.set_viewport_size({"width": 360, "height": 740})
    cut = """() => [...document.querySelectorAll("button, time, a, input, td")].filter((each) => {
      const box = each.getBoundingClientRect();
      return box.width && (box.right > innerWidth + 1 || box.left < -1)
        && getComputedStyle(each).position !== "absolute";
    }).map((each) => each.outerHTML.slice(0, 120))"""
    for path in ("/corpus", "/"):
        await page.goto(path)
        assert await page.evaluate(cut) == []
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        await seen(f"narrow{path.replace('/', '-')}")
    await ask(page, QUESTION, url=address)
    await answered(page)
    assert await page.evaluate(cut) == []
    await seen("narrow-answer")


async def test_years_narrow_an_answer(page: Page, seen: Seen, web_site: WebSite) -> None:
    for year, price in ((2024, 19), (2025, 23)):
        body = f"<h1>Price of the toaster</h1><p>The toaster costs {price} euros in shops.</p>"
        await add(page, web_site.add(f"/toaster-{year}", f"Prices {year}", body, year=year))
    await page.goto("/")
    await open_fields(page)

    await page.get_by_role("group", name="Only pages published in").get_by_label("2024").check()
    await seen("years")
    await ask(page, "What does the toaster cost?")
    await answered(page)

    answer = page.get_by_role("article", name="What does the toaster cost?")
    await expect(answer).to_contain_text("19 euros")
    await expect(answer).not_to_contain_text("23 euros")
    await expect(answer.get_by_text("2024-03-01")).to_be_visible()


async def test_cancelled_question_stops_at_once(page: Page, seen: Seen, web_site: WebSite) -> None:
    web_site.delays["/slow"] = 8.0
    await ask(page, "Is it slow?", url=web_site.add("/slow", "Slow", "<p>Slow.</p>"))
    await expect(page.get_by_text(re.compile("Reading .*/slow"))).to_be_visible()
    await seen("running")

    await page.get_by_role("button", name="Cancel").click()

    await expect(page.get_by_text("Cancelled. What was fetched until then is kept.")).to_be_visible(
        timeout=5_000
    )
    await seen("cancelled")


async def test_crawl_survives_its_tab_stops_and_goes_on(
    page: Page, seen: Seen, web_site: WebSite
) -> None:
    links = "".join(f'<a href="/tools/{i}">Tool {i}</a> ' for i in range(12))
    start = web_site.add("/tools/", "Tools", f"<h1>Tools</h1><p>All the tools. {links}</p>")
    for i in range(12):
        web_site.add(f"/tools/{i}", f"Tool {i}", f"<h1>Tool {i}</h1><p>Tool {i} cuts wood.</p>")
        web_site.delays[f"/tools/{i}"] = 5.0
    await page.goto("/corpus")
    await page.get_by_label("Add a page or a site").fill(start)
    await page.get_by_label("The whole site below this address").check()
    await page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.get_by_role("region", name="Progress")).to_contain_text("pages done")

    await page.goto("/corpus")
    await page.get_by_role("link", name=re.compile("Crawl of")).click()
    progress = page.get_by_role("region", name="Progress")
    await expect(progress).to_contain_text("waiting")
    await expect(progress.get_by_role("listitem").first).to_have_text(
        re.compile(r"/tools/\d+: stored$")
    )
    await seen("crawl")
    await page.get_by_role("button", name="Stop").click()
    await expect(
        page.get_by_text(re.compile("^Stopped after .* What was fetched is kept"))
    ).to_be_visible()
    await seen("crawl-stopped")
    web_site.delays.clear()
    await page.get_by_role("button", name="Go on").click()

    await expect(page.get_by_text("Every page that was found has been visited")).to_be_visible()
    await seen("crawl-done")


async def test_page_is_found_and_forgotten_when_asked_twice(
    page: Page, seen: Seen, web_site: WebSite
) -> None:
    await add(page, web_site.add("/pot", "Teapot", "<h1>Teapot</h1><p>It keeps tea warm.</p>"))
    await add(page, web_site.add("/samovar", "Samovar", "<h1>Samovar</h1><p>It makes tea.</p>"))
    await page.goto("/corpus")
    await seen("corpus")
    await page.get_by_role("searchbox", name="Find a page").fill("samovar")
    await page.get_by_role("button", name="Find").click()
    await page.get_by_role("button", name="Forget Samovar").click()
    await expect(page.get_by_role("heading", name="Forget 1 page?")).to_be_visible()
    await seen("forget")

    await page.get_by_role("button", name="Forget 1 page").click()

    await expect(page.get_by_role("heading", name="1 page forgotten")).to_be_visible()
    await page.goto("/corpus?find=samovar")
    await expect(page.get_by_text("No page has these words in its title")).to_be_visible()


async def test_folder_of_files_is_added_by_its_path_and_forgotten_alone(
    page: Page, seen: Seen, tmp_path: Path
) -> None:
    for name in ("boats/sail.md", "boats/hull.md", "notes.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"# {name}\n\nWhat {name} says.\n", encoding="utf-8")
    await add(page, str(tmp_path))
    await page.goto("/corpus")
    await page.get_by_role("link", name="files of this machine").click()
    await page.locator("summary", has_text="2 folders of these files").click()
    await seen("folders")

    await page.get_by_role("button", name=f"Forget the folder {tmp_path}/boats").click()
    await page.get_by_role("button", name="Forget 2 pages").click()

    await expect(page.get_by_role("heading", name="2 pages forgotten")).to_be_visible()
    await page.goto(f"/corpus?find={tmp_path}")
    await expect(page.get_by_role("region", name="Pages").get_by_text("1 page")).to_be_visible()


async def test_what_could_not_be_had_is_said_with_what_to_do(
    page: Page, seen: Seen, web_site: WebSite
) -> None:
    await page.goto("/corpus")
    await page.get_by_label("Add a page or a site").fill(f"{web_site.base}/nowhere")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Nothing was obtained.")).to_be_visible()
    await expect(page.get_by_role("button", name=f"Forget {web_site.base}/nowhere")).to_be_visible()
    await expect(page.get_by_text(re.compile("Try .*again"))).to_have_count(0)
    await seen("nothing-obtained")
    await add(page, "quick start", says="The URL 'quick' does not start with http")
    await expect(page.get_by_text("Try again")).to_have_count(0)
    await page.get_by_role("link", name="Back to the stored pages").click()
    await page.goto("/")

    await ask(page, "nothing.example:99 what is a kettle")

    await expect(page.get_by_text("Nothing of nothing.example:99 is stored")).to_be_visible()
    await expect(page.get_by_role("link", name="add it")).to_have_attribute("href", "/corpus")


async def test_changed_page_is_verified_word_by_word(
    page: Page, seen: Seen, web_site: WebSite
) -> None:
    body = "<h1>Grinder</h1><p>The grinder of the mill is oiled every ten weeks with resin oil.</p>"
    await ask(
        page, "How often is the grinder oiled?", url=web_site.add("/mill", "Mill manual", body)
    )
    await answered(page)
    web_site.add("/mill", "Mill manual", body.replace("ten", "twelve"))
    await page.get_by_role("link", name=re.compile("Citation 1")).click()

    await page.get_by_role("button", name="Verify citation 1").click()

    await expect(page.get_by_text("on the live page: changed")).to_be_visible()
    assert "ten" in await page.get_by_role("deletion").all_text_contents()
    assert "twelve" in await page.get_by_role("insertion").all_text_contents()
    await seen("verified")


async def test_everything_of_an_answer_is_there_without_scripts(
    browser: Browser, web_address: str, web_site: WebSite
) -> None:
    address = web_site.add("/kettle", "Kettle manual", KETTLE)
    context = await browser.new_context(base_url=web_address, java_script_enabled=False)
    page = await context.new_page()
    await page.goto("/")
    await ask(page, QUESTION, url=address)
    await answered(page)

    await page.get_by_role("link", name="Citation 1: Kettle").click()

    await expect(page.locator("mark").first).to_be_visible()
    assert QUOTE in "".join(await page.locator("mark").all_text_contents())
    await context.close()


async def test_question_that_nothing_answers_is_told_so(
    page: Page, seen: Seen, web_site: WebSite
) -> None:
    await add(page, web_site.add("/kettle", "Kettle manual", KETTLE))
    await page.goto("/")

    await ask(page, "Who won the chess championship of 1972?")

    await expect(page.get_by_text(re.compile("^No answer: "))).to_be_visible()
    await seen("no-answer")


async def test_page_that_cannot_be_had_is_told_in_a_sentence(
    page: Page, seen: Seen, web_site: WebSite
) -> None:
    await ask(page, "How much does the missing lamp cost?", url=f"{web_site.base}/absent")

    await expect(page.get_by_role("alert")).to_contain_text("404")
    await expect(page.get_by_role("link", name="Try again")).to_have_count(0)
    await seen("failure")
    await page.get_by_role("link", name="Ask what is stored").click()
    await expect(page.locator("article.answer")).to_be_visible()


async def test_pages_never_obtained_are_a_list_with_the_button_that_helps_each(
    page: Page, seen: Seen, web_site: WebSite
) -> None:
    statuses = {"/vanished": 410, "/staff": 401, "/busy": 503}
    web_site.statuses |= statuses
    addresses = [f"{web_site.base}{path}" for path in statuses]
    await add(page, " ".join([*addresses, "http://10.255.255.1/"]), says="Nothing was obtained.")
    await page.goto("/corpus")
    await page.get_by_role("link", name=re.compile("not fetched$")).click()
    failed = page.get_by_role("region", name="Could not be fetched")
    await seen("failed")

    helped = dict(zip(addresses, ["Forget", "Try again", "Try again"], strict=True))
    for address, name in helped.items():
        entry = failed.locator("dd", has=page.get_by_label(f"Forget {address}"))
        await expect(entry.get_by_role("button").first).to_have_text(re.compile(f"^{name}"))
    await expect(failed.get_by_text("webrag login 127.0.0.1")).to_be_visible()
    await expect(failed.get_by_text("Allow 10.255.255.1: it is mine")).to_have_count(0)
    await expect(failed.get_by_text("webrag web --allow-host 10.255.255.1")).to_be_visible()

    web_site.statuses.clear()
    web_site.add("/busy", "Found", "<h1>Found</h1><p>The page is here after all.</p>")
    await failed.get_by_role("button", name=f"Try {addresses[2]} again").click()
    await expect(page.get_by_text("Done.")).to_be_visible()


async def test_page_that_never_came_is_forgotten_and_failures_are_searched(
    page: Page, web_site: WebSite
) -> None:
    address = f"{web_site.base}/misspelt"
    await add(page, address, says="Nothing was obtained.")
    await page.goto("/corpus?show=failed")
    failed = page.get_by_role("region", name="Could not be fetched")
    await failed.get_by_role("searchbox").fill("misspelt")
    await failed.get_by_role("button", name="Find").click()
    await expect(failed.get_by_role("term")).to_have_text([address])

    await failed.get_by_role("button", name=f"Forget {address}").click()
    await page.get_by_role("button", name="Forget 1 page").click()

    await expect(page.get_by_role("heading", name="1 page forgotten")).to_be_visible()
    await page.goto("/corpus?show=failed&find=misspelt")
    await expect(failed.get_by_text("No page of these has such words")).to_be_visible()


async def test_export_holds_the_stored_pages(page: Page, web_site: WebSite) -> None:
    address = web_site.add("/lamp", "Lamp", "<h1>Lamp</h1><p>The lamp has six watts.</p>")
    await add(page, address)
    await page.goto("/corpus")

    exported = await saved(page, page.get_by_role("link", name="Export everything"))

    _, *lines = exported.splitlines()
    assert address in {json.loads(line)["url"] for line in lines}


async def test_page_says_what_it_is_about_beside_its_text(
    page: Page, seen: Seen, web_site: WebSite
) -> None:
    address = web_site.add("/teapots", "Teapots in short", KETTLE.replace("ettle", "eapot"))
    await add(page, address)
    await page.goto("/corpus?find=teapots")
    await page.get_by_role("link", name="Teapots in short", exact=True).click()
    await page.get_by_role("link", name="Summarise this page").click()

    await expect(page.locator(".said")).to_contain_text("boils two litres of water")
    await expect(page.locator(".said li")).to_have_text(["Care", "Parts"])
    await seen("summary")


async def test_language_model_is_tried_writes_the_next_answer_and_is_taken_out_again(
    page: Page, seen: Seen, web_site: WebSite, model: ScriptedModel
) -> None:
    address = web_site.add("/written-kettle", "Kettle", KETTLE)
    written = "It is cleaned every three weeks."
    model.replies = [
        lambda asked: model.sentence(written, (1, QUOTE)) if asked.get("stream") else "ready"
    ]
    await page.goto("/")
    await page.get_by_role("link", name="Settings", exact=True).first.click()
    await expect(page.get_by_text("Everything works without a language model")).to_be_visible()
    await seen("settings")

    await page.get_by_label("Another server, or a provider").check()
    await page.get_by_label("Address of another server").fill("http://127.0.0.1:9/v1")
    await page.get_by_label("Model", exact=True).fill("tiny")
    await page.get_by_label("Key, where one is needed").fill("sk-of-the-user-0123456789")
    await page.get_by_role("button", name="Try it and use it").click()
    await expect(page.get_by_role("alert")).to_contain_text("Nothing was changed.")
    await seen("settings-refused")

    await page.get_by_label("Address of another server").fill(model.url)
    await page.get_by_label("Key, where one is needed").fill("sk-of-the-user-0123456789")
    await page.get_by_role("button", name="Try it and use it").click()
    await expect(page.get_by_text("in use from now on. The model answers, in")).to_be_visible()
    assert "sk-of-the-user" not in await page.content()
    await seen("settings-model")

    await page.goto("/")
    await ask(page, QUESTION, url=address)
    await answered(page)
    await expect(page.locator(".said")).to_contain_text(written)

    await page.goto("/settings")
    await page.get_by_label("Nobody: sentences of the pages").check()
    await page.get_by_role("button", name="Try it and use it").click()
    await expect(page.get_by_text("Everything works without a language model")).to_be_visible()


async def test_budget_of_a_question_is_changed_in_the_page(page: Page) -> None:
    await page.goto("/settings")
    await page.get_by_label("Pages fetched for a question").fill("7")
    await page.get_by_role("button", name="Save").click()

    await expect(page.get_by_text("in use from now on")).to_be_visible()
    await expect(page.get_by_label("Pages fetched for a question")).to_have_value("7")
