import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pattern_attacks import stopped_after
from webrag.corpus.site_index import MapIndex, pack_listing
from webrag.ingestion.site_maps.indexes import (
    read_docusaurus,
    read_json_list,
    read_llms,
    read_mdbook,
    read_mkdocs,
    read_vitepress,
    vitepress_next,
)
from webrag.ingestion.site_maps.listing import (
    ListedPage,
    MapContent,
    MapRefusedError,
    Section,
    SiteListing,
)

ROOT = "https://docs.test/en/"
FIRING = f"{ROOT}guide/firing/"
WHOLE = ListedPage(
    FIRING,
    "Firing",
    ["Ramp and soak"],
    [Section("Firing", "Cone five."), Section("Ramp and soak", "Hold for ten minutes.")],
)
ROWS = [
    {"location": "", "title": "Kiln", "text": "<p>Welcome.</p>"},
    {"location": "guide/firing/", "title": "Firing", "text": "<p>Cone <b>five</b>.</p>"},
    {
        "location": "guide/firing/#ramp-and-soak",
        "title": "Ramp and soak",
        "text": "Hold for ten minutes.",
    },
]


@pytest.mark.parametrize("key", ["docs", "items"])
def test_index_of_mkdocs_or_zensical_gives_pages_with_headings_and_text(key: str) -> None:
    found = read_mkdocs(json.dumps({"config": {"lang": ["en"]}, key: ROWS}), ROOT)

    assert found.pages == (ListedPage(ROOT, "Kiln", [], [Section("Kiln", "Welcome.")]), WHOLE)


def mdbook() -> dict[str, object]:
    docs = {
        "0": {"title": "Firing", "body": "Cone five.", "breadcrumbs": "Firing", "id": "0"},
        "1": {"title": "Ramp and soak", "body": "Hold for ten minutes.", "id": "1"},
        "10": {"title": "Late", "body": "Unlisted.", "id": "10"},
    }
    return {
        "doc_urls": ["guide/firing/#firing", "guide/firing/#ramp-and-soak"],
        "index": {"documentStore": {"docs": dict(sorted(docs.items(), reverse=True))}},
    }


@pytest.mark.parametrize(
    "written",
    [
        lambda text: f"Object.assign(window.search, {text});",
        lambda text: f"window.search = Object.assign(window.search, JSON.parse({text!r}));",
        lambda text: text,
    ],
)
def test_index_of_mdbook_gives_pages_named_by_their_first_section(
    written: Callable[[str], str],
) -> None:
    page = read_mdbook(written(json.dumps(mdbook())), ROOT).pages[0]

    assert (page.url, page.title, page.sections) == (WHOLE.url, WHOLE.title, WHOLE.sections)
    assert page.names == ["Firing", "Ramp and soak"]


def test_indexes_of_docusaurus_give_pages_headings_and_texts() -> None:
    parts = [
        {"documents": [{"i": 1, "t": "Firing", "u": "/en/guide/firing/", "b": []}], "index": {}},
        {
            "documents": [
                {"i": 2, "t": "Ramp and soak", "u": "/en/guide/firing/", "h": "#ramp", "p": 1}
            ]
        },
        {
            "documents": [
                {"i": 3, "t": "Hold.", "s": "Ramp", "u": "/en/guide/firing/", "h": "", "p": 1}
            ]
        },
    ]

    assert read_docusaurus(json.dumps(parts), ROOT).pages == (
        ListedPage(FIRING, "Firing", ["Ramp and soak"], [Section("", "Ramp. Hold.")]),
    )


def test_other_index_of_docusaurus_gives_sections() -> None:
    row = {"id": 1, "pageTitle": "Firing", "sectionTitle": "Ramp", "sectionRoute": "/en/f#ramp"}

    page = read_docusaurus(json.dumps({"documents": [row]}), ROOT).pages[0]

    assert (page.url, page.names) == (f"{ROOT}f", ["Ramp"])


def test_index_of_vitepress_is_found_from_file_to_file_and_read() -> None:
    data = json.dumps(
        {
            "documentCount": 2,
            "documentIds": {"0": "/en/guide/firing/", "1": "/en/guide/firing/#ramp"},
            "storedFields": {
                "0": {"title": "Firing", "titles": []},
                "1": {"title": "Ramp and soak's", "titles": ["Firing"]},
            },
            "index": [["cone", {"2": {"0": 1}}], ["hold", {"2": {"1": 2}}]],
        }
    )
    written = (
        "const t='" + data.replace("\\", "\\\\").replace("'", "\\'") + "';export{t as default};"
    )

    found = read_vitepress(written, ROOT)

    words = [Section("Firing", "cone"), Section("Ramp and soak's", "hold")]
    assert found.pages == (ListedPage(FIRING, "Firing", ["Ramp and soak's"], words),)
    theme = 'const a=()=>import("./VPLocalSearchBox.Dq1_x-.js");'
    assert vitepress_next(theme) == "VPLocalSearchBox.Dq1_x-.js"
    box = '{root:()=>import("./@localSearchIndexroot.CZ9.js")}'
    assert vitepress_next(box) == "@localSearchIndexroot.CZ9.js"


