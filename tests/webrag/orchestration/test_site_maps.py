"""Runs over sites that keep a map of themselves, with the real fetcher, workers and Postgres."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from threading import Event
from typing import Any, get_args

import pytest
from llama_index.postprocessor.webrag.local_scoring import LocalScorer

from webrag.concurrency import all_of
from webrag.corpus.site_index import MapIndex, MarkedPage, SiteMapStore, StoredMap, pack_listing
from webrag.embedding.bundled_model import BundledModel
from webrag.ingestion.http.fetcher import HttpFetcher
from webrag.ingestion.models import FetchConfig, MapMark
from webrag.ingestion.site_maps.listing import ListedPage, MapContent, Section, SiteListing
from webrag.orchestration.engine import OrchestratorEngine
from webrag.orchestration.links.site_maps import KnownMap, SiteMaps, rank_maps
from webrag.orchestration.models import ExpansionConfig, OrchestrationConfig, SiteMapConfig
from webrag.process_pool.pool import WorkerPool
from webrag.question import Question
from webrag.wiring.rerankers import local_scorer

from .conftest import Lab, html, texts

QUESTION = "After how many seconds does the broker close an idle connection?"
MARK = "<script src='_static/documentation_options.js'></script></head>"
# No page links to `limits`, whose words are in the index as stems.
INDEX = (
    'Search.setIndex({docnames:["index","colours","limits"],titles:["Turnip manual","Colours",'
    '"Limits of connections"],terms:{broker:[0,2],idl:2,second:2,close:2,colour:1}})'
)
SITE = {
    "/index.html": html("Turnip manual", "The manual of the Turnip message broker.").replace(
        "</head>", MARK
    ),
    "/colours.html": html("Colours", "The mascot of the broker is purple and white."),
    "/limits.html": html(
        "Limits of connections", "The broker closes a connection that is idle for 95 seconds."
    ),
    "/searchindex.js": INDEX,
}


PATHS = ("/index.html", "/colours.html", "/limits.html")


@pytest.fixture(scope="module")
def scorer() -> LocalScorer:
    return local_scorer(BundledModel())


@pytest.fixture
async def make_maps(database: Any) -> AsyncIterator[Callable[..., SiteMaps]]:
    fetcher = HttpFetcher(FetchConfig(allowed_hosts=("127.0.0.1",), timeout_s=10))
    workers = WorkerPool(1, 30)
    yield lambda **limits: SiteMaps(
        fetcher.fetch_bytes,
        fetcher.declared_sitemaps,
        workers,
        SiteMapStore(database),
        SiteMapConfig(**{"timeout_s": 60, **limits}),
    )
    await workers.aclose()
    await fetcher.aclose()


@pytest.fixture
def make_engine(lab: Lab, make_maps: Callable[..., SiteMaps]) -> Callable[..., OrchestratorEngine]:
    return lambda **limits: lab.engine(site_maps=lambda: make_maps(**limits))


ANSWER = "The broker closes a connection that is idle for 95 seconds."
MKDOCS = "<meta name='generator' content='mkdocs-1.6.1'><script>var base_url = '.';</script></head>"
# The question's words, more often than where it is answered, and each in another section.
WORDY = (
    "Seconds. A broker is a program. " * 3,
    "A connection joins two programs; to close one see above. " * 3,
    "Idle means at rest. Idle, idle. After that: seconds, seconds. " * 3,
)


def mkdocs_site(pages: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Pages that nothing links to, with an index that has a section for each of their texts."""
    rows = [
        {"location": f"{name}.html#{at}", "title": name, "text": text}
        for name, told in pages.items()
        for at, text in enumerate(told)
    ]
    return {
        "/index.html": SITE["/index.html"].replace(MARK, MKDOCS),
        "/search/search_index.json": json.dumps({"docs": rows}),
        **{f"/{name}.html": html(name, *told) for name, told in pages.items()},
    }


async def test_page_is_chosen_by_its_text_where_the_map_holds_it(
    lab: Lab,
    make_maps: Callable[..., SiteMaps],
    scorer: LocalScorer,
    static_site: Callable[..., Any],
) -> None:
    """Only one page may be fetched, and nine have more of the question's words than it."""
    site = static_site(mkdocs_site({"limits": [ANSWER], **{f"terms{n}": WORDY for n in range(9)}}))
    config = OrchestrationConfig(expansion=ExpansionConfig(max_pages_per_run=1))
    engine = lab.engine(site_maps=make_maps, scorer=lambda: scorer, config=config)

    result = await engine.run(
        Question.of(QUESTION, urls=f"{site}/index.html", research_mode="deep")
    )

    assert "95 seconds" in texts(result)


