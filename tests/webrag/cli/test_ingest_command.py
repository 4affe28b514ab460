import gzip
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from webrag.postgres.database import Database

Run = Callable[..., Result]

PAGE = """<html><head><title>{0}</title></head><body><main><h1>{0}</h1>
<p>This page is about {0}, told at some length so that it counts as a page.</p></main></body>"""


@pytest.fixture
def site(static_site: Callable[..., Any]) -> Any:
    """Two pages."""
    return static_site({"/a": PAGE.format("apples"), "/b": PAGE.format("bananas")})


def test_ingest_reports_every_page(site: Any, corpus_command: Run) -> None:
    result = corpus_command(site, "ingest", f"{site}/a", f"{site}/b")

    assert result.exit_code == 0, result.stderr
    assert "2 of 2 pages" in result.stdout
    assert f"{site}/b" in result.stdout


def test_ingest_of_a_fresh_page_makes_no_request(site: Any, corpus_command: Run) -> None:
    corpus_command(site, "ingest", f"{site}/a")
    site.requests.clear()

    result = corpus_command(site, "ingest", f"{site}/a", "--json")

    assert json.loads(result.stdout)["pages"][0]["outcome"] == "stored"
    assert site.requests == []


def test_refresh_asks_the_site_again(site: Any, corpus_command: Run) -> None:
    corpus_command(site, "ingest", f"{site}/a")
    site.requests.clear()

    corpus_command(site, "ingest", f"{site}/a", "--refresh")

    assert "/a" in [request.path for request in site.requests]


def test_failed_page_ends_with_code_1_and_keeps_the_others(site: Any, corpus_command: Run) -> None:
    result = corpus_command(site, "ingest", f"{site}/a", f"{site}/missing", "--json")

    shown = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [page["url"] for page in shown["pages"]] == [f"{site}/a"]
    assert list(shown["failed"]) == [f"{site}/missing"]


def test_only_page_failing_is_one_sentence(site: Any, corpus_command: Run) -> None:
    result = corpus_command(site, "ingest", f"{site}/missing", "--quiet")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("Error: ")


def test_wrong_url_is_refused_before_anything_is_fetched(site: Any, corpus_command: Run) -> None:
    result = corpus_command(site, "ingest", f"{site}/a", "ftp://example.com/", "--quiet")

    assert (result.exit_code, result.stdout, site.requests) == (2, "", [])


LINKED = """<html><head><title>{0}</title></head><body><main><h1>{0}</h1>
<p>This page is about {0}, told at some length so that it counts as a page.</p>{1}</main></body>"""


@pytest.fixture
def linked_site(static_site: Callable[..., Any]) -> Any:
    """A start page in a folder, two pages below it, one beside it, and a dead link."""
    links = "".join(f'<a href="{to}">to {to}</a> ' for to in ("x", "sub/y", "/beside", "dead"))
    return static_site(
        {
            "/docs/": LINKED.format("start", links),
            "/docs/x": LINKED.format("apples", ""),
            "/docs/sub/y": LINKED.format("bananas", ""),
            "/beside": LINKED.format("cherries", ""),
        }
    )


def test_lone_page_comes_with_a_hint_to_the_rest_of_its_site(
    site: Any, corpus_command: Run
) -> None:
    result = corpus_command(site, "ingest", f"{site}/a")

    assert "add --max-pages N" in result.stderr


def test_max_pages_turns_the_crawl_on(linked_site: Any, corpus_command: Run) -> None:
    result = corpus_command(linked_site, "ingest", f"{linked_site}/docs/", "--max-pages", "50")

    assert result.exit_code == 0, result.stderr
    assert "3 pages are stored, 1 could not be fetched" in result.stdout
    assert "- 1: not found (404 or 410)" in result.stdout
    assert "Every page that was found has been visited." in result.stdout
    assert "/beside" not in linked_site.paths


