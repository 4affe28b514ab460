import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.retrieval.markup import plain_span, plain_text, read_blocks


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        pytest.param("## Head *line*", "Head line", id="heading"),
        pytest.param("a **b** _c_ ~~d~~ `e_f`", "a b c d e_f", id="inline"),
        pytest.param(r"\*stars\* and \_lines\_", "*stars* and _lines_", id="escapes"),
        pytest.param("a &amp; b", "a & b", id="entity"),
        pytest.param("one\ntwo", "one two", id="soft-break"),
        pytest.param("- one\n- two", "one\ntwo", id="list"),
        pytest.param("> one\n> two", "one\ntwo", id="block-quote"),
        pytest.param("| a | b |\n|---|---|\n| c | d |", "a\tb\nc\td", id="table"),
        pytest.param("| c | d\\|e |\n| f |  |", "c\td|e\nf", id="table-without-its-head"),
        pytest.param("| c | d<br>e |\n| f | g |", "c\td\ne\nf\tg", id="lines-without-a-head"),
        pytest.param("a<br>b", "a\nb", id="line-break-tag"),
        pytest.param("```py\n# c\nx = 1\n```", "# c\nx = 1", id="fenced-code"),
        pytest.param("x = 1\n```\n\n*After*", "x = 1\nAfter", id="text-that-begins-inside-code"),
        pytest.param("[text](https://a.test)", "text", id="link"),
        pytest.param("日本語。**次**の文。", "日本語。次の文。", id="japanese"),
        pytest.param("a List<String> b", "a List<String> b", id="type-parameter"),
        pytest.param("git rm <file>… now", "git rm <file>… now", id="placeholder"),
        pytest.param("<object>\n\nName.", "<object>\nName.", id="placeholder-like-an-element"),
        pytest.param("<script>\n\nText.", "<script>\nText.", id="element-without-its-end"),
        pytest.param("<std::string>", "<std::string>", id="no-address"),
        pytest.param("<https://a.test/b>", "https://a.test/b", id="address"),
        pytest.param("a <b>c</b> <x>", "a c <x>", id="pair-of-tags"),
        pytest.param("a <!-- b --> <x> c", "a  <x> c", id="comment"),
        pytest.param("", "", id="empty"),
    ],
)
def test_plain_text_is_what_the_reader_sees(markdown: str, expected: str) -> None:
    assert plain_text(markdown) == expected


def test_a_span_is_read_in_the_light_of_the_whole() -> None:
    text = "```sh\n# comment\nls\n```\n"
    start = text.index("# comment")

    assert plain_span(text, start, start + len("# comment")) == "# comment"


def test_a_span_may_begin_and_end_inside_a_piece() -> None:
    text = "The quick **brown fox** jumps."
    start, end = text.index("quick"), text.index(" fox")

    assert plain_span(text, start, end) == "quick brown"


def test_a_span_of_a_row_separates_its_cells() -> None:
    text = "| a | b |\n|---|---|\n| one | two |\n"

    assert plain_span(text, text.index("one"), text.index("two") + 3) == "one\ttwo"


def test_a_span_of_mere_markup_is_given_as_it_is() -> None:
    assert plain_span("a\n\n---\n\nb", 3, 6) == "---"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("  It is set so:\n\n    | A | B |\n    | --- | --- |\n    | 1 | 2 |", "prose row row"),
        ("   1. Clay\n\n      It is soft.", "prose prose"),
        ("    - Clay\n    - Fire\n\n  And so on.", "prose prose prose"),
        ("    make pots\n    make fire", "code"),
    ],
)
def test_margin_of_the_item_that_a_part_begins_within_is_no_code(text: str, kinds: str) -> None:
    assert [block.kind for block in read_blocks(text)] == kinds.split()


def test_text_between_the_ends_of_a_block_holds_no_block_markers() -> None:
    text = "> - one\n>   two\n\n| a | b |\n|---|---|\n| c | d |\n\n```\nx\n```\n"

    parts = [text[block.start : block.end] for block in read_blocks(text)]

    assert parts == ["one", "two", "a | b", "c | d", "x"]


@given(st.data())
def test_pieces_lie_inside_the_text_in_order(
    markdown: st.SearchStrategy[str], data: st.DataObject
) -> None:
    text = data.draw(markdown)

    for block in read_blocks(text):
        offsets = [offset for piece in block.pieces for offset in (piece.start, piece.end)]

        assert offsets == sorted(offsets)
        assert 0 <= block.start < block.end <= len(text)


@given(st.data(), st.integers(0, 300), st.integers(0, 300))
def test_any_span_of_any_text_can_be_read(
    markdown: st.SearchStrategy[str], data: st.DataObject, start: int, end: int
) -> None:
    text = data.draw(markdown)

    assert isinstance(plain_span(text, min(start, end), max(start, end)), str)
