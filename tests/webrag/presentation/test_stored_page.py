import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.corpus.models import PageImage
from webrag.presentation.stored_page import Mark, page_html, passage_html

TAGS = {
    "p", "li", "em", "strong", "del", "sub", "sup", "dl", "dt", "dd", "tr", "blockquote", "h2",
    "h3", "h4", "h5", "h6", "ul", "ol", "pre", "code", "div", "table", "thead", "tbody", "th",
    "td", "span", "mark", "br", "hr",
}  # fmt: skip
MARKED = re.compile(r"<mark[^>]*>(.*?)</mark>", re.DOTALL)
MARKDOWN = st.text(alphabet="ab <>&\"'`*_|-#[]()!\n\\$~:1.é𝄞\u0627", max_size=120)


def marked(html: str) -> str:
    return unescape("".join(MARKED.findall(html)))


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        pytest.param("# Head\n\nOne two three.", "two", id="paragraph"),
        pytest.param("A *very* long `word` here.", "long", id="between inline marks"),
        pytest.param("| a | b |\n|---|---|\n| 1 | two |", "two", id="table cell"),
        pytest.param("```py\nx = 1\ny = 2\n```", "y = 2", id="code"),
        pytest.param("x 𝄞 é und Größe", "Größe", id="beyond ASCII"),
        pytest.param("Use List<String> here", "List<String>", id="angle brackets"),
        pytest.param("One\ntwo\nthree", "One\ntwo", id="over a line end"),
        pytest.param("- first\n- second", "second", id="list"),
    ],
)
def test_mark_holds_exactly_the_quotation(text: str, quote: str) -> None:
    start = text.index(quote)

    html = page_html(text, [Mark(1, start, start + len(quote))]).html

    assert marked(html) == quote


def test_first_piece_of_each_mark_can_be_gone_to_also_where_marks_overlap() -> None:
    html = page_html("one two three four", [Mark(1, 0, 7), Mark(2, 4, 13)]).html

    assert re.findall(r' id="(c\d)"', html) == ["c1", "c2"]
    assert marked(html) == "one two three"


def test_contents_are_the_headings_with_their_levels() -> None:
    shown = page_html("# One\n\ntext\n\n## Two *b*\n\ntext")

    assert [(each.level, each.text) for each in shown.contents] == [(1, "One"), (2, "Two b")]
    assert all(f'id="{each.anchor}"' in shown.html for each in shown.contents)


@pytest.mark.parametrize(
    "attack",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[a](javascript:alert(1))",
        "![a](http://evil.example/x.png)",
        "<a href='javascript:alert(1)'>x</a>",
        "`</code><script>alert(1)</script>`",
        "# <svg onload=alert(1)>",
    ],
)
def test_markup_of_a_page_is_shown_as_text(attack: str) -> None:
    html = page_html(attack).html

    assert not re.search(r"<(script|img|a|svg)\b|<[^>]*(href|src)=", html)


@given(MARKDOWN, st.integers(0, 120), st.integers(0, 120))
def test_only_known_tags_come_out_and_no_quote_ends_an_attribute(
    text: str, start: int, end: int
) -> None:
    html = page_html(text, [Mark(1, start, end)]).html + passage_html(text, start, end)

    names = {name.lower() for name in re.findall(r"</?([^\s>/]+)", html)}
    assert names <= TAGS
    attributes = re.sub(
        r'<\w+(?: (?:id|dir|value|class|tabindex|role|aria-label|start|data-number)="[\w -]*")*>',
        "",
        html,
    )
    assert not re.search(r"<\w", attributes)


@given(MARKDOWN, st.data())
def test_every_letter_of_a_word_is_shown(text: str, data: st.DataObject) -> None:
    words = data.draw(st.text(alphabet="xyz", min_size=1, max_size=5))

    assert words in unescape(re.sub(r"<[^>]*>", "", page_html(f"{text}\n\n{words}\n").html))


def test_words_of_images_stand_where_the_images_do() -> None:
    text = "First.\n\n- one\n- two\n\nLast."
    images = [
        PageImage(text.index("Last"), "", "A <b>map</b>"),
        PageImage(text.index("- two"), "Two", "Two"),
        PageImage(len(text), "", ""),
    ]

    html = page_html(text, (), images).html

    parts = [re.sub(r"<[^>]+>", " ", part).strip() for part in re.split("(?=Image: )", html)]
    assert [" ".join(unescape(part).split()) for part in parts] == [
        "First. one",
        "Image: Two two",
        "Image: A <b>map</b> Last.",
        "Image: no description",
    ]


def test_image_that_stands_in_the_text_is_named_once() -> None:
    text = "![A map](map.png) and words"

    assert page_html(text, (), [PageImage(0, "A map", "")]).html.count("A map") == 1


def test_part_of_a_page_is_shown_in_what_it_lies_in() -> None:
    text = "# Head\n\n3. one\n4. *two*\n5. three\n\n```py\nx = 1\ny = 2\n```"

    item = passage_html(text, text.index("4."), text.index("5."))
    code = passage_html(text, text.index("y ="), len(text))

    assert re.sub(' dir="auto"', "", item) == ('<ol start="3"><li value="4"><em>two</em></li></ol>')
    assert code == '<pre tabindex="0"><code>y = 2\n</code></pre>'


def test_marks_of_a_part_have_no_ids_that_another_part_may_have() -> None:
    html = passage_html("# Head\n\none **two** three", 0, 23, [Mark(1, 8, 17)])

    assert marked(html) == "one two"
    assert "id=" not in html


def test_rows_that_were_cut_from_their_table_are_a_table() -> None:
    rows = "| a | one |\n| b | two |"

    html = passage_html(rows, rows.index("| b"), len(rows), [Mark(1, rows.index("two"), 21)])

    assert re.findall(r"<td[^>]*>(.*?)</td>", html) == ["b", "<mark>two</mark>"]


@given(MARKDOWN)
def test_a_part_that_is_the_whole_shows_the_words_of_the_page(text: str) -> None:
    shown = [page_html(text).html, passage_html(text, 0, len(text))]

    pages, parts = (re.findall(r"[^\W_]+", re.sub(r"<[^>]*>", " ", html)) for html in shown)
    assert pages == parts