async def test_page_that_no_page_links_to_is_found_in_the_search_index(
    make_engine: Callable[..., OrchestratorEngine], static_site: Callable[..., Any]
) -> None:
    site = static_site(SITE)

    result = await make_engine().run(
        Question.of(QUESTION, urls=f"{site}/index.html", research_mode="deep")
    )

    assert "95 seconds" in texts(result)
    step = next(step for step in result.expansion_steps if step.candidates_expanded)
    assert step.found_in[f"{site}/limits.html"] == "the site's search index"
    assert all("searchindex" not in chunk.chunk.source_url for chunk in result.chunks)


async def test_links_that_their_text_shows_to_be_poor_wait_for_a_later_round(
    lab: Lab,
    make_maps: Callable[..., SiteMaps],
    scorer: LocalScorer,
    static_site: Callable[..., Any],
) -> None:
    clay = {f"clay{n}": [f"Clay {n} is earth of a broker."] for n in range(4)}
    site = static_site(mkdocs_site({"limits": [ANSWER], **clay}))
    engine = lab.engine(site_maps=make_maps, scorer=lambda: scorer)

    result = await engine.run(
        Question.of(QUESTION, urls=f"{site}/index.html", research_mode="deep")
    )

    assert result.expansion_steps[0].candidates_expanded == (f"{site}/limits.html",)


async def test_map_is_asked_for_once_and_kept(
    make_engine: Callable[..., OrchestratorEngine], static_site: Callable[..., Any]
) -> None:
    site = static_site(SITE)

    for _ in range(2):
        await make_engine().run(
            Question.of(QUESTION, urls=f"{site}/index.html", research_mode="deep")
        )

    assert site.paths.count("/searchindex.js") == 1


async def test_old_map_is_read_again_and_kept_when_the_site_fails(
    make_engine: Callable[..., OrchestratorEngine],
    static_site: Callable[..., Any],
    database: Any,
) -> None:
    routes: dict[str, Any] = dict(SITE)
    site = static_site(routes)
    await make_engine().run(Question.of(QUESTION, urls=f"{site}/index.html", research_mode="deep"))
    store, url = SiteMapStore(database), f"{site}/searchindex.js"
    known = await store.read(url)
    assert known is not None
    old = StoredMap(url, datetime.now(UTC) - timedelta(days=2), known.packed)
    await store.write(old)
    del routes["/searchindex.js"]

    result = await make_engine().run(
        Question.of(QUESTION, urls=f"{site}/index.html", research_mode="deep")
    )

    assert site.paths.count("/searchindex.js") == 2
    kept = await store.read(url)
    assert kept is not None
    assert kept.packed == old.packed
    assert "95 seconds" in texts(result)


async def test_missing_map_is_no_event_and_is_not_asked_for_again_at_once(
    make_engine: Callable[..., OrchestratorEngine], static_site: Callable[..., Any]
) -> None:
    site = static_site({path: page for path, page in SITE.items() if path != "/searchindex.js"})

    for _ in range(2):
        result = await make_engine().run(
            Question.of(QUESTION, urls=f"{site}/index.html", research_mode="deep")
        )

    assert not result.degraded
    assert not result.warnings
    assert site.paths.count("/searchindex.js") == 1


async def test_map_that_a_run_had_no_time_for_is_read_by_the_next_run(
    make_maps: Callable[..., SiteMaps],
    make_engine: Callable[..., OrchestratorEngine],
    static_site: Callable[..., Any],
) -> None:
    may_answer = Event()

    def slow(_: Any) -> Any:
        may_answer.wait(20)
        return 200, {"Content-Type": "text/javascript"}, INDEX.encode()

    site = static_site({**SITE, "/searchindex.js": slow})
    page = f"{site}/index.html"
    await make_engine().run(Question.of(QUESTION, urls=page))
    maps = make_maps()

    nothing, _ = await maps.known([page], timeout_s=0.3)
    may_answer.set()
    found, _ = await maps.known([page], timeout_s=30)

    assert (nothing, len(found)) == ([], 1)


def known_map(*pages: ListedPage, content: MapContent = "texts") -> KnownMap:
    mark = MapMark(kind="mkdocs", root="https://docs.test/", urls=("https://docs.test/map",))
    listing = SiteListing(pages, content=content)
    return KnownMap(
        MapIndex(pack_listing(listing)), MarkedPage("https://docs.test/", 0, (mark,)), mark
    )


