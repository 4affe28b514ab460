"""Each kind of file, from its source to the document that is stored."""

import json
import re
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from webrag.errors import UnusablePageError, how_to_install
from webrag.ingestion.extract import extract
from webrag.ingestion.formats.kinds import kind_of_name
from webrag.ingestion.models import FetchedPage, NormalizedDocument


def stored(name: str, text: str = "", *, kind: Any, body: bytes = b"") -> NormalizedDocument:
    url = f"file:///docs/{name}"
    page = FetchedPage(
        requested_url=url,
        url=url,
        status=200,
        kind=kind,
        text=text,
        body=body,
        fetched_at=datetime.now(UTC),
        source="files",
    )
    return extract(page)


def line_of(document: NormalizedDocument, words: str) -> int:
    """Where a citation of these words leads."""
    offset = document.markdown.index(words)
    anchor = [each for each in document.anchors if each.char_start <= offset][-1]
    return int(anchor.fragment[1:]) + document.markdown.count("\n", anchor.char_start, offset)


def test_front_matter_describes_the_page_and_is_no_text_of_it() -> None:
    text = "---\ntitle: Limits\ndate: 2024-05-06\ndescription: What is limited\n---\n\nText here.\n"

    document = stored("a.md", text, kind="markdown")

    assert (document.title, document.description) == ("Limits", "What is limited")
    assert document.published_at == datetime(2024, 5, 6, tzinfo=UTC)
    assert document.markdown == "Text here."


def test_front_matter_may_be_toml() -> None:
    document = stored("a.md", '+++\ntitle = "Limits"\n+++\n\nText here.\n', kind="markdown")

    assert (document.title, document.markdown) == ("Limits", "Text here.")


def test_wrapped_paragraphs_lead_to_the_line_they_were_wrapped_in() -> None:
    text = "# Head\n\n[First](x.md) line of words\nand second line of words.\n\n- An item\n"

    document = stored("a.md", text, kind="markdown")

    assert [line_of(document, words) for words in ("First", "second", "item")] == [3, 4, 6]


def test_relative_links_lead_to_files_and_absolute_ones_to_the_web() -> None:
    text = "See [one](../b.md#part), [two](https://example.com/) and [three](file:///etc/hosts)."

    links = [link.url for link in stored("sub/a.md", text, kind="markdown").links]

    assert links == ["file:///docs/b.md", "https://example.com/", "file:///etc/hosts"]


def test_a_page_of_the_web_links_to_no_file() -> None:
    url = "https://example.com/"
    page = FetchedPage(
        requested_url=url,
        url=url,
        status=200,
        kind="html",
        text="<base href='file:///etc/'><p>Words enough <a href='file:///etc/hosts'>to read</a> "
        "<a href='hosts'>here</a></p>",
        fetched_at=datetime.now(UTC),
        source="builtin",
    )

    assert {link.url for link in extract(page).links} <= {"https://example.com/hosts"}


def test_a_file_cannot_speak_for_another() -> None:
    html = "<link rel=canonical href='file:///docs/other.html'><p>Some words to be read.</p>"

    assert stored("a.html", html, kind="html").url == "file:///docs/a.html"


def test_mdx_loses_its_program_and_keeps_its_words() -> None:
    text = (
        "import Tabs from '@theme/Tabs';\nexport const x = {\n  y: 1,\n};\n\n# Head\n\n"
        '<Tabs>\n<TabItem value="a" label="Pip">\n\nInstall it.\n\n'
        '```js\nimport z from "z"\n```\n\n'
        "</TabItem>\n</Tabs>\n{/* nothing */}\n"
    )

    markdown = stored("a.mdx", text, kind="markdown").markdown

    assert markdown == '# Head\n\n**Pip**\n\nInstall it.\n\n```js\nimport z from "z"\n```'


