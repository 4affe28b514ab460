from collections.abc import Sequence
from itertools import pairwise

import pyromark
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from llama_index.core.schema import (
    BaseNode,
    TextNode,
)
from llama_index.core.utils import get_tokenizer

from .parsed_pages import by_level, fenced, parse, table

COMBINED = ["e\u0301te\u0301", "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\u00a0", "\x0b"]
FOREIGN = ["\u0394\u03ad\u03bb\u03c4\u03b1", "na\u00efve", "\u65e5\u672c\u8a9e\u3067\u3059\u3002"]
SYNTAX = ["$x$", "`a b`", "**b**", "[l](http://x)", "<b>", "|", "1.", "#", "e.g.", ":", "\\(", "\\"]
WORDS = st.sampled_from([*COMBINED, *FOREIGN, *SYNTAX, "alpha", "Beta", "gamma.", "end!"])
LINE = st.lists(WORDS, min_size=1, max_size=12).map(" ".join)
PROSE = st.lists(LINE, min_size=1, max_size=4).map("\n".join)


BLOCK = st.one_of(
    PROSE,
    st.tuples(st.integers(1, 6), LINE).map(lambda pair: "#" * pair[0] + " " + pair[1]),
    LINE.map(lambda line: f"{line}\n==="),
    st.lists(LINE, min_size=1, max_size=40).map("\n    \n".join).map(fenced),
    st.lists(LINE, min_size=1, max_size=30).map(table),
    st.lists(LINE, min_size=1, max_size=20).map(lambda items: "- " + "\n- ".join(items)),
    st.lists(PROSE, min_size=1, max_size=6).map(
        lambda items: "\n".join(f"{n}. {item}" for n, item in enumerate(items, 1))
    ),
    st.tuples(LINE, PROSE).map(lambda pair: f"{pair[0]}\n: {pair[1]}\n: second"),
    PROSE.map(lambda prose: "> [!NOTE]\n> " + prose.replace("\n", "\n> ")),
    st.tuples(st.integers(1, 60), LINE).map(
        lambda pair: "".join("  " * depth + f"- {pair[1]}\n" for depth in range(pair[0]))
    ),
    PROSE.map(lambda prose: f"<div>\n{prose}\n</div>"),
    st.integers(1, 1500).map("x".__mul__),
    st.integers(1, 300).map("👍🏽é".__mul__),
    st.integers(1, 100).map("One sentence here. ".__mul__),
    LINE.map(lambda line: line + ":"),
    st.just("[ref]: http://example.org 'A title'"),
    st.just("$$\na = b\n$$"),
    st.just("***"),
    st.just("> # quoted heading\n> text"),
    st.just("- ## heading in an item\n  text"),
    st.text(max_size=60),
)
MARKDOWN = st.builds(
    lambda blocks, gap, end: gap.join(blocks).replace("\n", end),
    st.lists(BLOCK, max_size=9),
    st.sampled_from(["\n\n", "\n", "\n\n\n"]),
    st.sampled_from(["\n", "\r\n", "\n", "\r"]),
)
# In two parts, as its children are, it has fewer tokens than whole.
FEWER_IN_PARTS = (
    "a\U0008541ea\U000231d6\U00083407.a"
    "\U000ea143\U0008a751\U000b833ea\U000d34c6a1"
    "\U0008d844\U00077350\U00047ec7\U0009c28d"
)
SIZES = st.sampled_from([(1000, 256), (120, 40), (60, 60), (50, 20)])
FIXED = {
    "empty": "",
    "blank": " \n\t\n\u00a0",
    "no heading": "Just a line.",
    "headings only": "# A\n\n## B\n\n## C\n\n# D\n",
    "repeated": "# A\n\nsame text\n\n# A\n\nsame text\n\nsame text\n",
    "line without spaces": "0123456789" * 3000,
    "one long line": "lorem ipsum dolor sit amet, " * 3000,
    "white space": "a" + " " * 20_000 + "b" + "\n" * 20_000 + "c",
    "marks only": "\u0301" * 3000,
    "NUL": "# a\x00b\n\nc\x00d",
    "skipped levels": "### deep\n\na\n\n# top\n\nb\n\n#### deeper\n\nc\n\n## mid\n\nd\n",
    "definition list before setext": "Term\n: one\n\n: two\n\nSetext\n===\n\ntext",
    "unclosed fence": "# A\n\n```\n# not a heading\n\nx",
    "byte order mark": "\ufeff# A\n\ntext",
    "big table": table([f"row {n} with some words" for n in range(400)]),
    "nested quotes": "> " * 80 + "deep",
}


