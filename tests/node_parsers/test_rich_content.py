from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.schema import BaseNode, Document, MetadataMode
from llama_index.node_parser.webrag import FLAG_KEYS, ParentChildNodeParser

MARKDOWN = """# Guide

Opening words of the guide, which are more than a few, so that they stand for themselves.

## Options

Every option is listed here.

| name | meaning |
|---|---|
| alpha | first letter |
| beta | second letter |

## Example

Run the following program.

```python
def answer():
    return 42
```

## Closing

Nothing special in the last words.
"""
HTML = """<main><h1>Guide</h1><p>Opening words of the <b>guide</b>, which are more than
a few, so that they stand for themselves.</p>
<section id="options"><h2>Options</h2><p>Every option is listed here.</p>
<table class="t"><tr><th>name</th><th>meaning</th></tr><tr><td>alpha</td><td>first letter</td></tr>
<tr><td>beta</td><td>second letter</td></tr></table></section>
<section><h2>Example</h2><p>Run the following program.</p>
<pre><code><span>def</span> answer():
    return 42
</code></pre></section>
<section><h2>Closing</h2><p>Nothing special in the last words.</p></section></main>"""


def parse(text: str, *, parent_tokens: int = 1000, **metadata: object) -> list[BaseNode]:
    parser = ParentChildNodeParser(
        parent_tokens=parent_tokens, child_tokens=min(256, parent_tokens)
    )
    return parser.get_nodes_from_documents([Document(text=text, metadata=metadata)])


def parents(nodes: list[BaseNode]) -> dict[str | None, dict[str, Any]]:
    return {
        node.metadata["heading"]: node.metadata
        for node in nodes
        if node.metadata["chunk_level"] == "parent"
    }


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        pytest.param("| a |\n|---|\n| b |", "has_table", id="table"),
        pytest.param("```\ncode\n```", "has_code", id="fence"),
        pytest.param("text\n\n    indented", "has_code", id="indented code"),
        pytest.param("the sum $a + b$ is", "has_math", id="inline math"),
        pytest.param("$$\nE = mc^2\n$$", "has_math", id="display math"),
        pytest.param(r"the sum \\(a + b\\) is", "has_math", id="TeX parentheses"),
        pytest.param("Term\n: Definition", "has_definition_list", id="definition list"),
        pytest.param("> [!WARNING]\n> careful", "has_admonition", id="alert"),
        pytest.param("> **Note:** careful", "has_admonition", id="bold note"),
        pytest.param("1. first\n2. second", "has_steps", id="steps"),
    ],
)
def test_markdown_sets_its_flag_and_no_other(text: str, flag: str) -> None:
    metadata = parse(text)[0].metadata

    assert {key for key in FLAG_KEYS if metadata[key]} == {flag}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("set `x` and pay $5 or $10", id="prices and inline code"),
        pytest.param("add $HOME/bin:$PATH to it", id="shell variables"),
        pytest.param("1. only one", id="one item"),
        pytest.param("> just a quote", id="quote"),
        pytest.param("a | b", id="pipe"),
    ],
)
def test_ordinary_text_has_no_flag(text: str) -> None:
    metadata = parse(text)[0].metadata

    assert not [key for key in FLAG_KEYS if metadata[key]]


def test_flag_is_set_on_the_children_that_hold_the_content_only() -> None:
    text = "word " * 220 + "\n\n```\ncode\n```\n\n" + "other " * 240

    children = [n for n in parse(text) if n.metadata["chunk_level"] == "child"]

    assert all(child.metadata["has_code"] == ("```" in child.get_content()) for child in children)


def test_lossy_parents_carry_their_own_part_of_the_html() -> None:
    found = parents(parse(MARKDOWN, parent_tokens=60, html=HTML))

    assert {heading for heading, data in found.items() if "html" in data} == {"Options", "Example"}
    assert "<td>first letter</td>" in found["Options"]["html"]
    assert "<pre>" not in found["Options"]["html"]
    assert "<pre><code><span>def</span> answer():" in found["Example"]["html"]


def test_html_never_reaches_embedding_or_reading_text() -> None:
    nodes = parse(MARKDOWN, html=HTML)

    modes = (MetadataMode.NONE, MetadataMode.EMBED, MetadataMode.LLM)
    assert not any("<td>" in node.get_content(mode) for node in nodes for mode in modes)


def test_part_of_a_split_table_keeps_its_wrapping_element() -> None:
    rows = [(f"name {number}", f"a meaning of some words, number {number}") for number in range(60)]
    text = "| a | b |\n|---|---|\n" + "\n".join(f"| {a} | {b} |" for a, b in rows)
    html = "".join(f"<tr><td>{a}</td><td>{b}</td></tr>" for a, b in rows)
    html = f'<table class="wide"><tr><th>a</th><th>b</th></tr>{html}</table>'

    nodes = [n for n in parse(text, parent_tokens=300, html=html) if "html" in n.metadata]

    assert len(nodes) > 2
    assert all(n.metadata["html"].startswith('<table class="wide">') for n in nodes)
    assert all(
        (f"<td>{a}</td>" in n.metadata["html"]) == (f"| {a} |" in n.get_content())
        for n in nodes
        for a, _ in rows
    )


