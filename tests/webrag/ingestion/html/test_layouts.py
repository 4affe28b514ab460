"""One page of each of ten documentation generators; what is around the text says NAV there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from webrag.ingestion.models import NormalizedDocument

Convert = Callable[..., NormalizedDocument]
PAGES = Path(__file__).parent / "data" / "generators"

KEPT = {
    "antora": [
        "# Tune the Pool\n",
        "## Size\n",
        "**Caution**  \nMore than 90 connections slow the server.",
        "```ini\nmax = 40 (1)\nmin = 2\n```",
        "**1**  \nConnections at most.",
        "idle  \nSeconds until a connection is closed.",
        "| Name | Most |\n| --- | --- |\n| `max` | 90 |",
        "### Waiting\n",
        "1. Stop the server.\n2. Edit the file.",
    ],
    "docsy": [
        "# Ingress rules\n",
        "## Order of rules\n\n**Note**\n\nRules are read from top to bottom.",
        "Wildcards are a preview.",
        "```yaml\nrules:\n- host: a.example\n```\n\n**Linux**\n\nRun `tarnet up`.",
        "backend  \nThe service that answers.",
        "| host | string |",
    ],
    "doxygen": [
        "# tundra::Codec Class Reference\n",
        "## Public Member Functions\n\n|  |  |\n| --- | --- |\n| int | pack (const char *",
        "## pack()\n\n`int tundra::Codec::pack ( const char * data, int level = 6 )`",
        "| level | How hard to try. |",
        "Warning  \nNot safe for threads.",
        '```\nCodec c;\nc.pack("x", 9);\n```',
    ],
    "gitbook": [
        "# Webhooks\n",
        "\n## Retries\n",
        "Answer within 8 seconds.",
        '```json\n{ "attempts": 5,\n  "wait": 30 }\n```',
        "- First after a minute.",
        "| Header | Meaning |\n| --- | --- |\n| X-Sign | The signature. |",
    ],
    "javadoc": [
        "# Class Vault\n",
        "public final class Vault extends java.lang.Object",
        "\n## Method Summary\n\n| Modifier and Type | Method | Description |\n| --- | --- | --- |\n"
        "| `byte[]` | `open(char pin)` | Gives the secret. |",
        "\n### open\n\npublic byte[] open(char pin)",
        "Parameters:  \n`pin` - the secret number",
    ],
    "just-the-docs": [
        "# Hooks\n",
        "## Before\n",
        "A hook that fails stops the task.",
        "```ruby\nbefore :build do\n  check\nend\n```",
        "| `before` | first |",
        "phase  \nA part of a task.",
    ],
    "man2html": [
        "## SYNOPSIS\n",
        "**-f** *file*  \nRead the list from *file*.",
        "**--quiet**  \nSay nothing.",
        "```\nflockd -f herd.conf \\\n    run\n```",
        "The exit status is 3 when a process is lost.",
    ],
    "readthedocs": [
        "# Signals\n\nSignals tell listeners.[1]",
        "pluvio.emit(name, *args)  \nCall every listener.",
        "Parameters:  \n**name** (*str*) – Which signal.",
        "New in version 1.2: Positional arguments.",
        "**See also**  \nListeners run in order.",
        '```python\n>>> emit("rain")\nTrue\n```',
        "| rain | once |",
        "[1]  \nAlso threads.",
    ],
    "rustdoc": [
        "# Struct Ring\n\n0.1\n\n```rust\npub struct Ring<T> {\n    pub capacity: usize,",
        "## Examples\n\n```rust\nlet mut r = Ring::new(4);\nr.push(1);\n```",
        "## Fields\n\n`capacity: usize`\n\nElements at most.",
        "### impl<T> Ring<T>",
        "#### pub fn push(&mut self, value: T) -> Option<T>\n\nAdds a value;",
    ],
    "vitepress": [
        "# Caching\n",
        "## Lifetime 2.1+\n",
        "```sh\nnpm add quillo\n```\n\n```sh\npnpm add quillo\n```",
        "```ts\nexport default {\n  ttl: 600,\n}\n```",
        "**WARNING**  \nA lifetime of 0 turns the cache off.",
        "**More about eviction**\n\nThe oldest page goes first.",
        "| `ttl` | 600 |",
    ],
}


@pytest.mark.parametrize("name", KEPT)
def test_page_of_a_generator_keeps_its_structure(convert: Convert, name: str) -> None:
    markdown = convert((PAGES / f"{name}.html").read_text()).markdown

    assert [kept for kept in KEPT[name] if kept not in markdown] == []


@pytest.mark.parametrize("name", KEPT)
def test_page_of_a_generator_loses_what_is_around_its_text(convert: Convert, name: str) -> None:
    document = convert((PAGES / f"{name}.html").read_text())

    assert "NAV" not in document.markdown
    assert "NAV" not in document.html


@pytest.mark.parametrize(
    ("name", "left_over"),
    [
        ("just-the-docs", "contents"),
        ("rustdoc", "·"),
        ("gitbook", "#  "),
        ("doxygen", "buffer. More"),
    ],
)
def test_page_of_a_generator_has_no_remains_of_its_controls(
    convert: Convert, name: str, left_over: str
) -> None:
    assert left_over not in convert((PAGES / f"{name}.html").read_text()).markdown


@pytest.mark.parametrize(
    ("html", "kept"),
    [
        ("<h2>Contents</h2><p>A box and a cable.</p>", "## Contents"),
        ("<details><summary>Contents</summary><p>A box.</p></details>", "**Contents**"),
        ("<details><summary>Licence</summary></details>", "**Licence**"),
        ("<h2><div>Retries</div><div>Beta</div></h2>", "## Retries Beta"),
    ],
)
def test_what_only_looks_like_a_control_stays(convert: Convert, html: str, kept: str) -> None:
    assert kept in convert(f"<main><h1>A</h1><p>Text of the page.</p>{html}</main>").markdown


def test_lines_of_code_that_scribble_sets_in_rows_keep_their_indentation(convert: Convert) -> None:
    lines = "<tr><td>(define (f x)</td></tr><tr><td>&nbsp;&nbsp;(g x))</td></tr>"
    inner = f'<table class="RktBlk">{lines}</table>'
    outer = f"<table><tr><td>{inner}</td></tr><tr><td>&gt; (f 1)</td></tr></table>"
    html = f'<p>Calls g:</p><blockquote class="SCodeFlow">{outer}</blockquote><p>And ends.</p>'

    assert "```\n(define (f x)\n  (g x))\n> (f 1)\n```" in convert(html).markdown


def test_list_that_only_names_things_stays_a_list(convert: Convert) -> None:
    items = "<ul><li><h3>One</h3></li><li>Two words of text</li></ul>"

    assert "- Two words of text" in convert(f"<main><h1>A</h1>{items}</main>").markdown


def test_links_in_rewritten_layouts_keep_their_place(convert: Convert) -> None:
    document = convert((PAGES / "javadoc.html").read_text())

    places = {
        document.markdown[link.char_start : link.char_end]
        for link in document.links
        if link.char_start is not None
    }
    assert "org.keep" in places


@pytest.mark.parametrize(
    "entry",
    [
        "<p><b>{}</b></p><p>{}</p>",
        "<p><strong>{}</strong><br>{}</p>",
        "<p><strong>{}<br>\n</strong>{}</p>",
    ],
)
def test_bold_questions_above_their_answers_are_headings(convert: Convert, entry: str) -> None:
    told = [("Is it hot?", "Very."), ("Is it red?", "Hardly."), ("Is it big?", "Not at all.")]
    entries = "".join(entry.format(*each) for each in told) + "<p><b>Its use</b><br>Pots.</p>"

    assert convert(f"<h1>Kiln</h1>{entries}").markdown == (
        "# Kiln\n\n## Is it hot?\n\nVery.\n\n## Is it red?\n\nHardly."
        "\n\n## Is it big?\n\nNot at all.\n\n**Its use**  \nPots."
    )


def test_bold_question_of_a_text_stays_in_it(convert: Convert) -> None:
    text = "<h1>Kiln</h1><p><b>Is it hot?</b><br>Very.</p><p>It glows.</p>"

    assert "**Is it hot?**" in convert(text).markdown


YARD = (
    "<main><h1>Mock</h1><ul class=return><li><span class=type>(<tt>Mock</tt>)</span> &mdash;"
    " <div class=inline><p>the same mock.</p></div></li></ul><table class=source_code><tr><td>"
    "<pre class=lines>\n\n23\n24</pre></td><td><pre class=code>def once\n  self</pre></td></tr>"
    "</table></main>"
)


def test_yard_says_what_is_returned_in_one_line_and_shows_code_without_numbers(
    convert: Convert,
) -> None:
    markdown = convert(YARD).markdown
    assert markdown == "# Mock\n\n- (`Mock`) — the same mock.\n\n```\ndef once\n  self\n```"


def test_parts_of_a_name_with_a_drawn_sign_between_them_are_not_glued(convert: Convert) -> None:
    name = "<h1><a href=p.html>Pixbuf</a><span class=sep></span>save</h1>"
    assert convert(f"<main>{name}<p>Saves it.</p></main>").markdown.startswith("# Pixbuf save\n")


def test_sign_between_the_parts_of_a_name_stays(convert: Convert) -> None:
    name = "<h1>std<span class=sep>::</span>vector</h1>"

    assert convert(f"<main>{name}<p>Grows.</p></main>").markdown.startswith("# std::vector\n")


def test_boxes_called_inline_stay_apart_outside_of_lists(convert: Convert) -> None:
    boxes = "<div class=inline>Three</div><div class=inline>Four</div>"

    assert "ThreeFour" not in convert(f"<main><h1>Kiln</h1>{boxes}</main>").markdown


def test_numbered_titles_that_links_lead_to_are_headings(convert: Convert) -> None:
    title = "<p class=bold id=n><a name=n></a>{}</p><p>Ask first.</p>"
    titles = [title.format(text) for text in ("4.5 Ovens", "4.5.1 Which is hot?", "4.5.2 Wait.")]

    markdown = convert(f"<main><h1>Kiln</h1>{''.join(titles)}</main>").markdown

    assert [line for line in markdown.splitlines() if line.startswith("#")] == [
        "# Kiln",
        "## 4.5 Ovens",
        "### 4.5.1 Which is hot?",
    ]


@pytest.mark.parametrize("amount", ["2.5 cups of flour", "3.12 is the newest"])
def test_amount_that_links_can_lead_to_is_no_heading(convert: Convert, amount: str) -> None:
    markdown = convert(f"<main><h1>Kiln</h1><p id=n>{amount}</p><p>Bake it.</main>").markdown

    assert markdown.splitlines()[2] == amount


def test_number_of_a_paragraph_in_the_margin_is_left_out(convert: Convert) -> None:
    number = "<label class=ocn><a href=#12>12</a></label>"

    assert "12" not in convert(f"<main><h1>Kiln</h1>{number}<p id=12>Bake it.</main>").markdown


@pytest.mark.parametrize("mark", ["i", "b", "tt", "em"])
def test_emphasis_around_a_block_of_code_leaves_it_a_block(convert: Convert, mark: str) -> None:
    code = f"<{mark}><font><pre># comment\nkiln bread</pre></font></{mark}>"

    assert "\n```\n# comment\nkiln bread\n```" in convert(f"<main><h1>Kiln</h1>{code}").markdown
