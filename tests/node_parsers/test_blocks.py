import time

import pyromark
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.node_parser.webrag import blocks
from llama_index.node_parser.webrag.blocks import PAGE_OPTIONS, parse_outline, read_events

CONTAINERS = ["- x", "  - y", "1. s", "> q", ">", ": d", "[r]: /u"]
LEAVES = [
    "# a",
    "b",
    "",
    "---",
    "===",
    "```",
    "    code",
    "| a | b |",
    "|---|---|",
    "<div>",
    "</div>",
]
INLINE = ["*a", "b*", "`c", "d`", "$$"]
LINES = st.lists(st.sampled_from([*CONTAINERS, *LEAVES, *INLINE]), max_size=25)


def unit_texts(text: str) -> list[str]:
    return [text[unit.start : unit.end].strip() for unit in parse_outline(text).units]


@settings(max_examples=300, deadline=None)
@given(lines=LINES, end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_units_partition_the_text_from_its_first_line_on(lines: list[str], end: str) -> None:
    text = end.join(lines)
    units = parse_outline(text).units

    starts = [unit.start for unit in units]
    assert [*starts[1:], len(text)][: len(units)] == [unit.end for unit in units]
    assert not text[: starts[0] if starts else len(text)].strip()


@settings(max_examples=300, deadline=None)
@given(lines=LINES)
def test_every_heading_starts_a_unit_with_its_level(lines: list[str]) -> None:
    outline = parse_outline("\n".join(lines))

    units = {unit.start: unit.level for unit in outline.units if unit.level}
    assert {heading.start: heading.level for heading in outline.headings} == units


@pytest.mark.parametrize(
    ("text", "units"),
    [
        pytest.param("# A\nb\nc\n\nd", ["# A", "b\nc", "d"], id="paragraph lines join"),
        pytest.param("A\nb\n===\nc", ["A\nb\n===", "c"], id="setext heading"),
        pytest.param("- a\n  b\n- c", ["- a\n  b", "- c"], id="tight list"),
        pytest.param("1. a\n\n   b\n2. c", ["1. a", "b", "2. c"], id="loose list"),
        pytest.param("```\na\n\nb\n```", ["```", "a", "b", "```"], id="fence by line"),
        pytest.param("| a |\n|---|\n| b |", ["| a |", "|---|", "| b |"], id="table by line"),
        pytest.param("> a\n> b\n>\n> c", ["> a\n> b\n>", "> c"], id="quote"),
        pytest.param("T\n: d\n  e\n: f", ["T", ": d\n  e", ": f"], id="definitions"),
        pytest.param("`a\nb` [c\nd](e)", ["`a\nb` [c\nd](e)"], id="inline over lines"),
        pytest.param("<div>\na\n</div>", ["<div>", "a", "</div>"], id="html by line"),
        pytest.param("<file>\na\n\nb", ["<file>\na", "b"], id="placeholder, no html"),
        pytest.param("[a]: /b\n\nc", ["[a]: /b", "c"], id="link definition"),
        pytest.param("a  \nb", ["a  \nb"], id="hard break"),
        pytest.param("# \u00e9\U0001f600\n\n\u00e9", ["# \u00e9\U0001f600", "\u00e9"], id="wide"),
        pytest.param("", [], id="empty"),
    ],
)
def test_units_of_common_markdown(text: str, units: list[str]) -> None:
    assert unit_texts(text) == units


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        pytest.param("# A *b* `c`", [(1, "A b c")], id="inline markup"),
        pytest.param("## A ##", [(2, "A")], id="closing marks"),
        pytest.param("## C#", [(2, "C#")], id="no closing mark"),
        pytest.param("# A \u00b6", [(1, "A")], id="permalink sign"),
        pytest.param("# List<T> of <b>A</b>", [(1, "List<T> of A")], id="text and tags"),
        pytest.param("#", [(1, "")], id="empty"),
        pytest.param("```\n# a\n```", [], id="in a fence"),
        pytest.param("\\# a", [], id="escaped"),
        pytest.param("- ## A\n  b", [(2, "A")], id="in a list"),
        pytest.param("A\nb\n---", [(2, "A b")], id="setext over two lines"),
    ],
)
def test_headings_of_common_markdown(text: str, headings: list[tuple[int, str]]) -> None:
    assert [(h.level, h.text) for h in parse_outline(text).headings] == headings


def test_runs_are_the_visible_text_with_its_place() -> None:
    text = "1. **a** [b](http://c)\n\n```py\nd\ne\n```"

    runs = parse_outline(text).runs

    assert [run.text for run in runs] == ["a b", "d\n", "e\n"]
    assert [text[run.start : run.end] for run in runs[1:]] == ["d\n", "e\n"]


@pytest.fixture
def panicking(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException): ...

    def panic(*_args: object, **_options: object) -> None:
        raise PanicException

    monkeypatch.setattr(pyromark, "events_with_range", panic)


@pytest.mark.usefixtures("panicking")
def test_lines_stand_for_blocks_when_the_parser_panics() -> None:
    assert unit_texts("# a\nb\n\nc") == ["# a", "b", "c"]


@pytest.mark.usefixtures("panicking")
def test_everything_is_code_when_the_parser_panics() -> None:
    text = "# é\n\nb"

    events = [(name, start, end) for name, _, start, end in read_events(text, PAGE_OPTIONS)]

    assert events == [("Start", 0, 6), ("Text", 0, 6), ("End", 0, 6)]


def test_other_errors_of_the_parser_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_args: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(blocks.pyromark, "events_with_range", interrupt)

    with pytest.raises(KeyboardInterrupt):
        parse_outline("a")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(">" * 50_000 + " a", id="quotes"),
        pytest.param("- " * 50_000 + "a", id="bullets"),
        pytest.param("1. " * 50_000 + "a", id="numbers"),
        pytest.param("> - " * 25_000 + "a", id="quoted lists"),
        pytest.param("a\n: " * 25_000 + "a", id="definitions"),
        pytest.param("![" * 25_000 + "a" + "](x)" * 25_000, id="images"),
        pytest.param("**a *b " * 12_500 + "x" + "* b**" * 12_500, id="emphasis"),
        pytest.param("**note" + " " * 50_000 + "x", id="spaces after a label"),
    ],
)
def test_deep_nesting_is_read_in_linear_time(text: str) -> None:
    begun = time.process_time()
    parse_outline(text)

    assert time.process_time() - begun < 2.0


def test_deep_nesting_costs_no_more_than_a_table_header() -> None:
    outline = parse_outline("\n".join(f"{'  ' * depth}- a\n" for depth in range(100)))

    assert max(unit.cost for unit in outline.units) < blocks.BreakCost.SENTENCE
