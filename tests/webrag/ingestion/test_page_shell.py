from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from webrag.ingestion.html.markdown import PageFacts, page_html
from webrag.ingestion.models import NormalizedDocument


def test_facts_reach_the_document(convert: Callable[..., NormalizedDocument]) -> None:
    facts = PageFacts(
        title="Guide",
        description="How to.",
        language="de",
        published_at="2024-05-06",
        links=("https://site.test/menu",),
    )

    read = convert(page_html("<p>Eine Anleitung, in der etwas steht.</p>", facts))

    assert (read.title, read.description, read.language) == ("Guide", "How to.", "de")
    assert read.published_at is not None
    assert read.published_at.date().isoformat() == "2024-05-06"
    assert [link.url for link in read.links] == ["https://site.test/menu"]
    assert read.markdown == "Eine Anleitung, in der etwas steht."


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60))
def test_no_title_can_leave_its_place(title: str) -> None:
    tree = LexborHTMLParser(page_html("<p>text</p>", PageFacts(title=title, description=title)))

    assert len(tree.css("title")) == 1
    assert tree.css_first("body").text(strip=True) == "text"
