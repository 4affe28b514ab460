"""Maps as generators really write them: `generated/README.md` says how the files were made."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from selectolax.lexbor import LexborHTMLParser

from webrag.ingestion.site_maps.listing import ListedPage
from webrag.ingestion.site_maps.marks import find_marks
from webrag.ingestion.site_maps.reading import NamedMaps, Wanted, read_map

GENERATED = Path(__file__).parent / "generated"
ROOT = "http://docs.test/"


def pages_of(site: Path, page: str) -> Mapping[str, ListedPage]:
    """What the first map that a page names says, by path."""
    url = ROOT + page
    (mark, *_) = find_marks(LexborHTMLParser(_file(site, url).decode()), url)
    address = next(url for url in mark.urls if _path(site, url).is_file())
    files = {address: _file(site, address)}
    found = read_map(mark, url, files)
    while isinstance(found, Wanted):
        files |= {wanted: _file(site, wanted) for wanted in found.urls}
        found = read_map(mark, url, files)
    assert not isinstance(found, NamedMaps)
    return {page.url.removeprefix(ROOT): page for page in found.pages}


def _file(site: Path, url: str) -> bytes:
    return _path(site, url).read_bytes()


def _path(site: Path, url: str) -> Path:
    path = site / unquote(urlsplit(url).path).lstrip("/")
    return path / "index.html" if path.is_dir() else path


@pytest.mark.parametrize(
    ("name", "page", "firing"),
    [
        ("sphinx-5.3.0", "guide/firing.html", "guide/firing.html"),
        ("sphinx-7.4.7", "guide/firing.html", "guide/firing.html"),
        ("material-9.8.1", "guide/firing/", "guide/firing/"),
        ("zensical-0.0.73", "guide/firing/", "guide/firing/"),
        ("mdbook-0.5.4", "guide/firing.html", "guide/firing.html"),
        ("doxygen-1.9.4-tree", "firing.html", "firing.html"),
        ("docusaurus-3.10.2-easyops", "guide/firing/", "guide/firing"),
        ("docusaurus-3.10.2-cmfcmf", "guide/firing/", "guide/firing"),
        ("docusaurus-3.10.2-lunr", "guide/firing/", "guide/firing"),
        ("vitepress-1.6.4", "guide/firing.html", "guide/firing.html"),
    ],
)
def test_page_and_its_section_are_read_from_what_the_generator_wrote(
    name: str, page: str, firing: str
) -> None:
    found = pages_of(GENERATED / name, page)

    assert found[firing].title == "Firing a kiln"
    assert "Cooling down" in found[firing].names


@pytest.mark.parametrize(
    ("name", "page", "limits"),
    [
        ("material-9.8.1", "guide/firing/", "reference/limits/"),
        ("zensical-0.0.73", "guide/firing/", "reference/limits/"),
        ("mdbook-0.5.4", "guide/firing.html", "reference/limits.html"),
        ("docusaurus-3.10.2-lunr", "guide/firing/", "reference/limits"),
        ("vitepress-1.6.4", "guide/firing.html", "reference/limits.html"),
        ("hugo-0.168.0", "guide/firing/", "reference/limits/"),
        ("jekyll-4.3.1", "guide/firing.html", "reference/limits.html"),
    ],
)
def test_words_of_a_page_are_read_where_the_generator_kept_them(
    name: str, page: str, limits: str
) -> None:
    found = pages_of(GENERATED / name, page)[limits]

    assert found.title == "Limits & units"
    assert {"elements", "melt", "1300"} <= set(
        " ".join(each.text for each in found.sections).split()
    )


@pytest.mark.parametrize(
    ("name", "page", "expected"),
    [
        (
            "javadoc-17",
            "org/kiln/Cone.html",
            {
                "org/kiln/Cone.html": ["org.kiln.Cone", "bend(int)", "Cone(int)", "MAX"],
                "org/kiln/Cone.Shape.html": ["org.kiln.Cone.Shape", "BENT", "STRAIGHT"],
            },
        ),
        (
            "rustdoc-1.95.0",
            "kiln/heat/struct.Cone.html",
            {"kiln/heat/struct.Cone.html": ["heat::Cone"], "kiln/constant.LIMIT.html": ["LIMIT"]},
        ),
        ("doxygen-1.9.4-search", "firing.html", {"firing.html": [], "structCone.html": []}),
        ("doxygen-1.9.4-tree", "firing.html", {"structCone.html": [], "kiln_8h.html": []}),
    ],
)
def test_pages_of_a_programs_reference_carry_the_names_they_explain(
    name: str, page: str, expected: dict[str, list[str]]
) -> None:
    found = pages_of(GENERATED / name, page)

    assert expected.keys() <= found.keys()
    assert all(found[path].names[: len(names)] == names for path, names in expected.items())


SPHINX = {
    "conf.py": "project = 'Kiln handbook'\n",
    "index.rst": "Kiln handbook\n=============\n\n.. toctree::\n\n   guide/firing\n",
    "guide/firing.rst": "Firing a kiln\n=============\n\nCooling down\n------------\n\nWait.\n",
}


@pytest.mark.parametrize(
    ("builder", "page"), [("html", "guide/firing.html"), ("dirhtml", "guide/firing/")]
)
def test_sphinx_as_it_is_installed_is_read(builder: str, page: str, tmp_path: Path) -> None:
    _write(tmp_path / "src", SPHINX)
    _run("sphinx", "-q", "-b", builder, "src", "out", at=tmp_path)

    found = pages_of(tmp_path / "out", page)[page]

    assert found.title == "Firing a kiln"
    assert "Cooling down" in found.names


def test_mkdocs_as_it_is_installed_is_read(tmp_path: Path) -> None:
    pages = {
        "mkdocs.yml": "site_name: Kiln handbook\n",
        "docs/index.md": "# Kiln handbook\n",
        "docs/guide/firing.md": "# Firing a kiln\n\n## Cooling down\n\nWait.\n",
    }
    _write(tmp_path, pages)
    _run("mkdocs", "build", "-q", at=tmp_path)

    found = pages_of(tmp_path / "site", "guide/firing/")["guide/firing/"]

    assert found.title == "Firing a kiln"
    assert "Cooling down" in found.names


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _run(module: str, *arguments: str, at: Path) -> None:
    subprocess.run([sys.executable, "-m", module, *arguments], cwd=at, check=True, timeout=120)
