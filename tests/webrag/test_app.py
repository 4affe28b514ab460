"""WebRAG as a library: the real parts on a real database and a site on loopback."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kept_collections import KeptCollections
from webrag import WebRAG
from webrag.errors import ConfigurationError, InputError, WebRAGError
from webrag.question import MAX_QUESTION_CHARS
from webrag.settings import Settings, load_settings

AT_SEED = "When does the ferry leave the island?"
TWO_LINKS_AWAY = "How many crowns does a bicycle cost?"
FARE = "A bicycle costs four crowns on the ferry"

SITE = {
    "/": """<html><head><title>Ferry</title></head><body><main><h1>The island ferry</h1>
<p>The ferry leaves the island at seven, at noon and at five, on every day of the year.</p>
<p>What a passage costs is told by <a href="/tickets.html">tickets and fares</a>.</p>
</main></body></html>""",
    "/tickets.html": """<html><head><title>Tickets</title></head><body><main><h1>Tickets</h1>
<p>Tickets are sold on board by the mate, who takes coins only.</p>
<p>Goods are listed with the <a href="/bicycles.html">fares of bicycles and luggage</a>.</p>
</main></body></html>""",
    "/bicycles.html": """<html><head><title>Bicycles</title></head><body><main>
<h1>Bicycles and luggage</h1><h2>Fares</h2>
<p>A bicycle costs four crowns on the ferry, and a trunk costs two.</p></main></body></html>""",
}


@pytest.fixture
def site(static_site: Any) -> Any:
    """Three pages; each links to the next."""
    return static_site(dict(SITE), validators=True)


@pytest.fixture
def settings(postgres_dir: Path) -> Settings:
    name = f"test_{uuid.uuid4().hex[:16]}"
    return load_settings(data_dir=postgres_dir, collection=name).allowing(["127.0.0.1"])


@pytest.fixture
async def rag(settings: Settings, kept_collections: KeptCollections) -> AsyncIterator[WebRAG]:
    """WebRAG, open on a collection of its own."""
    opened = WebRAG(settings)
    await opened.open()
    yield opened
    await kept_collections.take_back_from(opened)


async def test_opening_and_closing_twice_is_allowed_and_pages_stay(rag: WebRAG, site: Any) -> None:
    await rag.ingest(f"{site}/")
    await rag.open()
    await rag.close()
    await rag.close()

    async with rag:
        assert (await rag.status()).documents == 1


async def test_fast_answer_reads_the_named_page_only(rag: WebRAG, site: Any) -> None:
    result = await rag.answer(f"{site}/", AT_SEED)

    assert "at seven, at noon and at five" in rag.evidence(result)[0].text
    assert site.paths == ["/"]


async def test_deep_answer_finds_a_page_two_links_away(rag: WebRAG, site: Any) -> None:
    result = await rag.answer(f"{site}/", TWO_LINKS_AWAY, research_mode="deep")

    best = rag.evidence(result)[0]
    assert (best.url, FARE in best.text) == (f"{site}/bicycles.html", True)
    assert result.urls_fetched[0] == f"{site}/"
    assert [FARE in citation.verbatim_text for citation in result.citations].count(True) == 1


UNKNOWN = "How tall are the giraffes of the zoo?"


async def test_links_not_followed_are_named_where_the_answer_is_missing(
    rag: WebRAG, site: Any
) -> None:
    result = await rag.answer(f"{site}/", UNKNOWN)

    (link,) = result.next_links
    assert (link.url, link.anchor) == (f"{site}/tickets.html", "tickets and fares")
    assert (link.page_url, link.heading) == (f"{site}/", "The island ferry")


async def test_search_that_finds_no_answer_names_links_of_what_it_matched(
    rag: WebRAG, site: Any
) -> None:
    await rag.ingest(f"{site}/")

    result = await rag.search("Who sells giraffes and elephants to the island?")

    assert [link.url for link in result.next_links] == [f"{site}/tickets.html"]
    assert site.paths == ["/"]


async def test_sure_answer_of_one_page_names_no_links(rag: WebRAG, site: Any) -> None:
    result = await rag.answer(f"{site}/", AT_SEED)

    assert (result.confidence_band, result.next_links) == ("high", ())


async def test_deep_answer_names_no_link_that_was_followed(rag: WebRAG, site: Any) -> None:
    result = await rag.answer(f"{site}/", TWO_LINKS_AWAY, research_mode="deep")

    assert not {link.url for link in result.next_links} & set(result.urls_fetched)


async def test_every_citation_is_the_slice_of_the_stored_text(rag: WebRAG, site: Any) -> None:
    result = await rag.answer(f"{site}/", TWO_LINKS_AWAY, research_mode="deep")

    printed = [block.citation for block in rag.evidence(result) if block.citation is not None]
    spans = [*result.citations, *printed]
    texts = {span.source_url: await rag.markdown(span.source_url) or "" for span in spans}
    assert len(texts) == 3
    assert [texts[span.source_url][span.char_start : span.char_end] for span in spans] == [
        span.verbatim_text for span in spans
    ]


async def test_brief_quotes_the_answer_with_its_page(rag: WebRAG, site: Any) -> None:
    brief = rag.brief(await rag.answer(f"{site}/", AT_SEED))

    quotation = brief.split("[CITATIONS]")[1]
    assert "\u27eaThe ferry leaves the island at seven" in quotation
    assert f"\u2014 {site}/ (" in brief.split("[CITATIONS]")[0]


async def test_expansion_budget_of_zero_follows_no_link(rag: WebRAG, site: Any) -> None:
    await rag.answer(f"{site}/", TWO_LINKS_AWAY, research_mode="deep", expansion_budget=0)

    assert site.paths == ["/"]


async def test_answers_at_the_same_time_share_one_fetch(rag: WebRAG, site: Any) -> None:
    questions = [AT_SEED, TWO_LINKS_AWAY, "Who runs the ferry?", "How many days a year?"]

    results = await asyncio.gather(*(rag.answer(f"{site}/", text) for text in questions))

    assert [result.query for result in results] == questions
    assert site.paths == ["/"]
    assert (await rag.status()).documents == 1


async def test_search_finds_what_is_stored_and_asks_no_site(rag: WebRAG, site: Any) -> None:
    await rag.ingest([f"{site}{path}" for path in SITE])
    site.requests.clear()

    result = await rag.search(TWO_LINKS_AWAY)

    assert rag.evidence(result)[0].url == f"{site}/bicycles.html"
    assert site.requests == []


async def test_search_stays_within_the_named_pages(rag: WebRAG, site: Any) -> None:
    await rag.ingest([f"{site}{path}" for path in SITE])

    result = await rag.search(TWO_LINKS_AWAY, source_urls=[f"{site}/tickets.html#top"])

    assert {chunk.chunk.source_url for chunk in result.chunks} == {f"{site}/tickets.html"}


async def test_search_stays_within_the_named_sites(rag: WebRAG, site: Any) -> None:
    await rag.ingest(f"{site}/")

    assert (await rag.search(AT_SEED, sites=["other.test"])).chunks == ()


async def test_search_of_an_empty_collection_says_so_and_what_to_do(rag: WebRAG) -> None:
    result = await rag.search(AT_SEED)

    brief = rag.brief(result)
    assert result.warnings == (
        f"Nothing is stored in the collection {rag.settings.collection!r} yet: fetch a page first.",
    )
    assert "There was no page to search." in brief
    assert brief.count(result.warnings[0]) == 1
    assert "`webrag answer URL QUESTION` with a likely page" in brief


async def test_search_that_a_first_page_came_too_late_for_names_no_filters(
    rag: WebRAG, site: Any
) -> None:
    async def store(phase: str, *_: Any) -> None:
        if phase == "assembly":
            await rag.ingest(f"{site}/")

    result = await rag.search(AT_SEED, on_progress=store)

    assert result.warnings == ("No stored page could be searched; `status` lists what is stored.",)


async def test_search_whose_filters_leave_no_page_names_them(rag: WebRAG, site: Any) -> None:
    await rag.ingest(f"{site}/")

    result = await rag.search(AT_SEED, sites=["other.test"])

    assert result.warnings == ("No stored page matches other.test; `status` lists what is stored.",)


async def test_ingest_stores_the_other_pages_when_one_fails(rag: WebRAG, site: Any) -> None:
    heard: list[tuple[str, bool]] = []

    report = await rag.ingest(
        [f"{site}/", f"{site}/none.html", f"{site}/tickets.html", f"{site}/#again"],
        on_page=lambda url, outcome: heard.append((url, isinstance(outcome, WebRAGError))),
    )

    assert [page.url for page in report.pages] == [f"{site}/", f"{site}/tickets.html"]
    assert list(report.failed) == [f"{site}/none.html"]
    assert "404" in report.failed[f"{site}/none.html"]
    assert sorted(heard) == [
        (f"{site}/", False), (f"{site}/none.html", True), (f"{site}/tickets.html", False)
    ]  # fmt: skip


async def test_stored_page_is_not_asked_for_again_unless_refreshed(rag: WebRAG, site: Any) -> None:
    outcomes = [
        (await rag.ingest(f"{site}/", refresh=refresh)).pages[0].outcome
        for refresh in (False, False, True)
    ]

    assert outcomes == ["indexed", "stored", "unchanged"]
    assert site.paths == ["/", "/"]


async def test_refresh_replaces_what_has_changed(rag: WebRAG, static_site: Any) -> None:
    routes = dict(SITE)
    site = static_site(routes)
    await rag.ingest(f"{site}/")
    routes["/"] = routes["/"].replace("at seven", "at eight")

    report = await rag.ingest(f"{site}/", refresh=True)

    assert report.pages[0].outcome == "updated"
    assert "at eight" in (await rag.markdown(f"{site}/") or "")


async def test_status_counts_what_the_collection_holds(rag: WebRAG, site: Any) -> None:
    await rag.ingest([f"{site}/", f"{site}/tickets.html"])

    status = await rag.status()

    assert (status.collection, status.documents) == (rag.settings.collection, 2)
    assert (status.embedding_dimensions, status.available_embedding_model) == (256, None)
    assert {page.url for page in status.pages} == {f"{site}/", f"{site}/tickets.html"}


async def test_status_tells_about_one_page(rag: WebRAG, site: Any) -> None:
    await rag.ingest([f"{site}/", f"{site}/tickets.html"])

    status = await rag.status(f"{site}/tickets.html")

    assert [page.title for page in status.pages] == ["Tickets"]


async def test_status_tells_which_model_a_new_collection_would_get(rag: WebRAG) -> None:
    await rag.close()
    with_key = load_settings(
        data_dir=rag.settings.data_dir, collection=rag.settings.collection, openai_api_key="sk-none"
    )

    async with WebRAG(with_key) as other:
        status = await other.status()

    assert status.embedding_model == "bundled/wordllama-256-logtf"
    assert status.available_embedding_model == "openai/text-embedding-3-small"


async def test_links_of_a_stored_page_come_in_page_order(rag: WebRAG, site: Any) -> None:
    await rag.ingest(f"{site}/")

    assert [link.url for link in await rag.links([f"{site}/"])] == [f"{site}/tickets.html"]


async def test_text_of_a_page_that_is_not_stored_is_none(rag: WebRAG) -> None:
    assert await rag.markdown("http://127.0.0.1:1/none") is None


async def test_clear_leaves_an_empty_collection_that_can_be_used(rag: WebRAG, site: Any) -> None:
    await rag.ingest(f"{site}/")

    await rag.clear()

    assert (await rag.status()).documents == 0
    assert (await rag.ingest(f"{site}/")).pages[0].outcome == "indexed"


async def test_dropping_the_collection_closes(rag: WebRAG) -> None:
    await rag.drop_collection()

    with pytest.raises(InputError, match="not open"):
        await rag.status()


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda rag: rag.answer("http://a.test/", "why?"), id="answer"),
        pytest.param(lambda rag: rag.search("why?"), id="search"),
        pytest.param(lambda rag: rag.ingest("http://a.test/"), id="ingest"),
        pytest.param(lambda rag: rag.status(), id="status"),
        pytest.param(lambda rag: rag.links(["http://a.test/"]), id="links"),
        pytest.param(lambda rag: rag.markdown("http://a.test/"), id="markdown"),
        pytest.param(lambda rag: rag.clear(), id="clear"),
    ],
)
async def test_use_before_opening_says_how_to_open(call: Callable[[WebRAG], Any]) -> None:
    with pytest.raises(InputError, match=r"not open: use it in an `async with` block"):
        await call(WebRAG(load_settings()))


QUESTIONS = [
    pytest.param("", "is empty", id="empty"),
    pytest.param(" \n\t", "is empty", id="only-white-space"),
    pytest.param("why\x00?", "NUL", id="nul"),
    pytest.param("x" * (MAX_QUESTION_CHARS + 1), "at most 8,000", id="too-long"),
]


@pytest.mark.parametrize(("question", "reason"), QUESTIONS)
async def test_answer_refuses_what_is_no_question(question: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        await WebRAG(load_settings()).answer("http://a.test/", question)


@pytest.mark.parametrize(("question", "reason"), QUESTIONS)
async def test_search_refuses_what_is_no_question(question: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        await WebRAG(load_settings()).search(question)


async def test_longest_question_is_answered(rag: WebRAG, site: Any) -> None:
    question = "ferry ".ljust(MAX_QUESTION_CHARS, "?")

    assert (await rag.answer(f"{site}/", question)).query == question


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("", id="empty"),
        pytest.param("no address", id="words"),
        pytest.param("ftp://a.test/", id="other-scheme"),
        pytest.param("file://host/etc/hosts", id="other-machine"),
        pytest.param("http://", id="no-host"),
        pytest.param([], id="none-named"),
    ],
)
async def test_answer_refuses_what_is_no_page_address(url: Any) -> None:
    with pytest.raises(InputError, match=r"URL|another machine"):
        await WebRAG(load_settings()).answer(url, "why?")


async def test_ingest_fetches_nothing_when_one_address_is_none(rag: WebRAG, site: Any) -> None:
    with pytest.raises(InputError):
        await rag.ingest([f"{site}/", "no address"])

    assert site.requests == []


@pytest.mark.parametrize(
    ("call", "named"),
    [
        pytest.param(
            lambda rag: rag.answer("http://a.test/", "why?", expansion_budget=-1),
            "expansion_budget is -1",
            id="negative-budget",
        ),
        pytest.param(lambda rag: rag.search("why?", top_k=0), "top_k is 0", id="no-results"),
    ],
)
async def test_number_that_makes_no_sense_is_named(
    call: Callable[[WebRAG], Any], named: str
) -> None:
    with pytest.raises(InputError, match=named):
        await call(WebRAG(load_settings()))


def test_unknown_argument_is_refused_in_the_name_of_webrag() -> None:
    for name in [
        each for each in dir(WebRAG) if callable(getattr(WebRAG, each)) and each[0] != "_"
    ]:
        said = rf"^WebRAG\.{name}\(\) got an unexpected keyword argument"
        with pytest.raises(TypeError, match=said):
            getattr(WebRAG(load_settings()), name)(no_such_argument=1)


async def test_stored_pages_are_counted_by_year_the_latest_first(
    rag: WebRAG, static_site: Any
) -> None:
    dated = '<html><head><meta property="article:published_time" content="{0}"></head><body><main>'
    dated += (
        "<h1>News {0}</h1><p>What was new on {0} is told on this page.</p></main></body></html>"
    )
    days = ("2024-02-01", "2025-03-01", "2024-05-01")
    site = static_site({f"/{day}": dated.format(day) for day in days} | {"/": SITE["/"]})
    await rag.ingest([f"{site}/", *(f"{site}/{day}" for day in days)])

    assert list((await rag.years()).items()) == [(2025, 1), (2024, 2)]


async def test_deep_question_tells_which_pages_it_fetches_in_which_round(
    rag: WebRAG, site: Any
) -> None:
    told: list[tuple[str, int | None]] = []

    def note(event: Any) -> None:
        if event.kind == "progress":
            told.append((event.detail, event.round))

    await rag.ask(TWO_LINKS_AWAY, url=f"{site}/", deep=True, on_event=note)

    assert any(f"{site}/" in detail for detail, _ in told)
    assert any("/tickets.html" in detail and number == 1 for detail, number in told)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("collection", r"collection is a setting: write WebRAG\(load_settings\(collection=...\)\)"),
        ("colection", "collection is a setting"),
        ("reranker_provider", "reranker_provider is a setting"),
        ("rerankers", "has no argument 'rerankers'; did you mean reranker"),
        ("zzz", "it takes settings, soft_deadline_s, .*is_own_user"),
    ],
)
def test_an_argument_that_webrag_has_not_names_what_is_meant(given: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        WebRAG(**{given: "x"})


def test_settings_that_are_none_are_refused_with_what_to_write() -> None:
    settings: Any = "my_collection"

    with pytest.raises(ConfigurationError, match=r"type str; give what load_settings returns"):
        WebRAG(settings)


async def test_page_is_chosen_by_its_text_in_the_sites_own_search_index(
    settings: Settings, static_site: Any
) -> None:
    """Only one page may be fetched, and nine have more of the question's words than it."""
    wordy = ("Crowns, crowns, many crowns. " * 4, "Bicycle. Bicycle. " * 4, "Cost: costs. " * 4)
    rows = [{"location": "fares.html", "title": "Fares", "text": f"{FARE}."}]
    rows += [
        {"location": f"words{n}.html#{at}", "title": "Words", "text": text}
        for n in range(9)
        for at, text in enumerate(wordy)
    ]
    mark = "<meta name='generator' content='mkdocs-1.6.1'><script>var base_url = '.';</script>"
    page = (
        "<html><head><title>{0}</title>{1}</head><body><main><h1>{0}</h1><p>{2}</p></main></body>"
    )
    site = static_site(
        {
            "/": page.format("Ferry", mark, "The island ferry leaves the island at seven."),
            "/search/search_index.json": json.dumps({"docs": rows}),
            "/fares.html": page.format("Fares", "", f"{FARE}."),
            **{f"/words{n}.html": page.format("Words", "", "".join(wordy)) for n in range(9)},
        }
    )

    async with WebRAG(settings.model_copy(update={"max_pages_per_run": 1})) as rag:
        result = await rag.answer(f"{site}/", TWO_LINKS_AWAY, research_mode="deep")
        await rag.drop_collection()

    assert [step.candidates_expanded for step in result.expansion_steps] == [
        (f"{site}/fares.html",)
    ]