def test_page_of_two_maps_counts_by_the_better_one() -> None:
    good = ListedPage("https://docs.test/kiln", "Firing a kiln", ["Ramp and soak"], [])
    poor = ListedPage(
        "https://docs.test/kiln", "Home", [], [Section("", "A kiln, a cone, a glaze, a pot.")]
    )
    other = ListedPage("https://docs.test/pots", "Pots", [], [])
    maps = [known_map(each, other, content="names") for each in (good, poor)]
    alone = rank_maps(maps[:1], ["firing a kiln"]).scores[good.url]

    assert rank_maps(maps, ["firing a kiln"]).scores[good.url] == alone


def test_what_a_map_finds_by_names_alone_counts_half() -> None:
    page = ListedPage("https://docs.test/kiln", "Firing a kiln", [], [])
    by_names, by_words, by_texts = (
        rank_maps([known_map(page, content=content)], ["kiln"]).scores[page.url]
        for content in get_args(MapContent)
    )

    assert by_names * 2 == by_words == by_texts


def test_page_whose_text_answers_comes_before_one_that_repeats_the_words(
    scorer: LocalScorer,
) -> None:
    answers = ListedPage(
        "https://docs.test/limits",
        "Limits",
        [],
        [Section("Limits", ANSWER)],
    )
    repeats = ListedPage(
        "https://docs.test/terms",
        "Terms",
        [],
        [Section("Terms", text) for text in WORDY],
    )
    maps = [known_map(answers, repeats)]

    by_words = rank_maps(maps, [QUESTION])
    by_text = rank_maps(maps, [QUESTION], scorer)

    assert [link.url for link in by_words.links] == [repeats.url, answers.url]
    assert [link.url for link in by_text.links] == [answers.url, repeats.url]


def test_pages_that_are_not_read_keep_their_order_behind_those_that_are(
    scorer: LocalScorer,
) -> None:
    pages = tuple(
        ListedPage(f"https://docs.test/{n}", "", [], [Section("", "idle broker " + "x " * 9 * n)])
        for n in range(40)
    )

    scores = list(rank_maps([known_map(*pages)], ["idle broker"], scorer).text_scores.values())

    assert len(scores) == 40
    assert min(scores[:30]) >= scores[30]
    assert all(better > worse for better, worse in pairwise(scores[30:]))


def test_page_without_text_is_judged_by_its_title_and_names(scorer: LocalScorer) -> None:
    titled = ListedPage("https://docs.test/t", "Idle timeout of connections")
    filler = tuple(
        ListedPage(f"https://docs.test/{n}", "Clay", [], [Section("", "Clay is not idle earth.")])
        for n in range(9)
    )

    found = rank_maps([known_map(*filler, titled)], ["What is the idle timeout?"], scorer)

    assert found.links[0].url == titled.url


@pytest.mark.parametrize(
    ("index", "limits", "said"),
    [
        ("Search.setIndex(" + "[" * 100_000, {}, "nested too deeply"),
        (INDEX, {"max_bytes": 50}, "of a page are read"),
    ],
)
async def test_hostile_map_is_refused_in_a_sentence_and_links_are_followed_without_it(
    make_engine: Callable[..., OrchestratorEngine],
    static_site: Callable[..., Any],
    index: str,
    limits: dict[str, Any],
    said: str,
) -> None:
    linked = SITE["/index.html"].replace("</main>", "<a href=colours.html>Colours</a></main>")
    site = static_site({**SITE, "/index.html": linked, "/searchindex.js": index})

    result = await make_engine(**limits).run(
        Question.of("Which colour is the mascot?", urls=f"{site}/index.html", research_mode="deep")
    )

    assert any(said in warning and "searchindex.js" in warning for warning in result.warnings)
    assert "purple" in texts(result)


async def test_map_that_robots_txt_forbids_is_not_read(
    make_engine: Callable[..., OrchestratorEngine], static_site: Callable[..., Any]
) -> None:
    rules = {"/robots.txt": "User-agent: *\nDisallow: /searchindex.js\n"}
    site = static_site({**SITE, **rules})

    await make_engine().run(Question.of(QUESTION, urls=f"{site}/index.html", research_mode="deep"))

    assert "/searchindex.js" not in site.paths


async def test_runs_at_once_share_one_request_for_a_map(
    make_engine: Callable[..., OrchestratorEngine], static_site: Callable[..., Any]
) -> None:
    site = static_site(SITE)
    engine = make_engine()

    await all_of(
        engine.run(Question.of(QUESTION, urls=f"{site}/index.html", research_mode="deep"))
        for _ in range(3)
    )

    assert site.paths.count("/searchindex.js") == 1


