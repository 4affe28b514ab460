"""Fetches the documentation sites that questions are about, from the packages of Debian.

Usage: python benchmarks/fetch_sites.py QUESTIONS FOLDER [--site NAME]... [--whole]

QUESTIONS is a file of benchmarks/questions whose lines name a `package`. Each package is brought by
`apt-get download`, which needs no root and installs nothing, and unpacked by `dpkg-deb`. FOLDER
gets one folder of pages for each site, as `webrag eval QUESTIONS --site-root FOLDER` reads them. Of
the sites in QUESTIONS' list of pages (`..._pages.txt` beside it, where there is one) only these
pages are taken, as the published figures were made with them; --whole takes all. The figures were
made with Debian 12: a page with evidence that another release does not have ends the script.
"""

import argparse
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("questions", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--site", action="append")
    parser.add_argument("--whole", action="store_true")
    given = parser.parse_args()
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
