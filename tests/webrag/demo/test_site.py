import posixpath
import subprocess
import sys
from collections import deque
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from webrag.demo import START_PAGE

ROOT = Path(__file__).parents[3]
SITE = ROOT / "webrag/demo/site"
PAGES = {
    path.relative_to(SITE).as_posix(): path.read_text("utf-8") for path in SITE.rglob("*.html")
}
ANSWER_PAGE = "concepts/database.html"


def links(page: str) -> set[str]:
    hrefs = [
        node.attributes.get("href") or "" for node in LexborHTMLParser(PAGES[page]).css("a[href]")
    ]
    local = [href.split("#")[0] for href in hrefs if not href.startswith(("http:", "https:"))]
    folder = posixpath.dirname(page)
    return {posixpath.normpath(posixpath.join(folder, href)) for href in local if href}


def distances(start: str) -> dict[str, int]:
    found = {start: 0}
    queue = deque([start])
    while queue:
        page = queue.popleft()
        for target in links(page) - found.keys():
            found[target] = found[page] + 1
            queue.append(target)
    return found


def test_site_is_what_the_documentation_says_now() -> None:
    result = subprocess.run(
        [sys.executable, ROOT / "docs/build_site.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stderr


def test_site_has_at_least_25_pages() -> None:
    assert len(PAGES) >= 25


def test_every_local_link_leads_to_a_page() -> None:
    broken = {(page, target) for page in PAGES for target in links(page) if target not in PAGES}

    assert broken == set()


def test_every_page_can_be_reached_from_the_start_page() -> None:
    assert set(distances(START_PAGE)) == set(PAGES)


def test_demo_answer_is_two_links_away_from_the_start_page() -> None:
    assert distances(START_PAGE)[ANSWER_PAGE] == 2


@pytest.mark.parametrize("tag", ["table", "pre code", "dl", ".admonition", "math[alttext]", "img"])
def test_site_shows_every_kind_of_rich_content(tag: str) -> None:
    assert any(LexborHTMLParser(text).css_first(tag) for text in PAGES.values())


def test_program_that_serves_the_site_until_its_end_ends() -> None:
    code = (
        "import urllib.request; from webrag.demo import demo_site_url; "
        "print(urllib.request.urlopen(demo_site_url()).status)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )

    assert result.stdout.strip() == "200"
