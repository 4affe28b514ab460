import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.errors import UnusablePageError
from webrag.ingestion.extract import extract
from webrag.ingestion.models import FetchedPage, NormalizedDocument

Convert = Callable[..., NormalizedDocument]


def letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def body(html: str) -> str:
    return f"<html><head><title>T</title></head><body>{html}</body></html>"


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<dl><dt>-a</dt><dt>--all</dt><dd>Every file.</dd></dl>", "-a  \n--all  \nEvery file."),
        ("<dl><dt>t</dt><dd><p>one</p><p>two</p></dd></dl>", "t  \none\n\ntwo"),
        ("<dl><dt>t</dt><dd>&nbsp;<br>&nbsp;<br>one<br>two</dd></dl>", "t  \none  \ntwo"),
        ("<dl><dt>t</dt><dd><ul><li>a</li></ul></dd></dl>", "t\n\n- a"),
        ("<b><i>one</i><br>\n<br>two<br>three</b><br>4", "***one***\n\n**two  \nthree**  \n4"),
        (
            '<div class="admonition note"><p class="admonition-title">Note</p><p>Mind.</p></div>',
            "**Note**  \nMind.",
        ),
        ('<div class="tip"><h3 class="title">Tip</h3><p>Do.</p></div>', "**Tip**  \nDo."),
        (
            '<div class="admonitionblock"><table><tr><td class="icon"><div class="title">Note'
            '</div></td><td class="content">Mind.</td></tr></table></div>',
            "**Note**  \nMind.",
        ),
        ("<p>10<sup>3</sup> H<sub>2</sub>O x<sub>i</sub> 1<sup>st</sup></p>", "10^3 H2O x_i 1st"),
        ('<p>so<sup><a href="#f">1</a></sup> on</p>', "so[1] on"),
        ('<p><math alttext="x^2"><mi>x</mi></math> a</p>', "$x^2$ a"),
        ("<p><math><mfrac><mi>a</mi><mn>2</mn></mfrac></math> b</p>", "a/2 b"),
        ("<details><summary>More</summary><p>in</p></details>", "**More**\n\nin"),
        ("<details><summary><h3>Head</h3></summary><p>in</p></details>", "### Head\n\nin"),
        (
            '<pre><pre class="playground"><code class="language-rust">fn x() {}</code></pre></pre>',
            "```rust\nfn x() {}\n```",
        ),
        (
            '<pre><code class="language-py">a = "\\("\n\n\nb</code></pre>',
            '```py\na = "\\("\n\n\nb\n```',
        ),
        ('<div class="highlight-c"><pre>int <a href="/i">x</a>;</pre></div>', "```c\nint x;\n```"),
        (
            "<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>x<br>y</td></tr></table>",
            "| A | B |\n| --- | --- |\n| 1 | x<br>y |",
        ),
        ('<h1>Top<a class="headerlink" href="#t">¶</a></h1><p>x</p>', "# Top\n\nx"),
        ("<ul><li><p>a</p></li><li><p>b</p></li></ul>", "- a\n- b"),
        ("<ul><li>A.<p>b</p></li><li><p>C.</p>d</li></ul>", "- A.\n\n  b\n\n- C.\n\n  d"),
        ("<dl><dt>-a<dd>b<dt><dd><p><dt>-c<dd>d<dl><dt><dd>e</dl></dl>", "-a  \nb\n\n-c  \nd\n\ne"),
        ("<p>one\n  line\n- not a list</p>", "one line - not a list"),
        ("<p>a</p><blockquote><p>b</p></blockquote>", "a\n\n> b"),
        ("<blockquote><blockquote><p>b</p></blockquote></blockquote>", "> b"),
        ("<p>3.1<tt>&nbsp;</tt>Ends of<code> a <b>b</b> </code>line</p>", "3.1 Ends of `a b` line"),
        ("<p>Ends of<code> a </code>line</p>", "Ends of `a` line"),
        ("<p>日本\n語の<b>文</b>\n。Kiln\n窯 한글\n문</p>", "日本語の**文**。Kiln 窯 한글 문"),
        ('<p>a <img src="x" alt="pic"> b</p>', "a pic b"),
    ],
)
def test_structure_is_kept_readable(convert: Convert, html: str, markdown: str) -> None:
    assert convert(body(html)).markdown == markdown


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<span class=price>249 €</span><span class=stock>in stock</span>", "249 € in stock"),
        ("<span class=amount>30</span><span class=unit>g</span>", "30 g"),
        ("<span class='t a'>Guest</span><span class='t b'>3 May</span>", "Guest3 May"),
        (
            "<span class=who>Ann</span><span class=at><span>1.5.24</span><span>9:44</span></span>",
            "Ann 1.5.24 9:44",
        ),
        ("<span class=v>v</span><span class=n>1.5.24</span>", "v1.5.24"),
        ("<a href=/tips>Tips</a><a href=/travel>Travel</a>", "Tips Travel"),
        ("<a href=/un>un</a><a href=/un>like</a>", "unlike"),
        ("<span class=cap>O</span><span class=low>nce</span> more", "Once more"),
        ("<span class=blue>web</span><span class=red>rag</span>", "webrag"),
        ("<span class=name>IPv</span><span class=number>6</span>", "IPv6"),
        ("<span class=whole>3.</span><span class=rest>14</span>", "3.14"),
        ("<span class=whole>3</span><span class=rest>14</span>", "314"),
        ("<b>w</b>ord", "**w**ord"),
        ("<code><span class=n>x</span><span class=m>2</span></code>", "`x2`"),
        ("<span class=n>f</span><span class=p>(</span><span class=m>2)</span>", "f(2)"),
    ],
)
def test_space_that_only_a_style_sets_parts_what_is_no_word_or_code(
    convert: Convert, html: str, markdown: str
) -> None:
    assert convert(f"<main><h1>Kiln</h1><p>{html}</p></main>").markdown == f"# Kiln\n\n{markdown}"


