"""Share of citation links that really scroll a browser to the passage they quote.

Usage: python benchmarks/passage_links.py [--site FOLDER] [--questions N] [--show-failures]

Serves a folder of HTML pages on loopback (the demo site when none is named), asks a question for
each of N section headings, opens every citation's link in headless Chromium and looks where the
page stands. Needs `chromium` (Debian: apt-get install chromium); without it the script fails.
"""

import argparse
import asyncio
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from websockets.sync.client import connect

from webrag.app import WebRAG
from webrag.retrieval.models import CitationSpan
from webrag.settings import load_settings
from webrag.static_site import serve_static_site

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


class Browser:
    """A headless Chromium driven by its debugging protocol."""

    def __init__(self, address: str) -> None:
        self._socket = connect(address, max_size=None, legacy=True)
        self._ids = itertools.count(1)
        self.call("Page.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=SPACER)

    def call(self, method: str, **params: object) -> dict:
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=30))
            if message.get("id") == number:
                return message["result"]

    def open(self, url: str) -> None:
        """Navigate as from the address bar, and wait until the page is loaded."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if self.evaluate("location.href + ' ' + document.readyState").endswith("complete"):
                return
            time.sleep(0.01)
        raise TimeoutError(url)

    def evaluate(self, expression: str) -> str:
        return str(self.call("Runtime.evaluate", expression=expression)["result"].get("value"))

    def look(self, citation: CitationSpan) -> dict:
        """Where the page stands after its link was opened; waits up to a second for a scroll."""
        self.open(citation.link)
        expression = f"{IN_VIEW}({json.dumps(citation.plain_text)})"
        end = time.monotonic() + 1
        while time.monotonic() < end:
            if float(self.evaluate("scrollY")) > 0:
                break
            time.sleep(0.02)
        return json.loads(self.evaluate(expression))

    def close(self) -> None:
        self._socket.close()


@contextmanager
def chromium():
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        raise SystemExit("chromium is not installed; on Debian: apt-get install chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                program, "--headless=new", "--no-sandbox", "--disable-gpu",
                "--disable-dev-shm-usage", "--no-first-run", "--window-size=1000,500",
                "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank",
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            browser = Browser(_page_address(Path(profile)))
            yield browser
            browser.close()
        finally:
            process.terminate()
            process.wait(timeout=10)


def _page_address(profile: Path) -> str:
    port_file = profile / "DevToolsActivePort"
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if port_file.exists() and (lines := port_file.read_text().splitlines()):
            with urllib.request.urlopen(f"http://127.0.0.1:{lines[0]}/json/list") as answer:
                pages = [each for each in json.load(answer) if each["type"] == "page"]
            if pages:
                return pages[0]["webSocketDebuggerUrl"]
        time.sleep(0.05)
    raise SystemExit("chromium did not start within 30 seconds")


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
        with chromium() as browser:
            for span in spans:
                seen = browser.look(span)
                outcome = "in view" if seen["inView"] else "elsewhere"
                outcomes[outcome if seen["scroll"] else "not scrolled"] += 1
                if chosen.show_failures and (not seen["scroll"] or not seen["inView"]):
                    print(seen, json.dumps(span.verbatim_text), span.link, sep="\n  ")
    total = sum(outcomes.values())
    scrolled = total - outcomes["not scrolled"]
    print(f"links opened                   {total}")
    print(f"scrolled                       {scrolled / total:.3f}")
    print(f"scrolled, passage in the window {outcomes['in view'] / total:.3f}")
    if scrolled / total < chosen.least:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
