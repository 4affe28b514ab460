"""Listings with line numbers, from the site to the citation."""

import html
import html.parser
import unicodedata
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
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


GUIDE = {
    "storage": (
        "Storage",
        "Readings wait in a ring until the program takes them. Once the ring is full, the oldest of"
        " the readings makes way and a counter goes up by one, so that a slow program loses old"
        " readings and never new ones.",
    ),
    "quiet": (
        "Quiet buoys",
        "A buoy that has sent nothing for ninety seconds is reported as silent. The session stays"
        " open and reports the buoy as back with the next good frame. With a satellite modem the"
        " idle time should be ten minutes, because it sends frames in bursts.",
    ),
    "damage": (
        "Damaged frames",
        "A frame whose checksum is wrong is thrown away and counted. After eight of them in a row"
        " the session looks for a start marker and goes on from there.",
    ),
}
PARTS = {"ring": "full ring of readings", "idle": "silent buoy", "frame": "wrong frame checksum"}


def source(name: str, words: str) -> list[str]:
    """A file whose comments say the words of the guide again and again."""
    found = [f"/* {name}.c: what happens with a {words}. */", '#include "buoy.h"', ""]
    for number in range(40):
        found += [
            f"/* What happens to the session after a {words}: case {number} of the session. */",
            f"static int buoy_{name}_{number}(struct session *session, struct {name} *{name})",
            "{",
            f"    if ({name}->count > {number})  /* a {words}: what happens now */",
            f"        return buoy_drop_{name}(session);",
            "    return BUOY_OK;",
            "}",
            "",
        ]
    return found


SHAPES: dict[str, Callable[[list[str]], str]] = {
    "numbered": lambda lines: "".join(
        f'<div class="line"><span class="lineno">{number:5}</span>&#160;{html.escape(line)}</div>'
        for number, line in enumerate(lines, start=1)
    ).join(('<div class="fragment">', "</div>")),
    "plain": lambda lines: f"<pre>{html.escape(chr(10).join(lines))}</pre>",
}
ABOUT = {
    "What happens after a full ring of readings?": "storage",
    "What happens to the session of a silent buoy?": "quiet",
    "What happens to the session after a wrong frame checksum?": "damage",
}


async def search_of_guide_and_sources(
    rag: WebRAG, static_site: Any, shape: str, questions: Iterable[str]
) -> list[list[str]]:
    """The pages of what each question finds, best first."""
    pages = {
        f"/{name}": f"<title>{title}</title><main><h1>{title}</h1><p>{text}</p></main>"
        for name, (title, text) in GUIDE.items()
    }
    for name, words in PARTS.items():
        body = SHAPES[shape](source(name, words))
        title = f"{name}.c Source File"
        pages[f"/{name}.c"] = f"<title>{title}</title><main><h1>{title}</h1>{body}</main>"
    site = static_site(pages)
    await rag.ingest([f"{site}{path}" for path in pages])
    results = [await rag.search(question) for question in questions]
    return [
        [
            each.chunk.source_url.rpartition("/")[2]
            for each in sorted(result.chunks, key=lambda item: -item.reranked_score)
        ]
        for result in results
    ]


@pytest.mark.parametrize("shape", SHAPES)
async def test_prose_that_answers_stands_before_source_listings(
    rag: WebRAG, static_site: Any, shape: str
) -> None:
    found = await search_of_guide_and_sources(rag, static_site, shape, ABOUT)

    assert [pages[0] for pages in found] == list(ABOUT.values())


@pytest.mark.parametrize("shape", SHAPES)
async def test_source_listing_stands_first_for_a_question_that_asks_for_it(
    rag: WebRAG, static_site: Any, shape: str
) -> None:
    questions = ["Show the code for a full ring of readings", "What does buoy_drop_idle return?"]
    found = await search_of_guide_and_sources(rag, static_site, shape, questions)

    assert [pages[0] for pages in found] == ["ring.c", "idle.c"]
