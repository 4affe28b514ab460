# ruff: noqa: E501 - the generators' lines are long
"""How documentation generators write notes, code, formulas and tables, and what is stored."""

from collections.abc import Callable

import pytest
from llama_index.core.schema import Document
from llama_index.node_parser.webrag import ParentChildNodeParser

from webrag.ingestion.models import NormalizedDocument
from webrag.retrieval.units import cut_units

Convert = Callable[..., NormalizedDocument]

NOTES = {
    "sphinx": '<div class="admonition tip"><p class="admonition-title">Tip</p><p>Do.</p></div>',
    "docusaurus": '<div class="theme-admonition alert"><div class="admonitionHeading_G"><span>'
    '<svg></svg></span>Tip</div><div class="admonitionContent_B"><p>Do.</p></div></div>',
    "github": '<div class="markdown-alert markdown-alert-tip"><p class="markdown-alert-title">Tip'
    "</p><p>Do.</p></div>",
    "mdbook": '<blockquote class="blockquote-tag blockquote-tag-tip">'
    '<p class="blockquote-tag-title">Tip</p><p>Do.</p></blockquote>',
    "docbook": '<div class="tip"><h3 class="title">Tip</h3><p>Do.</p></div>',
    "docbook table": '<div class="tip"><table><tr><td rowspan="2"><img src="i"></td><th>Tip</th>'
    "</tr><tr><td><p>Do.</p></td></tr></table></div>",
    "docbook table with the title above": '<div class="TIP"><table><tr><td><b>Tip</b></td></tr>'
    "<tr><td><p>Do.</p></td></tr></table></div>",
    "docbook table with a named picture": '<div class="tip"><table><tr><td rowspan="2"><img '
    'alt="[Tip]"></td><th>Tip</th></tr><tr><td><p>Do.</p></td></tr></table></div>',
    "asciidoc": '<div class="admonitionblock tip"><table><tr><td class="icon"><div class="title">'
    'Tip</div></td><td class="content">Do.</td></tr></table></div>',
    "vitepress": '<div class="tip custom-block"><p class="custom-block-title">Tip</p>'
    "<p>Do.</p></div>",
    "starlight": '<aside class="starlight-aside starlight-aside--danger"><p aria-hidden="true" '
    'class="starlight-aside__title">Tip</p><div><p>Do.</p></div></aside>',
}
CODE = {
    "docusaurus": '<pre class="prism-code language-py"><code><span class="token-line">a = 1<br>'
    '</span><span class="token-line">b = 2<br></span></code></pre>',
    "a div per line": '<pre data-language="py"><code><div>a = 1</div><div>b = 2</div></code></pre>',
    "pygments table": '<div class="highlight-py"><table><tr><td class="linenos"><pre>1\n2</pre>'
    '</td><td class="code"><div><pre>a = 1\nb = 2\n</pre></div></td></tr></table></div>',
    "pygments inline": '<div class="highlight-py"><div><pre><span class="linenos">1</span>a = 1\n'
    '<span class="linenos">2</span>b = 2\n</pre></div></div>',
    "highlight.js lines": '<pre><code class="hljs py"><table><tr><td class="hljs-ln-numbers">1</td>'
    '<td>a = 1</td></tr><tr><td class="hljs-ln-numbers">2</td><td>b = 2</td></tr></table>'
    "</code></pre>",
    "rouge": '<div class="language-py highlighter-rouge"><div class="highlight"><pre class='
    '"highlight"><code>a = 1\nb = 2\n</code></pre></div></div>',
    "hexo": '<figure class="highlight py"><table><tr><td class="gutter"><pre>1<br>2</pre></td>'
    '<td class="code"><pre>a = 1<br>b = 2<br></pre></td></tr></table></figure>',
    "pandoc": '<div class="sourceCode"><pre class="sourceCode py"><code>a = 1\nb = 2</code>'
    "</pre></div>",
    "a code per line": '<pre lang="py"><code>a = 1</code><code>b = 2</code></pre>',
    "a box of text per line": '<pre class="language-py"><code><span class="line">a = 1</span>'
    '<span class="line">b = 2</span></code></pre>',
    "data of lines": '<pre data-language="py"><code><span data-line>a = 1</span><span data-line>'
    "b = 2</span></code></pre>",
    "styled lines": '<pre class="py"><span style="display:block">a = 1</span><span style="display: '
    'block">b = 2</span></pre>',
    "code outside of pre": '<p><code class="language-py">a = 1<br>b = 2</code></p>',
    "styled as pre": '<code class="language-py" style="white-space:pre">a = 1\nb = 2</code>',
    "cells without names": '<pre class="py"><table><tr><td>1</td><td>a = 1</td></tr><tr><td>2</td>'
    "<td>b = 2</td></tr></table></pre>",
    "github": '<div class="highlight highlight-source-py"><pre>a = 1\nb = 2</pre></div>',
    "asciidoc": '<pre class="highlight"><code class="language-py" data-lang="py">a = 1\nb = 2'
    "</code></pre>",
    "mdn": '<pre class="brush: py notranslate"><code>a = 1\nb = 2</code></pre>',
}
FORMULAS = {
    "mathml annotation": "<math><semantics><mi>x</mi><annotation encoding='application/x-tex'>x^2"
    "</annotation></semantics></math>",
    "alttext": '<math alttext="x^2"><mi>x</mi></math>',
    "dollar signs": '<math alttext="$x^2$"><mi>x</mi></math>',
    "doubled dollar signs": "<math><semantics><mi>x</mi><annotation encoding='LaTeX'>$$ x^2 $$"
    "</annotation></semantics></math>",
    "katex": '<span class="katex"><span class="katex-mathml"><math><semantics><mi>x</mi>'
    '<annotation encoding="application/x-tex">x^2</annotation></semantics></math></span>'
    '<span class="katex-html" aria-hidden="true">x2</span></span>',
    "mathjax 2": '<span class="MathJax_Preview">x2</span><span class="MathJax">x2</span>'
    '<script type="math/tex">x^2</script>',
    "picture": '<img class="math" src="m.png" alt="x^2">',
}
MATHML = {
    "sum with limits": "<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi>"
    "</munderover><msub><mi>x</mi><mi>i</mi></msub>",
    "vector": "<mover><mi>v</mi><mo>→</mo></mover>",
    "cube root": "<mroot><mrow><mi>x</mi><mo>+</mo><mn>1</mn></mrow> <mn>3</mn></mroot>",
    "root without a degree": "<mroot><mi>x</mi><mi>y</mi><mi>z</mi></mroot>",
    "matrix": "<mfenced><mtable><mtr><mtd><mi>a</mi></mtd><mtd><mi>b</mi></mtd></mtr>"
    "<mtr><mtd><mi>c</mi></mtd><mtd><mi>d</mi></mtd></mtr></mtable></mfenced>",
    "padded": "<mpadded><mi>a</mi></mpadded><mphantom><mi>b</mi></mphantom>",
    "indices on both sides": "<mmultiscripts><mi>C</mi><mi>k</mi><none></none><mprescripts>"
    "</mprescripts><mi>n</mi><none></none></mmultiscripts>",
    "annotation": '<semantics><mi>x</mi><annotation encoding="StarMath">over here</annotation>'
    "</semantics>",
    "annotation in MathML": '<semantics><mi>x</mi><annotation-xml encoding="MathML-Content">'
    "<apply><ci>y</ci></apply></annotation-xml></semantics>",
    "nested 100 levels": f"{'<mrow>' * 100}<mi>x</mi>{'</mrow>' * 100}",
    "text with a mark": "<mtext>for all <mi>x</mi> here</mtext>",
}


