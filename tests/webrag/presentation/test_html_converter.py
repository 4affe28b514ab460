import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.corpus.models import ChunkImage
from webrag.presentation.html.converter import html_to_text

BASE = "https://docs.example.org/guide/"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        pytest.param("<h2>Set <em>up</em></h2><p>Now.</p>", "## Set up\n\nNow.", id="heading"),
        pytest.param("<p>a\n  b<br>c</p>", "a b\nc", id="whitespace and line break"),
        pytest.param("<p>Run <code>kiln -v</code></p>", "Run `kiln -v`", id="inline code"),
        pytest.param("<p>x<sup>2</sup> y<sub>1</sub></p>", "x^2 y_1", id="scripts"),
        pytest.param(
            '<pre><code class="language-python">def f():\n    pass\n</code></pre>',
            "```python\ndef f():\n    pass\n```",
            id="code language on code",
        ),
        pytest.param(
            '<div class="highlight-bash notranslate"><div class="highlight"><pre>'
            "<span>ls</span> -l</pre></div></div>",
            "```bash\nls -l\n```",
            id="code language on wrapper",
        ),
        pytest.param(
            '<div class="example-wrap"><pre class="rust"><code>let a;</code></pre></div>',
            "```rust\nlet a;\n```",
            id="code language as a bare name",
        ),
        pytest.param("<pre>```\nx\n```</pre>", "````\n```\nx\n```\n````", id="fence in code"),
        pytest.param(
            "<ul><li>One<ul><li>deep</li></ul></li><li>Two</li></ul>",
            "- One\n  - deep\n- Two",
            id="nested list",
        ),
        pytest.param("<ol start=3><li>c<li>d</ol>", "3. c\n4. d", id="numbered list"),
        pytest.param(
            "<ol><li><p>Do</p><pre>x</pre></li></ol>", "1. Do\n\n   ```\n   x\n   ```", id="step"
        ),
        pytest.param(
            "<dl><dt>A</dt><dt>B</dt><dd>both</dd><dt>C</dt><dd><p>c</p></dd></dl>",
            "**A / B**: both\n\n**C**: c",
            id="definitions",
        ),
        pytest.param(
            '<div class="admonition warning"><p class="admonition-title">Warning</p>'
            "<p>Hot.</p></div>",
            "⚠️ WARNING: Hot.",
            id="admonition",
        ),
        pytest.param(
            '<div class="markdown-alert markdown-alert-note"><p class="markdown-alert-title">'
            "Note</p><p>Cold.</p></div>",
            "ℹ️ NOTE: Cold.",
            id="alert",
        ),
        pytest.param('<aside class="tip"><p>Wait.</p></aside>', "ℹ️ TIP: Wait.", id="plain callout"),
        pytest.param(
            '<details class="tip"><summary>Faster</summary><p>Wait.</p></details>',
            "ℹ️ TIP: Faster\n\nWait.",
            id="folded callout",
        ),
        pytest.param(
            '<blockquote class="markdown-alert markdown-alert-tip"><p>Wait.</p></blockquote>',
            "ℹ️ TIP: Wait.",
            id="quoted callout",
        ),
        pytest.param(
            '<p>So<sup><a href="#n1">1</a></sup>.</p><ol><li id="n1"><p>Note. '
            '<a href="#r1" class="footnote-backref">↩</a></p></li></ol>',
            "So^1.\n\n1. Note.",
            id="footnote",
        ),
        pytest.param(
            '<aside role="doc-footnote"><span>[<a role="doc-backlink" href="#r">2</a>]</span>'
            "<p>Note.</p></aside>",
            "[2] Note.",
            id="labelled footnote",
        ),
        pytest.param(
            '<p>So <math><mi>a</mi></math>:</p><math display="block" alttext="b"></math>c',
            "So $a$:\n\n$$b$$\n\nc",
            id="display formula",
        ),
        pytest.param(
            '<p><math alttext="q^2"></math><span aria-hidden="true">q2</span></p>',
            "$q^2$",
            id="formula drawn twice",
        ),
        pytest.param('<p>x <script type="math/tex">c^2</script></p>', "x $c^2$", id="TeX script"),
        pytest.param("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b", id="quotation"),
        pytest.param("<p hidden>x</p><p>y</p><script>z</script>", "y", id="hidden"),
        pytest.param('<p style="display: none">x</p><p>y</p>', "y", id="undisplayed"),
        pytest.param("<custom-tag>text</custom-tag>", "text", id="unknown element"),
        pytest.param("a<div>b</div>c", "a\n\nb\n\nc", id="loose text"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_html_becomes_readable_text(html: str, text: str) -> None:
    assert html_to_text(html, BASE).text == text


def test_images_are_collected_with_resolved_address_and_caption() -> None:
    html = (
        '<figure><img src="../kiln.png" alt="A kiln"><figcaption>Old kiln</figcaption></figure>'
        '<img src="data:image/png;base64,AAAA">'
    )

    converted = html_to_text(html, BASE)

    assert converted.text == "Old kiln"
    assert converted.images == (
        ChunkImage(url="https://docs.example.org/kiln.png", alt="A kiln", caption="Old kiln"),
    )


def test_bottomless_nesting_still_gives_the_text() -> None:
    assert html_to_text("<div>" * 5000 + "core" + "</div>" * 5000, BASE).text == "core"


TAG_NAMES = "p div ul ol li dl dt dd table tr td th pre code math mfrac mi h2 span br img"
TAGS = st.sampled_from(TAG_NAMES.split())
PIECES = st.one_of(TAGS.map("<{}>".format), TAGS.map("</{}>".format), st.text(max_size=8))


@given(html=st.lists(PIECES, max_size=60).map("".join))
def test_any_html_gives_text_without_outer_blanks(html: str) -> None:
    text = html_to_text(html, BASE).text

    assert text == text.strip()
