import json
from collections.abc import Callable
from typing import Any, get_args

import pytest
from click.testing import Result

from tests.webrag.ingestion.firecrawl.fake_firecrawl import KEY, FakeFirecrawl, document
from webrag.jobs.models import JobKind
from webrag.postgres.database import Database

Run = Callable[..., Result]
PAGE = """<html><head><title>Kettle</title></head><body><main><h1>Kettle</h1>
<p>Clean the filter of the kettle every three weeks with citric acid.</p></main></body></html>"""


def test_queued_page_is_stored_by_a_worker(
    corpus_command: Run, static_site: Callable[..., Any]
) -> None:
    site = static_site({"/": PAGE})

    queued = corpus_command(site, "ingest", f"{site}/", "--queue")
    before = len(site.paths)
    worked = corpus_command(site, "jobs", "work", "--until-empty")
    shown = corpus_command(site, "jobs", "show", "1")

    assert f"- 1: {site}/\n  (waiting)" in queued.stdout
    assert "`webrag jobs work` starts one" in queued.stderr
    assert before == 0
    assert f"Job 1 ({site}/) done" in worked.stderr
    assert "State: done" in shown.stdout
    assert "The page was indexed." in shown.stdout


@pytest.mark.parametrize(("allowed", "read_by"), [("", "firecrawl"), ("127.0.0.1", "builtin")])
def test_worker_reads_pages_with_the_logins_that_are_lent_to_others(
    webrag: Run,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    allowed: str,
    read_by: str,
) -> None:
    fake = FakeFirecrawl()
    url = "https://127.0.0.1/limits"
    fake.pages[url] = document(PAGE)
    # Firecrawl is told of no page that is asked for with a login.
    headers = {"127.0.0.1": {"Authorization": "Bearer s3cret-0123456789"}}
    monkeypatch.setenv("WEBRAG_LOGIN_HEADERS", json.dumps(headers))
    monkeypatch.setenv("WEBRAG_ALLOW_LOGINS", allowed)
    monkeypatch.setenv("FIRECRAWL_API_KEY", KEY)
    monkeypatch.setenv("FIRECRAWL_API_URL", fake.url)
    place = ["--data-dir", str(database.config.data_dir), "--allow-host", "127.0.0.1"]
    place += ["--collection", database.config.collection]

    webrag("ingest", url, "--queue", *place)
    worked = webrag("jobs", "work", "--until-empty", *place)
    fake.stop()

    assert len(fake.asked("scrape")) == (read_by == "firecrawl")
    said = "done" if read_by == "firecrawl" else "waits for its next turn"
    assert f"Job 1 ({url}) {said}" in worked.stderr


def test_job_can_be_cancelled_and_retried(corpus_command: Run) -> None:
    corpus_command(None, "ingest", "https://docs.test/", "--max-pages", "9", "--queue")

    cancelled = json.loads(corpus_command(None, "jobs", "cancel", "1", "--json").stdout)
    again = json.loads(corpus_command(None, "jobs", "retry", "1", "--json").stdout)
    listed = json.loads(corpus_command(None, "jobs", "list", "--unfinished", "--json").stdout)

    assert cancelled["state"] == "cancelled"
    assert again["request"] == cancelled["request"]
    assert [job["id"] for job in listed["jobs"]] == [again["id"]]


def test_unknown_job_is_told_so(corpus_command: Run) -> None:
    ran = corpus_command(None, "jobs", "show", "9")

    assert ran.exit_code == 2
    assert "There is no job 9; `webrag jobs list` lists them." in ran.stderr


def test_schedule_is_set_shown_by_status_and_removed(corpus_command: Run) -> None:
    made = corpus_command(None, "jobs", "schedule", "https://docs.test/guide/", "--every", "7d")
    status = corpus_command(None, "status")
    removed = corpus_command(None, "jobs", "schedule", "--remove", "1")

    assert "- 1: https://docs.test/guide/\n  (every 1w; due now)" in made.stdout
    assert "Sites visited again and again: 1 (1 due, 0 failing)" in status.stdout
    assert "No site is visited again by itself" in removed.stdout


@pytest.mark.parametrize(
    "options",
    [("https://docs.test/",), ("--every", "7d"), ("https://docs.test/", "--remove", "1")],
)
def test_schedule_that_is_half_given_is_refused(corpus_command: Run, options: tuple[str]) -> None:
    ran = corpus_command(None, "jobs", "schedule", *options)

    assert ran.exit_code == 2
    assert "Give SITE with --every AGE" in ran.stderr


def test_worker_of_an_unknown_queue_is_refused(corpus_command: Run) -> None:
    ran = corpus_command(None, "jobs", "work", "--kind", "page", "--kind", "seite")

    assert ran.exit_code == 2
    assert "'seite' is not one of 'page', 'site'." in ran.stderr


def test_every_kind_of_job_can_be_named(corpus_command: Run) -> None:
    named = corpus_command(None, "jobs", "work", "--help").stdout

    for kind in get_args(JobKind):
        assert corpus_command(None, "jobs", "list", "--kind", kind).exit_code == 0
        assert kind in named


def test_worker_does_the_queues_that_are_named(
    corpus_command: Run, static_site: Callable[..., Any]
) -> None:
    site = static_site({"/": PAGE})
    corpus_command(site, "ingest", f"{site}/", "--max-pages", "9", "--queue")

    corpus_command(site, "jobs", "work", "--until-empty", "--queues", "page")
    waiting = corpus_command(site, "jobs", "list", "--kind", "site", "--unfinished")
    others = corpus_command(site, "jobs", "list", "--kind", "page")

    assert f"- 1: {site}/\n  (waiting" in waiting.stdout
    assert f"{site}/" not in others.stdout
