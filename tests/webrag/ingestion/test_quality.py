from collections.abc import Callable
from pathlib import Path

import pytest

from webrag.errors import UnusablePageError
from webrag.ingestion.models import NormalizedDocument
from webrag.ingestion.quality import PageSigns, judge

Convert = Callable[..., NormalizedDocument]
DATA = Path(__file__).parent / "data"
WALLS = sorted((DATA / "walls").glob("*.html"))
GENUINE = sorted((DATA / "genuine").glob("*.html"))


@pytest.mark.parametrize("path", WALLS, ids=lambda path: path.stem)
def test_what_stands_before_a_page_is_named(convert: Convert, path: Path) -> None:
    with pytest.raises(UnusablePageError) as caught:
        convert(path.read_text(encoding="utf-8"))

    assert caught.value.kind == path.stem.partition("-")[0]
    assert caught.value.hint


@pytest.mark.parametrize("path", GENUINE, ids=lambda path: path.stem)
def test_pages_about_walls_are_pages(convert: Convert, path: Path) -> None:
    assert convert(path.read_text(encoding="utf-8")).markdown


def test_enough_walls_and_pages_about_them_are_looked_at() -> None:
    assert len(WALLS) >= 40
    assert len(GENUINE) >= 20


def test_message_names_vendor_and_page(convert: Convert) -> None:
    html = (DATA / "walls" / "bot_wall-datadome.html").read_text(encoding="utf-8")

    with pytest.raises(UnusablePageError, match=r"site\.test/docs/page.*robots.*DataDome"):
        convert(html)


def test_long_page_is_never_a_wall() -> None:
    signs = PageSigns(title="404 Not Found", heading="Page not found", has_password_field=True)

    assert judge(signs, "Sign in to continue. The page you requested was not found. " * 60) is None


def test_markdown_and_text_pages_are_judged_by_their_text(convert: Convert) -> None:
    with pytest.raises(UnusablePageError) as caught:
        convert("# Page not found\n\nThe page you requested does not exist.", kind="markdown")

    assert caught.value.kind == "soft_404"


def test_unusable_page_names_its_markdown_version(convert: Convert) -> None:
    head = '<link rel="alternate" type="text/markdown" href="/docs/page.md">'

    with pytest.raises(UnusablePageError) as caught:
        convert(f'<head>{head}</head><body><div id="root"></div><script>x</script></body>')

    assert caught.value.alternative_url == "https://site.test/docs/page.md"