def test_crawl_options_reach_the_crawl(linked_site: Any, corpus_command: Run) -> None:
    options = ["--scope", "site", "--exclude", "sub/", "--depth", "1", "--json"]

    result = corpus_command(linked_site, "ingest", f"{linked_site}/docs/", *options)

    shown = json.loads(result.stdout)
    assert (shown["pages"], shown["ended"]) == ({"indexed": 3}, "complete")
    assert shown["skipped"]["excluded by a pattern"] == 1


def test_crawl_finds_pages_that_only_the_sitemaps_list(
    static_site: Callable[..., Any], corpus_command: Run
) -> None:
    pages: dict[str, Any] = {
        "/": LINKED.format("start", ""),
        "/hidden": LINKED.format("apples", ""),
    }
    site = static_site(pages)
    index = f"<sitemapindex><sitemap><loc>{site}/all.xml.gz</loc></sitemap></sitemapindex>"
    listed = f"<urlset><url><loc>{site}/hidden</loc></url></urlset>"
    pages["/robots.txt"] = f"Sitemap: {site}/index.xml\n"
    pages["/index.xml"] = lambda _: (200, {"Content-Type": "application/xml"}, index)
    pages["/all.xml.gz"] = lambda _: (
        200, {"Content-Type": "application/gzip"}, gzip.compress(listed.encode()),
    )  # fmt: skip

    result = corpus_command(site, "ingest", f"{site}/", "--max-pages", "9", "--json")

    assert json.loads(result.stdout)["pages"] == {"indexed": 2}
    assert "/hidden" in site.paths


def test_crawl_without_a_terminal_tells_its_progress_in_lines(
    linked_site: Any, corpus_command: Run
) -> None:
    result = corpus_command(linked_site, "ingest", f"{linked_site}/docs/", "--max-pages", "9")

    assert "4 pages done, 0 waiting, 1 failed" in result.stderr


def test_crawl_that_obtains_nothing_ends_with_code_1(linked_site: Any, corpus_command: Run) -> None:
    result = corpus_command(linked_site, "ingest", f"{linked_site}/no", "--max-pages", "9")

    assert (result.exit_code, result.stdout) == (1, "")
    assert "HTTP 404" in result.stderr


def test_bad_pattern_is_refused_before_anything_is_fetched(
    linked_site: Any, corpus_command: Run
) -> None:
    result = corpus_command(linked_site, "ingest", f"{linked_site}/docs/", "--include", "^/docs")

    assert (result.exit_code, linked_site.requests) == (2, [])
    assert "The include pattern '^/docs' looks like a regular expression" in result.stderr


def test_crawl_starts_from_one_page(linked_site: Any, corpus_command: Run) -> None:
    urls = [f"{linked_site}/docs/", f"{linked_site}/beside"]

    result = corpus_command(linked_site, "ingest", *urls, "--max-pages", "9")

    assert (result.exit_code, linked_site.requests) == (2, [])
    assert "A crawl starts from one page" in result.stderr


def test_repeated_crawl_reports_fresh_pages(linked_site: Any, corpus_command: Run) -> None:
    arguments = ["ingest", f"{linked_site}/docs/", "--max-pages", "9", "--exclude", "dead"]
    corpus_command(linked_site, *arguments)
    linked_site.requests.clear()

    result = corpus_command(linked_site, *arguments)

    assert "- 3 already stored" in result.stdout
    assert not {"/docs/", "/docs/x", "/docs/sub/y"} & set(linked_site.paths)


