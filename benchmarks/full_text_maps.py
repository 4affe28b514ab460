"""Gives copies of documentation sites the search index with texts that MkDocs writes.

Usage: python benchmarks/full_text_maps.py SITE_ROOT OUT

SITE_ROOT has one folder of HTML files per site. Every page of the copy names the index, which holds
each section of each page as the product's own conversion reads it; then

    webrag eval QUESTIONS --site-root OUT --setting seed --deep --out FILE

shows what such a map is worth on sites whose own generator writes none.
"""

import argparse
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memory_corpus import read_page

from webrag.errors import UnusablePageError

HEADING = re.compile(r"#{1,6} (.+)")
GENERATOR = re.compile(rb"<meta[^<>]*name=[\"']?generator[^<>]*>", re.IGNORECASE)
HEAD_END = re.compile(rb"</head>", re.IGNORECASE)
MARK = '<meta name="generator" content="mkdocs-1.6.1"><script>var base_url = "{}";</script></head>'


def sections(path: Path, folder: Path) -> Iterator[dict[str, str]]:
    """The entries of one page: the page itself, then each of its sections."""
    page = read_page(path, folder)
    location, title, text = page.name, page.title, ""
    is_code = False
    for line in page.markdown.splitlines():
        is_code ^= line.startswith("```")
        heading = None if is_code else HEADING.fullmatch(line)
        if heading is None:
            text += f"{line}\n"
            continue
        yield {"location": location, "title": title, "text": text.strip()}
        location, title, text = f"{page.name}#{heading[1]}", heading[1], ""
    yield {"location": location, "title": title, "text": text.strip()}


def mark(path: Path, folder: Path) -> None:
    """Name the index in a page, as a theme of MkDocs does."""
    base = "/".join([".."] * (len(path.relative_to(folder).parts) - 1)) or "."
    raw = GENERATOR.sub(b"", path.read_bytes())
    path.write_bytes(HEAD_END.sub(MARK.format(base).encode(), raw, count=1))


def main() -> None:
    """Copy the sites, index and mark their pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site_root", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    for site in sorted(each for each in given.site_root.iterdir() if each.is_dir()):
        copy = given.out / site.name
        shutil.copytree(site, copy, ignore_dangling_symlinks=True)
        pages = [path for path in sorted(copy.rglob("*.htm*")) if path.is_file()]
        entries = []
        for path in pages:
            with suppress(UnusablePageError):  # the product cannot store them either
                entries += list(sections(path, copy))
        (copy / "search").mkdir(exist_ok=True)
        index = copy / "search" / "search_index.json"
        index.write_text(json.dumps({"config": {"lang": ["en"]}, "docs": entries}))
        for path in pages:
            mark(path, copy)
        print(f"{site.name}: {len(pages)} pages, {index.stat().st_size / 1e6:.1f} MB of index")


if __name__ == "__main__":
    main()
