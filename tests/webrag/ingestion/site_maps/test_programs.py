import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.ingestion.site_maps.indexes import (
    doxygen_files,
    doxygen_trees,
    read_doxygen_search,
    read_doxygen_tree,
    read_javadoc,
)
from webrag.ingestion.site_maps.listing import ListedPage, MapRefusedError, SiteListing

ROOT = "https://docs.test/api/"


def test_types_of_javadoc_are_pages_and_members_their_names() -> None:
    types = (
        'typeSearchIndex = [{"l":"All Classes","u":"allclasses-index.html"},'
        '{"m":"kiln.base","p":"org.kiln","l":"Cone"}];updateSearchResults();'
    )
    members = 'memberSearchIndex = [{"p":"org.kiln","c":"Cone","l":"bend(int)"}]'

    assert read_javadoc([types, members], ROOT).pages == (
        ListedPage(f"{ROOT}kiln.base/org/kiln/Cone.html", "Cone", ["org.kiln.Cone", "bend(int)"]),
    )


TREE = """/*
 @licstart it's a comment
*/
var NAVTREE =
[
  [ "Kiln", "index.html", [
    [ "Firing \\"hot\\"", "firing.html", [
      [ "Ramp", "firing.html#ramp", null ]
    ] ],
    [ "Classes", "annotated.html", "annotated_dup" ],
    [ "Bad", "b.html", "../../etc" ]
  ] ]
];
"""


def test_navigation_of_doxygen_names_pages_headings_and_further_files() -> None:
    branch = 'var annotated_dup =\n[\n [ "Cone", "classCone.html", null ]\n];'

    assert doxygen_trees(TREE) == ["annotated_dup.js"]
    assert read_doxygen_tree([TREE, branch], ROOT).pages == (
        ListedPage(f"{ROOT}index.html", "Kiln"),
        ListedPage(f"{ROOT}firing.html", 'Firing "hot"', ["Ramp"]),
        ListedPage(f"{ROOT}annotated.html", "Classes"),
        ListedPage(f"{ROOT}b.html", "Bad"),
        ListedPage(f"{ROOT}classCone.html", "Cone"),
    )


def test_search_of_doxygen_names_its_files_and_they_name_pages() -> None:
    data = (
        'var indexSectionsWithContent =\n{\n  0: "abc",\n  1: "c",\n  2: "ab"\n};\n'
        'var indexSectionNames =\n{\n  0: "all",\n  1: "classes",\n  2: "pages"\n};\n'
    )
    file = (
        "var searchData=\n[\n  ['bend_0',['bend',['../classCone.html#a1',1,'Cone']]],\n"
        "  ['cone_1',['Cone',['../classCone.html',1,'']]]\n];\n"
    )

    assert doxygen_files(data) == [
        "search/pages_0.js",
        "search/pages_1.js",
        "search/classes_0.js",
    ]
    assert read_doxygen_search([file], ROOT).pages == (
        ListedPage(f"{ROOT}classCone.html", "Cone", ["bend Cone"]),
    )


def test_page_of_doxygen_without_a_title_of_its_own_is_not_called_as_its_first_member_is() -> None:
    tree = 'var NAVTREE = [["get", "structOven.html#a1", null], ["Heat", "heat.html", null]]'
    search = "var searchData=[['get_0',['get',['../structOven.html#a1',1,'Oven']]]];"

    assert read_doxygen_tree([tree], ROOT).pages == (
        ListedPage(f"{ROOT}structOven.html", "", ["get"]),
        ListedPage(f"{ROOT}heat.html", "Heat"),
    )
    assert read_doxygen_search([search], ROOT).pages == (
        ListedPage(f"{ROOT}structOven.html", "", ["get Oven"]),
    )


def test_files_of_doxygen_are_read_beyond_the_entries_of_other_indexes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("webrag.ingestion.site_maps.indexes._MAX_ENTRIES", 1)
    tree = 'var NAVTREE = [["Cone", "cone.html", null], ["Heat", "heat.html", null]]'
    search = "var searchData=[['a',['Cone',['../cone.html'],['../heat.html']]]];"

    assert len(read_doxygen_tree([tree], ROOT).pages) == 2
    assert len(read_doxygen_search([search], ROOT).pages) == 2


def test_deep_navigation_is_read_to_its_limit() -> None:
    text = "var NAVTREE = " + '[["A","a.html",' * 300 + "null" + "]]" * 300

    assert len(read_doxygen_tree([text], ROOT).pages) == 1


READERS: list[Callable[[str, str], SiteListing]] = [
    lambda text, root: read_javadoc([text], root),
    lambda text, root: read_doxygen_tree([f"x={text}"], root),
    lambda text, root: read_doxygen_search([f"searchData={text}"], root),
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**6) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["n", "t", "q", "d", "i", "p", "l", "c", "m", "u", "kiln"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("read", READERS)
@given(value=VALUES)
def test_whatever_the_file_holds_it_is_read_or_refused(
    read: Callable[[str, str], SiteListing], value: object
) -> None:
    text = json.dumps(value)
    for each in (text, f"[{text}]", f'{{"k": {text}}}', text[: len(text) // 2]):
        try:
            found = read(each, ROOT)
        except MapRefusedError:
            continue
        assert all(page.url.startswith("https://docs.test/") for page in found.pages)
