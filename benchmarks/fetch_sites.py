"""Fetches the sites that questions are about, from packages of Debian and public snapshots.

Usage: python benchmarks/fetch_sites.py QUESTIONS FOLDER [--site NAME]... [--whole]
       python benchmarks/fetch_sites.py SOURCES FOLDER [--site NAME]... [--unpacked FOLDER]

QUESTIONS is a file of benchmarks/questions whose lines name a `package`. Each package is brought by
`apt-get download`, which needs no root and installs nothing, and unpacked by `dpkg-deb`. FOLDER
gets one folder of pages for each site, as `webrag eval QUESTIONS --site-root FOLDER` reads them. Of
the sites in QUESTIONS' list of pages (`..._pages.txt` beside it, where there is one) only these
pages are taken, as the published figures were made with them; --whole takes all. The figures were
made with Debian 12: a page with evidence that another release does not have ends the script.

SOURCES is benchmarks/questions/units/sources.jsonl, whose lines name a package, or a repository and
its commit, and the folder of the pages in it. --unpacked names a folder that already holds some of
these packages and repositories, unpacked, under their names without the owner. Pages are placed
as they are served: gzipped ones unpacked, plain text with `.txt` at the end. Quotations of the
questions beside SOURCES that do not stand on the page they name end the script.
"""

import argparse
import gzip
import json
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pypdfium2 import PdfDocument
from selectolax.lexbor import LexborHTMLParser

DOCUMENTATION = Path("usr/share/doc")
# Where a package keeps the pages of a site; the others name their site by that folder.
FOLDERS = {
    "aptitude": "aptitude/html/en",
    "exim": "exim4-doc-html/spec_html",
    "git": "git-doc",
    "hwloc": "libhwloc-dev/html",
    "lang3": "libcommons-lang3-java/api",
    "maxima": "maxima-doc/html",
    "postgresql": "postgresql-doc-15/html",
    "rust": "rust-doc/html",
    "sklearn": "python-sklearn-doc/html",
}
# FFmpeg's pages of this name hold all the others once more.
REPEATED = {"ffmpeg/manual": "*-all.html"}


def fetch(package: str, into: Path) -> Path:
    """Download a package and unpack it; the folder that its files are below."""
    subprocess.run(["apt-get", "download", "--quiet", package], cwd=into, check=True)
    (archive,) = into.glob(f"{package}_*.deb")
    unpacked = into / package
    subprocess.run(["dpkg-deb", "--extract", archive, unpacked], check=True)
    print(f"{package}: {archive.name}")
    return unpacked


def place(site: str, unpacked: Path, target: Path, pages: Sequence[str]) -> None:
    """Copy a site, or only `pages` of it where there are any, from a package to a folder."""
    source = unpacked / DOCUMENTATION / FOLDERS.get(site, site)
    if not pages:
        leave_out = shutil.ignore_patterns(*filter(None, [REPEATED.get(site)]))
        shutil.copytree(source, target, ignore=leave_out, ignore_dangling_symlinks=True)
        return
    for page in pages:
        (target / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / page, target / page)


def listed_pages(questions: Path) -> dict[str, list[str]]:
    """The pages of each site that the figures were made with, none where all of them were."""
    pages: dict[str, list[str]] = {}
    listing = questions.with_name(f"{questions.stem}_pages.txt")
    for line in listing.read_text("utf-8").splitlines() if listing.is_file() else ():
        site, _, page = line.partition("/")
        pages.setdefault(site, []).append(page)
    return pages


def missing_pages(questions: Iterable[Mapping[str, Any]], root: Path) -> list[str]:
    """The pages that a question starts from or has its evidence on, and that are not there."""
    named = {
        f"{question['site']}/{page}"
        for question in questions
        for page in (question["seed_url"], *(gold["page"] for gold in question["gold"]))
    }
    return sorted(name for name in named if not (root / name).is_file())


def clone(repository: str, commit: str, into: Path) -> Path:
    """Bring one commit of a public repository; the folder that its files are below."""
    target = into / repository.rpartition("/")[2]
    subprocess.run(["git", "init", "--quiet", target], check=True)
    address = f"https://github.com/{repository}"
    for step in (["fetch", "--quiet", "--depth", "1", address, commit], ["checkout", commit]):
        subprocess.run(["git", "-C", target, *step], check=True)
    return target


def fetch_source(source: Mapping[str, Any], unpacked: Path | None, into: Path) -> list[Path]:
    """The unpacked packages or repository of a source, brought where they are not there."""
    packages = source.get("packages") or ([source["package"]] if "package" in source else ())
    brought = []
    for name in packages or [source["repository"].rpartition("/")[2]]:
        places = [folder / name for folder in (unpacked, into) if folder]
        there = next((place for place in places if place.is_dir()), None)
        if there is None and packages:
            there = fetch(name, into)
        brought.append(there or clone(source["repository"], source["commit"], into))
    return brought


