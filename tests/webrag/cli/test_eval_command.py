import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import Result

from webrag.corpus.schema import list_collections
from webrag.evaluation.questions import EXAMPLE_LINE
from webrag.postgres.database import Database

Run = Callable[..., Result]

COMMAND = [sys.executable, "-m", "webrag", "eval"]

PAGES = {
    "index.html": """<html><head><title>Garden</title></head><body><main><h1>Garden book</h1>
<p>The garden is open to visitors from April until the first frost.</p>
<p>What is done in winter is told by <a href="trees.html">the calendar of fruit trees</a>.</p>
</main></body></html>""",
    "trees.html": """<html><head><title>Trees</title></head><body><main><h1>Apple trees</h1>
<h2>Pruning</h2><p>Apple trees are pruned in February, on a dry day without wind.</p>
<p>Other plants are in <a href="roses.html">watering the roses</a>.</p></main></body></html>""",
    "roses.html": """<html><head><title>Roses</title></head><body><main><h1>Roses</h1>
<h2>Watering</h2><p>Roses are watered at the root every evening in July.</p>
</main></body></html>""",
}
QUESTIONS = [
    {
        "id": "prune", "query": "When are apple trees pruned?", "site": "garden",
        "seed_url": "index.html", "type": "linked",
        "gold": [{"page": "trees.html", "quote": "Apple trees are pruned in February"}],
    },
    {
        "id": "visit", "query": "When is the garden open to visitors?", "site": "garden",
        "seed_url": "index.html", "type": "seed",
        "gold": [{"page": "index.html", "quote": "open to visitors from April"}],
    },
    {
        "id": "hopeless", "query": "Which compiler flag enables vectorisation?", "site": "garden",
        "seed_url": "index.html", "type": "unanswerable", "gold": [],
    },
]  # fmt: skip


