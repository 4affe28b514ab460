"""Builds the site that `webrag demo` serves from the Markdown files beside this script.

uv run python docs/build_site.py            writes webrag/demo/site
uv run python docs/build_site.py --check    exits 1 when what is there is not current
"""

import argparse
import html
import posixpath
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from filecmp import cmp
from pathlib import Path

from latex2mathml.converter import convert as latex_to_mathml
from markdown_it import MarkdownIt
from mdit_py_plugins.admon import admon_plugin
from mdit_py_plugins.anchors import anchors_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin

DOCS = Path(__file__).parent
DECISIONS = DOCS / "decisions"  # for those who change WebRAG, not for those who try it
SITE = DOCS.parent / "webrag" / "demo" / "site"


@dataclass
class Page:
    """One page: its path below the site, its title and what it says."""

    path: str
    source: str
    title: str = ""
    children: list["Page"] = field(default_factory=list)

    @property
    def description(self) -> str:
        """First sentence of the first paragraph."""
        for block in self.source.split("\n\n")[1:]:
            text = " ".join(block.split())
            if text and text[0].isalpha():
                plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[*`_]", r"\1", text)
                return plain.split(". ")[0].rstrip(".") + "."
        return self.title


def main() -> int:
    """Build, or check, and say what was done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "site"
        count = build(fresh)
        if arguments.check:
            stale = differences(fresh, SITE)
            for name in stale:
                sys.stderr.write(f"not current: {name}\n")
            return 1 if stale else 0
        shutil.rmtree(SITE, ignore_errors=True)
        shutil.copytree(fresh, SITE)
    sys.stdout.write(f"{count} pages written to {SITE.relative_to(DOCS.parent)}\n")
    return 0


def build(target: Path) -> int:
    """Write the whole site to `target`; returns the number of pages."""
    pages = [read_page(path) for path in sorted(DOCS.rglob("*.md")) if path.parent != DECISIONS]
    by_path = {page.path: page for page in pages}
    for page in pages:
        output = target / page.path
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(render(page, by_path), encoding="utf-8")
    for picture in sorted((DOCS / "images").glob("*.svg")):
        (target / "images").mkdir(exist_ok=True)
        shutil.copy(picture, target / "images" / picture.name)
    (target / "style.css").write_text(STYLE, encoding="utf-8")
    return len(pages)


def read_page(path: Path) -> Page:
    """Read one Markdown file; its first heading is its title."""
    source = path.read_text(encoding="utf-8")
    title = source.splitlines()[0].removeprefix("# ").strip()
    return Page(path.relative_to(DOCS).with_suffix(".html").as_posix(), source, title)


def markdown() -> MarkdownIt:
    """The dialect the documentation is written in."""
    parser = MarkdownIt("commonmark").enable("table")
    parser.use(deflist_plugin).use(admon_plugin).use(footnote_plugin)
    parser.use(dollarmath_plugin, renderer=mathml)
    return parser.use(anchors_plugin, max_level=3, permalink=True, permalinkSymbol="¶")


def mathml(latex: str, options: dict[str, bool]) -> str:
    """MathML that carries its LaTeX, as documentation generators write it."""
    display = "block" if options.get("display_mode") else "inline"
    converted = latex_to_mathml(latex, display=display)
    return converted.replace("<math ", f'<math alttext="{html.escape(latex.strip())}" ', 1)


def render(page: Page, pages: dict[str, Page]) -> str:
    """A complete HTML document."""
    body = markdown().render(page.source)
    body = re.sub(r'(href="(?!https?:)[^"#]*)\.md(["#])', r"\1.html\2", body)
    body = re.sub(
        r'<p><img src="([^"]+)" alt="([^"]*)" title="([^"]*)" /></p>',
        r'<figure><img src="\1" alt="\2"><figcaption>\3</figcaption></figure>',
        body,
    )
    root = posixpath.relpath(".", posixpath.dirname(page.path) or ".") + "/"
    return TEMPLATE.format(
        title=html.escape(page.title),
        description=html.escape(page.description),
        root=root,
        sections=navigation(page, section_pages(pages), root),
        neighbours=navigation(page, folder_pages(page, pages), root),
        body=body,
    )


def section_pages(pages: dict[str, Page]) -> list[Page]:
    """What every page links to: the start page and the first page of each folder."""
    return [
        page for path, page in sorted(pages.items()) if posixpath.basename(path) == "index.html"
    ]


def folder_pages(page: Page, pages: dict[str, Page]) -> list[Page]:
    """The other pages of the same folder; folders reach each other through their first pages."""
    folder = posixpath.dirname(page.path)
    return [other for path, other in sorted(pages.items()) if posixpath.dirname(path) == folder]


def navigation(page: Page, pages: list[Page], root: str) -> str:
    """A list of links, the current page marked."""
    items = []
    for other in pages:
        current = ' aria-current="page"' if other is page else ""
        link = f'<a href="{root}{other.path}"{current}>{html.escape(other.title)}</a>'
        items.append(f"<li>{link}</li>")
    return "<ul>" + "".join(items) + "</ul>"


def differences(fresh: Path, present: Path) -> list[str]:
    """Files that are missing, superfluous or different."""
    names = {
        path.relative_to(base).as_posix()
        for base in (fresh, present)
        for path in base.rglob("*")
        if path.is_file()
    }
    return sorted(
        name
        for name in names
        if not ((fresh / name).is_file() and (present / name).is_file())
        or not cmp(fresh / name, present / name, shallow=False)
    )


TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - WebRAG</title>
<meta name="description" content="{description}">
<link rel="stylesheet" href="{root}style.css">
</head>
<body>
<header><a class="brand" href="{root}index.html">WebRAG</a>
<nav aria-label="Sections">{sections}</nav></header>
<div class="columns">
<nav class="sidebar" aria-label="In this section">{neighbours}</nav>
<main><article>
{body}</article></main>
</div>
<footer>WebRAG documentation. MIT licence.</footer>
</body>
</html>
"""

STYLE = """:root { color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 72rem; padding: 0 1rem; }
header, footer { display: flex; flex-wrap: wrap; gap: 1rem; padding: 1rem 0; }
header ul { display: flex; flex-wrap: wrap; gap: 1rem; list-style: none; margin: 0; padding: 0; }
.brand { font-weight: 700; }
.columns { display: grid; gap: 2rem; grid-template-columns: 14rem minmax(0, 1fr); }
.sidebar ul { list-style: none; padding: 0; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid #8884; border-radius: .4rem; }
table { border-collapse: collapse; } td, th { border: 1px solid #8886; padding: .3rem .6rem; }
.admonition { border-left: .3rem solid #47a; padding: .1rem 1rem; margin: 1rem 0; }
.admonition.warning { border-color: #c60; } .admonition-title { font-weight: 700; }
dt { font-weight: 600; } figure { margin: 1rem 0; } img { max-width: 100%; }
.header-anchor { opacity: .3; text-decoration: none; }
@media (max-width: 48rem) { .columns { grid-template-columns: 1fr; } }
"""

if __name__ == "__main__":
    raise SystemExit(main())
