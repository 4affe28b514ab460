import hashlib
import json
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import Document
from llama_index.core.utils import get_tokenizer
from llama_index.node_parser.webrag import (
    Chunk,
    ChunkSizes,
    DocumentTooLargeError,
    ParentChildNodeParser,
    cut_chunks,
)

from tests.growth import grows_as_its_input

# As the first release made them: a corpus is not to be embedded again.
IDS = ["c1df1b8e-47df-54f8-8677-33dbc46bee30", "20031c64-76a0-53b7-b8b3-1a7dd1a82ac8"]
DIGEST = "38090460bda68bc85e310c817bd80e8f78da7a9b3a9b05c9782ddaf0c37e603e"
SIZES = ChunkSizes(parent_tokens=1000, child_tokens=256)
ORDINARY = """# Storage guide

Welcome. See ![a diagram](disk.png "The disk").

## Snapshots of `std::vector<T>`

A snapshot freezes the volume. Use `--no-snapshot` to turn it off. \\(x^2\\)

| option | default |
| --- | --- |
| max_connections | 100 |

### 漢字 heading

1. one
2. two
"""


def cut(text: str, html: str | None = None) -> list[Chunk]:
    return cut_chunks(text, SIZES, get_tokenizer(), html=html)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("# " + "word " * 200_000 + "\n\n" + "Text. \n\n" * 3_000, id="words"),
        pytest.param("# " + "w" * 1_000_000 + "\n\n" + "Text. \n\n" * 3_000, id="one-word"),
        pytest.param("# " + "漢" * 300_000 + "\n\n" + "Text. \n\n" * 3_000, id="cjk"),
        pytest.param("h " * 300_000 + "\n===\n\n" + "Text. \n\n" * 3_000, id="underlined"),
        pytest.param(
            "".join(f"{'#' * n} {'x' * 400}\n\n" for n in range(1, 7)) + "Text. \n\n" * 3_000,
            id="six-levels",
        ),
    ],
)
def test_long_headings_are_not_copied_whole_into_every_chunk(text: str) -> None:
    chunks = cut(text)

    assert max(len(heading) for chunk in chunks for heading in chunk.path) <= 500
    assert max(sum(map(len, chunk.path)) for chunk in chunks) <= 1_500
    assert chunks[-1].path


def test_shortened_heading_ends_after_a_word() -> None:
    (path,) = {chunk.path for chunk in cut("# " + "word " * 300 + "\n\nText.")}

    assert path[0].endswith("word\u2026")


def test_headings_of_usual_length_are_whole() -> None:
    title = "fn " + "x" * 480

    assert {chunk.path for chunk in cut(f"# {title}\n\nText.")} == {(title,)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("x" * 10_000_001, "10,000,001 characters; at most 10,000,000", id="long"),
        pytest.param("# a\n\n" * 30_000, "more than 20,000 pieces", id="tiny-headings"),
        pytest.param("# a\n\nb\n\n" * 15_000, "more than 20,000 pieces", id="tiny-sections"),
        pytest.param("a\n===\nb\n\n" * 15_000, "more than 20,000 pieces", id="underlined"),
    ],
)
def test_documents_beyond_the_limits_are_refused_in_a_sentence(text: str, said: str) -> None:
    parser = ParentChildNodeParser()

    with pytest.raises(DocumentTooLargeError, match=said):
        parser.get_nodes_from_documents([Document(text=text)])


def test_nodes_of_an_ordinary_page_are_what_they_always_were() -> None:
    document = Document(id_="doc", text=ORDINARY, metadata={"title": "Guide"})
    nodes = ParentChildNodeParser(parent_tokens=60, child_tokens=25).get_nodes_from_documents(
        [document]
    )

    written = json.dumps([node.to_dict() for node in nodes], sort_keys=True)
    assert [node.node_id for node in nodes][:2] == IDS
    assert hashlib.sha256(written.encode()).hexdigest() == DIGEST