class Files(NamedTuple):
    """Where the questions, the sites and the run file are."""

    questions: Path
    sites: Path
    out: Path

    @property
    def local(self) -> list[str]:
        """Arguments for an evaluation of the folder."""
        return [str(self.questions), "--site-root", str(self.sites), "--out", str(self.out)]

    def run(self) -> list[dict[str, Any]]:
        """The lines of the run file."""
        return [json.loads(line) for line in self.out.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    garden = tmp_path / "sites" / "garden"
    garden.mkdir(parents=True)
    for name, text in PAGES.items():
        (garden / name).write_text(text, encoding="utf-8")
    questions = tmp_path / "questions.jsonl"
    questions.write_text("".join(json.dumps(each) + "\n" for each in QUESTIONS), encoding="utf-8")
    return Files(questions, garden.parent, tmp_path / "run.jsonl")


def test_whole_setting_prints_figures_and_writes_a_line_per_question(
    files: Files, corpus_command: Run
) -> None:
    result = corpus_command(None, "eval", *files.local)

    assert result.exit_code == 0, result.stderr
    lines = files.run()
    assert [line["id"] for line in lines] == ["prune", "visit", "hopeless"]
    assert [line["abstained"] for line in lines] == [False, False, True]
    assert [line["urls_fetched"] for line in lines] == [[], [], []]
    assert all(line["ms"] > 0 for line in lines)
    assert "pruned in February" in lines[0]["retrieved"][0]["text"]
    assert lines[0]["retrieved"][0]["url"].endswith("/trees.html")
    assert lines[0]["citations"][0]["verbatim"] is True
    assert "citation fidelity" in result.stdout
    assert "linked" in result.stdout


def test_what_is_stored_is_searched_and_stays(files: Files, corpus_command: Run) -> None:
    ingested = corpus_command(None, "ingest", str(files.sites / "garden"))
    assert ingested.exit_code == 0, ingested.stderr

    result = corpus_command(None, "eval", str(files.questions), "--stored", "--out", str(files.out))

    assert result.exit_code == 0, result.stderr
    prune, visit, hopeless = files.run()
    assert "pruned in February" in prune["retrieved"][0]["text"]
    assert prune["retrieved"][0]["url"].startswith("file://")
    assert (visit["abstained"], hopeless["abstained"]) == (False, True)
    assert "Pages stored: 3" in corpus_command(None, "status").stdout


def test_an_empty_collection_is_no_result(files: Files, corpus_command: Run) -> None:
    result = corpus_command(None, "eval", str(files.questions), "--stored", "--out", str(files.out))

    assert result.exit_code != 0
    assert "Nothing is stored in the collection" in result.stderr
    assert result.stdout == ""


def test_answers_are_judged_by_band(files: Files, corpus_command: Run) -> None:
    result = corpus_command(None, "eval", *files.local, "--ask")

    assert result.exit_code == 0, result.stderr
    prune, _, hopeless = files.run()
    assert any("pruned in February" in said for said in prune["answer"])
    assert prune["citations"][0]["verbatim"] is True
    assert (prune["retrieved"], hopeless["confidence_band"]) == ([], "none")
    assert "gold in the answer" in result.stdout
    assert re.search(r"sentences their citation holds +1\.000", result.stdout)
    assert "confidence" in result.stdout


def test_answers_from_the_seed_page_follow_links_when_deep(
    files: Files, corpus_command: Run
) -> None:
    arguments = [*files.local, "--ask", "--setting", "seed", "--deep", "--limit", "1"]

    result = corpus_command(None, "eval", *arguments)

    assert result.exit_code == 0, result.stderr
    assert any("pruned in February" in said for said in files.run()[0]["answer"])


def test_seed_setting_starts_from_the_seed_page(files: Files, corpus_command: Run) -> None:
    result = corpus_command(None, "eval", *files.local, "--setting", "seed")

    assert result.exit_code == 0, result.stderr
    fetched = [[url.rsplit("/", 1)[1] for url in line["urls_fetched"]] for line in files.run()]
    assert [pages[0] for pages in fetched] == ["index.html"] * 3


def test_deep_seed_setting_follows_links(files: Files, corpus_command: Run) -> None:
    arguments = [*files.local, "--setting", "seed", "--deep", "--limit", "1"]

    result = corpus_command(None, "eval", *arguments)

    assert result.exit_code == 0, result.stderr
    line = files.run()[0]
    assert line["retrieved"][0]["url"].endswith("/trees.html")
    assert {"index.html", "trees.html"} <= {url.rsplit("/", 1)[1] for url in line["urls_fetched"]}


def test_site_that_is_served_already_is_crawled(
    files: Files, corpus_command: Run, static_site: Callable[..., Any]
) -> None:
    site = static_site(files.sites / "garden")

    result = corpus_command(
        None, "eval", str(files.questions), "--base-url", site.url, "--out", str(files.out),
        "--max-pages", "2",
    )  # fmt: skip

    assert result.exit_code == 0, result.stderr
    assert [path for path in site.paths if "." not in path or "html" in path] == [
        "/",
        "/trees.html",
    ]
    assert files.run()[0]["retrieved"][0]["url"] == f"{site}/trees.html"


def test_limit_asks_the_first_questions_only(files: Files, corpus_command: Run) -> None:
    corpus_command(None, "eval", *files.local, "--limit", "2", "--setting", "seed")

    assert [line["id"] for line in files.run()] == ["prune", "visit"]


def test_hidden_folders_are_not_pages_of_the_site(files: Files, corpus_command: Run) -> None:
    hidden = files.sites / "garden" / ".cache"
    hidden.mkdir()
    (hidden / "copy.html").write_text(PAGES["trees.html"].replace("February", "May"), "utf-8")

    corpus_command(None, "eval", *files.local, "--limit", "1")

    assert not [each for each in files.run()[0]["retrieved"] if "/.cache/" in each["url"]]


def test_help_shows_a_line_of_the_questions_file(webrag: Run) -> None:
    shown = webrag("eval", "--help").stdout

    example = shown[shown.index("{") : shown.rindex("}") + 1]
    assert json.loads(example) == json.loads(EXAMPLE_LINE)


def test_site_root_that_is_the_site_itself_is_told_its_parent(files: Files, webrag: Run) -> None:
    own = files.sites / "garden"

    result = webrag("eval", str(files.questions), "--out", str(files.out), "--site-root", str(own))

    assert result.exit_code == 2
    assert f"try --site-root {files.sites}." in result.stderr


async def test_temporary_corpus_is_gone_afterwards(files: Files, database: Database) -> None:
    command = [*COMMAND, *files.local, "--limit", "1", "--quiet"]
    place = ["--data-dir", str(database.config.data_dir)]

    with subprocess.Popen([*command, *place]) as process:
        process.wait(timeout=60)

    assert process.returncode == 0
    assert [
        name for name in await list_collections(database) if name.endswith(f"_{process.pid}")
    ] == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        pytest.param([], "one of --site-root, --base-url and --stored", id="no-site"),
        pytest.param(["--stored", "--setting", "seed"], "--stored searches", id="stored-seed"),
        pytest.param(
            ["--site-root", "SITES", "--base-url", "http://127.0.0.1:1/"],
            "one of --site-root, --base-url and --stored",
            id="both-sites",
        ),
        pytest.param(
            ["--site-root", "SITES", "--deep"], "--deep belongs to --setting seed", id="whole-deep"
        ),
        pytest.param(["--site-root", "EMPTY"], "'garden' has no folder in", id="unknown-site"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_before_any_work(
    arguments: list[str], reason: str, files: Files, corpus_command: Run
) -> None:
    (files.sites.parent / "empty").mkdir()
    places = {"SITES": str(files.sites), "EMPTY": str(files.sites.parent / "empty")}
    given = [places.get(each, each) for each in arguments]

    result = corpus_command(None, "eval", str(files.questions), "--out", str(files.out), *given)

    assert (result.exit_code, result.stdout) == (2, "")
    assert reason in result.stderr
    assert not files.out.exists()


def test_missing_questions_file_is_named(files: Files, corpus_command: Run) -> None:
    files.questions.unlink()

    result = corpus_command(None, "eval", *files.local)

    assert result.exit_code == 2
    assert f"The questions file {files.questions} cannot be read" in result.stderr


def test_run_file_that_cannot_be_written_is_told_before_any_work(
    files: Files, corpus_command: Run
) -> None:
    out = files.out.parent / "none" / "run.jsonl"

    result = corpus_command(None, "eval", *files.local[:-1], str(out))

    assert result.exit_code == 2
    assert f"The file {out} cannot be written" in result.stderr
    assert "questions" not in result.stderr


def test_earlier_run_file_survives_an_evaluation_that_fails(
    files: Files, webrag: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.out.write_text('{"id": "earlier"}\n', encoding="utf-8")
    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/none")

    result = webrag("eval", *files.local)

    assert result.exit_code == 1
    assert files.run() == [{"id": "earlier"}]
    assert list(files.out.parent.glob("run.jsonl.*")) == []


def test_earlier_run_file_is_replaced_by_one_that_ends(files: Files, corpus_command: Run) -> None:
    files.out.write_text('{"id": "earlier"}\n' * 9, encoding="utf-8")

    corpus_command(None, "eval", *files.local, "--limit", "1")

    assert [line["id"] for line in files.run()] == ["prune"]
    assert list(files.out.parent.glob("run.jsonl.*")) == []


def test_lines_of_an_interrupted_evaluation_are_kept_beside_the_earlier_run_file(
    files: Files, postgres_dir: Path, static_site: Callable[..., Any]
) -> None:
    reached, released = threading.Event(), threading.Event()

    def hang(_: object) -> tuple[int, dict[str, str], str]:
        reached.set()
        released.wait(30)
        return 404, {}, ""

    site = static_site({"/index.html": PAGES["index.html"], "/slow.html": hang})
    second = {"id": "slow", "query": "Why?", "seed_url": "slow.html"}
    asked = [{**QUESTIONS[0], "site": ""}, second]
    files.questions.write_text("\n".join(map(json.dumps, asked)), encoding="utf-8")
    files.out.write_text('{"id": "earlier"}\n', encoding="utf-8")
    command = [*COMMAND, str(files.questions), "--base-url", site.url, "--out", str(files.out)]
    command += ["--setting", "seed", "--data-dir", str(postgres_dir)]

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert reached.wait(60)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
        released.set()

    kept = files.out.with_name(f"run.jsonl.{process.pid}.partial")
    assert process.returncode == 130
    assert str(kept) in told
    assert [json.loads(line)["id"] for line in kept.read_text("utf-8").splitlines()] == ["prune"]
    assert files.run() == [{"id": "earlier"}]


def test_device_as_run_file_is_written_to_and_not_replaced(
    files: Files, corpus_command: Run
) -> None:
    result = corpus_command(None, "eval", *files.local[:-1], os.devnull, "--limit", "1")

    assert result.exit_code == 0, result.stderr
    assert Path(os.devnull).is_char_device()


def test_run_file_that_is_a_link_is_written_where_it_leads(
    files: Files, corpus_command: Run
) -> None:
    target = files.out.with_name("target.jsonl")
    files.out.symlink_to(target)

    corpus_command(None, "eval", *files.local, "--limit", "1")

    assert files.out.is_symlink()
    assert target.read_text(encoding="utf-8").startswith('{"id":"prune"')


def test_crawl_that_was_cut_is_told_loudly_beside_what_was_missed(
    files: Files, corpus_command: Run, static_site: Callable[..., Any]
) -> None:
    site = static_site(files.sites / "garden")

    result = corpus_command(
        None, "eval", str(files.questions), "--base-url", site.url, "--out", str(files.out),
        "--max-pages", "1",
    )  # fmt: skip

    assert result.exit_code == 0, result.stderr
    assert "Warning: The crawl of" in result.stderr
    assert "stopped after 1 pages" in result.stderr
    assert "Evidence missing from the first 10 passages: prune" in result.stdout


def test_gold_that_is_not_on_its_page_is_told(files: Files, corpus_command: Run) -> None:
    wrong = {"page": "trees.html", "quote": "pruned in March"}
    files.questions.write_text(json.dumps({**QUESTIONS[0], "gold": [wrong]}), encoding="utf-8")

    result = corpus_command(None, "eval", *files.local)

    assert result.exit_code == 0, result.stderr
    assert "Warning: 1 of 1 gold quotations do not stand on the page they name" in result.stderr