@pytest.mark.parametrize("signal_name", ["SIGINT", "SIGKILL"])
def test_crawl_ended_by_a_signal_goes_on_where_it_was(
    static_site: Callable[..., Any],
    corpus_command: Run,
    database: Database,
    signal_name: str,
) -> None:
    names = [f"/page-{chr(97 + n)}{chr(97 + m)}" for n in range(6) for m in range(10)]

    def slowly(request: Any) -> tuple[int, dict[str, str], str]:
        time.sleep(0.1)
        return 200, {"Content-Type": "text/html"}, PAGE.format(request.path)

    links = "".join(f'<a href="{name}">to {name}</a> ' for name in names)
    site = static_site({"/": LINKED.format("start", links)} | dict.fromkeys(names, slowly))
    arguments = ["ingest", f"{site}/", "--max-pages", "100"]
    place = ["--data-dir", str(database.config.data_dir)]
    place += ["--collection", database.config.collection, "--allow-host", site.split("//")[1]]
    with subprocess.Popen(
        [sys.executable, "-m", "webrag", *arguments, *place], stderr=subprocess.PIPE, text=True
    ) as process:
        while len(site.paths) < 20 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(getattr(signal, signal_name))
        _, said = process.communicate(timeout=30)
    before = len(site.paths)

    result = corpus_command(site, *arguments, "--json")

    shown = json.loads(result.stdout)
    assert (shown["resumed"], shown["ended"]) == (True, "complete")
    # Those that were under way are asked about again.
    assert {path for path in site.paths if path.startswith("/page-")} == set(names)
    assert len(site.paths) - before <= len(names) - before + 20
    if signal_name == "SIGINT":
        assert process.returncode == 130
        assert "The same command goes on where this one stopped." in said


def test_folder_is_reported_with_what_was_left_out(corpus_command: Run, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\nSome words.\n")
    (tmp_path / "b.md").write_text("---\n")
    (tmp_path / "c.png").write_bytes(b"p")

    result = corpus_command(None, "ingest", str(tmp_path))

    assert result.exit_code == 0, result.stderr
    assert "1 of 2 pages" in result.stdout
    assert "b.md\n  (failed: holds no readable text)" in result.stdout
    assert "Left out: 1 of a kind that is not read." in result.stdout


def test_file_that_is_named_beside_its_folder_ends_with_code_1(
    corpus_command: Run, tmp_path: Path
) -> None:
    (tmp_path / "a.md").write_text("# A\n\nSome words.\n")
    empty = tmp_path / "b.md"
    empty.write_text("---\n")

    result = corpus_command(None, "ingest", str(tmp_path), str(empty))

    assert result.exit_code == 1
    assert "1 of 2 pages" in result.stdout


def closed(_request: Any) -> Any:
    return 403, {"Content-Type": "text/html"}, "<h1>Members only</h1>"


def test_reasons_of_several_failures_are_listed_with_what_helps_said_once(
    static_site: Callable[..., Any], corpus_command: Run
) -> None:
    site = static_site({"/a": closed, "/b": closed})

    result = corpus_command(site, "ingest", f"{site}/a", f"{site}/b")

    lines = result.stderr.splitlines()
    assert lines[-4:] == [
        "Error: 2 of 2 pages could not be fetched:",
        f"- The page {site}/a is not open to everyone (HTTP 403).",
        f"- The page {site}/b is not open to everyone (HTTP 403).",
        "The site may want a login, or may turn automatic readers away.",
    ]


def test_missing_file_ends_with_code_1(corpus_command: Run, tmp_path: Path) -> None:
    result = corpus_command(None, "ingest", f"{tmp_path}/missing.md")

    assert result.exit_code == 1
    assert "There is no file" in result.stderr


def test_page_of_a_private_address_comes_with_the_option_that_allows_it(
    static_site: Callable[..., Any], corpus_command: Run
) -> None:
    site = static_site({})

    result = corpus_command(None, "ingest", f"{site}/")

    host = site.removeprefix("http://")
    assert (result.exit_code, f"--allow-host {host}\n" in result.stderr) == (1, True)


def test_failures_within_a_folder_are_no_error(tmp_path: Path, corpus_command: Run) -> None:
    (tmp_path / "a.md").write_text("# Kettle\n\nClean the filter every three weeks.")
    (tmp_path / "b.html").write_text("<html><body></body></html>")

    result = corpus_command(None, "ingest", str(tmp_path))

    assert (result.exit_code, "Error" in result.stderr) == (0, False)
    assert "Note: 1 of 2 pages could not be fetched." in result.stderr
