import contextlib
import time

import pytest

from webrag.ingestion.html.tree import MarkupBomb, check_markup, without


@pytest.mark.parametrize(
    "html",
    [
        "<p>" * 5_000,
        "<ul>" + "<li>a" * 5_000,
        "<br>" * 5_000 + "<img>" * 5_000,
        "<div>" * 500 + "</div>" * 500,
        "<div></div>" * 5_000,
        "<script>" + "<div>" * 5_000 + "</script>",
        "<!--" + "<div>" * 5_000 + "-->",
        '<img src="data:image/png;base64,' + "A" * 100_000 + '==">',
    ],
)
def test_pages_a_browser_could_show_pass(html: str) -> None:
    check_markup(html)


@pytest.mark.parametrize("tag", ["div", "b", "blockquote", "ul", "table", "x-y"])
def test_deep_nesting_is_refused(tag: str) -> None:
    with pytest.raises(MarkupBomb, match="512 levels"):
        check_markup(f"<{tag}>" * 600)


@pytest.mark.parametrize("end", [">", ""])
def test_heaps_of_attributes_are_refused(end: str) -> None:
    with pytest.raises(MarkupBomb, match="attributes"):
        check_markup("<p " + " ".join(f"a{number}=1" for number in range(2_000)) + end)


@pytest.mark.parametrize("piece", ["<a ", "<", "<!--", "</", "<a\n", "<script>", "&"])
def test_scan_takes_linear_time(piece: str) -> None:
    started = time.process_time()
    with contextlib.suppress(MarkupBomb):
        check_markup(piece * 200_000)

    assert time.process_time() - started < 5


def test_what_looks_like_a_tag_in_an_attribute_nests_nothing() -> None:
    check_markup("""<a href="#prop:<config>_postfix" class='x'>target <b>property</b></a>""" * 600)


@pytest.mark.parametrize("tag", ["<div '>", '<div x="a">', '<div x="<b>"><i>', '<div a=b/c="d>'])
def test_attributes_hide_no_depth(tag: str) -> None:
    with pytest.raises(MarkupBomb, match="512 levels"):
        check_markup(tag * 600)


def test_parts_are_taken_out_of_a_text_where_they_follow_each_other() -> None:
    assert without("a b a c a", ["a", "a"]) == " b  c a"


def test_a_part_that_a_text_lacks_takes_nothing_out() -> None:
    assert without("a b", ["c", "b"]) == "a "


def test_parts_that_share_what_parts_them_are_all_taken_out() -> None:
    assert without("|a|x|y|b|", ["|x|", "|y|"], "|") == "|a|b|"