@pytest.mark.parametrize(
    ("source", "markdown"),
    [
        (
            '!!! warning "Mind this"\n\n    Text of it.\n\n    ```sh\n    run\n    ```\n\nAfter.\n',
            "**Mind this**\n\nText of it.\n\n```sh\nrun\n```\n\nAfter.",
        ),
        (
            '=== "Linux"\n\n    ??? tip\n        Inner.\n\n=== "macOS"\n\n    Other.\n',
            "**Linux**\n\n**Tip**\n\nInner.\n\n**macOS**\n\nOther.",
        ),
        (":::tip[Own words]\nText of it.\n:::\nAfter.\n", "**Own words**\n\nText of it.\n\nAfter."),
        ("::: warning\nText of it.\n:::\n", "**Warning**\n\nText of it."),
        ("::: {.callout-note}\nText of it.\n:::\n", "**Note**\n\nText of it."),
        ("```{note}\n:class: x\nText of it.\n```\n", "**Note**\n\nText of it."),
        ("```{code-block} python\nrun()\n```\n", "```python\nrun()\n```"),
        (
            "```sh\n!!! note\n    As is\n:::tip\n```\n",
            "```sh\n!!! note\n    As is\n:::tip\n```",
        ),
    ],
    ids=["mkdocs", "tabs", "docusaurus", "vitepress", "quarto", "myst", "myst code", "code"],
)
def test_blocks_of_site_generators_are_read_as_what_they_hold(source: str, markdown: str) -> None:
    assert (
        stored("a.md", f"# Head\n\n{source}", kind="markdown").markdown == f"# Head\n\n{markdown}"
    )


def test_restructuredtext_is_read_with_what_only_sphinx_knows() -> None:
    text = (
        "Head\n====\n\nSee :func:`~pkg.run` and :doc:`the guide <guide>`.\n\n"
        ".. versionadded:: 3.1\n   Then it came.\n\n.. code-block:: python\n\n   run()\n\n"
        ".. include:: /etc/hostname\n\n.. raw:: html\n\n   <b>raw</b>\n"
    )

    document = stored("a.rst", text, kind="rst")

    assert document.title == "Head"
    assert "See `pkg.run` and the guide." in document.markdown
    assert "Then it came." in document.markdown
    assert "```python\nrun()\n```" in document.markdown
    assert "raw" not in document.markdown
    assert line_of(document, "Then it came") == 7


def test_restructuredtext_says_what_a_builder_would_say() -> None:
    text = (
        "The |prog|\n==========\n\nRun |prog|.\n\n.. deprecated:: 2.0\n   Use another.\n\n"
        ".. py:function:: run(a)\n   :module: pkg\n\n   :param a: First.\n"
    )

    document = stored("a.rst", text, kind="rst")

    assert document.title == "The prog"
    assert document.markdown == (
        "# The prog\n\nRun prog.\n\n**Deprecated since 2.0**\n\nUse another.\n\n**run(a)**\n\n"
        "param a:  \nFirst."
    )


def test_restructuredtext_opens_no_file(tmp_path: Any) -> None:
    (tmp_path / "secret.txt").write_text("hidden words")
    secret = tmp_path / "secret.txt"
    text = f"Head\n====\n\n.. include:: {secret}\n\n.. csv-table::\n   :file: {secret}\n"

    assert "hidden" not in stored("a.rst", text, kind="rst").markdown


def test_asciidoc_is_read_line_by_line() -> None:
    text = (
        "= Head\n:version: 2.1\n:revdate: 2024-05-06\n\nRelease {version} of *it*, see "
        "https://example.com[here].\n\n== Part\n\n[source,ruby]\n----\nputs 1 # <1>\n----\n\n"
        "NOTE: Mind that.\n\n|===\n|a |b\n\n|1 |2\n|===\n\ninclude::secret.txt[]\n"
    )

    document = stored("a.adoc", text, kind="asciidoc")

    assert document.title == "Head"
    assert document.published_at == datetime(2024, 5, 6, tzinfo=UTC)
    assert "Release 2.1 of **it**, see here." in document.markdown
    assert "```ruby\nputs 1\n```" in document.markdown
    assert "| 1 | 2 |" in document.markdown
    assert "secret" not in document.markdown
    assert line_of(document, "Mind that") == 14


def test_asciidoc_has_no_tags_that_could_be_lost() -> None:
    text = "= Head\n\nGive a <pack>, a `<name>` or a List<String>:\n\n----\nx <y> z\n----\n"

    markdown = stored("a.adoc", text, kind="asciidoc").markdown

    assert "Give a <pack>, a `<name>` or a List<String>:\n\n```\nx <y> z\n```" in markdown


