from typing import Any
from uuid import UUID

import pytest

from webrag.errors import InputError
from webrag.tool_inputs import (
    AnswerInput,
    ForgetInput,
    IngestInput,
    ReadInput,
    SearchInput,
    StatusInput,
    ToolInput,
    VerifyInput,
    pages_or_sites,
)

URL = "https://a.org/"


def read(tool: type[ToolInput], **values: Any) -> Any:
    return tool.model_validate(values)


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        pytest.param(URL, [URL], id="one text"),
        pytest.param(["a", "b"], ["a", "b"], id="list"),
        pytest.param('["a", "b"]', ["a", "b"], id="list inside a text"),
        pytest.param("[not json", ["[not json"], id="text that begins like a list"),
        pytest.param(None, None, id="omitted"),
        pytest.param(" ", None, id="blank"),
        pytest.param([], None, id="empty"),
    ],
)
def test_list_is_read_in_every_form_clients_send(value: Any, texts: list[str] | None) -> None:
    assert read(SearchInput, query="q", source_urls=value).source_urls == texts


def test_pattern_of_addresses_is_no_page_to_search() -> None:
    sites = ["https://python.org/3/*"]

    assert pages_or_sites(None, sites) == (None, sites)


@pytest.mark.parametrize("name", ["no_confirm", "page"])
def test_name_that_means_something_else_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=name):
        read(ForgetInput, url=[URL], **{name: True})


@pytest.mark.parametrize(
    ("tool", "values", "meant"),
    [
        (SearchInput, {"query": "q", "url": URL}, {"query": "q", "source_urls": [URL]}),
        (SearchInput, {"question": "q", "limit": 3}, {"query": "q", "top_k": 3}),
        (SearchInput, {"query": "q", "wording": ["a"]}, {"query": "q", "wordings": ["a"]}),
        (ReadInput, {"link": URL, "maxTokens": 300}, {"url": URL, "max_tokens": 300}),
        (
            AnswerInput,
            {"urls": URL, "query": "q", "reserch_mode": "deep"},
            {"url": [URL], "query": "q", "research_mode": "deep"},
        ),
        (
            VerifyInput,
            {"url": URL, "quote": "q", "live": False},
            {"citations": [{"url": URL, "quote": "q"}], "live": False},
        ),
    ],
)
def test_argument_under_another_name_is_understood(
    tool: type[ToolInput], values: dict[str, Any], meant: dict[str, Any]
) -> None:
    assert read(tool, **values).model_dump(exclude_unset=True) == meant


def test_name_that_means_what_is_given_already_is_refused() -> None:
    with pytest.raises(InputError, match="search has no argument 'question'"):
        read(SearchInput, query="q", question="another")


@pytest.mark.parametrize("value", [7, {"a": 1}, [1, 2], ["a", None], [["a"]]])
def test_list_of_anything_but_texts_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="it must be text"):
        read(IngestInput, url=value)


@pytest.mark.parametrize("values", [{}, {"url": None}, {"url": ""}, {"url": []}])
def test_required_list_must_name_something(values: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="url is missing"):
        read(IngestInput, **values)


@pytest.mark.parametrize(
    ("tool", "values", "said"),
    [
        (IngestInput, {"url": [URL, 5]}, "url takes a list, whose entry 2 is 5; it must be text."),
        (
            IngestInput,
            {"url": URL, "max_pages": 0},
            "max_pages is 0; it must be a whole number from 1 to 1,000,000.",
        ),
        (
            SearchInput,
            {"query": "q", "top_k": 2**63},
            "top_k is 9223372036854775808; it must be a whole number from 1, below"
            " 9,223,372,036,854,775,808.",
        ),
    ],
)
def test_refusal_says_which_value_is_wrong_and_what_is_allowed(
    tool: type[ToolInput], values: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError) as caught:
        read(tool, **values)

    assert str(caught.value) == said


def test_arguments_that_are_no_object_are_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match="This is 5; it must be an object with url, confirm"):
        ForgetInput.model_validate(5)


def test_site_is_crawled_from_a_page_that_is_named_twice() -> None:
    given = read(IngestInput, url=[URL, f"{URL}#part", "A.org"], max_pages=5)

    assert given.crawl().max_pages == 5


def test_question_that_looks_like_json_stays_a_text() -> None:
    assert read(SearchInput, query='{"a": [1]}').query == '{"a": [1]}'


@pytest.mark.parametrize("value", [None, 3, ["x"], True])
def test_question_must_be_a_text(value: Any) -> None:
    with pytest.raises(InputError, match="query is"):
        read(SearchInput, query=value)