@pytest.mark.parametrize(
    "data",
    [
        [{"title": "Firing", "permalink": "/en/guide/firing/", "summary": "Cone five."}],
        {"0": {"title": "Firing", "url": "guide/firing/", "content": "Cone five.", "doc": "x"}},
        {"pages": [{"title": "Firing", "uri": "guide/firing/", "content": "Cone five."}]},
    ],
)
def test_lists_of_pages_as_themes_of_hugo_and_jekyll_write_them_are_read(data: object) -> None:
    assert read_json_list(json.dumps(data), ROOT).pages == (
        ListedPage(FIRING, "Firing", [], [Section("Firing", "Cone five.")]),
    )


def test_links_of_llms_txt_are_pages_with_what_is_said_of_them() -> None:
    text = (
        "# Kiln\n\n> About.\n\n- [Firing](guide/firing/): Cone five.\n- [Out](https://evil.test/)\n"
    )

    assert read_llms(text, ROOT).pages == (
        ListedPage(FIRING, "Firing", [], [Section("Firing", "Cone five.")]),
    )


@pytest.mark.parametrize(
    "link",
    [
        '[Firing](guide/firing/ "Of cones")',
        "[Firing [new]](guide/firing/)",
        "[Firing]( <guide/firing/> )",
        f"[{'Firing ' * 40}](guide/firing/)",
    ],
)
def test_link_of_llms_txt_is_read_however_it_is_written(link: str) -> None:
    assert [page.url for page in read_llms(f"- {link}: Cone five.", ROOT).pages] == [FIRING]


VITEPRESS = {
    "documentCount": 1,
    "documentIds": {"0": "/en/a"},
    "index": [["cone", {"2": {"0": 1}}]],
}


@pytest.mark.parametrize(
    ("found", "content"),
    [
        (lambda: read_mkdocs(json.dumps({"docs": ROWS}), ROOT), "texts"),
        (lambda: read_mdbook(json.dumps(mdbook()), ROOT), "texts"),
        (lambda: read_mkdocs(json.dumps({"docs": [{**ROWS[0], "text": ""}]}), ROOT), "names"),
        (lambda: read_json_list('[{"title": "A", "url": "a", "content": "Cone."}]', ROOT), "texts"),
        (lambda: read_json_list('[{"title": "A", "url": "a", "summary": "Cone."}]', ROOT), "names"),
        (lambda: read_vitepress(f"const t='{json.dumps(VITEPRESS)}'", ROOT), "words"),
        (lambda: read_llms("[Firing](guide/firing/): Cone five.", ROOT), "names"),
    ],
)
def test_only_texts_in_the_order_of_the_page_are_its_own(
    found: Callable[[], SiteListing], content: MapContent
) -> None:
    assert found().content == content


def test_half_surrogate_of_a_cut_text_loses_no_map() -> None:
    rows = [{"location": "a", "title": "A \ud83d", "text": "Cone \ud83d"}]

    found = read_mkdocs(json.dumps({"docs": rows}), ROOT)

    assert MapIndex(pack_listing(found)).passages_about(0, ["cone"]) == [
        Section("A \ufffd", "Cone \ufffd")
    ]


def test_no_text_is_kept_once_names_have_used_up_what_may_be_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("webrag.ingestion.site_maps.listing._MAX_TOTAL_CHARS", 5)

    page = read_mkdocs(json.dumps({"docs": ROWS[2:]}), ROOT).pages[0]

    assert (page.names, page.sections) == (["Ramp and soak"], [])


def test_blocks_of_html_are_parted_and_words_with_marks_are_not() -> None:
    text = "<p>One</p><ul><li>t<b>w</b>o</li></ul><td>port</td><td>95</td>"

    page = read_mkdocs(json.dumps({"docs": [{**ROWS[0], "text": text}]}), ROOT).pages[0]

    assert page.sections[0].text.split() == ["One", "two", "port", "95"]


def test_pages_of_other_sites_are_left_out() -> None:
    rows = [{"location": "https://evil.test/a", "title": "A", "text": "a"}, ROWS[1]]

    found = read_mkdocs(json.dumps({"docs": rows}), ROOT)

    assert [page.url for page in found.pages] == [FIRING]


READERS = [read_mkdocs, read_mdbook, read_docusaurus, read_vitepress, read_json_list, read_llms]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "docs",
                    "items",
                    "location",
                    "title",
                    "text",
                    "index",
                    "doc_urls",
                    "documentStore",
                    "0",
                    "u",
                    "t",
                ]
            ),
            inner,
            max_size=4,
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
    for each in (text, f"x({text})", text[: len(text) // 2]):
        try:
            found = read(each, ROOT)
        except MapRefusedError:
            continue
        assert all(page.url.startswith("https://docs.test/") for page in found.pages)


@pytest.mark.parametrize("unit", ["[a](b", "[", "](", '"documentCount"', "@localSearchIndex.", "<"])
def test_hostile_texts_take_little_time(unit: str) -> None:
    with stopped_after(10):
        for read in READERS:
            with pytest.raises(MapRefusedError):
                read(unit * 50_000, ROOT)
        vitepress_next(unit * 50_000)