def test_asciidoc_of_manual_pages_has_underlined_titles_verses_and_indented_text() -> None:
    text = (
        "prune(1)\n========\n\nSYNOPSIS\n--------\n[verse]\n'prune' [<pack>]\n'prune' -n\n\n"
        "OPTIONS\n-------\n\n-n::\n\tPrune nothing, see linkgit:prune[5],\n\tbut say so.\n+\n"
        "--------\nA line of output\n--------\n\nAs is:\n\n    $ prune -n\n"
    )

    document = stored("a.adoc", text, kind="asciidoc")

    assert document.markdown == (
        "# prune(1)\n\n## SYNOPSIS\n\n'prune' [<pack>]  \n'prune' -n\n\n## OPTIONS\n\n**-n**\n\n"
        "Prune nothing, see prune(5), but say so.\n\n```\nA line of output\n```\n\nAs is:\n\n"
        "```\n$ prune -n\n```"
    )
    assert document.title == "prune(1)"
    assert [line_of(document, each) for each in ("'prune' -n", "but say", "$ prune")] == [8, 15, 23]


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("a.adoc", "asciidoc", "= Head\n\n----\n```\ninner\n```\n----\n\nAfter it.\n"),
        ("a.py", "code", 'def head():\n    """\n    ```\n    inner\n    ```\n    """\n    pass\n'),
        (
            "a.ipynb",
            "notebook",
            json.dumps({"cells": [{"cell_type": "code", "source": "# ```\n# inner\n# ```"}]}),
        ),
    ],
)
def test_fence_in_code_does_not_end_it(name: str, kind: str, text: str) -> None:
    markdown = stored(name, text, kind=kind).markdown

    fence, inner, end = re.findall(r"^(````+)\w*$|(inner)|^(````+)$", markdown, re.MULTILINE)
    assert (fence[0], inner[1], end[0]) == ("````", "inner", "````")


def test_notebook_gives_prose_code_and_what_it_printed() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Head\n", "Prose."]},
        {
            "cell_type": "code",
            "source": "print(1)",
            "outputs": [
                {"output_type": "stream", "text": ["1\n"]},
                {"output_type": "display_data", "data": {"image/png": "iVBOR"}},
                {"output_type": "stream", "text": "x" * 9_000},
            ],
        },
    ]

    document = stored("a.ipynb", json.dumps({"cells": cells}), kind="notebook")

    assert document.title == "Head"
    assert "```python\nprint(1)\n```" in document.markdown
    assert "```\n1\n" in document.markdown
    assert "iVBOR" not in document.markdown
    assert 2_000 < len(document.markdown) < 2_300


def test_notebook_of_code_alone_has_no_title() -> None:
    cells = [{"cell_type": "code", "source": "print(1)"}]

    assert stored("a.ipynb", json.dumps({"cells": cells}), kind="notebook").title is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tools.rst.txt", "rst"),
        ("Tools.MD.TXT", "markdown"),
        ("rst.txt", "text"),
        ("a.txt", "text"),
    ],
)
def test_sources_that_a_site_publishes_as_text_are_read_as_what_they_are(
    name: str, kind: str
) -> None:
    assert kind_of_name(name) == kind


def test_title_of_plain_text_may_stand_between_rows_of_signs() -> None:
    assert stored("a.txt", "~~~~~~\nKettle\n~~~~~~\n\nIt boils.", kind="text").title == "Kettle"


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "7", "null", "{", '{"cells": 1}', '{"cells": null}', "[" * 100_000),
        '{"worksheets": [{"cells": []}]}',
        '{"cells": [{"cell_type": "code", "execution_count": 1' + "0" * 5_000 + "}]}",
    ],
)
def test_broken_notebook_is_named_damaged(text: str) -> None:
    with pytest.raises(UnusablePageError) as refused:
        stored("a.ipynb", text, kind="notebook")

    assert refused.value.kind == "damaged"