@pytest.mark.parametrize("html", NOTES.values(), ids=NOTES.keys())
def test_note_keeps_its_title_with_its_text(convert: Convert, html: str) -> None:
    markdown = convert(f"<body><p>Start.</p>{html}</body>").markdown

    assert markdown.split("\n\n", 1)[1] == "**Tip**  \nDo."


def test_bold_word_of_a_note_in_a_table_stays_in_its_sentence(convert: Convert) -> None:
    note = "<table><tr><td>Do <b>not</b> delete the file.</td></tr></table>"
    markdown = convert(f"<body><p>Start.</p><div class=warning>{note}</div></body>").markdown

    assert markdown == "Start.\n\nDo **not** delete the file."


def test_table_of_data_in_a_box_of_danger_stays_one(convert: Convert) -> None:
    rows = "<tr><th>Name<th>Value<tr><td>a<td>1<tr><td>b<td>2"
    markdown = convert(
        f"<body><p>x</p><div class=danger><table>{rows}</table></div></body>"
    ).markdown

    assert "| Name | Value |" in markdown


@pytest.mark.parametrize("html", CODE.values(), ids=CODE.keys())
def test_code_keeps_lines_and_language_without_numbers(convert: Convert, html: str) -> None:
    # A blank ends a line where the page shows a number before the next one.
    numbered = ("pygments inline", "highlight.js lines", "cells without names")
    end = " " if html in [CODE[name] for name in numbered] else ""
    assert convert(f"<body><p>Start.</p>{html}</body>").markdown == (
        f"Start.\n\n```py\na = 1{end}\nb = 2\n```"
    )


