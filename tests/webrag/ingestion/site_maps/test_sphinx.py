import pytest

from webrag.ingestion.site_maps.indexes import read_search_index
from webrag.ingestion.site_maps.listing import ListedPage, MapRefusedError

ROOT = "https://docs.test/en/"
# As Sphinx 3 and Sphinx 8 write it.
OLD = (
    'Search.setIndex({docnames:["guide/kiln","index"],envversion:{sphinx:56},filenames:'
    '["guide/kiln.rst","index.rst"],objects:{"kiln.heat":{fire:[0,1,1,""]}},objnames:{},'
    'terms:{cone:0,"default":[0,1],ramp:[0]},titles:["Firing a kiln","Welcome"],'
    "titleterms:{fire:0,kiln:[0],welcom:1}})"
)
NEW = (
    'Search.setIndex({"alltitles": {"Ramp and soak": [[0, "ramp-and-soak"]]}, "docnames":'
    ' ["guide/kiln", "index"], "envversion": {"sphinx": 61}, "filenames": ["guide/kiln.rst",'
    ' "index.rst"], "indexentries": {"pyrometric cone": [[0, "term-cone", false]]}, "objects":'
    ' {"kiln.heat": [[0, 0, 1, "", "fire"]]}, "objnames": {}, "objtypes": {}, "terms": {"cone": 0,'
    ' "default": [0, 1], "ramp": [0]}, "titles": ["Firing a <code>kiln</code> &amp; more",'
    ' "Welcome"], "titleterms": {"fire": 0}})'
)


@pytest.mark.parametrize("text", [OLD, NEW])
def test_index_names_pages_and_where_stems_occur(text: str) -> None:
    found = read_search_index(text, ROOT, f"{ROOT}index.html")

    assert [page.url for page in found.pages] == [f"{ROOT}guide/kiln.html", f"{ROOT}index.html"]
    assert found.occurrences == {"cone": [0], "default": [0, 1], "ramp": [0]}
    assert "kiln.heat.fire" in found.pages[0].names
    assert found.content == "words"


def test_headings_and_index_entries_are_names_of_their_page() -> None:
    page = read_search_index(NEW, ROOT, f"{ROOT}index.html").pages[0]

    assert page == ListedPage(
        f"{ROOT}guide/kiln.html",
        "Firing a kiln & more",
        ["Ramp and soak", "pyrometric cone", "kiln.heat.fire"],
    )


def test_pages_are_folders_where_the_page_known_is_one() -> None:
    found = read_search_index(NEW, ROOT, f"{ROOT}guide/start/")

    assert [page.url for page in found.pages] == [f"{ROOT}guide/kiln/", ROOT]


@pytest.mark.parametrize("start", ["", "library/"])
def test_pages_are_files_where_the_page_known_is_the_index_of_a_folder(start: str) -> None:
    names = 'docnames:["index","library/index","library/task"]'
    text = f'Search.setIndex({{{names},titles:["Docs","Library","Tasks"],terms:{{}}}})'

    found = read_search_index(text, ROOT, f"{ROOT}{start}")

    assert found.pages[2].url == f"{ROOT}library/task.html"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Search.setIndex([])",
        "Search.setIndex({docnames:{},titles:[],terms:{}})",
        "Search.setIndex({docnames:[1,2],titles:[],terms:{}})",
        "Search.setIndex(window.location='https://evil.test')",
    ],
)
def test_files_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(MapRefusedError):
        read_search_index(text, ROOT, ROOT)


def test_index_without_a_table_of_words_keeps_its_titles() -> None:
    found = read_search_index('Search.setIndex({docnames:["a"],titles:["A"],terms:[]})', ROOT, ROOT)

    assert [page.title for page in found.pages] == ["A"]
    assert found.content == "names"


def test_numbers_that_are_no_documents_are_passed_over() -> None:
    text = 'Search.setIndex({docnames:["a"],titles:["A"],terms:{x:[0,7,-1,true,"0"],y:9}})'

    assert read_search_index(text, ROOT, ROOT).occurrences == {"x": [0]}