def spans(nodes: Sequence[TextNode]) -> list[tuple[int, int]]:
    return [(node.start_char_idx or 0, node.end_char_idx or 0) for node in nodes]


def assert_covered(text: str, begin: int, end: int, ranges: Sequence[tuple[int, int]]) -> None:
    place = begin
    for start, stop in ranges:
        assert place <= start < stop
        assert not text[place:start].strip()
        place = stop
    assert place <= end
    assert not text[place:end].strip()


def is_one_character(text: str) -> bool:
    """Whether a text is one base character with all that combines with it."""
    return len(text) < 40 and not any(char.isalnum() or char.isspace() for char in text[1:])


# Lines below a table are its rows, whatever they would be elsewhere.
BLOCKS = pyromark.Options.ENABLE_DEFINITION_LIST | pyromark.Options.ENABLE_TABLES


def headings_of(text: str) -> list[tuple[int, int]]:
    data = text.encode()
    return [
        (len(data[: place["start"]].decode()), int(event["Start"]["Heading"]["level"][1]))
        for event, place in pyromark.events_with_range(text, options=BLOCKS)
        if isinstance(event, dict) and isinstance(event.get("Start"), dict)
        and "Heading" in event["Start"]
    ]  # fmt: skip


def assert_invariants(text: str, nodes: Sequence[BaseNode], sizes: tuple[int, int]) -> None:
    parents, children = by_level(nodes, "parent"), by_level(nodes, "child")
    by_id = {node.node_id: node for node in nodes}
    assert len(by_id) == len(nodes) == len(parents) + len(children)
    for node in [*parents, *children]:
        assert text[node.start_char_idx : node.end_char_idx] == node.text
    assert_covered(text, 0, len(text), spans(parents))
    for parent in parents:
        family = [by_id[child.node_id] for child in parent.child_nodes or []]
        assert all(child.parent_node.node_id == parent.node_id for child in family)
        assert_covered(text, *spans([parent])[0], spans(family))
    for nodes_of_level, limit in ((parents, sizes[0]), (children, sizes[1])):
        for node in nodes_of_level:
            assert len(get_tokenizer()(node.text)) <= limit or is_one_character(node.text)
        assert [node.metadata["chunk_index"] for node in nodes_of_level] == list(
            range(len(nodes_of_level))
        )
        for before, after in pairwise(nodes_of_level):
            assert before.next_node.node_id == after.node_id
            assert after.prev_node.node_id == before.node_id
            assert before.metadata["token_end"] <= after.metadata["token_start"]


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=MARKDOWN, sizes=SIZES)
def test_every_invariant_holds_for_generated_markdown(text: str, sizes: tuple[int, int]) -> None:
    assert_invariants(text, parse(text, sizes), sizes)


@settings(max_examples=120, deadline=None)
@given(text=st.text(max_size=2000), sizes=SIZES)
@example(text=FEWER_IN_PARTS, sizes=(50, 20))
def test_every_invariant_holds_for_arbitrary_text(text: str, sizes: tuple[int, int]) -> None:
    assert_invariants(text, parse(text, sizes), sizes)


@pytest.mark.parametrize("sizes", [(1000, 256), (50, 20)])
@pytest.mark.parametrize("text", FIXED.values(), ids=FIXED.keys())
def test_every_invariant_holds_for_awkward_text(text: str, sizes: tuple[int, int]) -> None:
    assert_invariants(text, parse(text, sizes), sizes)


def test_spaces_of_a_hard_line_break_are_no_node() -> None:
    text = f"One sentence.  \n{'long' * 30} ends.  \nAnother one."

    nodes = parse(text, (8, 2))

    assert all(node.text.strip() for node in nodes)
    assert_invariants(text, nodes, (8, 2))


def test_line_of_a_megabyte_keeps_every_invariant() -> None:
    text = "Replicas follow the primary, e.g. node\u0301 7; 日本語です。 " * 20_000

    nodes = parse(text)

    assert len(text.encode()) > 1_000_000
    assert "\n" not in text
    parents, children = by_level(nodes, "parent"), by_level(nodes, "child")
    assert all(text[n.start_char_idx : n.end_char_idx] == n.text for n in [*parents, *children])
    assert_covered(text, 0, len(text), spans(parents))
    assert_covered(text, 0, len(text), spans(children))


