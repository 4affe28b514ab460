import time
from itertools import count

import pytest

from webrag.cli.running import count_progress, crawl_progress, run_progress, start_progress
from webrag.crawling.report import CrawlProgress


def crawl_at(done: int, queued: int) -> CrawlProgress:
    return CrawlProgress(done=done, queued=queued, failed=1, pages_per_second=7.25)


def test_crawl_without_a_terminal_is_told_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with crawl_progress(quiet=False) as report:
        for done in range(1, 1_001):
            report(crawl_at(done, 1_000 - done))

    assert capsys.readouterr().err == (
        "Looking at the start page\n1,000 pages done, 0 waiting, 1 failed, 7.2 pages/s\n"
    )


def test_crawl_is_live_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")

    with crawl_progress(quiet=False) as report:
        report(crawl_at(3, 4))

    assert "3 pages done, 4 waiting, 1 failed" in capsys.readouterr().err


def test_quiet_crawl_shows_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with crawl_progress(quiet=True) as report:
        report(crawl_at(3, 0))

    assert capsys.readouterr().err == ""


async def test_steps_are_plain_lines_without_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with run_progress(quiet=False, verbose=False) as report:
        await report("retrieve", "searching")
        await report("retrieve", "searching")
        await report("expand", "following 3 links", 1, 5)

    captured = capsys.readouterr()
    assert captured.err == "searching\nRound 1 of 5: following 3 links\n"
    assert captured.out == ""


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ("Checking if https://a.example/ is indexed...", "Reading https://a.example/"),
        ("Reranking 0 chunks...", "No passage was found there"),
        ("Assembling results (0 chunks, 0 tokens)...", "Nothing was found"),
    ],
)
async def test_step_is_told_as_what_happens(
    step: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with run_progress(quiet=False, verbose=False) as report:
        await report("", step)

    assert capsys.readouterr().err == f"{told}\n"


async def test_quiet_run_shows_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with run_progress(quiet=True, verbose=False) as report:
        await report("retrieve", "searching")

    assert capsys.readouterr().err == ""


async def test_phases_are_live_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")

    with run_progress(quiet=False, verbose=False) as report:
        await report("retrieve", "[link] searching")

    captured = capsys.readouterr()
    assert "[link] searching" in captured.err
    assert captured.err.endswith("\x1b[2K")
    assert captured.out == ""


def test_plain_progress_of_many_pages_is_told_every_five_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(seconds)))

    with count_progress(quiet=False) as report:
        for done in range(21):
            report("Pages", done, 20)

    numbers = [line.split()[1] for line in capsys.readouterr().err.splitlines()]
    assert numbers == ["4", "9", "14", "19", "20"]


def test_evaluation_shows_each_stage(capsys: pytest.CaptureFixture[str]) -> None:
    with count_progress(quiet=False) as report:
        report("ingesting", 1, 1)
        report("asking", 1, 2)
        report("asking", 2, 2)

    assert capsys.readouterr().err == "ingesting: 1 of 1\nasking: 2 of 2\n"


@pytest.mark.parametrize(("color", "is_shown"), [("1", True), ("", False)])
def test_start_is_shown_on_a_terminal_alone_until_it_is_over(
    color: str, is_shown: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", color)
    monkeypatch.setenv("TERM", "xterm")

    with start_progress("Opening what is stored", quiet=False) as is_over:
        is_over()
        shown = capsys.readouterr().err

    assert ("Opening what is stored" in shown) == is_shown
    assert capsys.readouterr().err == ""