@pytest.mark.parametrize(
    "odd",
    [
        *(None, 7, "x", [], {}, {"cell_type": ["code"]}, {"cell_type": "code", "outputs": 7}),
        {"cell_type": "code", "source": [1, None], "outputs": [None, 7, {"data": []}]},
        {"cell_type": "code", "outputs": [{"output_type": "error", "ename": 7, "evalue": None}]},
    ],
)
def test_an_odd_cell_keeps_the_others(odd: object) -> None:
    cells = [odd, {"cell_type": "markdown", "source": "It boils."}]

    document = stored("a.ipynb", json.dumps({"cells": cells, "metadata": []}), kind="notebook")

    assert document.markdown.endswith("It boils.")


def test_half_a_surrogate_pair_of_a_notebook_is_replaced() -> None:
    cells = [{"cell_type": "markdown", "source": "It \ud800 boils\uffff."}]

    document = stored("a.ipynb", json.dumps({"cells": cells}), kind="notebook")

    assert document.markdown == "It \ufffd boils\uffff."


def test_code_is_cut_at_its_declarations_and_leads_to_its_lines() -> None:
    text = (
        '"""What it is."""\n\nimport os\n\n\n'
        "def first(a):\n    b = a\n    c = b\n    return c\n\n\n"
        "# Says why.\n@cached\ndef second(d):\n    e = d\n    f = e\n    return f\n"
    )

    document = stored("pkg/a.py", text, kind="code")

    assert "## `def second(d)`" in document.markdown
    assert [line_of(document, each) for each in ("return c", "# Says why", "return f")] == [
        9,
        12,
        17,
    ]
    assert document.title == "pkg/a.py"


def test_code_holds_every_line_as_it_is() -> None:
    text = (
        "a = 1\n\n\nclass B:\n    x = `````\n\n    def c(self):\n        pass\n"
        + "    y = 2\n" * 80
    )

    markdown = stored("a.py", text, kind="code").markdown

    assert [line for line in text.split("\n") if line.strip() and line not in markdown] == []


def test_mail_gives_its_headers_and_text() -> None:
    body = b"From: A <a@example.com>\r\nSubject: Limits\r\n\r\nThey are 95 s.\r\n"

    document = stored("a.eml", kind="mail", body=body)

    assert document.title == "Limits"
    assert "They are 95 s." in document.markdown
    assert "a@example.com" in document.markdown


def test_plain_mail_is_stored_as_it_was_written_and_dated() -> None:
    said = "Run `prune <pack>` on List<String>,\nthen\n# as root\n  2 * 3 * 4 <b@example.com>"
    head = "Subject: Limits\nDate: Tue, 3 Jun 2025 10:00:00 +0200\n\n"

    document = stored("a.eml", kind="mail", body=f"{head}{said}\n".encode())

    assert document.markdown.endswith(f"\n\n{said}")
    assert document.published_at == datetime(2025, 6, 3, 8, tzinfo=UTC)


def test_mail_in_html_is_read_as_a_page() -> None:
    head = "Subject: Limits\nDate: Tue, 3 Jun 2025 10:00:00 +0200\nContent-Type: text/html\n\n"

    document = stored("a.eml", kind="mail", body=f"{head}<p>They are <b>95 s</b>.</p>\n".encode())

    assert "They are **95 s**." in document.markdown
    assert (document.title, document.published_at) == (
        "Limits",
        datetime(2025, 6, 3, 8, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("ending", "library"),
    [("docx", "mammoth"), ("odt", "anydoc"), ("pptx", "markitdown"), ("xlsx", "openpyxl")],
)
def test_office_document_without_the_extra_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, ending: str, library: str
) -> None:
    monkeypatch.delitem(sys.modules, "webrag.ingestion.formats.opendocument", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UnusablePageError) as refused:
        stored(f"a.{ending}", kind="office", body=b"PK")

    assert refused.value.hint == how_to_install("office")


def test_restructured_text_without_the_extra_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "webrag.ingestion.formats.rst", raising=False)
    monkeypatch.setitem(sys.modules, "docutils", None)
    with pytest.raises(UnusablePageError) as refused:
        stored("a.rst", "Title\n=====\n\nText.\n", kind="rst")

    assert refused.value.hint == how_to_install("rst")


def test_a_file_without_words_is_named_empty() -> None:
    with pytest.raises(UnusablePageError) as refused:
        stored("a.md", "---\n\n***\n", kind="markdown")

    assert refused.value.kind == "empty"
