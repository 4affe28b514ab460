"""Fast answers from a page that only lists links."""

import time
from typing import Any

import pytest

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
    assert len(result.urls_fetched) == 1 + 4
    assert "best of them were read" in result.final_decision.reason


@pytest.mark.parametrize("limit", [{"expansion_budget": 0}, {"max_pages": 0}])
async def test_nothing_is_looked_through_where_no_page_may_be_fetched(
    lab: Lab, static_site: Any, limit: dict[str, int]
) -> None:
    site = static_site(contents())

    await lab.engine().run(Question.of(ASKED, urls=site + "/", **limit))

    assert site.paths == ["/"]


async def test_page_that_says_something_is_not_looked_through(lab: Lab, manual: Any) -> None:
    await lab.engine().run(Question.of(ASKED, urls=manual + "/"))

    assert manual.paths == ["/"]


async def test_slow_chapter_costs_three_seconds_at_most(
    lab: Lab, static_site: Any, gate: Any
) -> None:
    site = static_site(contents(**{"/5.html": held(gate)}))
    begun = time.monotonic()

    result = await lab.engine().run(Question.of(ASKED, urls=site + "/"))

    assert len(result.urls_fetched) > 1
    assert time.monotonic() - begun < 15
