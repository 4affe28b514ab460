"""Questions whose words the pages spell otherwise."""

from collections.abc import Awaitable, Callable

import pytest

from webrag.concurrency import run_blocking
from webrag.corpus.models import AcquiredPage
from webrag.retrieval.filters import SearchFilters
from webrag.retrieval.search import Searcher

AddPage = Callable[..., Awaitable[AcquiredPage]]
Make = Callable[..., Searcher]

JOIN = """# Concatenate

To concatenate video files, list them in a text file.

## Several video files

Concatenate several video files without encoding them again.

## The file name

The file name of the output comes last. A file name may hold spaces.
"""
OTHER = """# Subtitles

Subtitles are muxed as a stream of their own. A runtime is chosen, and the runtime is kept.

## Fonts

Subtitles need fonts; fonts are attached.
"""


@pytest.fixture
async def manual(add_page: AddPage) -> None:
    await add_page("https://video.test/join", "Concatenate", JOIN)
    await add_page("https://subs.test/subtitles", "Subtitles", OTHER)


@pytest.mark.usefixtures("manual")
async def test_a_misspelt_question_finds_what_the_right_one_finds(make_searcher: Make) -> None:
    searcher = make_searcher()

    misspelt = await searcher.retrieve("conactenate vidoe")
    right = await searcher.retrieve("concatenate video")

    assert misspelt.also_searched == {"conactenate": "concatenate", "vidoe": "video"}
    assert misspelt.chunks == right.chunks
    assert misspelt.term_idf == right.term_idf


@pytest.mark.usefixtures("manual")
def test_without_an_event_loop_the_same_is_found(make_searcher: Make) -> None:
    found = run_blocking(make_searcher().retrieve("conactenate vidoe"))

    assert found.also_searched == {"conactenate": "concatenate", "vidoe": "video"}


@pytest.mark.usefixtures("manual")
async def test_a_question_whose_words_are_all_there_stays_as_it_is(make_searcher: Make) -> None:
    found = await make_searcher().retrieve("How do I concatenate several video files?")

    assert found.also_searched == {}


@pytest.mark.usefixtures("manual")
async def test_one_word_stands_for_two_that_follow_each_other(make_searcher: Make) -> None:
    found = await make_searcher().retrieve("choose the filename")

    assert found.also_searched["filename"] == "file name"


@pytest.mark.usefixtures("manual")
async def test_words_that_never_follow_each_other_are_not_two_parts(make_searcher: Make) -> None:
    found = await make_searcher().retrieve("choose the videospaces")

    assert "videospaces" not in found.also_searched


@pytest.mark.usefixtures("manual")
@pytest.mark.parametrize("pair", ["run time", "run-time"])
async def test_two_words_find_one_that_the_pages_have(make_searcher: Make, pair: str) -> None:
    found = await make_searcher().retrieve(f"which {pair} is kept")

    best = max(found.chunks, key=lambda each: each.score)
    assert found.also_searched == {}
    assert "runtime" in best.text


@pytest.mark.usefixtures("manual")
async def test_only_what_may_be_returned_says_how_words_are_spelt(make_searcher: Make) -> None:
    filters = SearchFilters(sites=("subs.test",))

    found = await make_searcher().retrieve("conactenate subtitels", filters=filters)

    assert found.also_searched == {"subtitels": "subtitles"}
