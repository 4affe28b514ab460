"""Share of citation links that really scroll a browser to the passage they quote.

Usage: python benchmarks/passage_links.py [--site FOLDER] [--questions N] [--show-failures]

Serves a folder of HTML pages on loopback (the demo site when none is named), asks a question for
each of N section headings, opens every citation's link in headless Chromium and looks where the
page stands. Needs Chromium or Chrome (WEBRAG_BROWSER_PATH may name it); else the script fails.
"""

import argparse
import asyncio
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypedDict
from urllib.parse import urljoin, urlsplit

from playwright.sync_api import Page, TimeoutError, sync_playwright

from webrag.app import WebRAG
from webrag.retrieval.models import CitationSpan
from webrag.settings import load_settings
from webrag.static_site import serve_static_site
from webrag.wiring.page_sources import find_browser

DEMO_SITE = Path(__file__).parents[1] / "webrag/demo/site"

# Space above and below every page: the window stands at 0 unless something scrolled it, and every
# passage can be brought to the middle.
SPACER = """
document.addEventListener('DOMContentLoaded', () => {
  const style = document.createElement('style');
  style.textContent = 'body{padding-top:4000px !important;padding-bottom:4000px !important}';
  document.head.append(style);
});
"""
# Whether some occurrence of the words, letters and digits compared, is inside the window.
IN_VIEW = """
((wanted) => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let key = '', places = [];
  const isWord = /[\\p{L}\\p{N}]/u;
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.parentElement.closest('script,style')) continue;
    let at = 0;
    for (const character of node.data) {
      if (isWord.test(character)) {
        for (const unit of character.normalize('NFKC').toLowerCase()) {
          if (isWord.test(unit)) { key += unit; for (const _ of unit) places.push([node, at]); }
        }
      }
      at += character.length;
    }
  }
  const units = [...wanted.normalize('NFKC').toLowerCase()].filter((c) => isWord.test(c));
  const sought = units.join('');
  const inView = [];
  for (let i = key.indexOf(sought); i >= 0; i = key.indexOf(sought, i + 1)) {
    const count = [...key.slice(0, i)].length;
    const range = document.createRange();
    const [first, last] = [places[count], places[count + units.length - 1]];
    range.setStart(...first);
    range.setEnd(last[0], last[1] + 1);
    const box = range.getBoundingClientRect();
    inView.push(box.bottom > 0 && box.top < innerHeight);
  }
  return JSON.stringify({scroll: scrollY, found: inView.length, inView: inView.includes(true)});
})
"""


class Seen(TypedDict):
    """Where a page stands, and how often it holds the words, and whether they are in the window."""

    scroll: float
    found: int
    inView: bool


def look(page: Page, citation: CitationSpan) -> Seen:
    """Open a citation's link as from the address bar; wait up to a second for a scroll."""
    page.goto("about:blank")
    page.goto(citation.link)
    with suppress(TimeoutError):
        page.wait_for_function("scrollY > 0", timeout=1000)
    seen: Seen = json.loads(page.evaluate(f"{IN_VIEW}({json.dumps(citation.plain_text)})"))
    return seen


@contextmanager
def chromium() -> Iterator[Page]:
    program = find_browser(load_settings().browser_path)
    if program is None:
        raise SystemExit("no Chromium or Chrome is on the PATH; WEBRAG_BROWSER_PATH may name one")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 500})
        page.add_init_script(SPACER)
        yield page
        browser.close()


async def citations(base_url: str, pages: list[str], count: int) -> list[CitationSpan]:
    """Citations of the answers to questions made of section headings, each once."""
    settings = load_settings().allowing([urlsplit(base_url).netloc])
    settings = settings.model_copy(update={"collection": f"webrag_links_{os.getpid()}"})
    found: dict[tuple[str, int, int], CitationSpan] = {}
    async with WebRAG(settings) as rag:
        try:
            report = await rag.ingest([urljoin(base_url, page) for page in pages])
            for question in await _questions(rag, [page.url for page in report.pages], count):
                for block in rag.evidence(await rag.search(question)):
                    if block.citation is not None:
                        span = block.citation
                        found[span.source_url, span.char_start, span.char_end] = span
        finally:
            await rag.drop_collection()
    return list(found.values())


async def _questions(rag: WebRAG, urls: list[str], count: int) -> list[str]:
    headings = []
    for url in urls:
        lines = (await rag.markdown(url) or "").splitlines()
        headings += [line.lstrip("# ") for line in lines if line.startswith(("# ", "## ", "### "))]
    distinct = list(dict.fromkeys(headings))
    return distinct[:: max(1, len(distinct) // count)][:count]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--site", type=Path, default=DEMO_SITE)
    options.add_argument("--questions", type=int, default=40)
    options.add_argument("--pages", type=int, default=1000, help="ingest at most so many")
    options.add_argument("--links", type=int, default=400, help="open at most so many")
    options.add_argument("--show-failures", action="store_true")
    options.add_argument("--least", type=float, default=0.0, help="exit 1 below this share")
    chosen = options.parse_args()
    outcomes: Counter[str] = Counter()
    files = chosen.site.rglob("*.html")
    pages = sorted(path.relative_to(chosen.site).as_posix() for path in files)
    pages = pages[:: -(-len(pages) // chosen.pages)]
    with serve_static_site(chosen.site) as base_url:
        spans = asyncio.run(citations(base_url, pages, chosen.questions))
        spans = spans[:: max(1, -(-len(spans) // chosen.links))]
        with chromium() as page:
            for span in spans:
                seen = look(page, span)
                outcome = "in view" if seen["inView"] else "elsewhere"
                outcomes[outcome if seen["scroll"] else "not scrolled"] += 1
                if chosen.show_failures and (not seen["scroll"] or not seen["inView"]):
                    print(seen, json.dumps(span.verbatim_text), span.link, sep="\n  ")
    total = sum(outcomes.values())
    if not total:
        raise SystemExit("no answer had a citation")
    scrolled = total - outcomes["not scrolled"]
    print(f"links opened                   {total}")
    print(f"scrolled                       {scrolled / total:.3f}")
    print(f"scrolled, passage in the window {outcomes['in view'] / total:.3f}")
    if scrolled / total < chosen.least:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
