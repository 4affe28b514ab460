"""Listings with line numbers, from the site to the citation."""

import html.parser
import unicodedata
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.kept_collections import KeptCollections
from webrag import WebRAG
from webrag.settings import load_settings

LINES = [
    "struct lantern_state;",
    "int lantern_open(const char *harbour);",
    "",
    "int lantern_brightness(struct lantern_state *state);",
    "void lantern_close(struct lantern_state *state);",
    "#define LANTERN_LIMIT 41",
    "int lantern_signal(int colour, int seconds);",
    "int lantern_wait(int seconds);",
]
QUESTIONS = ("lantern brightness state", "lantern open harbour and lantern limit", "lantern signal")
NUMBERED = list(enumerate(LINES, start=1))
COLUMN = "\n".join(str(number) for number, _ in NUMBERED)
CODE = "\n".join(LINES)
LISTINGS = {
    "doxygen": '<div class="fragment">'
    + "".join(
        f'<div class="line"><a id="l{number}"></a><span class="lineno">{number:5}</span>'
        f"&#160;{line}</div>"
        for number, line in NUMBERED
    )
    + "</div>",
    "github": '<table class="highlight"><tbody>'
    + "".join(
        f'<tr><td id="L{number}" class="blob-num">{number}</td>'
        f'<td class="blob-code"><span>{line}</span></td></tr>'
        for number, line in NUMBERED
    )
    + "</tbody></table>",
    "sphinx table": '<div class="highlight-c"><table class="highlighttable"><tr>'
    f'<td class="linenos"><div class="linenodiv"><pre>{COLUMN}</pre></div></td>'
    f'<td class="code"><div class="highlight"><pre>{CODE}\n</pre></div></td></tr></table></div>',
    "sphinx inline": '<div class="highlight-c"><div class="highlight"><pre>'
    + "".join(f'<span class="linenos">{number}</span>{line}\n' for number, line in NUMBERED)
    + "</pre></div></div>",
    "rouge": '<div class="highlight"><pre class="highlight"><code><table class="rouge-table">'
    f'<tbody><tr><td class="rouge-gutter gl"><pre class="lineno">{COLUMN}\n</pre></td>'
    f'<td class="rouge-code"><pre>{CODE}\n</pre></td></tr></tbody></table></code></pre></div>',
    "highlight.js": '<pre><code class="hljs c"><table class="hljs-ln">'
    + "".join(
        f'<tr><td class="hljs-ln-numbers">{number}</td><td class="hljs-ln-code">{line}</td></tr>'
        for number, line in NUMBERED
    )
    + "</table></code></pre>",
    "two lines": '<pre><span class="linenos">1</span>int lantern_open(const char *harbour);\n'
    '<span class="linenos">2</span>int lantern_brightness(int limit); // signal, state\n</pre>',
}

# In the others the numbers stand together, before the first line, or the code is a plain table.
BETWEEN_LINES = ("doxygen", "sphinx inline", "highlight.js", "two lines")


class VisibleText(html.parser.HTMLParser):
    """All a page shows, its line numbers too."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, _: Any) -> None:
        self._silent += tag in ("head", "script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in ("head", "script", "style")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(data)


def letters(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in folded if char.isalnum())


def visible(page: str) -> str:
    reader = VisibleText()
    reader.feed(page)
    return letters("".join(reader.parts))


@pytest.fixture
async def rag(postgres_dir: Path, kept_collections: KeptCollections) -> AsyncIterator[WebRAG]:
    name = f"test_{uuid.uuid4().hex[:16]}"
    opened = WebRAG(load_settings(data_dir=postgres_dir, collection=name).allowing(["127.0.0.1"]))
    await opened.open()
    yield opened
    await kept_collections.take_back_from(opened)


@pytest.mark.parametrize("kind", LISTINGS)
async def test_every_quotation_of_a_listing_is_on_the_page_in_one_piece(
    rag: WebRAG, static_site: Any, kind: str
) -> None:
    page = (
        f"<html><head><title>lantern.h</title></head><body><main><h1>lantern.h</h1>"
        f"<p>Declares what opens a lantern of the harbour.</p>{LISTINGS[kind]}</main></body></html>"
    )
    site = static_site({"/": page})
    await rag.ingest(f"{site}/")
    quoted = []
    for question in QUESTIONS:
        passages = rag.evidence(await rag.search(question))
        quoted += [each.citation.plain_text for each in passages if each.citation]

    shown = visible(page)
    assert any("lantern_" in text for text in quoted)
    assert [text for text in quoted if letters(text) not in shown] == []


@pytest.mark.parametrize("kind", BETWEEN_LINES)
async def test_every_citation_of_a_result_is_on_the_page_in_one_piece(
    rag: WebRAG, static_site: Any, kind: str
) -> None:
    page = (
        f"<html><head><title>lantern.h</title></head><body><main><h1>lantern.h</h1>"
        f"{LISTINGS[kind]}</main></body></html>"
    )
    site = static_site({"/": page})
    await rag.ingest(f"{site}/")
    shown = visible(page)

    for question in QUESTIONS:
        result = await rag.search(question)
        stored = await rag.markdown(f"{site}/")
        assert result.citations
        for each in result.citations:
            assert letters(each.plain_text) in shown
            assert stored[each.char_start : each.char_end] == each.verbatim_text
