"""Pages broken at random, and the offsets of theirs that do not point at their text.

Pages are made of those of the tests and of the demo by up to a dozen changes each: bytes, tags,
entities and attributes; private-use characters, controls and halves of surrogate pairs in every
spelling; nested tables, unclosed comments. Each is converted and parsed into nodes as it would be
stored.
"""

import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from llama_index.core.schema import Document
from llama_index.node_parser.webrag import ParentChildNodeParser

from webrag.errors import UnusablePageError
from webrag.ingestion.extract import extract
from webrag.ingestion.models import FetchedPage, NormalizedDocument
from webrag.retrieval.units import cut_units

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = [ROOT / "tests/webrag/ingestion/data/genuine", ROOT / "webrag/demo/site"]
MOST_CHARS = 12_000
MOST_ANCHOR_CHARS = 490  # a link's text is cut at 500, before blanks at its end
MIXED = """<html><head><title>Mixed</title><style>.h{display:none}</style></head><body><main>
<h1 id=top>Mixed <a class=headerlink href=#top>#</a></h1><p>One <a href=/a>link <b>bold</b></a>, a
<code>`code`</code> and 10<sup>3</sup>. Второе предложение. 三つ目の文。四つ目の文。</p>
<dl><dt><a href=/term>term</a></dt><dd>Means <a href=/d>this</a>.</dd><dt>-x<dt>--yy<dd><p>Two.</dl>
<table><tr><th>A<th><a href=/h>B</a><tr><td>1|2<td><a href=/c>x</a><br>y</table>
<pre><code class=language-py><span class=linenos>1</span>a = "\\("
<span class=linenos>2</span><a href=/v>b</a> = 2
<span class=linenos>3</span>c = 3
</code></pre><div class="admonition note"><p class=admonition-title>Note<p>Mind <a href=/n>it</a>.
</div><blockquote><p>Said <a href=/q>so</a>.</blockquote><ul><li><p><a href=/l>One</a></p><ul><li>
Two &amp; <i>three</i></ul><li>Four</ul><math alttext="x^2"><mi>x</mi></math><p class=h>Hidden</p>
<p>e\u0301 <a href=/e>\u0301combining</a> \U0001f468\u200d\U0001f469 <a href=/w>word</a>s.</p>
<ol start=3><li>a<li>b</ol><h2>Next <a href=/x>part</a></h2><p>End.</p></main></body></html>"""
PRIVATE = ["\ue003", "\ue005", "\ue006", "\ue007", "\ue008", "\ue010", "\U000f0000", "\U00100000"]
CODES = [0xE003, 0xE007, 0xE008, 0xF0000, 0x100000, 0x10FFFF, 0, 1, 11, 0x85, 0xD800, 0xDFFF]
CODES += [0x202E, 0x34F, 0xE0041, 0xFEFF, 0x2028, 0x1F468, 0x301, 38, 60, 124, 91, 96, 42, 35]
RAW = [*PRIVATE, "\x00", "\x0b", "\x0c", "\r", "\u2028", "\u202e", "\u034f", "\U000e0041", "\ufeff"]
RAW += [
    "\u0301",
    "\u3000",
    "\u00a0",
    "\\",
    "`",
    "```",
    "|",
    "*",
    "~~~",
    "<",
    ">",
    "&",
    "\n\n",
    "  \n",
]
TAGS = """a b i p div span pre code table tr td th ul ol li dl dt dd h1 h2 h6 blockquote details
summary math svg sup sub br hr main article section aside label button form template""".split()  # noqa: SIM905
ATTRIBUTES = """hidden class=h class=lineno class=math style=display:none style=font-size:0 href=/z
href=#top href="/\ue003" title="&#xE003;" role=presentation role=tabpanel id=x rowspan=3
colspan=0 colspan=999 start=-1 class=admonition class=footnote""".split()  # noqa: SIM905
WHOLE = [
    "<table><tr><td><table><tr><td>",
    "<!--",
    "<!-- x --!>",
    "-->",
    "<![CDATA[",
    "]]>",
    "<pre>",
    "</pre>",
    "<pre><pre>",
    "</a>",
    "<a href=/m>",
    "<style>",
    "</style>",
    "<script>",
    "<textarea>",
    "<plaintext>",
    "<p>```\n",
    "<p>| a | b |<p>| - | - |",
    "<div class=fragment><div class=line><span class=lineno>1</span>x</div>",
    "<template>",
    "<ruby>a<rt>b",
    "<h2>",
    "</h1>",
]


def originals(folders: list[Path]) -> list[str]:
    files = sorted(file for folder in folders for file in folder.rglob("*.html"))
    texts = [file.read_text("utf-8", "replace") for file in files]
    return [MIXED, *(text for text in texts if len(text) <= MOST_CHARS)]


def mutants(count: int, seed: int, folders: list[Path]) -> Iterator[str]:
    pages = originals(folders)
    for number in range(count):
        chance = random.Random(f"{seed}-{number}")
        # The mixed page holds every structure, and is short.
        html = MIXED if chance.random() < 0.5 else chance.choice(pages)
        for _ in range(chance.randint(1, 12)):
            html = chance.choice(CHANGES)(html, chance)
        yield html.encode("utf-8", "replace").decode("utf-8")


def _at(html: str, chance: random.Random, pattern: str = "") -> int:
    places = [match.end() for match in re.finditer(pattern, html)] if pattern else []
    return chance.choice(places) if places else chance.randint(0, len(html))


