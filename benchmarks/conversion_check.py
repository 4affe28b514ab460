"""How much of each page's structure survives the conversion to markdown.

Usage: python benchmarks/conversion_check.py FOLDER [--missing N]

Every HTML file below FOLDER is converted. What the HTML's main content has (code blocks, table
rows, definition terms, formulas, headings, list items, paragraphs) is looked for in the markdown
in a form of its own: a fence, a row, a line, dollar signs, a heading line. Text is compared by its
letters and digits. `--missing` prints that many examples of what was not found.
"""

import argparse
import re
import sys
import time
import unicodedata
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser, LexborNode

from webrag.errors import UnusablePageError
from webrag.ingestion.extract import extract
from webrag.ingestion.http.decode import decode
from webrag.ingestion.models import FetchedPage

CHROME = (
    "script, style, noscript, template, nav, header nav, footer, [role=navigation], .headerlink,"
    " .related, .sphinxsidebar, .navheader, .navfooter, a.anchor, .hideme, a.src, .sr-only"
)
FENCE = re.compile(r"^[ \t>-]*(`{3,})[^\n]*\n(.*?)^[ \t>]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
# Titles of notes are bold lines of the note's own block.
HEADING = re.compile(r"^[ \t>-]*(?:#{1,6} (.+)|\*\*(.+)\*\*)[ \t]*$", re.MULTILINE)
ROW = re.compile(r"^[ \t>]*\|.*\|[ \t]*$", re.MULTILINE)
FORMULA = re.compile(r"\$\$?[^$]+\$\$?|\\\(.+?\\\)|\\\[.+?\\\]", re.DOTALL)


def key(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in folded if char.isalnum())


def converted(path: Path) -> tuple[str, LexborNode | None]:
    html = decode(path.read_bytes())
    page = FetchedPage(
        requested_url="https://site.test/page",
        url="https://site.test/page",
        status=200,
        kind="html",
        text=html,
        fetched_at=datetime.now(UTC),
        source="check",
    )
    tree = LexborHTMLParser(html)
    body = tree.body
    for node in body.css(CHROME) if body is not None else []:
        node.remove()
    return extract(page).markdown, body


def wanted(body: LexborNode) -> dict[str, list[str]]:
    """What the page has, by kind."""
    main = body.css_first("main, [role=main], article") or body
    data_tables = [
        table
        for table in main.css("table")
        if table.css("th") and len(table.css("table")) == 1 and not table.css("pre")
    ]
    return {
        "headings": [node.text() for node in main.css("h1, h2, h3, h4, h5, h6")],
        "code blocks": [node.text() for node in main.css("pre")],
        "table rows": [row.text() for table in data_tables for row in table.css("tr")],
        "definition terms": [line for node in main.css("dt") for line in lines_of(node)],
        "formulas": [
            node.text() for node in main.css("math, .math, .katex, script[type^='math/']")
        ],
        "list items": [
            node.text()
            for node in main.css("li")
            if len(node.css("li")) == 1 and not node.css("pre, table, dl")
        ],
        "paragraphs": [node.text() for node in main.css("p")],
    }


def lines_of(term: LexborNode) -> list[str]:
    for rest in term.css("br"):
        rest.replace_with("\n")
    # Some pages indent their source; only a break that the page asks for ends a term.
    return (
        [line for line in term.text().split("\n") if key(line)]
        if "\n" in term.text()
        else [term.text()]
    )


def found(markdown: str) -> dict[str, str]:
    """Where each kind is looked for."""
    everything = key(markdown)
    return {
        "headings": "\n".join(key("".join(texts)) for texts in HEADING.findall(markdown)),
        "code blocks": "\n".join(key(body) for _, body in FENCE.findall(markdown)),
        "table rows": "\n".join(key(row) for row in ROW.findall(markdown)),
        "definition terms": "\n".join(key(line) for line in markdown.splitlines()),
        "formulas": "\n".join(key(text) for text in FORMULA.findall(markdown)),
        "list items": everything,
        "paragraphs": everything,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--missing", type=int, default=0, metavar="N")
    arguments = parser.parse_args()
    total: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    missing: defaultdict[str, list[str]] = defaultdict(list)
    pages, seconds = 0, 0.0
    for path in sorted(arguments.folder.rglob("*.htm*")):
        started = time.perf_counter()
        try:
            markdown, body = converted(path)
        except UnusablePageError as error:
            print(f"unusable: {path.name}: {error}", file=sys.stderr)
            continue
        seconds += time.perf_counter() - started
        pages += 1
        places = found(markdown)
        for kind, texts in wanted(body).items() if body is not None else ():
            for text in filter(key, texts):
                total[kind] += 1
                if key(text) in places[kind]:
                    kept[kind] += 1
                else:
                    missing[kind].append(f"{path.name}: {' '.join(text.split())[:110]}")
    print(f"{arguments.folder.name}: {pages} pages, {seconds / max(pages, 1) * 1000:.0f} ms each")
    for kind, count in total.items():
        print(f"  {kind:<17}{kept[kind]:>7} of {count:>7}  {kept[kind] / count:7.2%}")
        for example in missing[kind][: arguments.missing]:
            print(f"      - {example}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
