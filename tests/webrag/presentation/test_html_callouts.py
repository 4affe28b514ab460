import pytest
from selectolax.lexbor import LexborHTMLParser

from webrag.presentation.html.converter import callout_label, callout_sign


@pytest.mark.parametrize(
    ("html", "label"),
    [
        ('<div class="admonition warning">', "warning"),
        ('<div class="admonition">', "note"),
        ('<div class="markdown-alert markdown-alert-caution">', "caution"),
        ('<div class="alert alert-danger">', "danger"),
        ('<aside class="tip">', "tip"),
        ('<div class="theme-admonition theme-admonition-note admonition">', "note"),
        ('<div class="footnote">', None),
        ('<div class="release-note">', None),
        ('<ul class="note">', None),
        ("<div>", None),
    ],
)
def test_callout_is_told_by_its_classes(html: str, label: str | None) -> None:
    body = LexborHTMLParser(html).body
    assert body is not None
    element = body.first_child
    assert element is not None

    assert callout_label(element) == label


def test_warnings_and_notes_have_different_signs() -> None:
    assert callout_sign("danger") != callout_sign("note")
