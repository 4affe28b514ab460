import pytest

from webrag.presentation.html.converter import html_to_text

BASE = "https://docs.example.org/guide/"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        pytest.param(
            "<table><caption>Sizes</caption><thead><tr><th>Name</th><th>cm</th></tr></thead>"
            "<tbody><tr><td>Small | flat</td><td><p>1</p><p>2</p></td></tr></tbody></table>",
            "Sizes\n\n| Name          | cm  |\n|---------------|-----|\n| Small \\| flat | 1 2 |",
            id="header, caption, pipe",
        ),
        pytest.param(
            '<table><tr><td rowspan="2">A</td><td colspan="2">B</td></tr>'
            "<tr><td>C</td><td>D</td></tr></table>",
            "| A   | B   |     |\n|-----|-----|-----|\n|     | C   | D   |",
            id="spans",
        ),
        pytest.param(
            '<table><tr><td class="linenos"><pre>1</pre></td><td><pre>code</pre></td></tr></table>',
            "```\ncode\n```",
            id="code listing with line numbers",
        ),
    ],
)
def test_tables_become_aligned_text(html: str, text: str) -> None:
    assert html_to_text(html, BASE).text == text