# One sample of ours for each construct that the CommonMark specification has a section on.
CONSTRUCTS = {
    "tabs": "\tcode by tab\n\n-\titem\n\n\t\tcode in it\n",
    "escapes": "\\# no heading \\*no stress\\* \\[none\\](/x) \\\\ end\\\nnext",
    "entities": "&copy; &#35; &#x22; &nbsp; &unknown; caf&eacute;",
    "precedence": "- `one\n- two`\n",
    "thematic breaks": "above\n\n***\n- - -\n____\n\nbelow\n",
    "ATX headings": "# one #\n####### none\n## two ##  \n#none\n###\n",
    "setext headings": "Title *of*\ntwo lines\n===\n\nlower\n---\nnone\n\n===\n",
    "indented code": "text\n\n    code\n\n      more\n    \n    end\ntext\n",
    "fenced code": "~~~ py x\n# no heading\n```\n~~~~\n\n````\n```\n````\n",
    "fence in a quote": "> ```\n> # code\n\nout\n",
    "HTML blocks": "<div>\n# no heading\n</div>\n\n<!-- # none\n\n-->\n<pre>\n\n# x\n</pre>\n",
    "reference definitions": "[a]: /x 'one\ntwo'\n[A]: <my url>\n\n[a] and [b][A]\n# [a]\n",
    "paragraphs": "one\n   two\n\n\n  three  \nfour\\\nfive\n",
    "tables": "| a | b |\n|:--|--:|\n| `x|` | \\| |\n| lone |\n\nafter\n",
    "quotes": "> # A\n> text\nlazy\n\n> > deep\n> - item\n",
    "bullet lists": "- one\n\n  more\n+ other\n* third\n  - inner\n\n\n    code\n",
    "ordered lists": "3. three\n4) four\n0. zero\n1234567890. none\n",
    "tasks": "- [ ] open\n- [x] done\n",
    "heading in a list": "- # A\n  - ## B\n    text\n- Setext\n  ---\n",
    "code spans": "`` a ` b `` `\nx\n` ` unclosed\n",
    "emphasis": "*a **b** c* __d_ e__ ***f*** intra*wor*d _no_t\n",
    "links": "[a](<b c> 'd') [e](f(g)h) [i][] [j]\n\n[i]: /i\n[j]: /j\n",
    "images": "![alt *x*](/a.png 'T') ![b][c] [![d](/e)](/f)\n\n[c]: /c.png\n",
    "autolinks": "<https://a.test/?b=c> <me@a.test> <not one> https://b.test\n",
    "raw HTML": "a <b class='x'>c</b> <!-- d --> <?e?> <![CDATA[f]]> <bad\n",
    "hard breaks": "one  \ntwo\\\nthree \nfour\n",
    "strikethrough": "~~gone~~ ~one~ ~~~no~~~\n",
    "footnotes": "text[^1] and[^2]\n\n[^1]: note\n    more\n[^2]: last\n",
    "front matter": "---\ntitle: x\n---\n\n# A\n",
}


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("text", CONSTRUCTS.values(), ids=CONSTRUCTS.keys())
def test_every_invariant_holds_for_each_construct(text: str, end: str) -> None:
    for repeated in (1, 12):
        document = (text * repeated).replace("\n", end)
        for sizes in ((1000, 256), (50, 20)):
            assert_invariants(document, parse(document, sizes), sizes)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=MARKDOWN, sizes=SIZES)
@example(text="A\n=\n0|0\n-|-\nB\n=", sizes=(1000, 256))
def test_parents_never_cross_a_heading_of_their_own_or_a_higher_level(
    text: str, sizes: tuple[int, int]
) -> None:
    headings = headings_of(text)
    parents = by_level(parse(text, sizes), "parent")

    for start, end in spans(parents):
        levels = [level for place, level in headings if place < end]
        inside = [level for place, level in headings if start <= place < end]
        first = inside[0] if inside else 7
        opening = levels[len(levels) - len(inside) - 1] if len(levels) > len(inside) else 0
        # The first heading inside either opens the parent or lies below the one that is open.
        assert all(level > first for level in inside[1:]) or all(
            level > opening > 0 for level in inside
        )


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=MARKDOWN)
def test_parsing_twice_gives_the_same_nodes(text: str) -> None:
    first, second = parse(text), parse(text)

    assert [node.to_dict() for node in first] == [node.to_dict() for node in second]