def test_lines_of_a_poem_stay_apart(convert: Convert) -> None:
    html = "<p>x</p><div style='white-space: pre-line'>Roses <b>are\nred</b>\nviolets</div>"
    assert convert(html).markdown == "x\n\nRoses **are  \nred**  \nviolets"


@pytest.mark.parametrize("html", FORMULAS.values(), ids=FORMULAS.keys())
def test_formula_is_its_source(convert: Convert, html: str) -> None:
    assert convert(f"<body><p>So {html} holds.</p></body>").markdown == "So $x^2$ holds."


def test_displayed_formula_has_double_signs(convert: Convert) -> None:
    html = '<span class="katex-display"><math alttext="a"><mi>a</mi></math></span>'

    assert convert(f"<body><p>Start.</p>{html}</body>").markdown == "Start.\n\n$$a$$"


def test_formula_without_source_is_a_line_of_text_and_stays_a_formula_in_the_html(
    convert: Convert,
) -> None:
    formula = "<mfrac><mi>a</mi><mn>2</mn></mfrac>"
    hidden = f'<span style="display: none"><math aria-hidden="true">{formula}</math></span>'

    document = convert(f"<body><p>So {hidden} holds.</p></body>")

    assert document.markdown == "So a/2 holds."
    assert f"<math>{formula}</math>" in document.html


@pytest.mark.parametrize("formula", MATHML.values(), ids=MATHML.keys())
def test_page_with_a_formula_keeps_the_html_of_its_passages(convert: Convert, formula: str) -> None:
    table = "<table><tr><th>Name</th><th>Value</th></tr><tr><td>one</td><td>two</td></tr></table>"
    page = convert(f"<body><p>So <math>{formula}</math> holds.</p>{table}<p>End of it.</p></body>")

    nodes = ParentChildNodeParser().get_nodes_from_documents(
        [Document(text=page.markdown, metadata={"html": page.html})]
    )

    kept = nodes[0].metadata["html"]
    assert f"<math>{formula}</math>" in kept
    assert "<td>two</td>" in kept


def test_table_keeps_its_columns_under_spans(convert: Convert) -> None:
    html = (
        '<table><tr><th rowspan="2">Name</th><th colspan="2">Limits</th></tr><tr><th>Low</th>'
        '<th>High</th></tr><tr><td rowspan="2">A</td><td>1</td><td>2</td></tr>'
        "<tr><td>3</td><td>4</td></tr></table>"
    )

    assert convert(f"<body>{html}</body>").markdown == (
        "| Name | Limits Low | Limits High |\n| --- | --- | --- |\n| A | 1 | 2 |\n| A | 3 | 4 |"
    )