@pytest.mark.parametrize("value", ["a\x00b", "half \ud800"])
def test_text_that_cannot_be_stored_is_refused(value: str) -> None:
    with pytest.raises(InputError, match="contains holds"):
        read(StatusInput, contains=value)


def test_choice_ignores_letter_case() -> None:
    given = read(AnswerInput, url=URL, query="q", research_mode=" Deep ")

    assert given.question(urls=given.url).research_mode == "deep"


def test_unknown_choice_names_the_allowed_words() -> None:
    with pytest.raises(InputError) as caught:
        read(AnswerInput, url=URL, query="q", research_mode="slow")

    assert str(caught.value) == "research_mode is 'slow'; it must be one of fast, deep."


@pytest.mark.parametrize(
    ("value", "number"), [(3, 3), ("3", 3), (3.0, 3), (None, None), ("", None)]
)
def test_whole_number_is_read_from_number_or_text(value: Any, number: int | None) -> None:
    assert read(SearchInput, query="q", top_k=value).top_k == number


@pytest.mark.parametrize(
    ("value", "words"),
    [(["Code", "table"], ["code", "table"]), ('["code"]', ["code"]), ("table", ["table"])]
    + [(empty, None) for empty in (None, "", [])],
)
def test_choices_are_read_in_every_form_clients_send(value: Any, words: list[str] | None) -> None:
    assert read(SearchInput, query="q", has=value).has == words


@pytest.mark.parametrize(
    ("value", "numbers"),
    [([2024, "2025"], [2024, 2025]), ("[2024]", [2024]), (2024, [2024]), (None, None), ([], None)],
)
def test_whole_numbers_are_read_in_every_form_clients_send(
    value: Any, numbers: list[int] | None
) -> None:
    assert read(SearchInput, query="q", years=value).years == numbers


@pytest.mark.parametrize("value", [["x"], {"a": 1}, [[2024]], "2024, 2025", [True]])
def test_list_of_anything_but_whole_numbers_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="it must be a whole number from 1"):
        read(SearchInput, query="q", years=value)


@pytest.mark.parametrize("value", [0, -1, 2.5, "many", True, [1], "9" * 5000, float("inf")])
def test_other_numbers_are_refused_in_one_short_sentence(value: Any) -> None:
    with pytest.raises(InputError) as caught:
        read(SearchInput, query="q", top_k=value)

    assert str(caught.value).endswith("; it must be a whole number from 1.")
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize(
    ("value", "flag"), [(True, True), ("false", False), (0, False), (None, False), ("YES", True)]
)
def test_flag_is_read_from_words_and_numbers(value: Any, flag: bool) -> None:
    assert read(IngestInput, url=URL, refresh=value).refresh is flag


def test_other_flag_is_refused() -> None:
    with pytest.raises(InputError, match="it must be true or false"):
        read(IngestInput, url=URL, refresh="maybe")


def test_id_is_read_from_the_address_of_its_passage() -> None:
    identity = UUID(int=7)

    assert read(ReadInput, passage_id=f"webrag://passage/{identity}").passage_id == identity


@pytest.mark.parametrize("value", [{"quote": "q"}, [{"quote": "q"}], '[{"quote": "q"}]'])
def test_one_citation_is_taken_for_a_list_of_one(value: Any) -> None:
    assert read(VerifyInput, citations=value).citations == [{"quote": "q"}]


def test_least_length_of_what_is_read_is_shown() -> None:
    told = ReadInput.model_json_schema()["properties"]["max_tokens"]["description"]

    with pytest.raises(InputError, match="a whole number from 200"):
        read(ReadInput, url=URL, max_tokens=199)
    assert "from 200" in told


def test_unlisted_argument_is_taken_and_not_shown() -> None:
    assert read(StatusInput, include_urls="no").include_urls is False
    assert "include_urls" not in StatusInput.model_json_schema()["properties"]


@pytest.mark.parametrize(
    ("sites", "pages", "hosts"),
    [
        (["https://docs.test/guide.html"], ("https://docs.test/guide.html",), None),
        (["docs.test/guide/"], ("https://docs.test/guide/",), None),
        (["https://docs.test/"], None, ("docs.test",)),
        (["docs.test@1.5"], None, ("docs.test@1.5",)),
        (["github.com/owner/tool@v2"], None, ("github.com/owner/tool@v2",)),
    ],
)
def test_page_named_as_a_site_is_searched_alone(
    sites: list[str], pages: tuple[str, ...] | None, hosts: tuple[str, ...] | None
) -> None:
    asked = SearchInput(query="How?", sites=sites).question()

    assert (asked.source_urls, asked.sites) == (pages, hosts)
