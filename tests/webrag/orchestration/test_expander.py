from typing import Any

from webrag.corpus.models import LinkCandidate
from webrag.orchestration.links.expander import LinkExpander
from webrag.orchestration.links.rules import LinkScope
from webrag.orchestration.models import ExpansionConfig

from .conftest import ENCODER, TWO_LINKS_AWAY, Lab, html
from .scripted_web import SCOPE, SEED, Web, target


def link(name: object, **values: Any) -> LinkCandidate:
    given_values = {"source_url": SEED, "url": target(name)}
    return LinkCandidate(**{**given_values, **values})


async def found(web: Web, *links: LinkCandidate, known: Any = (), **config: Any) -> list[str]:
    web.links_of[SEED] = list(links)
    result = await web.expander(**config).frontier(
        [SEED], ["replica lag"], seeds=[SEED], scope=SCOPE, known=known
    )
    return [candidate.url for candidate in result.candidates]


async def test_frontier_holds_the_folders_above_the_seed() -> None:
    assert await found(Web()) == [target("guide/")]


async def test_frontier_leaves_out_what_is_known_stored_or_no_page() -> None:
    web = Web()
    web.stored = [target("stored")]
    links = [link("known"), link("stored"), link("logo.png"), link("fine")]

    candidates = await found(web, *links, known={target("known"), target("guide/")})

    assert candidates == [target("fine")]


async def test_frontier_leaves_out_what_failed_lately() -> None:
    web = Web()
    web.dead = {target("gone")}

    assert await found(web, link("gone"), link("fine"), known={target("guide/")}) == [
        target("fine")
    ]


async def test_frontier_leaves_out_what_is_only_linked_with_nofollow() -> None:
    links = [
        link("advertised", title="Replica lag", rel=("sponsored", "nofollow")),
        link("fine", rel=("nofollow",)),
        link("fine"),
    ]

    assert await found(Web(), *links) == [target("fine"), target("guide/")]


async def test_frontier_leaves_out_links_below_the_least_score() -> None:
    links = [link("x"), link("y", title="Replica lag")]

    assert await found(Web(), *links, min_candidate_score=0.1) == [target("y")]


async def test_frontier_is_bounded_after_scoring() -> None:
    links = [link(n) for n in range(50)] + [link("best", title="Replica lag")]

    candidates = await found(Web(), *links, candidates_to_score_per_iteration=3)

    assert len(candidates) == 9  # some may be dead
    assert candidates[0] == target("best")


async def test_links_of_a_real_page_are_scored_by_what_surrounds_them(
    lab: Lab, static_site: Any
) -> None:
    links = (
        ("/a.html", "Details", "saving and restoring data"),
        ("/b.html", "More", "how far replicas may fall behind"),
    )
    site = static_site({"/": html("Operations", "Each task has a page.", links=links)})
    await lab.acquirer.acquire(site + "/")
    expander = LinkExpander(lab.corpus, ENCODER, ExpansionConfig())

    result = await expander.frontier(
        [site + "/"],
        [TWO_LINKS_AWAY],
        seeds=[site + "/"],
        scope=LinkScope.of("same_site", [site + "/"]),
        known=(),
    )
    best, _ = result.candidates

    assert best.url == site + "/b.html"