def test_source_link_of_a_signature_stays_in_its_line(convert: Convert) -> None:
    html = (
        '<dl><dt class="sig">f()<a href="s.html"><span class="viewcode-link">[source]</span></a>'
        '<a class="headerlink" href="#f">¶</a></dt><dd><p>Does it.</p></dd></dl>'
    )

    assert convert(f"<body>{html}</body>").markdown == "f()[source]  \nDoes it."


def test_html_field_has_no_permalink_marks_and_full_addresses(convert: Convert) -> None:
    html = (
        '<body><h1>Title<a class="headerlink" href="#t">¶</a></h1><h2><a href="#s" class="anchor"'
        ' aria-hidden="true">#</a>Sub</h2><p><a href="../b#c">b</a></p></body>'
    )

    assert convert(html).html == (
        '<body><h1>Title</h1><h2>Sub</h2><p><a href="https://site.test/b#c">b</a></p></body>'
    )


def test_picture_that_loads_late_has_its_real_address(convert: Convert) -> None:
    html = '<figure><img src="data:image/gif;base64,R0" data-src="/r.png" alt="R"></figure>'

    assert 'src="https://site.test/r.png"' in convert(f"<body><p>x</p>{html}</body>").html


def test_footnotes_keep_number_and_text(convert: Convert) -> None:
    html = (
        '<p>See<sup><a class="footnote-ref" href="#fn:1">1</a></sup> it.</p><ol><li id="fn:1">'
        '<p>The note. <a class="footnote-backref" href="#fnref:1">↩</a></p></li></ol>'
    )

    assert convert(f"<body>{html}</body>").markdown == "See[1] it.\n\n1. The note."


@pytest.mark.parametrize(
    "bar",
    [
        '<div id="CybotCookiebotDialog"><p>We use cookies.</p></div>',
        '<div class="md-announce"><p>New release!</p></div>',
        '<div aria-label="breadcrumbs"><a href="/">Home</a></div>',
        '<div id="onetrust-consent-sdk"><p>We use cookies.</p></div>',
    ],
)
def test_banners_are_left_out(convert: Convert, bar: str) -> None:
    assert convert(f"<body>{bar}<p>Text.</p></body>").markdown == "Text."


def test_page_wide_nofollow_goes_to_every_link(convert: Convert) -> None:
    html = '<head><meta name="robots" content="noindex, NOFOLLOW"></head><p><a href="/a">a</a></p>'
    document = convert(html)

    assert document.links[0].rel == ("nofollow",)


@pytest.mark.parametrize(
    "link",
    [
        '<a href="print.html" title="Print this book"><i class="fa"></i></a>',
        '<a href="/print_page/" title="Print Site"><svg></svg></a>',
        '<a href="/w/index.php?title=A&amp;printable=yes">Printable version</a>',
        '<a href="/node/1/print">Printer-friendly version</a>',
    ],
)
def test_links_to_print_versions_are_not_to_be_followed(convert: Convert, link: str) -> None:
    assert convert(f"<p>Text.</p>{link}").links[0].rel == ("nofollow",)


@pytest.mark.parametrize("text", ["print", "Print a document", "print()", "Printing", "Blueprint"])
def test_links_to_pages_about_printing_are_followed(convert: Convert, text: str) -> None:
    assert convert(f"<p>Text <a href='print.html'>{text}</a></p>").links[0].rel == ()


@pytest.mark.parametrize("text", ["Printable View", "Print book"])
def test_links_named_as_print_versions_lead_on_where_their_address_is_none(
    convert: Convert, text: str
) -> None:
    assert convert(f"<p>Text <a href='/docs/x'>{text}</a></p>").links[0].rel == ()