@pytest.mark.parametrize(
    "text",
    [
        "a_b_c 2*3*4 [x](y) ![z](w)",
        r"\( x_1 \) \_ \* \\ \d+",
        "1. not a list",
        "- nor this",
        "$ ls | wc -l > out.txt",
        "f(x) = `y` ~ z & <T>",
    ],
)
def test_nothing_is_escaped_that_reads_otherwise(convert: Convert, text: str) -> None:
    source = text.replace("&", "&amp;").replace("<", "&lt;")

    assert convert(body(f"<p>{source}</p>")).markdown == text


@pytest.mark.parametrize(
    "hidden",
    [
        "<p hidden>SECRET</p>",
        '<p aria-hidden="true">SECRET</p>',
        '<p style="display: none">SECRET</p>',
        '<p style="visibility:hidden">SECRET</p>',
        '<p style="font-size:0px">SECRET</p>',
        '<p style="opacity:0">SECRET</p>',
        '<p style="color:#fff">SECRET</p>',
        '<p style="color:red;background-color:red">SECRET</p>',
        '<p style="position:absolute;left:-9999px">SECRET</p>',
        "<!-- SECRET -->",
        "<noscript>SECRET</noscript>",
        "<template>SECRET</template>",
        "<script>SECRET</script>",
        '<img src=x alt="SECRET">',
        '<span class="sr-only">SECRET</span>',
        "<footer>SECRET</footer>",
        '<div role="navigation">SECRET</div>',
    ],
)
def test_what_a_reader_does_not_see_is_not_stored(convert: Convert, hidden: str) -> None:
    assert convert(body(f"<p>Seen.</p>{hidden}")).markdown == "Seen."


@pytest.mark.parametrize(
    "shown",
    [
        '<p style="font-size:0.9em">Also.</p>',
        '<div style="background:navy"><p style="color:white">Also.</p></div>',
        '<div role="tabpanel" hidden>Also.</div>',
        '<aside class="admonition">Also.</aside>',
    ],
)
def test_what_a_reader_sees_is_stored(convert: Convert, shown: str) -> None:
    assert convert(body(f"<p>Seen.</p>{shown}")).markdown == "Seen.\n\nAlso."


def test_title_above_the_main_element_is_kept(convert: Convert) -> None:
    html = body("<header><nav>Menu</nav><h1>Name</h1></header><main><p>Long text.</p></main>")

    assert convert(html).markdown == "# Name\n\nLong text."


def test_small_main_element_is_not_trusted(convert: Convert) -> None:
    html = body(f"<main><p>Teaser.</p></main><div><p>{'Real text. ' * 20}</p></div>")

    assert "Real text." in convert(html).markdown


def test_invisible_characters_are_removed(convert: Convert) -> None:
    html = body("<p>a\u200bb\u202ec\U000e0041d\u0007e&#xe000;f&#8203;g &#0;cafe\u0301</p>")

    assert convert(html).markdown == "abcdefg \ufffdcafé"


def test_html_field_has_working_picture_addresses_and_no_scripts(convert: Convert) -> None:
    html = body('<main onclick="evil()"><p>Text.</p><img src="i.png"><script>x</script></main>')

    assert convert(html).html == '<main><p>Text.</p><img src="https://site.test/docs/i.png"></main>'


