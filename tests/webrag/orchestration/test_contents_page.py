"""Fast answers from a page that does not answer, such as one that only lists links."""

import time
from typing import Any

import pytest

from webrag.corpus.site_index import MappedLinks
from webrag.errors import ProviderError
from webrag.orchestration.links.expander import LinkDiscovery
from webrag.question import Question

from .conftest import Lab, held, html, texts

CHAPTERS = ("Sails", "Masts", "Ropes", "Anchors", "Harbours", "Replication lag", "Compasses")
ASKED = "How far may a replica fall behind the leader before replication expels it?"
SAID = "A replica that falls more than 512 megabytes behind the leader is expelled by replication."


def contents(**pages: Any) -> dict[str, Any]:
    links = "".join(
        f'<li><a href="/{n}.html">Chapter {n}: {name} of the whole manual</a></li>'
        for n, name in enumerate(CHAPTERS)
    )
    site: dict[str, Any] = {
        f"/{n}.html": html(name, f"All there is to say about {name.lower()}.")
        for n, name in enumerate(CHAPTERS)
    }
    site["/5.html"] = html("Replication lag", SAID)
    page = f"<title>Manual</title><main><h1>Manual</h1><ul>{links}</ul></main>"
    return {"/": page, **site, **pages}


async def test_named_page_that_only_lists_links_is_looked_through(
    lab: Lab, static_site: Any
) -> None:
    site = static_site(contents())

    result = await lab.engine().run(Question.of(ASKED, urls=site + "/"))

    assert "512 megabytes" in texts(result)
    assert "best links were read" in result.final_decision.reason


async def test_section_behind_a_chapter_is_found_by_a_second_look(
    lab: Lab, static_site: Any
) -> None:
    chapter = '<p>This chapter has one section.</p><p><a href="/lag.html">Lag of a replica</a></p>'
    site = static_site(
        contents(
            **{
                "/5.html": html("Replication lag", chapter),
                "/lag.html": html("Lag of a replica", SAID),
            }
        )
    )

    result = await lab.engine().run(Question.of(ASKED, urls=site + "/"))

    assert "512 megabytes" in texts(result)
    assert result.total_iterations == 2


async def test_mapping_service_that_fails_is_asked_once_and_told_of(
    lab: Lab, static_site: Any, database: Any
) -> None:
    chapter = '<p>This chapter has one section.</p><p><a href="/lag.html">Lag of a replica</a></p>'
    site = static_site(contents(**{"/5.html": html("Replication lag", chapter)}))
    asked: list[str] = []

    class Broken:
        name = "mapper"

        async def map(self, url: str, *, limit: int) -> list[Any]:
            asked.append(url)
            raise ProviderError("The mapper is down.", provider=self.name)

    broken = LinkDiscovery(Broken(), MappedLinks(database), limit=5)  # type: ignore[arg-type]
    engine = lab.engine(discovery=lambda: broken)

    result = await engine.run(Question.of(ASKED, urls=site + "/"))

    assert asked == [site + "/"]
    assert "The mapper is down." in result.degraded[0]


async def test_entry_that_names_what_is_asked_for_does_not_answer(
    lab: Lab, static_site: Any
) -> None:
    named = ("Replica Lag Limits", *CHAPTERS)
    links = "".join(f'<li><a href="/{n}.html">{name}</a></li>' for n, name in enumerate(named))
    site = static_site(
        {
            "/": f"<title>Manual</title><main><h1>Manual</h1><ul>{links}</ul></main>",
            "/0.html": html("Replica Lag Limits", SAID),
        }
    )
    asked = Question.of(
        "Can a replica's lag limit be negative?",
        urls=site + "/",
        wordings=["The lag of a replica has a limit.", "replica lag limits", "negative limit"],
    )

    result = await lab.engine().run(asked)

    assert "512 megabytes" in texts(result)


async def test_second_question_finds_what_was_stored_for_the_first(
    lab: Lab, static_site: Any
) -> None:
    site = static_site(contents())
    await lab.engine().run(Question.of(ASKED, urls=site + "/"))
    named = Question.of(
        "Replication lag", urls=site + "/", wordings=["The chapter on replication lag."]
    )

    result = await lab.engine().run(named)

    assert "512 megabytes" in texts(result)


@pytest.mark.parametrize("limit", [{"expansion_budget": 0}, {"max_pages": 0}])
async def test_nothing_is_looked_through_where_no_page_may_be_fetched(
    lab: Lab, static_site: Any, limit: dict[str, int]
) -> None:
    site = static_site(contents())

    await lab.engine().run(Question.of(ASKED, urls=site + "/", **limit))

    assert site.paths == ["/"]


async def test_front_page_that_says_something_beside_many_links_is_looked_through(
    lab: Lab, static_site: Any
) -> None:
    told = "Ships have carried goods for a long time. Their masts were tall and their crews small. "
    links = "".join(f'<p>{told * 2}<a href="/{n}.html">{n}</a></p>' for n in range(10))
    site = static_site(contents() | {"/": html("Manual", links)})

    result = await lab.engine().run(Question.of(ASKED, urls=site + "/"))

    assert len(result.urls_fetched) > 1


async def test_likely_link_of_a_page_that_says_something_else_is_followed(
    lab: Lab, static_site: Any
) -> None:
    link = (
        '<a href="/5.html">How far a replica may fall behind the leader before it is expelled</a>'
    )
    told = f"Ships have carried goods for a long time, and their masts were tall. {link}"
    site = static_site(contents() | {"/": html("Manual", f"<p>{told}</p>")})

    result = await lab.engine().run(Question.of(ASKED, urls=site + "/"))

    assert "512 megabytes" in texts(result)


async def test_page_that_says_something_else_beside_few_weak_links_is_not_looked_through(
    lab: Lab, manual: Any
) -> None:
    await lab.engine().run(Question.of(ASKED, urls=manual + "/"))

    assert manual.paths == ["/"]


async def test_page_that_answers_is_not_looked_through(lab: Lab, manual: Any) -> None:
    await lab.engine().run(Question.of(ASKED, urls=manual + "/replication.html"))

    assert manual.paths == ["/replication.html"]


async def test_slow_chapter_costs_three_seconds_at_most(
    lab: Lab, static_site: Any, gate: Any
) -> None:
    site = static_site(contents(**{"/5.html": held(gate)}))
    begun = time.monotonic()

    result = await lab.engine().run(Question.of(ASKED, urls=site + "/"))

    assert len(result.urls_fetched) > 1
    assert time.monotonic() - begun < 15
