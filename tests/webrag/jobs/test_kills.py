"""Some of the kills of benchmarks/workers.py, which explains them."""

import runpy
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

WORKERS = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks/workers.py"))

Make = Callable[..., Any]
# A busy machine takes ten times as long as an idle one.
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
async def make_lab(tmp_path: Path) -> AsyncIterator[Make]:
    """Starts a server of its own, a web and two workers: `await make_lab(hosts=2, pages=9)`."""
    made: list[Any] = []

    async def make(*, hosts: int, pages: int, poison: str = "") -> Any:
        web = WORKERS["Web"](pages=pages, page_s=0.0, poison=poison)
        made.append(WORKERS["Lab"](tmp_path, web, WORKERS["QUICK"], pooled=False))
        await made[-1].start(hosts)
        return made[-1]

    yield make
    for lab in made:
        await lab.close()


async def test_kills_of_workers_connections_and_postgres_lose_no_page_and_leave_none_twice(
    make_lab: Make,
) -> None:
    lab = await make_lab(hosts=3, pages=14)

    await WORKERS["survive"](lab, kills=14, workers=2, seed=3, victims=WORKERS["VICTIMS"])
    await WORKERS["finish"](lab, workers=2, within_s=240)

    wrong = await WORKERS["complaints"](lab, 3)
    assert not wrong, "\n".join(wrong)


async def test_page_that_workers_die_of_is_given_up_and_takes_no_other_along(
    make_lab: Make,
) -> None:
    lab = await make_lab(hosts=1, pages=7, poison="h0.test/p2.html")

    await WORKERS["finish"](lab, workers=1, within_s=240)

    # The pages behind it are not found without it.
    stored = {url for (url,) in await lab.rows("select url from web.documents")}
    assert stored == {f"http://h0.test/{path}" for path in ("", "p1.html", "p3.html", "p4.html")}
    (job,) = await lab.queue.jobs()
    assert (job.state, job.report.site.failed) == ("done", {"given up": 1})
    reasons = await lab.rows("select reason from web.page_outcomes where url like '%p2.html'")
    assert "workers ended while they worked on it" in reasons[0][0]
