from collections.abc import Sequence
from typing import Any

import pytest

from webrag.corpus.models import LinkCandidate
from webrag.corpus.pages import Corpus
from webrag.orchestration.links.scoring import score_links
from webrag.orchestration.models import NextLink
from webrag.orchestration.question.analyzer import QueryAnalyzer
from webrag.question import Question

from .conftest import AT_SEED, MANUAL, ONE_LINK_AWAY, TWO_LINKS_AWAY, Lab, failing, html, texts


async def test_deep_answer_stops_at_once_when_the_first_page_answers(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(Question.of(AT_SEED, urls=manual + "/", research_mode="deep"))

    assert (result.final_decision.rule, result.confidence_band) == ("answered", "high")
    assert (manual.paths, result.expansion_steps) == (["/"], ())


async def test_one_round_finds_what_is_one_link_away(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(
        Question.of(ONE_LINK_AWAY, urls=manual + "/", expansion_budget=1)
    )

    assert "system account" in texts(result)
    assert result.total_iterations == 1


async def test_deep_answer_finds_what_is_two_links_away(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(
        Question.of(TWO_LINKS_AWAY, urls=manual + "/", research_mode="deep")
    )

    assert "512 megabytes" in texts(result)
    parents = {
        url: parent for step in result.expansion_steps for url, parent in step.parents.items()
    }
    assert parents[manual + "/replication.html"] == manual + "/operations.html"
    assert parents[manual + "/operations.html"] == manual + "/"


async def test_steps_tell_what_was_obtained(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(
        Question.of(TWO_LINKS_AWAY, urls=manual + "/", research_mode="deep")
    )

    last = [step for step in result.expansion_steps if step.decision == "expand_breadth"][-1]
    assert (last.decision, last.iteration, last.depth) == ("expand_breadth", 2, 2)
    assert last.chunks_added == sum(last.chunks_by_url.values()) > 0
    assert last.top_score_after > last.top_score_before
    assert set(result.urls_fetched) == {manual + path for path in manual.paths}
    assert result.total_urls_ingested == len(manual.paths)


async def test_budget_zero_beats_deep_mode(lab: Lab, manual: Any) -> None:
    await lab.engine().run(
        Question.of(TWO_LINKS_AWAY, urls=manual + "/", research_mode="deep", expansion_budget=0)
    )

    assert manual.paths == ["/"]


@pytest.mark.parametrize("pages", [0, 1, 2])
async def test_page_budget_is_never_exceeded(lab: Lab, manual: Any, pages: Any) -> None:
    result = await lab.engine().run(
        Question.of(TWO_LINKS_AWAY, urls=manual + "/", research_mode="deep", max_pages=pages)
    )

    assert len(manual.paths) == 1 + pages
    assert result.final_decision.action == "stop"


async def test_failed_page_is_replaced_by_the_next_candidate(lab: Lab, static_site: Any) -> None:
    site = static_site({**MANUAL, "/operations.html": failing})

    result = await lab.engine().run(
        Question.of(TWO_LINKS_AWAY, urls=site + "/", expansion_budget=1, max_pages=2)
    )

    step = result.expansion_steps[-1]
    assert list(step.candidates_failed) == [site + "/operations.html"]
    assert len(step.candidates_expanded) == 2


async def test_run_survives_when_every_link_fails(lab: Lab, static_site: Any) -> None:
    dead = {path: failing for path in MANUAL if path != "/"}
    site = static_site({**MANUAL, **dead})

    result = await lab.engine().run(
        Question.of(TWO_LINKS_AWAY, urls=site + "/", research_mode="deep")
    )

    assert result.final_decision.action == "stop"
    assert site.paths.count("/operations.html") == 1
    assert {u for s in result.expansion_steps for u in s.candidates_failed} == {
        site + path for path in ("/install.html", "/operations.html", "/questions.html")
    }


async def test_question_the_site_does_not_answer_ends_in_low_confidence_with_what_was_tried(
    lab: Lab, manual: Any
) -> None:
    result = await lab.engine().run(
        Question.of(
            "I keep the books. Which sorting algorithm does the accounting ledger use?",
            urls=manual + "/",
            research_mode="deep",
        )
    )

    assert result.confidence_band in ("low", "none")
    assert result.final_decision.action == "stop"
    assert {step.decision for step in result.expansion_steps} >= {"expand_breadth", "expand_intent"}
    assert result.chunks


async def test_stored_pages_inside_the_scope_are_searched_without_a_fetch(
    lab: Lab, manual: Any
) -> None:
    await lab.acquirer.acquire(manual + "/replication.html")
    before = len(manual.paths)

    result = await lab.engine().run(
        Question.of(TWO_LINKS_AWAY, urls=manual + "/", research_mode="deep", max_pages=0)
    )

    assert "512 megabytes" in texts(result)
    assert manual.paths[before:] == ["/"]
    assert result.expansion_steps[0].pages_joined == 1


async def test_stored_pages_are_searched_when_there_is_no_other_wording_and_no_link_left(
    lab: Lab, manual: Any
) -> None:
    for path in MANUAL:
        await lab.acquirer.acquire(manual + path)
    engine = lab.engine(analyzer=QueryAnalyzer(mode="none"))

    result = await engine.run(Question.of(TWO_LINKS_AWAY, urls=manual + "/", research_mode="deep"))

    assert "512 megabytes" in texts(result)
    assert len(manual.paths) == len(MANUAL)


async def test_links_off_the_site_are_not_followed(lab: Lab, static_site: Any) -> None:
    other = static_site(dict(MANUAL))
    page = html(
        "Start",
        "The manual is kept elsewhere.",
        links=((other + "/install.html", "Installation", ""),),
    )
    site = static_site({"/": page})

    await lab.engine().run(Question.of(ONE_LINK_AWAY, urls=site + "/", research_mode="deep"))

    assert other.requests == []


@pytest.mark.parametrize(("mode", "rounds"), [("fast", 0), ("deep", 20)])
async def test_result_says_how_many_rounds_were_allowed(
    lab: Lab, static_site: Any, mode: Any, rounds: int
) -> None:
    site = static_site(MANUAL)
    result = await lab.engine().run(Question.of("What is it?", urls=site + "/", research_mode=mode))

    assert (result.rounds_allowed, result.rounds_ceiling) == (rounds, 20)


def gone(_request: Any) -> Any:
    return 404, {"Content-Type": "text/html"}, "<h1>Not found</h1>"


def with_dead_links(count: int) -> dict[str, Any]:
    """A site whose first page names many dead pages as what is asked for, and one live one."""
    anchor = "How far a replica may fall behind"
    dead = [(f"/falling-behind-{n}/lag.html", anchor, "") for n in range(count)]
    last = ("/replication.html", "Limits", "")
    page = html("Start", "The manual has several pages.", links=(*dead, last))
    return {**MANUAL, "/": page, **{path: gone for path, _, _ in dead}}


async def test_round_of_dead_links_does_not_end_link_following(lab: Lab, static_site: Any) -> None:
    site = static_site(with_dead_links(18))

    result = await lab.engine().run(
        Question.of(TWO_LINKS_AWAY, urls=site + "/", research_mode="deep", max_pages=8)
    )

    assert "512 megabytes" in texts(result)
    assert result.warnings == ()


async def test_round_that_brings_no_page_is_not_searched_again(lab: Lab, static_site: Any) -> None:
    site = static_site(with_dead_links(18))
    phases: list[str] = []

    async def listen(phase: str, *_: Any) -> None:
        phases.append(phase)

    result = await lab.engine().run(
        Question.of(TWO_LINKS_AWAY, urls=site + "/", research_mode="deep"), on_progress=listen
    )

    steps = result.expansion_steps
    brought = [s for s in steps if s.candidates_expanded or s.pages_joined or s.new_queries]
    assert 0 < len(brought) < len(steps)
    assert phases.count("retrieval") == 1 + len(brought)


async def test_links_that_end_a_run_are_named_as_dead(lab: Lab, static_site: Any) -> None:
    site = static_site(with_dead_links(40))

    result = await lab.engine().run(
        Question.of(TWO_LINKS_AWAY, urls=site + "/", research_mode="deep", max_pages=3)
    )

    assert result.final_decision.reason.endswith("too many fetches failed (9 links were dead).")
    assert "no link is left" not in result.final_decision.reason


async def test_dead_links_are_not_asked_for_again_by_the_next_question(
    lab: Lab, static_site: Any
) -> None:
    site = static_site(with_dead_links(4))
    for question in (TWO_LINKS_AWAY, "How many megabytes may a replica fall behind?"):
        result = await lab.engine().run(
            Question.of(question, urls=site + "/", research_mode="deep")
        )

    asked = [path for path in site.paths if path.startswith("/falling-behind-")]
    assert len(asked) == len(set(asked)) == 4
    assert not any("falling-behind" in link.url for link in result.next_links)


async def test_page_that_only_links_to_the_topic_does_not_end_the_search(
    lab: Lab, static_site: Any
) -> None:
    topics = (
        ("/replication.html", "How far a replica may fall behind the leader", ""),
        ("/backup.html", "When a replica is expelled", ""),
    )
    site = static_site({**MANUAL, "/": html("Replica, leader, expelled", links=topics)})

    result = await lab.engine().run(
        Question.of(TWO_LINKS_AWAY, urls=site + "/", research_mode="deep")
    )

    assert "512 megabytes" in texts(result)
    assert result.expansion_steps[0].rule != "answered"


@pytest.mark.parametrize(
    ("named", "band"), [("The replica limit", "low"), ("`REPLICA_LIMIT`", "high")]
)
async def test_default_of_an_identifier_is_not_answered_by_a_page_that_never_names_it(
    lab: Lab, static_site: Any, named: str, band: str
) -> None:
    said = f"{named} sets the limit of a replica. The default value of the replica limit is 40."
    site = static_site({"/": html("Replica limit", said)})

    result = await lab.engine().run(
        Question.of("What is the default limit of a replica set by REPLICA_LIMIT?", urls=site + "/")
    )

    assert result.confidence_band == band


async def test_question_whose_wording_no_passage_meets_is_looked_for_further(
    lab: Lab, manual: Any
) -> None:
    wordings = ["broker port", "replica expelled 512 megabytes behind the leader"]

    one = await lab.engine().run(
        Question.of(AT_SEED, urls=manual + "/", wordings=wordings[:1], research_mode="deep")
    )
    both = await lab.engine().run(
        Question.of(AT_SEED, urls=manual + "/", wordings=wordings, research_mode="deep")
    )

    assert (one.final_decision.rule, one.total_iterations) == ("answered", 0)
    assert "512 megabytes" in texts(both)


async def test_search_ends_in_the_round_that_finds_the_answer(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(
        Question.of(ONE_LINK_AWAY, urls=manual + "/", research_mode="deep")
    )

    assert result.final_decision.rule == "answered"
    assert result.total_iterations == 1


def with_one_strong_link(others_named: int) -> dict[str, Any]:
    """A site whose first page names what is asked for once, and many other things."""
    links = tuple((f"/{n}.html", f"Chapter {n}", "") for n in range(others_named))
    others = {path: html(topic, f"All about {topic.lower()}.") for path, topic, _ in links}
    strong = ("/lag.html", "How far a replica may fall behind before it is expelled", "")
    said = html("Lag", "Somebody else has to say it.")
    page = html("Start", "The manual has several pages.", links=(*links, strong))
    return {"/": page, "/lag.html": said, **others}


async def test_links_that_promise_less_than_a_page_costs_are_left_alone(
    lab: Lab, static_site: Any
) -> None:
    site = static_site(with_one_strong_link(900))

    result = await lab.engine().run(
        Question.of(TWO_LINKS_AWAY, urls=site + "/", research_mode="deep", max_pages=10)
    )

    assert site.paths == ["/", "/lag.html"]
    assert "the links that are left promise too little" in result.final_decision.reason
    assert result.next_links, "what was left alone is still named"


async def test_links_left_alone_are_not_scored_again_to_be_named(
    lab: Lab, static_site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[list[str]] = []

    def counted(links: list[LinkCandidate], *asked: Any, **how: Any) -> list[NextLink]:
        found = score_links(links, *asked, **how)
        scored.append([each.url for each in found])
        return found

    monkeypatch.setattr("webrag.orchestration.links.expander.score_links", counted)
    site = static_site(with_one_strong_link(900))

    result = await lab.engine().run(
        Question.of(TWO_LINKS_AWAY, urls=site + "/", research_mode="deep", max_pages=10)
    )

    assert len(scored) == 1 + len(result.expansion_steps)
    assert {each.url for each in result.next_links} <= set(scored[-1])


async def test_link_without_words_is_no_next_link(lab: Lab, static_site: Any) -> None:
    links = (("/replica-behind-leader.html", "next", ""),)
    site = static_site({"/": html("Start", "The manual has several pages.", links=links)})

    result = await lab.engine().run(Question.of(TWO_LINKS_AWAY, urls=site + "/"))

    assert (result.confidence_band, result.next_links) == ("none", ())


async def test_dead_link_does_not_make_the_others_weak(lab: Lab, static_site: Any) -> None:
    site = static_site({**with_one_strong_link(8), "/lag.html": gone})

    await lab.engine().run(
        Question.of(TWO_LINKS_AWAY, urls=site + "/", research_mode="deep", max_pages=10)
    )

    assert len(site.paths) == 1 + 1 + 8


@pytest.mark.parametrize(
    ("said", "fetched"),
    [
        pytest.param("Somebody else has to say it.", 1 + 10, id="as many pages as are allowed"),
        pytest.param(
            "A replica that falls two miles behind the leader is dropped.",
            1 + 1,
            id="the best link",
        ),
    ],
)
async def test_links_that_promise_less_are_left_alone_once_the_answer_seems_near(
    lab: Lab, static_site: Any, said: str, fetched: int
) -> None:
    choirs = {f"/choir-{n}.html": f"Choir {n}" for n in range(60)}
    fair = [(path, name, "") for path, name in choirs.items()]
    strong = ("/lag.html", "Replica, leader, fall behind", "")
    site = static_site(
        {
            "/": html("Start", "The manual has several pages.", links=(*fair, strong)),
            "/lag.html": html("Pages", said),
            **{path: html("Voices", f"Scores of {path}.") for path in choirs},
        }
    )

    await lab.engine().run(
        Question.of(TWO_LINKS_AWAY, urls=site + "/", research_mode="deep", max_pages=10)
    )

    assert len(site.paths) == fetched


async def test_links_of_a_page_are_read_once_in_a_run(
    lab: Lab, manual: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    links = Corpus.links

    async def counted(corpus: Corpus, urls: Sequence[str]) -> list[LinkCandidate]:
        asked.extend(urls)
        return await links(corpus, urls)

    monkeypatch.setattr(Corpus, "links", counted)

    result = await lab.engine().run(
        Question.of(TWO_LINKS_AWAY, urls=manual + "/", research_mode="deep")
    )

    assert set(asked) >= {step.source_url for step in result.expansion_steps}
    assert len(asked) == len(set(asked))