def _insert(html: str, chance: random.Random, piece: str, pattern: str = "") -> str:
    at = _at(html, chance, pattern)
    return html[:at] + piece + html[at:]


def raw(html: str, chance: random.Random) -> str:
    return _insert(html, chance, chance.choice(RAW) * chance.randint(1, 3))


def in_text(html: str, chance: random.Random) -> str:
    return _insert(html, chance, chance.choice(RAW), "[>\\w](?=[^<>]*<)")


def entity(html: str, chance: random.Random) -> str:
    code = chance.choice(CODES)
    zeros = "0" * chance.choice([0, 0, 1, 6, 30])
    written = chance.choice([f"&#{zeros}{code}", f"&#x{zeros}{code:x}", f"&#X{zeros}{code:X}"])
    return _insert(html, chance, written + chance.choice([";", "", " "]), '[>\\w"]')


def split_entity(html: str, chance: random.Random) -> str:
    return _insert(html, chance, f"&#x{chance.choice(PRIVATE)}E003;", ">")


def tag(html: str, chance: random.Random) -> str:
    name = chance.choice(TAGS)
    return _insert(
        html, chance, chance.choice([f"<{name}>", f"</{name}>", f"<{name}", f"<{name}/>"])
    )


def whole(html: str, chance: random.Random) -> str:
    return _insert(html, chance, chance.choice(WHOLE), ">")


def attribute(html: str, chance: random.Random) -> str:
    return _insert(html, chance, f" {chance.choice(ATTRIBUTES)}", "<[a-z][a-z0-9]*")


def without(html: str, chance: random.Random) -> str:
    at = _at(html, chance)
    return html[:at] + html[at + chance.choice([1, 1, 5, 40]) :]


def doubled(html: str, chance: random.Random) -> str:
    at = _at(html, chance, "(?=<)")
    return html[:at] + html[at : at + chance.randint(5, 300)] * 2 + html[at:]


def swapped(html: str, chance: random.Random) -> str:
    found = list(re.finditer("</?[a-zA-Z][^<>]*>", html))
    if len(found) < 2:
        return html
    one, two = sorted(chance.sample(found, 2), key=lambda match: match.start())
    between = html[one.end() : two.start()]
    return html[: one.start()] + two.group() + between + one.group() + html[two.end() :]


CHANGES = [raw, in_text, entity, split_entity, tag, whole, attribute, without, doubled, swapped]


def faults(html: str) -> list[str]:
    """What does not hold for one page; nothing for a page that is refused by name."""
    page = FetchedPage(
        requested_url="https://site.test/page", url="https://site.test/page", status=200,
        kind="html", text=html.replace("\x00", ""), fetched_at=datetime(2026, 1, 1, tzinfo=UTC),
        source="mutant",
    )  # fmt: skip
    try:
        document = extract(page)
    except UnusablePageError:
        return []
    return [*_of_text(document), *_of_links(document), *_of_nodes(document)]


def _of_text(document: NormalizedDocument) -> Iterator[str]:
    if re.search("[\ue000-\uf8ff\U000f0000-\U0010ffff\u034f\u202e]", document.markdown):
        yield "text holds a mark"
    yield from _of_units(document.markdown, "page")


def _of_links(document: NormalizedDocument) -> Iterator[str]:
    text = document.markdown
    for link in document.links:
        start, end = link.char_start, link.char_end
        if start is None or end is None:
            continue
        if not 0 <= start < end <= len(text):
            yield f"link {link.url} lies at {start} to {end} of {len(text)}"
        elif "```" not in text[start:end] and not _agree(link.anchor_text, text, start, end):
            yield f"link {link.url} reads {text[start:end]!r}, not {link.anchor_text!r}"


def _agree(anchor: str, text: str, start: int, end: int) -> bool:
    """Whether a link's text and its place hold the same letters.

    A long link's text is cut; a link around a table is placed at what comes before the table.
    """
    first, second = (
        re.sub(r"[\W\d_]", "", each) for each in (anchor, text[start:end].replace("<br>", ""))
    )
    if len(anchor) >= MOST_ANCHOR_CHARS:
        return second.startswith(first)
    if text[end:].lstrip(" \n>").startswith("|"):
        return first.startswith(second)
    return first == second


def _of_nodes(document: NormalizedDocument) -> Iterator[str]:
    text = document.markdown
    parser = ParentChildNodeParser(parent_chunk_size=120, child_chunk_size=40)
    source = Document(text=text, metadata={"html": document.html, "source_url": document.url})
    for node in parser.get_nodes_from_documents([source]) if text.strip() else []:
        start, end = node.start_char_idx, node.end_char_idx
        if text[start:end] != node.text:
            yield f"node at {start} to {end} is not its text"
        yield from _of_units(node.text, f"node at {start}")


def _of_units(text: str, where: str) -> Iterator[str]:
    for size in (400, 30) if where == "page" else (400,):
        cut = cut_units(text, max_chars=size)
        for unit in cut.units:
            start, end = unit.start, unit.end
            if not (0 <= start < end <= len(text) and text[start:end].strip()):
                yield f"unit {start} to {end} of {where} is empty or outside"
            if end - start > size:
                yield f"unit {start} to {end} of {where} is too long"
        for left, right in pairwise(cut.pieces):
            if left.end > right.start:
                yield f"pieces of {where} overlap at {right.start}"