@given(st.text(alphabet="# ab\n*>-|`.漢\u0301", max_size=400))
def test_every_chunk_is_a_slice_and_nothing_but_space_is_left_out(text: str) -> None:
    children = [c for c in cut(text) if c.level == "child"]

    kept = "".join(text[c.start : c.end] for c in children)
    assert "".join(kept.split()) == "".join(text.split())


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda n: "\\[" * (20 * n), id="tex-openers"),
        pytest.param(lambda n: "\\[" * (20 * n) + "\\)", id="tex-other-closer"),
        pytest.param(lambda n: "> " * 50 + "[" * n, id="brackets"),
        pytest.param(lambda n: "*a " * n, id="stars"),
        pytest.param(lambda n: "|" * n + "\n" + "|-" * n, id="pipes"),
        pytest.param(lambda n: "." * n + " a", id="sentence-ends"),
        pytest.param(lambda n: "a. " + " " * n + "b", id="spaces-after-a-sentence"),
        pytest.param(lambda n: "e\u0301" * n, id="combining-marks"),
    ],
)
def test_time_grows_as_the_text_does(make: Callable[[int], str]) -> None:
    cut(make(100))

    assert grows_as_its_input(cut, make, 8_000)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda n: "<p>" + "<b> </b>" * n + "word<pre>x</pre>", id="blank-inlines"),
        pytest.param(lambda n: "<figure>" + "<img src=a.png>" * n + "<p>word", id="figure"),
        pytest.param(lambda n: "<p>" + "<img src=a.png alt=long>" * n + "word", id="images"),
    ],
)
def test_time_grows_as_the_html_does(make: Callable[[int], str]) -> None:
    assert grows_as_its_input(lambda html: cut("word", html), make, 16_000)


@pytest.mark.parametrize(
    "html",
    [
        pytest.param("<table class='{}'>", id="attribute"),
        pytest.param("<div title='{}'><table>", id="attribute-outside"),
    ],
)
def test_markup_around_everything_is_not_repeated_without_end(html: str) -> None:
    rows = [f"Row number {n} has {'some words ' * 40}" for n in range(400)]
    text = "| a |\n| --- |\n" + "".join(f"| {row} |\n" for row in rows)
    page = html.format("c " * 500_000) + "<tr><th>a" + "".join(f"<tr><td>{row}" for row in rows)

    kept = sum(len(chunk.html or "") for chunk in cut(text, page))

    assert kept < 3 * len(page) + 4_000_000


@pytest.mark.parametrize("words", ["alt", "title"])
def test_words_of_images_are_cut(words: str) -> None:
    html = f"<p>Words before.</p><img src=a.png {words}='{'long ' * 100_000}'><p>Words after.</p>"

    chunks = cut("Words before.\n\nWords after.", html)

    assert max(len(json.dumps(chunk.images)) for chunk in chunks) < 5_000
    assert max(len(chunk.image_text) for chunk in chunks) <= 8_000
    assert any(chunk.images for chunk in chunks)


def test_cutting_needs_no_llama_index() -> None:
    code = (
        "import sys, llama_index.node_parser.webrag;"
        "print('llama_index.core' in sys.modules, 'tiktoken' in sys.modules)"
    )

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert result.stdout.split() == [b"False", b"False"]


@pytest.mark.parametrize("lead", ["", "> ", "1. item\n\n   "])
def test_rows_far_down_a_table_stand_below_the_names_of_its_columns(lead: str) -> None:
    margin = "> " if lead == "> " else " " * 3 if lead else ""
    rows = "".join(f"{margin}| KX{number} | {number} W |\n" for number in range(200))
    table = f"{lead}| Model | Idle **draw** |\n{margin}| --- | --- |\n{rows}"
    text = f"# Motors\n\nAll motors.\n\n{table}\nA paragraph behind it all.\n\n# Pumps\n\nNone."

    chunks = cut_chunks(text, ChunkSizes(100, 40), str.split)

    paths = {text[chunk.start : chunk.end]: chunk.path for chunk in chunks}
    last = next(path for held, path in paths.items() if "KX199 " in held)
    first = next(path for held, path in paths.items() if "Model" in held)
    assert (first, last) == (("Motors",), ("Motors", "Model | Idle draw"))
    assert {chunk.heading for chunk in chunks} == {"Motors", "Pumps"}
    assert next(path for held, path in paths.items() if "None." in held) == ("Pumps",)