def test_part_of_split_code_gets_its_own_lines() -> None:
    lines = [f"value_{number} = compute({number} < 3)" for number in range(80)]
    text = "```\n" + "\n".join(lines) + "\n```"
    html = "<pre>" + "\n".join(lines).replace("<", "&lt;") + "</pre>"

    nodes = [n for n in parse(text, parent_tokens=300, html=html) if "html" in n.metadata]

    assert len(nodes) > 2
    assert all(
        (f"value_{number} =" in n.metadata["html"]) == (f"value_{number} =" in n.get_content())
        for n in nodes
        for number in range(80)
    )


@pytest.mark.parametrize(
    "html",
    [
        pytest.param("<h1>Another page</h1><table><tr><td>x</td></tr></table>", id="other page"),
        pytest.param("", id="empty"),
        pytest.param("<", id="broken"),
        pytest.param("<h2>Options</h2><table><tr><td>gamma</td></tr></table>", id="other table"),
        pytest.param("<div>" * 3000 + "Every option is listed here.", id="very deep"),
    ],
)
def test_no_html_is_attached_when_it_does_not_agree(html: str) -> None:
    found = parents(parse(MARKDOWN, parent_tokens=60, html=html))

    assert not [heading for heading, data in found.items() if "html" in data]


def test_repeated_sections_get_their_own_html() -> None:
    text = "\n\n".join(
        f"## Part {name}\n\nSame words.\n\n| k |\n|---|\n| {name} |" for name in "abcd"
    )
    html = "".join(
        f"<h2>Part {n}</h2><p>Same words.</p>"
        f"<table><tr><th>k</th></tr><tr><td>{n}</td></tr></table>"
        for n in "abcd"
    )

    found = parents(parse(text, parent_tokens=40, html=html))

    assert len(found) == 4
    assert all(f"<td>{str(heading)[-1]}</td>" in data["html"] for heading, data in found.items())


def test_flags_that_only_html_shows_are_set() -> None:
    text = "## Terms\n\nalpha\n\nThe first letter of it.\n\n## Box\n\nMind the gap please.\n"
    html = (
        "<h2>Terms</h2><dl><dt>alpha</dt><dd>The first letter of it.</dd></dl>"
        "<h2>Box</h2><div class='admonition note'><p>Mind the gap please.</p></div>"
    )

    found = parents(parse(text, html=html))

    flags = ("has_definition_list", "has_admonition")
    assert [found["Terms"][flag] for flag in flags] == [True, False]
    assert [found["Box"][flag] for flag in flags] == [False, True]


def test_image_of_the_markdown_is_recorded_with_its_place() -> None:
    text = 'See this:\n\n![A chart of sales](http://x/a.png "Sales")'

    assert parse(text)[0].metadata["images"] == [
        {"url": "http://x/a.png", "alt": "A chart of sales", "caption": "Sales", "position": 11}
    ]


def test_image_of_the_html_is_recorded_where_it_stands() -> None:
    html = HTML.replace(
        "<h2>Example</h2>",
        "<h2>Example</h2><figure><img src='pic.png' alt='Flow diagram'>"
        "<figcaption>How it flows</figcaption></figure>",
    )

    found = parents(parse(MARKDOWN, parent_tokens=60, html=html, source_url="http://x/a/page"))

    assert found["Options"]["images"] == []
    assert found["Example"]["images"] == [
        {
            "url": "http://x/a/pic.png",
            "alt": "Flow diagram",
            "caption": "How it flows",
            "position": MARKDOWN.index("## Example") + len("## Example"),
        }
    ]


def test_descriptions_of_unseen_images_are_embedded() -> None:
    html = HTML.replace("<h2>Example</h2>", "<h2>Example</h2><img src='p.png' alt='Flow diagram'>")

    nodes = parse(MARKDOWN, parent_tokens=60, html=html)

    embedded = [n for n in nodes if "Flow diagram" in n.get_content(MetadataMode.EMBED)]
    assert {node.metadata["heading"] for node in embedded} == {"Example"}


@pytest.mark.parametrize("alt", ["", "pic.png", "ab"])
def test_meaningless_descriptions_are_not_embedded(alt: str) -> None:
    html = f"<p>Some text of the page.</p><img src='pic.png' alt='{alt}'>"

    nodes = parse("Some text of the page.", html=html)

    assert nodes[0].get_content(MetadataMode.EMBED) == "Some text of the page."


def test_inlined_image_data_is_left_out() -> None:
    html = "<p>Some text of the page.</p><img src='data:image/png;base64,AAAA' alt='A long text'>"

    assert parse("Some text of the page.", html=html)[0].metadata["images"] == []


TAGS = st.sampled_from(["p", "div", "table", "tr", "td", "ul", "ol", "li", "pre", "b", "dl", "dt"])
FRAGMENT = st.one_of(
    TAGS.map("<{}>".format), TAGS.map("</{}>".format), st.sampled_from(["alpha ", "beta ", "<img>"])
)


@settings(max_examples=100, deadline=None)
@given(html=st.one_of(st.lists(FRAGMENT, max_size=40).map("".join), st.text(max_size=80)))
def test_any_html_leaves_texts_and_offsets_as_they_are(html: str) -> None:
    text = "# alpha\n\nalpha beta\n\n| alpha |\n|---|\n| beta |\n\n```\nalpha\n```"

    plain, rich = parse(text, parent_tokens=20), parse(text, parent_tokens=20, html=html)

    assert [node.node_id.count("-") for node in plain] == [node.node_id.count("-") for node in rich]
    assert [node.get_content() for node in plain] == [node.get_content() for node in rich]