def test_xhtml_page_with_declaration_is_read(convert: Convert) -> None:
    html = (
        '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0'
        ' Strict//EN" "x"><html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en"><head>'
        "<title>T</title></head><body><p>One<br/>two.</p></body></html>"
    )
    document = convert(html)

    assert (document.markdown, document.language) == ("One  \ntwo.", "en")


def test_heading_that_links_back_to_the_contents_stays(convert: Convert) -> None:
    html = '<h2><a class="toc-backref" href="#i" role="doc-backlink">Head</a></h2><p>Text.</p>'

    assert convert(f"<body>{html}</body>").markdown == "## Head\n\nText."


INTERLEAVED = {
    "doxygen": '<div class="fragment"><div class="line"><a id="l1"></a><span class="lineno">    1</span>'
    '&#160;int first(<span class="keywordtype">void</span>);</div><div class="line"><span class="lineno">'
    '<a class="line" href="#l2">    2</a></span>&#160;int second();</div><div class="line">'
    '<span class="lineno">    3</span>&#160;</div><div class="line"><span class="lineno">    4</span>'
    "&#160;int third();</div></div>",
    "pygments inline": '<div class="highlight"><pre><span></span><span class="linenos">1</span>'
    'int first(void);\n<span class="linenos">2</span>int second();\n<span class="linenos">3</span>\n'
    '<span class="linenos">4</span>int third();\n</pre></div>',
    "old pygments": '<pre><span class="lineno">1 </span>int first(void);\n<span class="lineno">2 </span>'
    'int second();\n<span class="lineno">3 </span>\n<span class="lineno">4 </span>int third();</pre>',
    "highlight.js": '<pre><code class="hljs"><table class="hljs-ln"><tr><td class="hljs-ln-numbers">1</td>'
    '<td class="hljs-ln-code">int first(void);</td></tr><tr><td class="hljs-ln-numbers">2</td><td>'
    'int second();</td></tr><tr><td class="hljs-ln-numbers">3</td><td>\n</td></tr><tr><td class='
    '"hljs-ln-numbers">4</td><td>int third();</td></tr></table></code></pre>',
    "chroma": '<pre class="chroma"><code><span class="line"><span class="ln">1</span><span>int first(void);'
    '\n</span></span><span class="line"><span class="ln">2</span><span>int second();\n</span></span>'
    '<span class="line"><span class="ln">3</span><span>\n</span></span><span class="line">'
    '<span class="ln">4</span><span>int third();</span></span></code></pre>',
    "react": '<pre><code><span><span class="react-syntax-highlighter-line-number">1\n</span>int first(void);'
    '\n</span><span><span class="react-syntax-highlighter-line-number">2</span>int second();\n</span><span>'
    '<span class="react-syntax-highlighter-line-number">3</span>\n</span><span><span class='
    '"react-syntax-highlighter-line-number">4</span>int third();</span></code></pre>',
}
COLUMNS = {
    "sphinx": '<table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre>1\n2\n3\n4'
    '</pre></div></td><td class="code"><div class="highlight"><pre>int first(void);\nint second();\n\n'
    "int third();\n</pre></div></td></tr></table>",
    "rouge": '<div class="highlight"><pre class="highlight"><code><table class="rouge-table"><tbody><tr>'
    '<td class="rouge-gutter gl"><pre class="lineno">1\n2\n3\n4\n</pre></td><td class="rouge-code"><pre>'
    "int first(void);\nint second();\n\nint third();\n</pre></td></tr></tbody></table></code></pre></div>",
    "hexo": '<figure class="highlight"><table><tr><td class="gutter"><pre>1<br>2<br>3<br>4<br></pre></td>'
    '<td class="code"><pre>int first(void);<br>int second();<br><br>int third();<br></pre></td></tr>'
    "</table></figure>",
    "gtk-doc": '<table class="listing_frame"><tr><td class="listing_lines" align="right"><pre>1\n2\n3\n4'
    '</pre></td><td class="listing_code"><pre class="programlisting">int first(void);\nint second();\n\n'
    "int third();</pre></td></tr></table>",
    "no numbers": "<pre>int first(void);\nint second();\n\nint third();</pre>",
}


