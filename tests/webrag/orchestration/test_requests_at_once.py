import threading
from typing import Any

from webrag.orchestration.models import ExpansionConfig, OrchestrationConfig
from webrag.question import Question

from .conftest import Lab, html


def waiting_for(together: threading.Barrier, number: int) -> Any:
    """A page that comes only while so many are asked for at once."""

    def route(_request: Any) -> Any:
        together.wait(20)
        page = html(f"Setting {number}", f"The valve {number} of the pump is set by hand.")
        return 200, {"Content-Type": "text/html"}, page

    return route


async def test_pages_of_every_round_are_asked_for_at_once(lab: Lab, static_site: Any) -> None:
    together, count = threading.Barrier(5), 40
    links = tuple((f"/{n}.html", f"Setting {n}", "of the pump") for n in range(count))
    pages = {f"/{n}.html": waiting_for(together, n) for n in range(count)}
    site = static_site({"/": html("Pump", "All settings.", links=links), **pages})

    result = await lab.engine().run(
        Question.of("Which colour has the flag?", urls=site + "/", research_mode="deep")
    )

    obtained = [step.candidates_expanded for step in result.expansion_steps]
    assert {len(each) for each in obtained if each} == {5}
    assert sum(map(len, obtained)) >= 10
    assert not any(step.candidates_failed for step in result.expansion_steps)


async def test_two_hosts_are_asked_at_once(lab: Lab, static_site: Any) -> None:
    together = threading.Barrier(4)
    other = static_site({f"/{n}.html": waiting_for(together, n) for n in range(2)})
    own = {f"/{n}.html": waiting_for(together, n) for n in range(2, 4)}
    urls = [f"{other}/{n}.html" for n in range(2)] + list(own)
    page = html("Pump", "All.", links=tuple((url, "A setting", "of the pump") for url in urls))
    site = static_site({"/": page, **own})
    config = OrchestrationConfig(expansion=ExpansionConfig(scope="any"))

    result = await lab.engine(config=config).run(
        Question.of("Which colour has the flag?", urls=site + "/", expansion_budget=1)
    )

    assert len(result.urls_fetched) == 5