async def test_sitemap_that_robots_txt_names_is_read_where_no_page_names_a_map(
    make_engine: Callable[..., OrchestratorEngine], static_site: Callable[..., Any]
) -> None:
    routes = {
        "/index.html": SITE["/index.html"].replace(MARK, "</head>"),
        "/limits-idle-connections.html": SITE["/limits.html"],
    }
    site = static_site(routes)
    routes["/robots.txt"] = f"User-agent: *\nSitemap: {site}/map.xml\n"
    address = f"{site}/limits-idle-connections.html"
    routes["/map.xml"] = f"<urlset><url><loc>{address}</loc></url></urlset>"

    result = await make_engine().run(
        Question.of(QUESTION, urls=f"{site}/index.html", research_mode="deep")
    )

    assert "95 seconds" in texts(result)
    step = next(step for step in result.expansion_steps if step.candidates_expanded)
    assert step.found_in == {address: "the site's sitemap"}


async def test_sitemap_that_does_not_come_hides_none_of_the_others(
    make_maps: Callable[..., SiteMaps], lab: Lab, static_site: Callable[..., Any]
) -> None:
    ends = Event()

    def late(_: Any) -> Any:
        ends.wait(20)
        return 404, {}, b""

    routes: dict[str, Any] = {"/index.html": html("Turnips", "All of them."), "/late.xml": late}
    site = static_site(routes)
    routes["/robots.txt"] = f"Sitemap: {site}/map.xml\n"
    listed = "".join(f"<sitemap><loc>{site}/{name}.xml</loc></sitemap>" for name in ("a", "late"))
    routes["/map.xml"] = f"<sitemapindex>{listed}</sitemapindex>"
    routes["/a.xml"] = f"<urlset><url><loc>{site}/colours</loc></url></urlset>"
    await lab.acquirer.acquire(f"{site}/index.html")

    (found,), sentences = await make_maps(timeout_s=5).known([f"{site}/index.html"], timeout_s=5)
    ends.set()

    assert (found.index.urls, sentences) == ([f"{site}/colours"], [])


async def test_remembered_map_is_not_read_from_the_database_again(
    make_maps: Callable[..., SiteMaps], lab: Lab, static_site: Callable[..., Any], database: Any
) -> None:
    site = static_site(SITE)
    maps = make_maps()
    url, index = f"{site}/index.html", f"{site}/searchindex.js"
    await lab.engine(site_maps=lambda: maps).run(
        Question.of(QUESTION, urls=url, research_mode="deep")
    )
    stored = await SiteMapStore(database).read(index)
    assert stored is not None

    await SiteMapStore(database).write(StoredMap(index, stored.fetched_at, b"unreadable"))
    found, _ = await maps.known([url], timeout_s=0)

    assert [known.index.urls for known in found] == [[f"{site}{path}" for path in PATHS]]


async def test_index_page_is_found_by_way_of_the_first_page_and_is_no_evidence(
    make_engine: Callable[..., OrchestratorEngine], static_site: Callable[..., Any]
) -> None:
    home = "<a accesskey=h href=home.html>Home</a></main>"
    rows = "".join(f"<dt>word{n}, <a href=w{n}.html>Word</a></dt>" for n in range(30))
    site = static_site(
        {
            "/index.html": SITE["/colours.html"].replace("</main>", home),
            "/home.html": html("Home", "x").replace("</main>", "<a href=ix.html>Index</a></main>"),
            "/ix.html": f"<body><dl>{rows}<dt>idle connection, closed by the broker after seconds,"
            " <a href=limits.html>Limits</a></dt></dl></body>",
            "/limits.html": SITE["/limits.html"],
        }
    )

    result = await make_engine().run(
        Question.of(QUESTION, urls=f"{site}/index.html", research_mode="deep")
    )

    assert "95 seconds" in texts(result)
    step = next(step for step in result.expansion_steps if step.candidates_expanded)
    assert step.found_in[f"{site}/limits.html"] == "the site's index page"
    assert not any(url.endswith("/ix.html") for url in result.urls_fetched)


async def test_first_page_that_lists_few_pages_is_no_fault_that_people_are_told_of(
    make_engine: Callable[..., OrchestratorEngine], static_site: Callable[..., Any]
) -> None:
    linked = "<a rel=home href=home.html>Home</a><a href=limits.html>Limits</a></main>"
    first = html("Turnip manual", "The manual of the broker.").replace("</main>", linked)
    home = html("Turnip", "A message broker.")
    site = static_site({"/index.html": first, "/home.html": home, "/limits.html": "<p>None.</p>"})

    result = await make_engine().run(
        Question.of(QUESTION, urls=f"{site}/index.html", research_mode="deep")
    )

    assert "/home.html" in site.paths
    assert not any("refused" in warning for warning in result.warnings)