def _code(convert: Convert, html: str) -> tuple[str, list[str]]:
    text = convert(f"<h1>Header file</h1><p>What it declares is below.</p>{html}").markdown
    units = (each for each in cut_units(text).units if each.kind == "code")
    return text, [text[each.start : each.end] for each in units]


@pytest.mark.parametrize("html", INTERLEAVED.values(), ids=INTERLEAVED)
def test_quotation_stays_between_two_line_numbers(convert: Convert, html: str) -> None:
    _, units = _code(convert, html)
    assert units == ["int first(void);", "int second();", "int third();"]


@pytest.mark.parametrize("html", INTERLEAVED.values(), ids=INTERLEAVED)
def test_line_numbers_are_not_in_the_text_of_a_listing(convert: Convert, html: str) -> None:
    text, _ = _code(convert, html)
    body = text.partition("```")[2].partition("\n")[2].rpartition("```")[0]
    lines = [line.strip() for line in body.rstrip().split("\n")]
    assert lines == ["int first(void);", "int second();", "", "int third();"]


@pytest.mark.parametrize("html", COLUMNS.values(), ids=COLUMNS)
def test_listing_without_numbers_between_its_lines_is_quoted_whole(
    convert: Convert, html: str
) -> None:
    _, units = _code(convert, html)
    assert "int first(void);\nint second();\n\nint third();" in units


@pytest.mark.parametrize("html", INTERLEAVED.values(), ids=INTERLEAVED)
def test_part_of_a_listing_that_begins_inside_it_is_quoted_by_lines(
    convert: Convert, html: str
) -> None:
    text, _ = _code(convert, html)
    part = text[text.index("int second") :]
    spans = [part[each.start : each.end] for each in cut_units(part).units]
    assert spans
    assert all("\n" not in span for span in spans)


@pytest.mark.parametrize(
    "html",
    [
        "<p>See <a href=/a>this</a>.</p><xmp>a </a><b>b</b> &amp; c</xmp>",
        "<p>See <a href=/a>this</a>.</p><plaintext>a </a><b>b</b> &amp; c",
        "<p>See <a href=/a>this</a>.</p><noframes>no</noframes><xmp>a </a><b>b</b> &amp; c</xmp>",
    ],
)
def test_markup_that_a_page_shows_as_text_is_not_read_as_markup(
    convert: Convert, html: str
) -> None:
    document = convert(html)
    assert "a </a><b>b</b> &amp; c" in document.markdown
    assert [link.anchor_text for link in document.links] == ["this"]


@pytest.mark.parametrize("tag", ["xmp", "plaintext"])
def test_link_around_text_that_is_no_markup_ends_where_it_ends(convert: Convert, tag: str) -> None:
    document = convert(f"<p>See <a href=/a>this</p><{tag}></a>, and <i>that</i>.")
    spans = [
        document.markdown[link.char_start : link.char_end]
        for link in document.links
        if link.char_start is not None
    ]
    assert all("this" in span or "</a>, and <i>that</i>." in span for span in spans)
    assert spans


@pytest.mark.parametrize("tag", ["noframes", "noembed"])
def test_what_only_browsers_without_frames_show_is_left_out(convert: Convert, tag: str) -> None:
    assert convert(f"<p>One.</p><{tag}><p>Two.</p></{tag}>").markdown == "One."


def test_title_that_stands_in_the_body_is_named_but_not_stored_as_text(convert: Convert) -> None:
    document = convert("<body><div>One.</div><title>A | Site</title><h1>A</h1><p>Two.</p></body>")
    assert document.markdown == "# A\n\nOne.\n\nTwo."
    assert document.title == "A"


def test_link_that_holds_nothing_leaves_no_mark(convert: Convert) -> None:
    html = "<p>One.</p><div><a href='#'></a></div><p>Two <a href='#'></a>and three.</p>"
    assert convert(html).markdown == "One.\n\nTwo and three."
