from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from webrag import WebRAG
from webrag.evaluation.metrics import VisiblePages
from webrag.evaluation.questions import Question, RunRecord
from webrag.evaluation.runner import Evaluation, Site

Evaluate = Callable[..., Evaluation]

LEAVEN = Question(
    id="leaven", query="How often is the rye leaven fed?", site="bakery", seed_url="index.html"
)
OPENING = Question(
    id="opening", query="When does the bakery open?", site="bakery", seed_url="index.html"
)
HOPELESS = Question(
    id="hopeless", query="Which database driver does Haskell use?", site="bakery",
    seed_url="index.html",
)  # fmt: skip
ALL = ("index.html", "leaven.html", "oven.html")


@pytest.fixture
def site(static_site: Any, site_folder: Path) -> Any:
    return static_site(site_folder)


@pytest.fixture
def evaluate(rag: WebRAG, site: Any) -> Evaluate:
    """Makes an evaluation of the site: `evaluate(pages=..., visible=...)`."""

    def make(
        *, out: StringIO | None = None, told: list[Any] | None = None, **fields: Any
    ) -> Evaluation:
        return Evaluation(
            {"bakery": Site(base_url=site.url + "/", **fields)},
            rag,
            out=out or StringIO(),
            on_progress=lambda *step: None if told is None else told.append(step),
        )

    return make


async def test_whole_setting_finds_the_page_with_the_answer(evaluate: Evaluate, site: Any) -> None:
    record = (await evaluate(pages=ALL).run_whole([LEAVEN]))[0]

    assert record.retrieved[0].url == f"{site}/leaven.html"
    assert "every twelve hours" in record.retrieved[0].text


async def test_whole_setting_fetches_each_page_once_and_nothing_for_a_question(
    evaluate: Evaluate, site: Any
) -> None:
    records = await evaluate(pages=ALL).run_whole([LEAVEN, OPENING])

    assert sorted(site.paths) == ["/index.html", "/leaven.html", "/oven.html"]
    assert [record.urls_fetched for record in records] == [(), ()]


async def test_site_without_a_page_list_is_crawled(evaluate: Evaluate, site: Any) -> None:
    await evaluate().run_whole([LEAVEN], max_pages=2)

    assert [path for path in site.paths if "." not in path or "html" in path] == [
        "/",
        "/leaven.html",
    ]


async def test_run_file_holds_the_records_in_the_order_of_the_questions(
    evaluate: Evaluate,
) -> None:
    out = StringIO()

    records = await evaluate(out=out, pages=ALL).run_whole([OPENING, LEAVEN])

    lines = out.getvalue().splitlines()
    assert [RunRecord.model_validate_json(line) for line in lines] == records
    assert [record.id for record in records] == ["opening", "leaven"]


async def test_whole_run_tells_pages_and_questions(evaluate: Evaluate) -> None:
    told: list[Any] = []

    await evaluate(told=told, pages=ALL[:2]).run_whole([OPENING, LEAVEN])

    assert told == [
        ("ingest bakery", 1, 2), ("ingest bakery", 2, 2), ("questions", 1, 2), ("questions", 2, 2)
    ]  # fmt: skip


async def test_citation_that_page_and_corpus_show_is_verbatim(
    evaluate: Evaluate, site_folder: Path
) -> None:
    run = evaluate(pages=ALL, visible=VisiblePages(site_folder))

    record = (await run.run_whole([LEAVEN]))[0]

    assert record.citations
    assert all(citation.verbatim for citation in record.citations)


async def test_citation_that_the_page_does_not_show_is_not_verbatim(
    evaluate: Evaluate, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name in ALL:
        (other / name).write_text("<p>Other words.</p>", encoding="utf-8")

    record = (await evaluate(pages=ALL, visible=VisiblePages(other)).run_whole([LEAVEN]))[0]

    assert {citation.verbatim for citation in record.citations} == {False}


async def test_seed_setting_starts_from_the_seed_page(evaluate: Evaluate, site: Any) -> None:
    record = (await evaluate().run_seed([LEAVEN], deep=False))[0]

    assert (site.paths[0], record.urls_fetched[0]) == ("/index.html", f"{site}/index.html")


async def test_deep_seed_setting_follows_links(evaluate: Evaluate, site: Any) -> None:
    record = (await evaluate().run_seed([LEAVEN], deep=True))[0]

    assert f"{site}/leaven.html" in record.urls_fetched
    assert "every twelve hours" in record.retrieved[0].text


async def test_each_seed_question_starts_from_an_empty_corpus(
    evaluate: Evaluate, site: Any
) -> None:
    records = await evaluate().run_seed([LEAVEN, OPENING], deep=False)

    assert [record.urls_fetched[0] for record in records] == [f"{site}/index.html"] * 2


async def test_question_that_fails_is_recorded_and_the_next_is_asked(evaluate: Evaluate) -> None:
    lost = LEAVEN.model_copy(update={"id": "lost", "seed_url": "none.html"})

    records = await evaluate().run_seed([lost, OPENING], deep=False)

    assert [(record.id, record.error is None) for record in records] == [
        ("lost", False), ("opening", True)
    ]  # fmt: skip
    assert records[0].abstained


async def test_question_the_site_does_not_answer_ends_without_confidence(
    evaluate: Evaluate,
) -> None:
    records = await evaluate(pages=ALL).run_whole([HOPELESS, LEAVEN])

    assert [record.abstained for record in records] == [True, False]
