import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.retrieval.quotes import finest_quote, quotable_units

PAGE = """# Ports

The server listens on one port. Set **listen_port** in the file, e.g. in `etc/server. conf`, to
change it. Restart it afterwards.

- Ports below 1024 need the administrator.
- A port in use gives error E0502.

> A note about firewalls.
> They must let the port through.

| setting | default |
| --- | --- |
| listen_port | 5432 |
| listen_backlog | 128 |

```sh
# show the port
server --show-port
```
"""


def quote(query: str, text: str = PAGE, **options: object) -> str:
    start, end = finest_quote(text, 0, query, {}, **options) or (0, 0)
    return text[start:end]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("restart afterwards", "Restart it afterwards.", id="sentence"),
        pytest.param(
            "how is listen_port set and changed",
            "Set **listen_port** in the file, e.g. in `etc/server. conf`, to\nchange it.",
            id="sentence-with-abbreviation-and-code",
        ),
        pytest.param("E0502", "A port in use gives error E0502.", id="list-item-without-marker"),
        pytest.param("firewalls", "A note about firewalls.", id="quotation-without-marker"),
        pytest.param("listen_backlog", "listen_backlog | 128", id="row-without-frame"),
        pytest.param(
            "server --show-port", "# show the port\nserver --show-port", id="code-without-fence"
        ),
    ],
)
def test_the_quote_is_a_whole_unit_of_one_block(query: str, expected: str) -> None:
    assert quote(query, max_chars=85) == expected


def test_offsets_are_those_of_the_page() -> None:
    start, end = finest_quote(PAGE, 1000, "E0502", {}) or (0, 0)

    assert PAGE[start - 1000 : end - 1000] == "A port in use gives error E0502."


def test_neighbouring_sentences_are_quoted_together_when_both_are_needed() -> None:
    text = "The port is set in a file. Restart the server afterwards. Nothing else matters."

    assert quote("port file restart server", text, max_chars=60) == (
        "The port is set in a file. Restart the server afterwards."
    )


def test_rare_words_decide() -> None:
    text = "The port is open. The backlog is long."
    weights = {"port": 0.1, "backlog": 3.0}

    start, end = finest_quote(text, 0, "port backlog", weights, max_chars=25) or (0, 0)

    assert text[start:end] == "The backlog is long."


def test_without_any_matching_word_the_opening_is_quoted() -> None:
    text = "First things come first. Other things come later."

    assert quote("zebra", text, max_chars=24) == "First things come first."


def test_a_quote_takes_in_the_neighbours_that_fit() -> None:
    text = "The port is set in a file. It is read once. Nothing else matters here."

    assert quote("port", text, max_chars=45) == "The port is set in a file. It is read once."


def test_a_heading_is_quoted_only_when_nothing_else_is_there() -> None:
    assert quote("ports", "# Ports\n\nThe ports are open to all.\n") == "The ports are open to all."
    assert quote("ports", "# Ports\n") == "Ports"


def test_a_sentence_longer_than_allowed_is_cut_between_words() -> None:
    text = "alpha beta gamma delta epsilon zeta eta theta iota kappa"

    found = quote("zeta", text, max_chars=20)

    assert "zeta" in found
    assert len(found) <= 20
    assert re.search(rf"(?:^| ){re.escape(found)}(?: |$)", text)


def test_a_word_longer_than_allowed_is_cut_anyway() -> None:
    assert quote("x", "a" * 50, max_chars=10) == "a" * 10


def test_chinese_sentences_end_without_a_blank() -> None:
    assert quote("端口", "服务器启动。端口可以修改。其他。", max_chars=8) == "端口可以修改。"


def test_a_table_cut_from_its_head_gives_rows_without_frame() -> None:
    text = "| listen_port | 5432 |\n| listen_backlog | 128 |\n"

    assert quote("backlog", text) == "listen_backlog | 128"


@pytest.mark.parametrize("text", ["", "\n\n", "---", "<div>only markup</div>", "| | |\n|--|--|"])
def test_text_without_words_gives_no_quote(text: str) -> None:
    assert finest_quote(text, 0, "port", {}) is None


@given(st.data(), st.text(max_size=30), st.integers(1, 500), st.integers(0, 10_000))
def test_a_quote_is_a_slice_of_the_page_within_its_limit(
    markdown: st.SearchStrategy[str], data: st.DataObject, query: str, limit: int, offset: int
) -> None:
    text = data.draw(markdown)

    span = finest_quote(text, offset, query, {}, max_chars=limit)

    if span is not None:
        start, end = span
        assert offset <= start < end <= offset + len(text)
        assert end - start <= limit


@given(st.data(), st.sampled_from(["item", "bold text", "one two", "heading ls", "quoted lines"]))
def test_a_quote_holds_no_block_markers(
    markdown: st.SearchStrategy[str], data: st.DataObject, query: str
) -> None:
    blocks = data.draw(st.lists(st.sampled_from(PAGE.split("\n\n")), max_size=5))

    found = quote(query, "\n\n".join(blocks))

    assert not re.search(r"^(?:[-*>#|]|\d+\.) |^```|^\|", found, re.MULTILINE) or "#" in found


def test_quote_does_not_join_a_term_and_its_definition() -> None:
    text = "fit(X, y)  \nIncremental fit on a batch of samples."

    start, end = finest_quote(text, 0, "incremental fit of samples", {}) or (0, 0)

    assert text[start:end] == "Incremental fit on a batch of samples."


HIVES = (
    "| Type | Frames | Weight |\n|---|:-:|---|\n| Langstroth | 10 | 24 kg |\n"
    "| Dadant | 12 | 28 kg |\n"
)


def test_row_is_quoted_rather_than_the_header_of_its_table() -> None:
    assert quote("weight of a Dadant hive", HIVES) == "Dadant | 12 | 28 kg"


def test_header_row_is_quoted_where_the_body_of_its_table_is_missing() -> None:
    header = "".join(HIVES.splitlines(keepends=True)[:2])

    assert quote("weight of a Dadant hive", header) == "Type | Frames | Weight"


@pytest.mark.parametrize(
    "text",
    [
        "> *a one.\n> b two* and\n> more",
        "> x **a\n> b** c. D e",
        "> [a b\n> c d](u) e",
        "> ~~a\n> b~~ *c\n> d*",
        "> **a *b\n> c* d**\n> e",
        "> - *a\n>   b*",
        "- x\n\n  > *a\n  > b* `c\n  > d` e",
        "> > *a\n> > b*\n> c",
    ],
)
def test_units_of_markup_that_goes_on_in_the_next_line_do_not_overlap(text: str) -> None:
    units = [(start, end) for start, end, _ in quotable_units(text)]
    assert all(end <= start for (_, end), (start, _) in pairwise(units))
    assert all(text[start:end].strip() for start, end in units)


@given(text=st.text(alphabet="ab.*_`~[]()>|- \n#<\\", max_size=60))
def test_units_never_overlap(text: str) -> None:
    units = [(start, end) for start, end, _ in quotable_units(text)]
    assert all(end <= start for (_, end), (start, _) in pairwise(units))


@pytest.mark.parametrize(
    "sentence",
    [
        "Give a <pathspec> to limit the paths that are shown.",
        "A Map<String, List<T>> keeps the paths that are shown.",
        "Show the <object> and the paths that are shown.",
    ],
)
def test_angle_brackets_of_the_text_do_not_cut_a_quote(sentence: str) -> None:
    text = f"{sentence}\n\nOther."

    found = finest_quote(text, 7, "limit the paths that are shown", {})

    assert found == (7, 7 + len(sentence))