def served_page(page: str) -> str:
    """Where a page is served: unpacked, and plain text under a name that says what it is."""
    name = page.removesuffix(".gz")
    return name if re.search(r"\.(x?html?|txt|md|pdf|odt|docx|csv)$", name) else f"{name}.txt"


def place_source(source: Mapping[str, Any], unpacked: Iterable[Path], target: Path) -> None:
    """Copy the pages of a source, or all HTML of its folder where it lists none, as served."""
    files: dict[str, Path] = {}
    for root in (each / source["root"] for each in unpacked):
        found = (path for path in sorted(root.rglob("*")) if path.is_file())
        files |= {path.relative_to(root).as_posix(): path for path in found}
    every = [page for page in files if re.search(r"\.x?html?(\.gz)?$", page)]
    for page in source.get("pages") or every:
        placed = target / served_page(page)
        placed.parent.mkdir(parents=True, exist_ok=True)
        data = files[page].read_bytes()
        placed.write_bytes(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data)


def visible_text(path: Path) -> str:
    """What a reader of a page sees, without white space."""
    if path.suffix == ".pdf":
        with PdfDocument(path) as pages:
            text = "".join(page.get_textpage().get_text_bounded() for page in pages)
        return "".join(
            text.replace("\x02", "").split()
        )  # which stands for a hyphen at a line's end
    data = path.read_bytes()
    if path.suffix == ".odt":
        with zipfile.ZipFile(path) as document:
            data = document.read("content.xml")
    declared = re.search(rb"<meta[^>]*charset=[\"']?([\w-]+)", data)
    text = data.decode(declared[1].decode() if declared else "utf-8", errors="replace")
    if path.suffix in (".html", ".htm", ".xhtml", ".odt"):
        # As browsers do: read as markup, an unclosed element in it swallows the rest of the page.
        text = re.sub(r"<noscript\b.*?</noscript\s*>", "", text, flags=re.DOTALL | re.IGNORECASE)
        tree = LexborHTMLParser(text)
        tree.strip_tags(["script", "style", "template", "head"])
        text = tree.body.text(deep=True) if tree.body else ""
    return "".join(text.split())


def absent_quotes(questions: Iterable[Mapping[str, Any]], root: Path) -> list[str]:
    """The questions with a quotation that the page it names does not show, and the page."""
    texts: dict[Path, str] = {}
    absent = []
    for question in questions:
        for gold in question["gold"]:
            for place in (gold, *gold.get("alternatives", ())):
                path = root / question["source"] / served_page(place["page"])
                if path not in texts:
                    texts[path] = visible_text(path) if path.is_file() else ""
                if "".join(place["quote"].split()) not in texts[path]:
                    absent.append(f"{question['id']} on {place['page']}")
    return absent


def fetch_sources(listing: Path, chosen: Sequence[str], unpacked: Path | None, root: Path) -> None:
    """Bring the sources of a listing and check the quotations of the questions beside it."""
    sources = [json.loads(line) for line in listing.read_text("utf-8").splitlines()]
    names = chosen or [each["source"] for each in sources]
    with tempfile.TemporaryDirectory() as temporary:
        for source in sources:
            if source["source"] in names and not (root / source["source"]).exists():
                brought = fetch_source(source, unpacked, Path(temporary))
                place_source(source, brought, root / source["source"])
    rows = [
        json.loads(line)
        for path in sorted(listing.parent.glob("*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    ]
    asked = [row for row in rows if "query" in row and row["source"] in names]
    if absent := absent_quotes(asked, root):
        raise SystemExit(f"{len(absent)} quotations do not stand there: {', '.join(absent)}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("questions", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--site", action="append")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--unpacked", type=Path)
    given = parser.parse_args()
    if given.questions.name == "sources.jsonl":
        fetch_sources(given.questions, given.site or (), given.unpacked, given.folder)
        return
    questions = [json.loads(line) for line in given.questions.read_text("utf-8").splitlines()]
    sites = {each["site"]: each["package"] for each in questions}
    if unknown := set(given.site or ()) - set(sites):
        parser.error(f"no question is about {', '.join(unknown)}: there are {', '.join(sites)}.")
    chosen = {site: sites[site] for site in given.site or sites}
    if there := [site for site in chosen if (given.folder / site).exists()]:
        parser.error(f"{given.folder} already holds {', '.join(there)}.")
    pages = {} if given.whole else listed_pages(given.questions)
    with tempfile.TemporaryDirectory() as temporary:
        for site, package in chosen.items():
            unpacked = fetch(package, Path(temporary))
            place(site, unpacked, given.folder / site, pages.get(site, ()))
    asked = [each for each in questions if each["site"] in chosen]
    if missing := missing_pages(asked, given.folder):
        raise SystemExit(f"The packages lack pages that are asked for: {', '.join(missing)}.")


if __name__ == "__main__":
    main()