def test_canonical_spelling_of_the_address_is_the_identity(convert: Convert) -> None:
    html = '<head><link rel="canonical" href="/docs/page/"></head><body><p>Text.</p></body>'
    document = convert(html)

    assert document.url == "https://site.test/docs/page/"
    assert document.requested_url == "https://site.test/docs/page"


def test_page_that_names_another_page_as_canonical_keeps_its_own_address(convert: Convert) -> None:
    html = '<head><link rel="canonical" href="/docs/"></head><body><p>Text.</p></body>'

    assert convert(html).url == "https://site.test/docs/page"


@pytest.mark.parametrize(
    "page",
    [
        "<body></body>",
        "",
        "<body><script>app()</script></body>",
        "<body><p>!!! --- ???</p></body>",
        "<body>You need to enable JavaScript to run this app.</body>",
        "<body><h1>Just a moment...</h1></body>",
    ],
)
def test_pages_without_content_are_unusable(convert: Convert, page: str) -> None:
    with pytest.raises(UnusablePageError, match="cannot be read"):
        convert(page)


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("<div>" * 600 + "x", "nested more than 512"),
        ("<p " + " ".join(f"a{n}=1" for n in range(2_000)) + ">x", "more than 1,000 attributes"),
    ],
)
def test_parser_bombs_are_named(convert: Convert, page: str, reason: str) -> None:
    with pytest.raises(UnusablePageError, match=reason):
        convert(page)


def test_markdown_page_takes_the_same_form(convert: Convert) -> None:
    text = (
        "---\ntitle: Guide\ndate: 2024-03-01\n---\n"
        "# Head\n\nSee [the *b* page](../b.md) \\_x\\_.\n\n"
        "![pic](i.png)\n\n```sh\nls \\*\n```\n\n> [!WARNING]\n> Mind.\n"
    )
    document = convert(text, kind="markdown", url="https://site.test/docs/a.md")
    (link,) = document.links

    assert document.markdown == (
        "# Head\n\nSee the *b* page _x_.\n\n```sh\nls \\*\n```\n\n**Warning**  \nMind."
    )
    assert document.title == "Guide"
    assert document.published_at is not None
    assert link.url == "https://site.test/b.md"
    assert document.markdown[link.char_start : link.char_end] == "the *b* page"


def test_plain_text_page_stays_as_it_is(convert: Convert) -> None:
    text = "RFC 9999\r\n\r\n   Indented * text, see https://a.test/x.\r\n"
    document = convert(text, kind="text")
    (link,) = document.links

    assert document.markdown == "RFC 9999\n\n   Indented * text, see https://a.test/x."
    assert document.title == "RFC 9999"
    assert document.markdown[link.char_start : link.char_end] == "https://a.test/x"


WORDS = st.sampled_from(["alpha", "Béta.", "γ", "1.", "a_b", "*", "\\", "#", "end. Next", "日本"])
INLINE = st.recursive(
    st.lists(WORDS, min_size=1, max_size=3).map(" ".join),
    lambda inner: st.tuples(st.sampled_from(["b", "em", "code", "a href=/x", "span"]), inner).map(
        lambda made: f"<{made[0]}>{made[1]}</{made[0].split()[0]}> "
    ),
    max_leaves=3,
)
BLOCKS = st.lists(
    st.tuples(
        st.sampled_from(["p", "h2", "li", "blockquote", "pre", "dt", "dd", "td", "div"]), INLINE
    ).map(lambda made: f"<{made[0]}>{made[1]}</{made[0]}>"),
    min_size=1,
    max_size=6,
).map("".join)


@given(BLOCKS)
def test_every_located_link_is_exactly_its_text(html: str) -> None:
    document = _extracted(html)
    for link in document.links:
        if link.char_start is not None:
            located = document.markdown[link.char_start : link.char_end]
            assert letters(located) == letters(link.anchor_text)


@given(BLOCKS)
def test_text_of_the_page_is_kept_in_order(html: str) -> None:
    visible = letters(re.sub(r"<[^>]*>", "", html))

    assert letters(_extracted(html).markdown) == f"start{visible}"


def _extracted(html: str) -> NormalizedDocument:
    page = FetchedPage(
        requested_url="https://site.test/p",
        url="https://site.test/p",
        status=200,
        kind="html",
        text=f"<body><p>start</p>{html}</body>",
        fetched_at=datetime(2026, 1, 1, tzinfo=UTC),
        source="test",
    )
    return extract(page)
