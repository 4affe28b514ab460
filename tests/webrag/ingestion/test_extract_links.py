from collections.abc import Callable

import pytest

from webrag.ingestion.models import NormalizedDocument

Convert = Callable[..., NormalizedDocument]


def body(html: str) -> str:
    return f"<html><head><title>T</title></head><body>{html}</body></html>"


def test_links_are_unwrapped_and_located(convert: Convert) -> None:
    html = body(
        '<h2>Setup</h2><p>First. See <a href="../b?utm_source=x" title="Tip" rel="Nofollow">'
        "the <code>b</code> page</a> for more. Last.</p>"
    )
    document = convert(html)
    (link,) = document.links

    assert document.markdown == "## Setup\n\nFirst. See the `b` page for more. Last."
    assert document.markdown[link.char_start : link.char_end] == "the `b` page"
    assert link.url == "https://site.test/b"
    assert (link.anchor_text, link.title, link.rel) == ("the b page", "Tip", ("nofollow",))
    assert (link.sentence, link.heading) == ("See the b page for more.", "Setup")


def test_navigation_links_are_kept_without_a_place(convert: Convert) -> None:
    document = convert(body('<nav><a href="/n">Menu</a></nav><main><p>Text.</p></main>'))

    assert document.markdown == "Text."
    assert [(link.url, link.char_start) for link in document.links] == [
        ("https://site.test/n", None)
    ]


def test_links_to_the_page_itself_and_to_no_page_are_left_out(convert: Convert) -> None:
    html = body('<p>x <a href="#a">a</a> <a href="mailto:q@q">b</a> <a href="page#z">c</a></p>')

    assert convert(html).links == ()


def test_picture_link_takes_its_text_from_alt(convert: Convert) -> None:
    (link,) = convert(body('<p>x</p><a href="/a"><img src=i alt="Diagram"></a>')).links

    assert (link.anchor_text, link.char_start) == ("Diagram", None)


def test_anchor_text_holds_no_hidden_parts(convert: Convert) -> None:
    html = body('<dl><dt><a href="/a"><b aria-hidden="true">1.</b> Intro</a></dt><dd>d</dd></dl>')

    assert convert(html).links[0].anchor_text == "Intro"


def test_relative_links_follow_the_base_element(convert: Convert) -> None:
    html = '<head><base href="https://cdn.test/v2/"></head><body><p>a <a href="b">b</a></p>'

    assert convert(html).links[0].url == "https://cdn.test/v2/b"


def test_marks_in_the_page_cannot_forge_links(convert: Convert) -> None:
    html = body('<p>\U000f0000x\U00100000 &#983040;y <a href="/z">z</a></p>')
    document = convert(html)
    (link,) = document.links

    assert document.markdown == "x y z"
    assert document.markdown[link.char_start : link.char_end] == "z"


def test_sentence_is_cut_to_300_characters(convert: Convert) -> None:
    html = body(f"<p>{'word ' * 200}<a href='/a'>link</a> {'word ' * 200}</p>")

    assert len(convert(html).links[0].sentence) <= 300


TERMS = """<h1>Modules</h1><p>These modules are there for everybody to use.</p><dl>
<dt><a href="/json">json</a></dt><dd>Reads and <em>writes</em> JSON. It is fast.<p>Later.</p></dd>
<dt><code><a href="/os">os</a></code> (<a href="/src">source</a>)</dt><dt><a href="/posix">posix</a>
</dt><dd><p>Works with paths.</p><p>See <a href="/more">more</a> about it.</p></dd>
<div><dt><a href="/none">none</a></dt>
<dd><dl><dt>inner</dt><dd>Text of another.</dd></dl></dd></div>
<dt><a href="/last">last</a> term</dt></dl>"""


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("json", "Reads and writes JSON. It is fast."),
        ("os", "Works with paths."),
        ("src", "Works with paths."),
        ("posix", "Works with paths."),
        ("more", "See more about it."),
        ("none", "none"),
        ("last", "last term"),
    ],
)
def test_link_in_a_term_is_described_by_its_definition(
    convert: Convert, path: str, sentence: str
) -> None:
    links = {link.url.rpartition("/")[2]: link.sentence for link in convert(body(TERMS)).links}

    assert links[path] == sentence
